//! Cells of a crash matrix, played in lanes: systems in which one death after the other is tried.

use std::collections::VecDeque;
use std::panic::AssertUnwindSafe;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;

use crash::Process;

use crate::system::{runner_binary, temporary};

/// Who dies at a crash point.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Victim {
    Runner,
    Executor,
    Server,
    RunnerAndServer,
    RunnerAndExecutor,
    All,
}

impl Victim {
    pub fn is_runner(self) -> bool {
        matches!(self, Self::Runner | Self::RunnerAndServer | Self::RunnerAndExecutor | Self::All)
    }

    pub fn is_server(self) -> bool {
        matches!(self, Self::Server | Self::RunnerAndServer | Self::All)
    }

    pub fn is_executor(self) -> bool {
        matches!(self, Self::Executor | Self::RunnerAndExecutor | Self::All)
    }

    pub fn is(self, process: Process) -> bool {
        match process {
            Process::Runner => self.is_runner(),
            Process::Executor => self.is_executor(),
            Process::Server => self.is_server(),
        }
    }
}

fn assert_has_points(binary: &Path) {
    let found = Command::new("grep").args(["-qaF", model::env::CRASH_FILE]).arg(binary).status().expect("grep runs");
    assert!(
        found.success(),
        "{} was built without crash points; run\n  cargo build --workspace --all-features --bins",
        binary.display()
    );
}

/// What is still to be played, and what is being played.
pub struct Cells<C> {
    waiting: Mutex<VecDeque<C>>,
    name: fn(&C) -> String,
}

impl<C> Cells<C> {
    /// The next one, which is played now.
    pub fn next(&self, current: &Mutex<String>) -> Option<C> {
        let cell = self.waiting.lock().expect("cells").pop_front()?;
        *current.lock().expect("a name") = (self.name)(&cell);
        Some(cell)
    }

    fn is_empty(&self) -> bool {
        self.waiting.lock().expect("cells").is_empty()
    }
}

/// Copies of the binaries: a build that goes on beside the test must not change what dies.
pub fn copies(ferry: &Path) -> (tempfile::TempDir, PathBuf) {
    let dir = temporary();
    let binary = dir.path().join("ferry");
    for (from, to) in [(ferry.to_owned(), binary.clone()), (runner_binary(ferry), runner_binary(&binary))] {
        fs_err::copy(from, &to).expect("a copy");
        assert_has_points(&to);
    }
    (dir, binary)
}

/// Plays all cells, so many at a time. What plays them does so one after the other in one system; a cell that fails takes it
/// down, and the next ones are played in another.
pub fn in_lanes<C: Send>(
    lanes: usize,
    mut cells: Vec<C>,
    name: fn(&C) -> String,
    play_all: impl AsyncFn(&Cells<C>, &Mutex<String>) + Sync,
) {
    let only = std::env::var(model::env::CRASH_ONLY).unwrap_or_default();
    cells.retain(|cell| name(cell).contains(&only));
    let count = cells.len();
    let cells = Cells { waiting: Mutex::new(cells.into()), name };
    let lane = || {
        let mut failed = Vec::new();
        while !cells.is_empty() {
            let current = Mutex::new("starting".to_owned());
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
            let played = AssertUnwindSafe(|| runtime.block_on(play_all(&cells, &current)));
            if std::panic::catch_unwind(played).is_err() {
                failed.push(current.lock().expect("a name").clone());
            }
        }
        failed
    };
    let failed: Vec<String> = std::thread::scope(|scope| {
        let lanes: Vec<_> = (0..lanes.min(count)).map(|_| scope.spawn(lane)).collect();
        lanes.into_iter().flat_map(|lane| lane.join().expect("a lane")).collect()
    });
    assert!(failed.is_empty(), "{} of {count} cells failed: {failed:#?}", failed.len());
}
