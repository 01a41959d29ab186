//! Stops a process at a crash point; see the crate `crash`.

use std::path::{Path, PathBuf};

use crash::Point;
use rustix::process::Signal;

use crate::system::{SOON, send, until};

/// The file that says at which point a process is to stand still.
#[derive(Debug)]
pub struct Trap {
    file: PathBuf,
}

impl Trap {
    pub fn new(file: PathBuf) -> Self {
        Self { file }
    }

    /// Processes that get this in their environment look into the file.
    pub fn variable(&self) -> (&'static str, &Path) {
        (model::env::CRASH_FILE, &self.file)
    }

    /// The process stands still that comes by the point for this time.
    pub fn set(&self, point: &Point, time: u32) {
        let _ = fs_err::remove_file(self.file.with_extension("hit"));
        // In one go: a process may look at any time.
        let unfinished = self.file.with_extension("new");
        fs_err::write(&unfinished, format!("{}:{time}", point.name)).expect("a file");
        fs_err::rename(&unfinished, &self.file).expect("a file");
    }

    /// Waits until a process stands still at the point.
    pub async fn until_hit(&self, point: &Point) -> i32 {
        let (hit, what) = (self.file.with_extension("hit"), format!("{} is come by", point.name));
        until(&what, SOON, async || {
            let text = fs_err::read_to_string(&hit).map_err(|e| e.to_string())?;
            let pid = text.split(' ').nth(1).and_then(|p| p.parse::<i32>().ok()).ok_or(text)?;
            let stat = fs_err::read_to_string(format!("/proc/{pid}/stat")).map_err(|e| e.to_string())?;
            let still = stat.rsplit(')').next().is_some_and(|rest| rest.trim_start().starts_with('T'));
            if still { Ok(pid) } else { Err(stat) }
        })
        .await
    }

    /// Lets the process that stands still go on.
    pub fn release(&self, pid: i32) {
        fs_err::remove_file(self.file.with_extension("hit")).expect("removed");
        send(pid, Signal::CONT);
    }
}
