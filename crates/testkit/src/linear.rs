//! Is a history of concurrent calls possible? A job as a register, and a search for an order of the calls in which each
//! answer is the one that a single thread would have got, and no call comes before one that had returned before it began.
//!
//! The search is Wing and Gong's, with a memory of what was tried. A call whose answer was lost may have happened at any time
//! after it began, or never.

use std::collections::HashSet;

use model::{JobState, Outcome};

/// Where a job stands, as one thread would see it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Register {
    state: JobState,
    epoch: u64,
    cancel: bool,
    /// Epochs with a result record.
    results: Vec<u64>,
}

impl Default for Register {
    fn default() -> Self {
        Self { state: JobState::Queued, epoch: 0, cancel: false, results: Vec::new() }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Op {
    /// A poll of the job's runner, which listed executions of these epochs.
    Poll {
        listed: Vec<u64>,
    },
    Start(u64),
    Renew(u64),
    Complete(u64, Outcome),
    Cancel,
    Get,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answer {
    /// The poll took the job, with this epoch, or left it.
    Claimed(Option<u64>),
    Started,
    Renewed {
        cancel: bool,
    },
    /// False: a result was there before.
    Recorded(bool),
    State(JobState),
    LeaseLost,
    Conflict,
}

/// One call: when it began and ended, on one clock. Without an answer nobody knows whether it happened.
#[derive(Debug, Clone)]
pub struct Call {
    pub began: u64,
    pub ended: u64,
    pub op: Op,
    pub answer: Option<Answer>,
}

/// Calls that one job's history may hold.
const CALLS_MAX: usize = 128;

impl Register {
    /// Everything that may come of a call.
    fn step(&self, op: &Op) -> Vec<(Self, Answer)> {
        use JobState as S;
        let same = |answer| vec![(self.clone(), answer)];
        let to = |state, answer| vec![(Self { state, ..self.clone() }, answer)];
        match op {
            Op::Poll { listed } => {
                let state = match self.state {
                    // A claim that is missing goes back; work that is missing has vanished.
                    S::Claimed if !listed.contains(&self.epoch) => S::Queued,
                    S::Running if !listed.contains(&self.epoch) => S::Unknown,
                    other => other,
                };
                let mut all = to(state, Answer::Claimed(None));
                if state == S::Queued {
                    let epoch = self.epoch + 1;
                    all.push((Self { state: S::Claimed, epoch, ..self.clone() }, Answer::Claimed(Some(epoch))));
                }
                // One that was overtaken changes nothing.
                all.extend(same(Answer::Conflict));
                all
            }
            Op::Start(epoch) => match self.state {
                S::Claimed | S::Running if self.epoch == *epoch => to(S::Running, Answer::Started),
                _ => same(Answer::LeaseLost),
            },
            Op::Renew(epoch) => match self.state {
                S::Claimed | S::Running if self.epoch == *epoch => same(Answer::Renewed { cancel: self.cancel }),
                _ => same(Answer::LeaseLost),
            },
            Op::Complete(epoch, outcome) => match self.state {
                _ if self.results.contains(epoch) => same(Answer::Recorded(false)),
                S::Running | S::Unknown if self.epoch == *epoch => {
                    let mut next = Self { state: (*outcome).into(), ..self.clone() };
                    next.results.push(*epoch);
                    vec![(next, Answer::Recorded(true))]
                }
                _ => same(Answer::LeaseLost),
            },
            Op::Cancel => match self.state {
                S::Queued | S::Claimed => to(S::Cancelled, Answer::State(S::Cancelled)),
                S::Unknown => same(Answer::Conflict),
                S::Running => vec![(Self { cancel: true, ..self.clone() }, Answer::State(S::Running))],
                over => same(Answer::State(over)),
            },
            Op::Get => same(Answer::State(self.state)),
        }
    }
}

/// Looks for an order; fails with the history when there is none.
pub fn check(history: &[Call]) -> Result<(), String> {
    assert!(history.len() <= CALLS_MAX, "{} calls on one job", history.len());
    let known: u128 = bits(history.iter().map(|call| call.answer.is_some()));
    let mut tried = HashSet::new();
    let mut open = vec![(0u128, Register::default())];
    while let Some((done, register)) = open.pop() {
        if done & known == known {
            return Ok(());
        }
        if !tried.insert((done, register.clone())) {
            continue;
        }
        let left = || history.iter().enumerate().filter(|(n, _)| done & (1 << n) == 0);
        // Nothing may come before a call that had ended when it began.
        let first_end = left().filter(|(_, c)| c.answer.is_some()).map(|(_, c)| c.ended).min().unwrap_or(u64::MAX);
        for (n, call) in left().filter(|(_, call)| call.began <= first_end) {
            let fits = |answer: &Answer| call.answer.as_ref().is_none_or(|got| got == answer);
            let next = register.step(&call.op).into_iter().filter(|(_, answer)| fits(answer));
            open.extend(next.map(|(register, _)| (done | 1 << n, register)));
        }
    }
    let mut lines: Vec<String> = Vec::new();
    for call in history {
        lines.push(format!("{:>12} to {:>12} ns  {:?} → {:?}", call.began, call.ended, call.op, call.answer));
    }
    lines.sort();
    Err(format!("no order explains these calls:\n{}", lines.join("\n")))
}

fn bits(flags: impl Iterator<Item = bool>) -> u128 {
    flags.enumerate().filter(|(_, on)| *on).fold(0, |all, (n, _)| all | 1 << n)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(began: u64, ended: u64, op: Op, answer: Answer) -> Call {
        Call { began, ended, op, answer: Some(answer) }
    }

    fn lost(began: u64, op: Op) -> Call {
        Call { began, ended: began + 1, op, answer: None }
    }

    fn poll(began: u64, ended: u64, epoch: Option<u64>) -> Call {
        call(began, ended, Op::Poll { listed: vec![] }, Answer::Claimed(epoch))
    }

    /// Claimed and started, at 0 to 3.
    fn running() -> Vec<Call> {
        vec![poll(0, 1, Some(1)), call(2, 3, Op::Start(1), Answer::Started)]
    }

    fn after(calls: impl IntoIterator<Item = Call>) -> Vec<Call> {
        running().into_iter().chain(calls).collect()
    }

    #[test]
    fn what_one_thread_could_have_seen_is_accepted() {
        let finish = Op::Complete(1, Outcome::Finished);
        let fail = Op::Complete(1, Outcome::Failed);
        let good = [
            after([]),
            // Two results at a time: either may be first.
            after([
                call(4, 9, fail.clone(), Answer::Recorded(false)),
                call(5, 8, finish.clone(), Answer::Recorded(true)),
            ]),
            // A lost result may have happened, at any time later.
            after([
                lost(4, finish.clone()),
                call(6, 7, Op::Renew(1), Answer::Renewed { cancel: false }),
                call(8, 9, Op::Get, Answer::State(JobState::Finished)),
            ]),
            // Or not at all.
            after([lost(4, finish), call(6, 7, fail, Answer::Recorded(true))]),
            // A lost poll took it; the next one gives it back and takes it again.
            vec![lost(0, Op::Poll { listed: vec![] }), poll(5, 6, Some(2))],
            after([
                call(4, 5, Op::Cancel, Answer::State(JobState::Running)),
                call(6, 7, Op::Renew(1), Answer::Renewed { cancel: true }),
            ]),
        ];
        for history in good {
            assert_eq!(check(&history), Ok(()));
        }
    }

    #[test]
    fn known_anomalies_are_rejected() {
        let finish = Op::Complete(1, Outcome::Finished);
        let fail = Op::Complete(1, Outcome::Failed);
        let renewed = |began, cancel| call(began, began + 1, Op::Renew(1), Answer::Renewed { cancel });
        let bad = [
            ("taken twice", vec![poll(0, 5, Some(1)), poll(1, 6, Some(1))]),
            ("an epoch left out", vec![poll(0, 1, Some(2))]),
            ("started before it was taken", vec![call(0, 1, Op::Start(1), Answer::Started), poll(2, 3, Some(1))]),
            (
                "two results",
                after([
                    call(4, 9, fail.clone(), Answer::Recorded(true)),
                    call(5, 8, finish.clone(), Answer::Recorded(true)),
                ]),
            ),
            (
                "a result that was lost again",
                after([
                    call(4, 5, finish.clone(), Answer::Recorded(true)),
                    call(6, 7, Op::Get, Answer::State(JobState::Running)),
                ]),
            ),
            ("a stale read", after([call(4, 5, Op::Cancel, Answer::State(JobState::Running)), renewed(6, false)])),
            (
                "a lease that outlives the result",
                after([call(4, 5, finish.clone(), Answer::Recorded(true)), renewed(6, false)]),
            ),
            (
                "cancelled, and it goes on",
                vec![
                    poll(0, 1, Some(1)),
                    call(2, 3, Op::Cancel, Answer::State(JobState::Cancelled)),
                    call(4, 5, Op::Start(1), Answer::Started),
                ],
            ),
            (
                "a result of an old epoch",
                vec![
                    poll(0, 1, Some(1)),
                    poll(2, 3, Some(2)),
                    call(4, 5, Op::Start(2), Answer::Started),
                    call(6, 7, finish.clone(), Answer::Recorded(true)),
                ],
            ),
            (
                "a lost call that came before it began",
                after([call(4, 5, Op::Get, Answer::State(JobState::Finished)), lost(6, finish)]),
            ),
            (
                "the wrong end",
                after([
                    call(4, 5, fail, Answer::Recorded(true)),
                    call(6, 7, Op::Get, Answer::State(JobState::Finished)),
                ]),
            ),
        ];
        for (name, history) in bad {
            assert!(check(&history).is_err(), "{name}");
        }
    }
}
