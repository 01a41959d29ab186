//! The trace that the work at hand belongs to. It is carried beside the work, and written down where the work becomes durable: with a
//! workflow, and in the spec of a job.

use model::TraceContext;

tokio::task_local! {
    static CURRENT: Option<TraceContext>;
}

/// Does something within a trace; None: within none.
pub async fn within<T>(context: Option<TraceContext>, work: impl Future<Output = T>) -> T {
    CURRENT.scope(context, work).await
}

pub fn current() -> Option<TraceContext> {
    CURRENT.try_with(Clone::clone).ok().flatten()
}
