import { Empty } from '../../base/Failure'
import { CommandLine } from '../../parts/Page'
import { ComponentActions } from './ComponentActions'
import { ComponentTable } from './ComponentTable'
import { useInstall } from './use-install'

export function Components() {
  const data = useInstall()
  return (
    <>
      {data.components.length === 0 ? <Empty command={`ferry apps sync . --app ${data.install.app_name}`}>The app has no components yet.</Empty> : <ComponentTable data={data} menu={(row) => <ComponentActions data={data} row={row} />} />}
      <CommandLine text={`ferry installs components ${data.install.name}`} />
    </>
  )
}
