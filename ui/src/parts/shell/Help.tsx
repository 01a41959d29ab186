import { Dialog } from '../../base/Dialog'
import { Check } from '../../base/Field'
import { setPrefs, usePrefs } from '../prefs'
import { useAllShortcuts } from '../shortcuts'
import styles from './Help.module.css'

const shown = (keys: string) => keys.replace('mod+k', 'Ctrl-K')

/** The keys of this page and of every page. */
export function Help({ open, onClose }: { open: boolean; onClose: () => void }) {
  const all = useAllShortcuts()
  const prefs = usePrefs()
  return (
    <Dialog open={open} onClose={onClose} title="Keys">
      <dl className={styles.keys}>
        {all.map((it) => (
          <div key={it.keys}>
            <dt>
              <kbd>{shown(it.keys)}</kbd>
            </dt>
            <dd>{it.does}</dd>
          </div>
        ))}
        <div>
          <dt>
            <kbd>Escape</kbd>
          </dt>
          <dd>Close a dialog or menu</dd>
        </div>
      </dl>
      <Check label="Single-key shortcuts" hint="Ctrl-K works either way." checked={prefs.shortcuts} onChange={(event) => setPrefs({ shortcuts: event.target.checked })} />
    </Dialog>
  )
}
