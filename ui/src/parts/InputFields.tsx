import type { AppInput, AppInputConfig } from '../api/types'
import { Check, SelectField, TextArea, TextField } from '../base/Field'
import styles from './InputFields.module.css'

interface Props {
  config: AppInputConfig
  values: Record<string, string>
  /** What is set already: shown where nothing was typed. */
  current?: Record<string, string> | undefined
  onChange: (values: Record<string, string>) => void
}

/** Inputs that people set: the app's own ones, without those that only its customer or Ferry sets. */
export const shownInputs = (config: AppInputConfig): AppInput[] => (config.inputs ?? []).filter((it) => !it.internal).toSorted((a, b) => a.index - b.index)

/** The first required input that has no value. */
export function missingInput(config: AppInputConfig, values: Record<string, string>): AppInput | undefined {
  return shownInputs(config).find((it) => it.required && it.source !== 'customer' && (it.default ?? '') === '' && !values[it.name])
}

/** A form made from the app's inputs, by group. */
export function InputFields({ config, values, current, onChange }: Props) {
  const inputs = shownInputs(config)
  const groups = (config.input_groups ?? []).toSorted((a, b) => a.index - b.index)
  const loose = inputs.filter((it) => !groups.some((group) => group.id === it.group_id))
  const field = (it: AppInput) => <Input key={it.id} input={it} value={values[it.name]} current={current?.[it.name]} onChange={(value) => onChange(value === undefined ? without(values, it.name) : { ...values, [it.name]: value })} />
  return (
    <>
      {groups.map((group) => {
        const mine = inputs.filter((it) => it.group_id === group.id)
        if (mine.length === 0) return null
        return (
          <fieldset key={group.id} className={styles.group}>
            <legend>
              <bdi>{group.display_name || group.name}</bdi>
            </legend>
            {group.description && <p className="muted" dir="auto">{group.description}</p>}
            {mine.map(field)}
          </fieldset>
        )
      })}
      {loose.length > 0 && <fieldset className={styles.group}>{loose.map(field)}</fieldset>}
    </>
  )
}

function without(values: Record<string, string>, name: string): Record<string, string> {
  const { [name]: _, ...rest } = values
  return rest
}

function Input({ input: it, value, current, onChange }: { input: AppInput; value: string | undefined; current: string | undefined; onChange: (value: string | undefined) => void }) {
  const shown = value ?? current ?? it.default ?? ''
  const label = (
    <>
      <bdi>{it.display_name || it.name}</bdi> <code className="muted">{it.name}</code>
    </>
  )
  const limits = [it.description, it.source === 'customer' ? 'The customer sets it in the stack.' : '', it.min || it.max ? `Between ${it.min ?? 'any'} and ${it.max ?? 'any'}.` : '', it.required ? 'Required.' : ''].filter(Boolean).join(' ')
  if (it.source === 'customer') return <TextField label={label} hint={limits} value={current ?? ''} readOnly />
  if (it.type === 'bool' || it.type === 'boolean') {
    return <Check label={label} hint={limits} checked={shown === 'true'} onChange={(event) => onChange(String(event.target.checked))} />
  }
  if (it.options?.length) {
    return (
      <SelectField label={label} hint={limits} value={shown} onChange={(event) => onChange(event.target.value)}>
        {!it.options.includes(shown) && <option value={shown}>{shown || 'choose'}</option>}
        {it.options.map((option) => (
          <option key={option} value={option}>
            {option}
          </option>
        ))}
      </SelectField>
    )
  }
  if (it.sensitive) {
    return <TextField label={label} hint={`${limits} ${current ? 'It is set; leave it empty to keep it.' : 'It is stored encrypted and never shown.'}`.trim()} type="password" value={value ?? ''} onChange={(event) => onChange(event.target.value || undefined)} autoComplete="new-password" />
  }
  if (it.type === 'json' || it.type === 'list' || it.type === 'map') {
    return <TextArea label={label} hint={`${limits} As JSON.`.trim()} value={shown} onChange={(event) => onChange(event.target.value)} spellCheck={false} />
  }
  return (
    <TextField
      label={label}
      hint={limits}
      type={it.type === 'number' ? 'number' : 'text'}
      value={shown}
      min={it.min}
      max={it.max}
      onChange={(event) => onChange(event.target.value)}
      autoComplete="off"
    />
  )
}
