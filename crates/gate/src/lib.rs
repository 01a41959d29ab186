//! Owns the tasks of a process: whatever is spawned goes through a gate, is told to stop, and is waited for.

use std::time::Duration;

use tokio::task::JoinHandle;
use tokio_util::sync::{CancellationToken, WaitForCancellationFuture};
use tokio_util::task::TaskTracker;

/// A gate: cheap to clone, all clones are one.
#[derive(Debug, Clone, Default)]
pub struct Gate {
    tasks: TaskTracker,
    stop: CancellationToken,
}

impl Gate {
    /// Spawns work that looks by itself whether it shall stop.
    pub fn spawn(&self, work: impl Future<Output = ()> + Send + 'static) -> JoinHandle<()> {
        self.tasks.spawn(work)
    }

    /// Spawns work that may end anywhere: it is dropped when the gate closes.
    pub fn spawn_until_stopped(&self, work: impl Future<Output = ()> + Send + 'static) -> JoinHandle<()> {
        let stop = self.stop.clone();
        self.tasks.spawn(async move {
            tokio::select! {
                () = stop.cancelled() => {}
                () = work => {}
            }
        })
    }

    /// For those who pass it on.
    pub fn token(&self) -> CancellationToken {
        self.stop.clone()
    }

    /// Ready when everything shall stop.
    pub fn cancelled(&self) -> WaitForCancellationFuture<'_> {
        self.stop.cancelled()
    }

    pub fn is_cancelled(&self) -> bool {
        self.stop.is_cancelled()
    }

    /// Tells everything to stop.
    pub fn cancel(&self) {
        self.stop.cancel();
    }

    /// Tells everything to stop and waits until it has; false where something did not within that time.
    pub async fn close(&self, patience: Duration) -> bool {
        self.stop.cancel();
        self.tasks.close();
        tokio::time::timeout(patience, self.tasks.wait()).await.is_ok()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU32, Ordering};

    use super::*;

    #[tokio::test]
    async fn a_closed_gate_has_nothing_behind_it() {
        let (gate, ended) = (Gate::default(), Arc::new(AtomicU32::new(0)));
        let (own, count) = (gate.clone(), Arc::clone(&ended));
        gate.spawn(async move {
            own.cancelled().await;
            count.fetch_add(1, Ordering::Relaxed);
        });
        gate.spawn_until_stopped(std::future::pending());
        assert!(gate.close(Duration::from_secs(10)).await);
        assert_eq!(ended.load(Ordering::Relaxed), 1, "it was waited for");
    }

    #[tokio::test]
    async fn what_does_not_stop_is_not_waited_for_without_end() {
        let gate = Gate::default();
        gate.spawn(std::future::pending());
        assert!(!gate.close(Duration::from_millis(10)).await);
    }
}
