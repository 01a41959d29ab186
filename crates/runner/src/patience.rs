//! Asking again what may work in a moment: the one loop of its kind.

use std::time::Duration;

use tokio::time::Instant;

/// An error that may pass by itself.
pub(crate) trait Transient {
    fn is_transient(&self) -> bool;
}

/// How long something is tried again, and how fast. The pause doubles with every try.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Patience {
    first: Duration,
    longest: Duration,
    tries: Option<u32>,
    time: Option<Duration>,
}

impl Patience {
    /// As long as it takes.
    pub(crate) const fn endless(first: Duration, longest: Duration) -> Self {
        Self { first, longest, tries: None, time: None }
    }

    /// So often.
    pub(crate) const fn tries(tries: u32) -> Self {
        let longest = Duration::from_secs(60);
        Self { first: Duration::from_millis(250), longest, tries: Some(tries), time: None }
    }

    /// So long.
    pub(crate) const fn time(first: Duration, longest: Duration, time: Duration) -> Self {
        Self { first, longest, tries: None, time: Some(time) }
    }

    /// Calls until it succeeds, is refused for good, or the patience is over: then the last error is the answer.
    pub(crate) async fn keep<T, E: Transient, F: Future<Output = Result<T, E>>>(
        self,
        mut call: impl FnMut() -> F,
        mut again: impl FnMut(&E),
    ) -> Result<T, E> {
        let until = self.time.map(|time| Instant::now() + time);
        let (mut pause, mut tries) = (self.first, 1);
        loop {
            let error = match call().await {
                Ok(answer) => return Ok(answer),
                Err(error) => error,
            };
            let may =
                self.tries.is_none_or(|most| tries < most) && until.is_none_or(|until| Instant::now() + pause < until);
            if !may || !error.is_transient() {
                return Err(error);
            }
            again(&error);
            tokio::time::sleep(pause).await;
            pause = (pause * 2).min(self.longest);
            tries += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    struct Passing(bool);

    impl Transient for Passing {
        fn is_transient(&self) -> bool {
            self.0
        }
    }

    async fn tried(patience: Patience, passing: bool) -> u32 {
        let calls = Cell::new(0);
        let call = || async {
            calls.set(calls.get() + 1);
            if calls.get() == 20 { Ok(()) } else { Err(Passing(passing)) }
        };
        let _ = patience.keep(call, |_| ()).await;
        calls.get()
    }

    #[tokio::test]
    async fn it_ends_by_tries_by_time_or_by_a_refusal() {
        let ms = Duration::from_millis(1);
        let short = Patience { first: ms, ..Patience::tries(4) };
        assert_eq!(tried(short, true).await, 4);
        assert_eq!(tried(Patience::time(50 * ms, 50 * ms, 10 * ms), true).await, 1);
        assert_eq!(tried(Patience::endless(ms, 2 * ms), true).await, 20);
        assert_eq!(tried(Patience::endless(ms, ms), false).await, 1);
    }
}
