//! Follows a run of Terraform: its JSON lines become lines for people, and what it works on is told as progress.

use std::time::{Duration, Instant};

use model::deploy::{ResourceProgress, ResourceStatus};
use model::{StepResult, Timestamp};
use terraform::{Progress, Status};

use super::super::now;
use crate::confine::process::Hear;
use crate::directory::ExecutionDir;
use crate::logs::secrets::Secrets;

/// Progress is told at most this often.
const PACE: Duration = Duration::from_millis(200);
/// A longer line is passed on in parts.
const LINE_BYTES_MAX: usize = 1 << 20;
/// Resources that are told: all that last, and the newest that have ended.
const SHOWN_MAX: usize = 100;

pub(super) struct Listener<'a> {
    progress: Progress,
    line: Vec<u8>,
    secrets: &'a Secrets,
    dir: &'a ExecutionDir,
    /// The steps of the job, and which of them this is.
    steps: Vec<StepResult>,
    at: usize,
    started: Vec<(String, Timestamp)>,
    told: Option<Instant>,
    seen: usize,
}

impl<'a> Listener<'a> {
    pub(super) fn new(secrets: &'a Secrets, dir: &'a ExecutionDir, steps: Vec<StepResult>, at: usize) -> Self {
        let progress = Progress::default();
        Self { progress, line: Vec::new(), secrets, dir, steps, at, started: Vec::new(), told: None, seen: 0 }
    }

    pub(super) fn progress(&self) -> &Progress {
        &self.progress
    }

    fn take_line(&mut self, to: &mut Vec<u8>) {
        let line = std::mem::take(&mut self.line);
        let text = String::from_utf8_lossy(&line);
        if let Some(said) = self.progress.line(text.trim_end_matches(['\n', '\r'])) {
            to.extend_from_slice(said.as_bytes());
            to.push(b'\n');
        }
        let resources = self.progress.resources();
        for resource in resources.iter().skip(self.seen) {
            self.started.push((resource.address.clone(), now()));
        }
        self.seen = self.seen.max(resources.len());
    }

    /// The resources as they are told: masked, those that last first.
    pub(super) fn shown(&self) -> Vec<ResourceProgress> {
        let of = |resource: &terraform::ResourceProgress| ResourceProgress {
            address: self.secrets.masks().mask_text(&resource.address),
            action: resource.action.clone(),
            status: match resource.status {
                Status::Started => ResourceStatus::Started,
                Status::Done => ResourceStatus::Done,
                Status::Failed => ResourceStatus::Failed,
            },
            started_at: self.started.iter().rev().find(|(address, _)| *address == resource.address).map(|(_, at)| *at),
            took_s: resource.took_s,
        };
        let all = self.progress.resources();
        let lasting = all.iter().filter(|resource| resource.status == Status::Started);
        let ended = all.iter().rev().filter(|resource| resource.status != Status::Started);
        lasting.chain(ended).take(SHOWN_MAX).map(of).collect()
    }

    fn tell(&mut self, now: Instant) {
        if self.told.is_some_and(|told| now.duration_since(told) < PACE) {
            return;
        }
        let shown = self.shown();
        if self.steps[self.at].resources != shown {
            self.steps[self.at].resources = shown;
            // Progress is worth a try, not a failure.
            let _ = self.dir.write_steps(&self.steps);
            self.told = Some(now);
        }
    }
}

impl Hear for Listener<'_> {
    fn hear(&mut self, bytes: &[u8]) -> Vec<u8> {
        let mut said = Vec::new();
        for byte in bytes {
            self.line.push(*byte);
            if *byte == b'\n' || self.line.len() >= LINE_BYTES_MAX {
                self.take_line(&mut said);
            }
        }
        self.tell(Instant::now());
        said
    }

    /// What was too early to tell is told now: there may be nothing to hear for long.
    fn pause(&mut self) {
        self.tell(Instant::now());
    }

    fn end(&mut self) -> Vec<u8> {
        let mut said = Vec::new();
        if !self.line.is_empty() {
            self.take_line(&mut said);
        }
        said
    }
}

/// What of standard error is remembered.
const HEARD_BYTES_MAX: usize = 64 << 10;

/// Hears what a command that does not speak JSON says of its failure; the log gets it as it is.
#[derive(Default)]
pub(super) struct Overheard(Vec<u8>);

impl Overheard {
    /// The first error in one line: what it is, and the first paragraph of why.
    pub(super) fn first_error(&self) -> Option<String> {
        let text = String::from_utf8_lossy(&self.0);
        let mut lines = text.lines().map(|line| line.trim_start_matches(['│', '╷', '╵', ' ']).trim_end());
        let error = lines.find_map(|line| line.strip_prefix("Error: "))?.to_owned();
        let why: Vec<&str> = lines.skip_while(|line| line.is_empty()).take_while(|line| !line.is_empty()).collect();
        Some(if why.is_empty() { error } else { format!("{error}: {}", why.join(" ")) })
    }
}

impl Hear for Overheard {
    fn hear(&mut self, bytes: &[u8]) -> Vec<u8> {
        let room = HEARD_BYTES_MAX.saturating_sub(self.0.len());
        self.0.extend_from_slice(&bytes[..bytes.len().min(room)]);
        bytes.to_vec()
    }

    fn end(&mut self) -> Vec<u8> {
        Vec::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_error_is_one_line() {
        let mut heard = Overheard::default();
        assert_eq!(heard.first_error(), None);
        let said = "╷\n│ Error: Failed to query available provider packages\n│ \n│ Could not retrieve the list of\n│ available versions\n│ \n│ More\n╵\n╷\n│ Error: Another\n╵\n";
        assert_eq!(heard.hear(said.as_bytes()), said.as_bytes(), "the log has all of it");
        let told = "Failed to query available provider packages: Could not retrieve the list of available versions";
        assert_eq!(heard.first_error().as_deref(), Some(told));
        let bare = Overheard(b"\nError: Backend initialization required\n".to_vec());
        assert_eq!(bare.first_error().as_deref(), Some("Backend initialization required"));
    }
}
