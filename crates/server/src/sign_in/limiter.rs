//! Bounds what one address or one account may try without success: counted in memory, by each server for itself.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use api::ErrorCode;
use tokio::time::Instant;

use crate::error::{ApiError, ApiResult};

/// Whom it has counted lately.
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

/// Forgets a tenth: those with the fewest tries, the oldest of them first. Who has tried often stays counted, however many others come.
fn forget(known: &mut HashMap<(Tried, String), Count>) {
    let mut all: Vec<(u32, Instant, (Tried, String))> =
        known.iter().map(|(key, count)| (count.tries, count.since, key.clone())).collect();
    let tenth = (all.len() / 10).min(all.len().saturating_sub(1));
    all.select_nth_unstable_by_key(tenth, |(tries, since, _)| (*tries, *since));
    for (_, _, key) in all.into_iter().take(tenth + 1) {
        known.remove(&key);
    }
}

/// Whom an address is counted as: of IPv6, one customer has all of a /64.
fn household(who: &str) -> String {
    match who.parse::<IpAddr>() {
        Ok(IpAddr::V6(ip)) => match ip.to_ipv4_mapped() {
            Some(ip) => ip.to_string(),
            None => format!("{}/64", Ipv6Addr::from_bits(ip.to_bits() >> 64 << 64)),
        },
        _ => who.to_owned(),
    }
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
                forget(&mut known);
            }
        }
        let count = known.entry((tried, household(who))).or_insert(Count { tries: 0, since: now });
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_network_of_ipv6_is_one_and_ipv4_is_itself() {
        let limiter = Limiter::default();
        for n in 0..20 {
            limiter.pass(Tried::Guessing, &format!("2001:db8:1:2::{n:x}")).expect("not yet too often");
        }
        assert!(limiter.check(Tried::Guessing, "2001:db8:1:2:ffff::1").is_err());
        assert!(limiter.check(Tried::Guessing, "2001:db8:1:3::1").is_ok());
        assert_eq!(household("::ffff:10.1.2.3"), "10.1.2.3");
        assert_eq!(household("10.1.2.3"), "10.1.2.3");
        assert_eq!(household("acc123"), "acc123");
    }

    #[test]
    fn many_others_do_not_make_it_forget_who_tried_too_often() {
        let limiter = Limiter::default();
        for _ in 0..20 {
            limiter.count(Tried::Guessing, "10.0.0.1");
        }
        for n in 0..2 * KNOWN_MAX as u32 {
            limiter.count(Tried::Asking, &std::net::Ipv4Addr::from_bits(n + (20 << 24)).to_string());
        }
        assert!(limiter.check(Tried::Guessing, "10.0.0.1").is_err());
        let known = limiter.0.lock().unwrap_or_else(PoisonError::into_inner).len();
        assert!(known <= KNOWN_MAX, "{known}");
    }
}
