//! Watches for everything that ends an execution early: a cancellation, its timeout, silence of the control plane, the
//! disk quota. The first one wins.

use std::path::PathBuf;
use std::time::Duration;

use tokio::signal::unix::Signal;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::{Instant, MissedTickBehavior, interval, sleep_until};

use crate::confine::limits;
use crate::confine::process::{Stop, since_boot};
use crate::directory::ExecutionDir;

/// The cancel file is looked at this often; the session sends a signal besides.
const LOOK: Duration = Duration::from_millis(250);
/// The disk is measured with every so many looks.
const LOOKS_PER_MEASURE: u32 = 4;

#[derive(Debug, Clone, Copy)]
pub(super) struct Bounds {
    pub(super) timeout_s: u64,
    pub(super) offline_s: u64,
    pub(super) disk_bytes: u64,
}

pub(super) fn start(dir: ExecutionDir, bounds: Bounds, term: Signal) -> watch::Receiver<Option<Stop>> {
    let (sender, receiver) = watch::channel(None);
    // Ends with the runtime: an executor carries out one execution and exits.
    tokio::spawn(async move {
        let stop = first_reason(&dir, bounds, term).await;
        sender.send_replace(Some(stop));
        // Keeps the channel open: a closed one would look like a change to those who wait on it.
        std::future::pending::<()>().await;
    });
    receiver
}

/// Waits for a reason to stop.
pub(super) async fn stopped(stop: &mut watch::Receiver<Option<Stop>>) -> Stop {
    let reason = stop.wait_for(Option::is_some).await.ok().and_then(|stop| stop.clone());
    reason.unwrap_or_else(|| Stop::Cancelled("the executor is going down".into()))
}

/// The reasons to stop, and one more for what fills a directory of the runner's own, beside the execution's: the disk has
/// lost more than it may take.
pub(super) fn also_disk(
    mut stop: watch::Receiver<Option<Stop>>,
    place: PathBuf,
    disk_bytes: u64,
) -> (watch::Receiver<Option<Stop>>, JoinHandle<()>) {
    let (sender, receiver) = watch::channel(stop.borrow().clone());
    let task = tokio::spawn(async move {
        let free = || limits::disk_free_bytes(&place).ok();
        let before = free();
        let mut reason = None;
        while reason.is_none() {
            let _ = tokio::time::timeout(LOOK * LOOKS_PER_MEASURE, stop.changed()).await;
            let taken = before.and_then(|before| Some(before.saturating_sub(free()?)));
            let full = taken.is_some_and(|taken| taken > disk_bytes).then_some(Stop::DiskQuota(disk_bytes));
            reason = stop.borrow().clone().or(full);
        }
        sender.send_replace(reason);
        // Keeps the channel open: a closed one would look like a change.
        std::future::pending::<()>().await;
    });
    (receiver, task)
}

async fn first_reason(dir: &ExecutionDir, bounds: Bounds, mut term: Signal) -> Stop {
    let started = Instant::now();
    // The start was the first answer, though this process may have begun later.
    let mut renewed = (dir.renewed(), dir.started_at().unwrap_or_else(since_boot));
    let mut looks = 0u32;
    let mut measure: Option<JoinHandle<u64>> = None;
    let mut look = interval(LOOK);
    look.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            _ = term.recv() => {
                return Stop::Cancelled(dir.cancel_reason().unwrap_or_else(|| "the executor was told to stop".into()));
            }
            () = sleep_until(started + Duration::from_secs(bounds.timeout_s)) => {
                return Stop::TimedOut(bounds.timeout_s);
            }
            Ok(bytes) = async { measure.as_mut().expect("it is there, says the condition").await },
                if measure.is_some() =>
            {
                measure = None;
                if bytes > bounds.disk_bytes {
                    return Stop::DiskQuota(bounds.disk_bytes);
                }
                continue;
            }
            _ = look.tick() => {}
        }
        if let Some(reason) = dir.cancel_reason() {
            return Stop::Cancelled(reason);
        }
        let counter = dir.renewed();
        if counter != renewed.0 {
            renewed = (counter, since_boot());
        }
        let silent = since_boot().saturating_sub(renewed.1);
        if silent >= Duration::from_secs(bounds.offline_s) {
            return Stop::Offline(silent.as_secs());
        }
        looks += 1;
        if measure.is_none() && looks.is_multiple_of(LOOKS_PER_MEASURE) {
            let work = dir.work();
            // In a thread of its own: a million files take a while.
            measure = Some(tokio::task::spawn_blocking(move || limits::disk_bytes(&work, bounds.disk_bytes)));
        }
    }
}
