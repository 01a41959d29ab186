//! Removes directories in a thread of its own: a million files take minutes, and leases are renewed meanwhile.

use std::path::PathBuf;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::Duration;

use crate::directory::{ExecutionDir, remove_tree};
use crate::seal::rescue;

/// How often a directory is tried again that can't be removed yet.
const AGAIN: Duration = Duration::from_secs(2);

pub(super) enum Task {
    /// A directory that was set aside.
    Tree(PathBuf),
    /// An execution in which Terraform's state still lies, because it can't be put where it waits: the disk is full.
    Holding(ExecutionDir),
}

/// A process that dies leaves the rest to the next one.
pub(super) struct Sweeper {
    tasks: Sender<Task>,
}

impl Sweeper {
    /// `rescued` is told when a state has come to where it waits.
    pub(super) fn start(state_dir: PathBuf, rescued: impl Fn() + Send + 'static) -> Self {
        let (tasks, inbox) = channel();
        std::thread::spawn(move || sweep(&inbox, &state_dir, rescued));
        Self { tasks }
    }

    /// Removes an execution's directory; none in which a state lies that nobody has taken.
    pub(super) fn execution(&self, dir: ExecutionDir, state_dir: &std::path::Path) -> std::io::Result<()> {
        match rescue::take(&dir, state_dir) {
            Ok(_) => {
                self.tree(dir.set_aside()?);
                Ok(())
            }
            Err(error) => {
                let _ = self.tasks.send(Task::Holding(dir));
                Err(error)
            }
        }
    }

    pub(super) fn tree(&self, path: PathBuf) {
        let _ = self.tasks.send(Task::Tree(path));
    }
}

fn sweep(inbox: &Receiver<Task>, state_dir: &std::path::Path, rescued: impl Fn()) {
    let mut holding: Vec<ExecutionDir> = Vec::new();
    loop {
        let pause = if holding.is_empty() { Duration::from_secs(3600) } else { AGAIN };
        match inbox.recv_timeout(pause) {
            Ok(Task::Tree(path)) => {
                if let Err(error) = remove_tree(&path) {
                    tracing::error!(path = %path.display(), %error, "a directory can't be removed");
                }
            }
            Ok(Task::Holding(dir)) => holding.push(dir),
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return,
        }
        holding.retain(|dir| {
            match rescue::take(dir, state_dir) {
                Ok(Some(_)) => rescued(),
                Ok(None) => {}
                Err(_) => return true,
            }
            let removed = dir.set_aside().and_then(|path| remove_tree(&path));
            removed.is_err()
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_has_a_large_directory_removed_goes_on_at_once() {
        let dir = tempfile::tempdir().expect("dir");
        let tree = dir.path().join("tree");
        for folder in 0..40 {
            let folder = tree.join(folder.to_string());
            fs_err::create_dir_all(&folder).expect("dir");
            (0..500).for_each(|file| drop(fs_err::File::create(folder.join(file.to_string())).expect("file")));
        }
        let sweeper = Sweeper::start(dir.path().to_owned(), || ());
        let asked = std::time::Instant::now();
        (0..10).for_each(|_| sweeper.tree(tree.clone()));
        let took = asked.elapsed();
        while tree.exists() {
            std::thread::sleep(Duration::from_millis(1));
            assert!(asked.elapsed() < Duration::from_secs(60), "it is never removed");
        }
        assert!(took < asked.elapsed() / 4, "asking took {took:?} of {:?}", asked.elapsed());
    }
}
