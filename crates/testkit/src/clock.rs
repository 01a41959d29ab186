//! A clock that a test moves by hand.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use model::{Clock, Timestamp};

/// Clones show the same time.
#[derive(Debug, Clone)]
pub struct FakeClock(Arc<AtomicI64>);

impl FakeClock {
    /// Some day in 2027.
    pub const START: Timestamp = Timestamp::from_micros(1_800_000_000_000_000);

    pub fn at(now: Timestamp) -> Self {
        Self(Arc::new(AtomicI64::new(now.micros())))
    }

    pub fn set(&self, now: Timestamp) {
        self.0.store(now.micros(), Ordering::SeqCst);
    }

    pub fn advance_s(&self, seconds: i64) {
        self.advance_ms(seconds * 1_000);
    }

    /// Backwards too: clocks do that.
    pub fn advance_ms(&self, milliseconds: i64) {
        self.0.fetch_add(milliseconds * 1_000, Ordering::SeqCst);
    }
}

impl Default for FakeClock {
    fn default() -> Self {
        Self::at(Self::START)
    }
}

impl Clock for FakeClock {
    fn now(&self) -> Timestamp {
        Timestamp::from_micros(self.0.load(Ordering::SeqCst))
    }

    fn steady(&self) -> Duration {
        self.now().since(Timestamp::from_micros(0))
    }
}
