import { Empty } from '../base/Failure'

export function Lost() {
  return (
    <main className="stack" style={{ padding: 24 }}>
      <h1>Not found</h1>
      <Empty>
        There is no page at this address. <a href="/">Go to the fleet</a>.
      </Empty>
    </main>
  )
}
