//! The state machine that every job goes through.

#![warn(clippy::wildcard_enum_match_arm)]

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::Outcome;

/// Where a job stands. The names are those of the API.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(rename_all = "kebab-case")]
pub enum JobState {
    /// Waits for a runner; the waiting reason says for what.
    Queued,
    /// A runner holds it and has not started it.
    #[serde(rename = "available")]
    Claimed,
    /// The server has acknowledged the start.
    #[serde(rename = "in-progress")]
    Running,
    /// It was started, and nobody can say how it ended. Settled by looking, never by a blind retry.
    Unknown,
    Finished,
    Failed,
    TimedOut,
    Cancelled,
    NotAttempted,
}

/// What can happen to a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum JobEvent {
    /// A runner takes it.
    Claim,
    /// It goes back, and nothing was started: missing from the runner's list, its lease ended, its session was fenced, or
    /// the runner says so.
    HandBack,
    /// The runner asks to start, and the server agrees.
    Start,
    /// The lease ended, the executor died, or the session was fenced.
    Vanish,
    /// The same epoch renews, and there is no newer one.
    Revive,
    /// A job of a read-only type is tried again.
    Retry,
    /// A person or a time limit ends it before it started.
    Withdraw(Outcome),
    /// The result record of the current epoch.
    Result(Outcome),
    /// A person looked and said how it ended.
    Settle(Outcome),
}

/// What can't be done, as an error says it.
impl fmt::Display for JobEvent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Claim => "it can't be claimed",
            Self::HandBack => "it can't be handed back",
            Self::Start => "it can't be started",
            Self::Vanish => "its execution can't be lost",
            Self::Revive => "its execution can't continue",
            Self::Retry => "it can't be retried",
            Self::Withdraw(_) => "it can't be ended before its start",
            Self::Result(_) => "it takes no result",
            Self::Settle(_) => "its outcome can't be recorded: only a job whose result is unknown can be settled",
        })
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the job is `{state}`, so {event}")]
pub struct IllegalTransition {
    pub state: JobState,
    pub event: JobEvent,
}

impl JobState {
    pub const ALL: [Self; 9] = [
        Self::Queued,
        Self::Claimed,
        Self::Running,
        Self::Unknown,
        Self::Finished,
        Self::Failed,
        Self::TimedOut,
        Self::Cancelled,
        Self::NotAttempted,
    ];

    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Queued => "queued",
            Self::Claimed => "available",
            Self::Running => "in-progress",
            Self::Unknown => "unknown",
            Self::Finished => "finished",
            Self::Failed => "failed",
            Self::TimedOut => "timed-out",
            Self::Cancelled => "cancelled",
            Self::NotAttempted => "not-attempted",
        }
    }

    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|s| s.as_str() == text)
    }

    pub const fn is_terminal(self) -> bool {
        match self {
            Self::Queued | Self::Claimed | Self::Running | Self::Unknown => false,
            Self::Finished | Self::Failed | Self::TimedOut | Self::Cancelled | Self::NotAttempted => true,
        }
    }

    /// The one transition function.
    #[deny(clippy::wildcard_enum_match_arm)]
    pub fn next(self, event: JobEvent) -> Result<Self, IllegalTransition> {
        use JobEvent as E;
        let illegal = Err(IllegalTransition { state: self, event });
        match self {
            Self::Queued => match event {
                E::Claim => Ok(Self::Claimed),
                E::Withdraw(outcome) => Ok(outcome.into()),
                E::HandBack | E::Start | E::Vanish | E::Revive | E::Retry | E::Result(_) | E::Settle(_) => illegal,
            },
            Self::Claimed => match event {
                E::HandBack => Ok(Self::Queued),
                E::Start => Ok(Self::Running),
                E::Withdraw(outcome) => Ok(outcome.into()),
                E::Claim | E::Vanish | E::Revive | E::Retry | E::Result(_) | E::Settle(_) => illegal,
            },
            Self::Running => match event {
                // The start was granted, and the runner died before it spawned anything.
                E::HandBack => Ok(Self::Queued),
                E::Vanish => Ok(Self::Unknown),
                E::Result(outcome) => Ok(outcome.into()),
                E::Claim | E::Start | E::Revive | E::Retry | E::Withdraw(_) | E::Settle(_) => illegal,
            },
            Self::Unknown => match event {
                E::Revive => Ok(Self::Running),
                E::Retry => Ok(Self::Queued),
                E::Result(outcome) | E::Settle(outcome) => Ok(outcome.into()),
                E::Claim | E::HandBack | E::Start | E::Vanish | E::Withdraw(_) => illegal,
            },
            Self::Finished | Self::Failed | Self::TimedOut | Self::Cancelled | Self::NotAttempted => illegal,
        }
    }
}

