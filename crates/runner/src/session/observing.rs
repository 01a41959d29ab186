//! Keeps the process alive that observes what is deployed, while there is something to observe.

use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

use fs_err as fs;
use tokio::process::{Child, ChildStdin, Command};

use crate::directory::{ExecutionContext, ExecutionDir, remove_tree};
use model::env;

/// Its files in the state directory.
pub const HEALTH_DIR: &str = "health";
const PAUSE_MIN: Duration = Duration::from_secs(1);
const PAUSE_MAX: Duration = Duration::from_secs(60);
/// One that lived for so long died of something else than the one before.
const LASTED: Duration = Duration::from_secs(120);
/// How long it may take to end its probes before it is killed.
const GRACE: Duration = Duration::from_secs(2);

struct Running {
    child: Child,
    /// It ends when this is closed.
    stdin: Option<ChildStdin>,
    version: u64,
    since: Instant,
}

/// The watcher, and what is wanted of it.
#[derive(Default)]
pub(super) struct Observer {
    wanted: u64,
    running: Option<Running>,
    /// One that was told to end, and when it is killed.
    ending: Option<(Child, Instant)>,
    /// The list of which there was nothing to observe.
    idle: Option<u64>,
    retry_at: Option<Instant>,
    pause: Duration,
}

impl Observer {
    /// There is another list of what to observe.
    pub(super) fn want(&mut self, version: u64) {
        self.wanted = version;
        (self.retry_at, self.pause) = (None, PAUSE_MIN);
    }

    /// Ends it, with the programs that it has started.
    pub(super) async fn stop(&mut self) {
        self.end();
        if let Some((mut child, _)) = self.ending.take() {
            let _ = tokio::time::timeout(GRACE, child.wait()).await;
        }
    }

    fn end(&mut self) {
        if let Some(Running { child, stdin, .. }) = self.running.take() {
            drop(stdin);
            self.ending = Some((child, Instant::now() + GRACE));
        }
    }

    /// Whether one that was told to end takes its time.
    fn is_ending(&mut self) -> bool {
        let takes =
            |(child, until): &mut (Child, Instant)| matches!(child.try_wait(), Ok(None)) && Instant::now() < *until;
        let ending = self.ending.as_mut().is_some_and(takes);
        if !ending {
            self.ending = None;
        }
        ending
    }

    /// Starts it, or starts it again, where that is due.
    pub(super) fn look(&mut self, state_dir: &Path, disabled: bool, context: impl FnOnce() -> ExecutionContext) {
        if let Some(running) = &mut self.running {
            match running.child.try_wait() {
                Ok(None) if running.version == self.wanted && !disabled => return,
                Ok(None) => self.end(),
                Ok(Some(status)) => {
                    if status.success() {
                        self.idle = Some(running.version);
                    } else {
                        tracing::warn!(%status, "what observes the install's health has ended; it is started again");
                        self.pause = if running.since.elapsed() > LASTED { PAUSE_MIN } else { self.pause };
                        self.retry_at = Some(Instant::now() + self.pause);
                        self.pause = (self.pause * 2).clamp(PAUSE_MIN, PAUSE_MAX);
                    }
                }
                Err(_) => {}
            }
            self.running = None;
        }
        if self.is_ending() {
            return;
        }
        let waits = self.retry_at.is_some_and(|at| Instant::now() < at);
        if disabled || waits || self.wanted == 0 || self.idle == Some(self.wanted) {
            return;
        }
        match start(state_dir, &context()) {
            Ok((child, stdin)) => {
                let (version, since) = (self.wanted, Instant::now());
                self.running = Some(Running { child, stdin, version, since });
            }
            Err(error) => {
                tracing::error!(%error, "health can't be observed");
                self.retry_at = Some(Instant::now() + PAUSE_MAX);
            }
        }
    }
}

fn start(state_dir: &Path, context: &ExecutionContext) -> std::io::Result<(Child, Option<ChildStdin>)> {
    let place = state_dir.join(HEALTH_DIR);
    // Of probes that are not there any more.
    let _ = remove_tree(&place.join("work"));
    fs::create_dir_all(place.join("work"))?;
    let dir = ExecutionDir::open(&place)?;
    dir.write_json("context.json", context)?;
    let log = fs::File::create(place.join("watcher.log"))?.into_parts().0;
    let mut child = Command::new("/proc/self/exe")
        .arg0("ferry-runner")
        .arg("watch-health")
        .arg(dir.path())
        .env_remove(env::RUNNER_JOIN)
        .stdin(Stdio::piped())
        .stdout(log.try_clone()?)
        .stderr(log)
        .kill_on_drop(true)
        .spawn()?;
    let stdin = child.stdin.take();
    Ok((child, stdin))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn observer(script: &str) -> Observer {
        let mut command = Command::new("/bin/sh");
        let mut child = command.args(["-c", script]).stdin(Stdio::piped()).kill_on_drop(true).spawn().expect("a child");
        let stdin = child.stdin.take();
        let running = Running { child, stdin, version: 1, since: Instant::now() };
        Observer { wanted: 1, running: Some(running), ..Observer::default() }
    }

    fn look(observer: &mut Observer) {
        // Nothing is wanted any more: nothing is started in its place.
        observer.look(Path::new("/nowhere"), true, || unreachable!("it is disabled"));
    }

    #[tokio::test]
    async fn it_may_end_its_probes_before_it_is_killed() {
        let dir = tempfile::tempdir().expect("dir");
        let done = dir.path().join("done");
        // It ends when its standard input is closed, and has something to do then.
        let script = format!("cat > /dev/null; sleep 0.2; touch {}", done.display());
        let mut one = observer(&script);
        look(&mut one);
        assert!(one.running.is_none() && one.is_ending(), "the next one waits for it");
        while one.is_ending() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        assert!(done.exists());
        fs::remove_file(&done).expect("a file");
        observer(&script).stop().await;
        assert!(done.exists());

        let mut stubborn = observer("exec sleep 600");
        let begun = Instant::now();
        look(&mut stubborn);
        while stubborn.is_ending() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        assert!(begun.elapsed() >= GRACE && stubborn.ending.is_none());
    }
}
