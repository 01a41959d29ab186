//! Who is there: sightings of runners, collected in memory and written in batches. A lost batch costs a moment of
//! `last seen`, nothing else.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use model::runner::RunnerReport;
use model::waiting::Sightings;
use model::{RunnerId, Timestamp};
use tokio_util::sync::CancellationToken;

use crate::AppState;

#[derive(Debug, Clone, Default)]
struct Entry {
    sightings: Sightings,
    report: Option<RunnerReport>,
}

#[derive(Clone, Default)]
pub(crate) struct PresenceBook {
    dirty: Arc<Mutex<HashMap<RunnerId, Entry>>>,
    changed: Arc<tokio::sync::Notify>,
    /// Whoever writes has it: when it is free again, what was noted before is stored.
    writing: Arc<tokio::sync::Mutex<()>>,
}

impl PresenceBook {
    pub(crate) fn seen(&self, runner: &RunnerId, report: Option<RunnerReport>, now: Timestamp) {
        let mut dirty = self.dirty.lock().unwrap_or_else(PoisonError::into_inner);
        let entry = dirty.entry(runner.clone()).or_default();
        entry.sightings = Sightings { seen_at: Some(now), closed_at: None };
        entry.report = report.or_else(|| entry.report.take());
        drop(dirty);
        self.changed.notify_one();
    }

    pub(crate) fn closed(&self, runner: &RunnerId, now: Timestamp) {
        let mut dirty = self.dirty.lock().unwrap_or_else(PoisonError::into_inner);
        dirty.entry(runner.clone()).or_default().sightings.closed_at = Some(now);
        drop(dirty);
        self.changed.notify_one();
    }
}

/// The held poll of a runner. A fresh one ends the one before it, whose connection is dead whatever it looks like. Dropped
/// before it was answered, it notes that the connection closed, unless a fresher one has taken its place.
pub(crate) struct OpenPoll {
    state: AppState,
    pub(crate) runner: RunnerId,
    pub(crate) superseded: CancellationToken,
    pub(crate) answered: bool,
}

impl OpenPoll {
    pub(crate) fn new(state: &AppState, runner: &RunnerId) -> Self {
        let superseded = CancellationToken::new();
        let mut polls = state.polls.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(older) = polls.insert(runner.clone(), superseded.clone()) {
            older.cancel();
        }
        drop(polls);
        Self { state: state.clone(), runner: runner.clone(), superseded, answered: false }
    }
}

impl Drop for OpenPoll {
    fn drop(&mut self) {
        let mut polls = self.state.polls.lock().unwrap_or_else(PoisonError::into_inner);
        if self.superseded.is_cancelled() {
            return;
        }
        polls.remove(&self.runner);
        drop(polls);
        if !self.answered {
            self.state.presence.closed(&self.runner, self.state.conductor.now());
        }
    }
}

/// Writes sightings and token uses, at most ten times a second.
pub(crate) async fn write_loop(state: AppState) {
    let pause = std::time::Duration::from_millis(100);
    let book = state.presence.clone();
    loop {
        tokio::select! {
            () = book.changed.notified() => {}
            () = tokio::time::sleep(std::time::Duration::from_secs(5)) => {}
            () = state.gate.cancelled() => {}
        }
        if let Err(error) = flush(&state).await {
            tracing::debug!(%error, "sightings are written later");
        }
        if state.gate.is_cancelled() {
            return;
        }
        tokio::time::sleep(pause).await;
    }
}

pub(crate) async fn flush(state: &AppState) -> conductor::Result<()> {
    let _writing = state.presence.writing.lock().await;
    let dirty = std::mem::take(&mut *state.presence.dirty.lock().unwrap_or_else(PoisonError::into_inner));
    if !dirty.is_empty() {
        let batch = dirty.into_iter().map(|(id, e)| (id, e.sightings, e.report)).collect();
        state.conductor.note_sightings(batch).await?;
    }
    let uses = std::mem::take(&mut *state.credential_uses.lock().unwrap_or_else(PoisonError::into_inner));
    let (mut tokens, mut sessions) = (Vec::new(), Vec::new());
    for (by, at) in uses {
        match by {
            store::Credential::Token(id) => tokens.push((id, at)),
            store::Credential::Session(id) => sessions.push((id, at)),
        }
    }
    if !tokens.is_empty() {
        state.conductor.touch_tokens(tokens).await?;
    }
    if !sessions.is_empty() {
        state.conductor.touch_sessions(sessions).await?;
    }
    Ok(())
}