impl fmt::Display for JobState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl From<Outcome> for JobState {
    fn from(outcome: Outcome) -> Self {
        match outcome {
            Outcome::Finished => Self::Finished,
            Outcome::Failed => Self::Failed,
            Outcome::TimedOut => Self::TimedOut,
            Outcome::Cancelled => Self::Cancelled,
            Outcome::NotAttempted => Self::NotAttempted,
        }
    }
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "a test compares files")]
mod tests {
    use std::fmt::Write as _;

    use super::*;

    const EVENTS: [JobEvent; 15] = [
        JobEvent::Claim,
        JobEvent::HandBack,
        JobEvent::Start,
        JobEvent::Vanish,
        JobEvent::Revive,
        JobEvent::Retry,
        JobEvent::Withdraw(Outcome::Cancelled),
        JobEvent::Withdraw(Outcome::TimedOut),
        JobEvent::Withdraw(Outcome::NotAttempted),
        JobEvent::Result(Outcome::Finished),
        JobEvent::Result(Outcome::Failed),
        JobEvent::Result(Outcome::TimedOut),
        JobEvent::Result(Outcome::Cancelled),
        JobEvent::Settle(Outcome::Finished),
        JobEvent::Settle(Outcome::Failed),
    ];

    #[test]
    fn the_whole_table() {
        let mut table = String::new();
        for state in JobState::ALL {
            for event in EVENTS {
                if let Ok(next) = state.next(event) {
                    writeln!(table, "{state} --{event:?}--> {next}").expect("write");
                }
            }
        }
        insta::assert_snapshot!(table);
    }

    /// `make generate` writes it anew.
    #[test]
    fn generated_diagram_is_current() {
        let mut text = String::from(
            "# States of a job\n\nGenerated from the transition function in `crates/model/src/job.rs` by `make generate`.\n\n```mermaid\nstateDiagram-v2\n    [*] --> queued\n",
        );
        for state in JobState::ALL {
            for event in EVENTS {
                if let Ok(next) = state.next(event) {
                    writeln!(text, "    {} --> {}: {event:?}", id(state), id(next)).expect("write");
                }
            }
            if state.is_terminal() {
                writeln!(text, "    {} --> [*]", id(state)).expect("write");
            }
        }
        text.push_str("```\n");
        let path = format!("{}/../../docs/job-states.md", env!("CARGO_MANIFEST_DIR"));
        if std::env::var_os("UPDATE").is_some() {
            std::fs::File::create(&path)
                .and_then(|mut f| std::io::Write::write_all(&mut f, text.as_bytes()))
                .expect("written");
        } else {
            let committed = std::fs::read_to_string(&path).unwrap_or_default();
            assert!(committed == text, "docs/job-states.md is old: run `make generate`");
        }
    }

    fn id(state: JobState) -> String {
        state.as_str().replace('-', "_")
    }

    #[test]
    fn terminal_states_have_no_exits_and_success_needs_a_result_or_a_person() {
        for state in JobState::ALL {
            for event in EVENTS {
                let next = state.next(event);
                assert!(!(state.is_terminal() && next.is_ok()), "{state} {event:?}");
                if next == Ok(JobState::Finished) {
                    assert!(matches!(event, JobEvent::Result(_) | JobEvent::Settle(_)));
                }
            }
        }
    }

    #[test]
    fn names_parse_back() {
        for state in JobState::ALL {
            assert_eq!(JobState::parse(state.as_str()), Some(state));
            assert_eq!(serde_json::to_value(state).expect("json"), state.as_str());
        }
    }
}
