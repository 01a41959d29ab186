//! Bounds what one address or one account may try without success: counted in memory, by each server for itself.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use api::ErrorCode;
use tokio::time::Instant;

use crate::error::{ApiError, ApiResult};

/// Whom it has counted lately; more are forgotten, the oldest first.
const KNOWN_MAX: usize = 50_000;
const WINDOW: Duration = Duration::from_secs(300);

/// What is counted, and how many may fail within five minutes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Tried {
    /// Requests of one address to the pages and routes of signing in.
    Asking,
    /// CLIs of one address that ask whether a person has answered, or for new secrets.
    Polling,
    /// Secrets that one address has guessed wrong: links, codes, tokens.
    Guessing,
    /// Codes that one account has typed wrong.
    Typing,
}

impl Tried {
    const fn most(self) -> u32 {
        match self {
            Self::Asking => 600,
            Self::Polling => 6000,
            Self::Guessing => 20,
            Self::Typing => 10,
        }
    }
}

#[derive(Debug, Clone, Copy)]
struct Count {
    tries: u32,
    since: Instant,
}

#[derive(Clone, Default)]
pub(crate) struct Limiter(Arc<Mutex<HashMap<(Tried, String), Count>>>);

impl Limiter {
    fn with<T>(&self, tried: Tried, who: &str, change: impl FnOnce(&mut Count) -> T) -> T {
        let now = Instant::now();
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if known.len() >= KNOWN_MAX {
            known.retain(|_, count| now.duration_since(count.since) < WINDOW);
            if known.len() >= KNOWN_MAX {
                known.clear();
            }
        }
        let count = known.entry((tried, who.to_owned())).or_insert(Count { tries: 0, since: now });
        if now.duration_since(count.since) >= WINDOW {
            *count = Count { tries: 0, since: now };
        }
        change(count)
    }

    /// Refuses who has tried too often.
    pub(crate) fn check(&self, tried: Tried, who: &str) -> ApiResult<()> {
        let (tries, since) = self.with(tried, who, |count| (count.tries, count.since));
        if tries < tried.most() {
            return Ok(());
        }
        let left = WINDOW.saturating_sub(since.elapsed()).as_secs().max(1);
        let text = format!("too many tries from here; try again in {left} s");
        Err(ApiError::new(ErrorCode::TooManyRequests, text))
    }

    /// Counts one.
    pub(crate) fn count(&self, tried: Tried, who: &str) {
        self.with(tried, who, |count| count.tries = count.tries.saturating_add(1));
    }

    /// Counts a request, and refuses it where there were too many.
    pub(crate) fn pass(&self, tried: Tried, who: &str) -> ApiResult<()> {
        self.check(tried, who)?;
        self.count(tried, who);
        Ok(())
    }
}
