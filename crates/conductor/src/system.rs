//! The edges of the pure core: the system's clock and randomness.

use std::sync::OnceLock;
use std::time::{Duration, Instant, SystemTime};

use model::{Clock, Timestamp};

#[derive(Debug, Clone, Copy, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    fn now(&self) -> Timestamp {
        Timestamp::from_system(SystemTime::now())
    }

    fn steady(&self) -> Duration {
        static START: OnceLock<Instant> = OnceLock::new();
        START.get_or_init(Instant::now).elapsed()
    }
}

/// Where randomness comes from: the system, or a seed in the simulator.
pub type Draw = dyn Fn(&mut [u8]) + Send + Sync;

pub(crate) fn system_draw(bytes: &mut [u8]) {
    getrandom::fill(bytes).expect("the system has randomness");
}

/// Randomness for an id.
pub fn random_u128() -> u128 {
    u128_from(&system_draw)
}

pub(crate) fn u128_from(draw: &Draw) -> u128 {
    let mut bytes = [0; 16];
    draw(&mut bytes);
    u128::from_be_bytes(bytes)
}

/// A new secret of 256 bits: a prefix that scanners can find, and lower-case base 36.
pub fn secret(prefix: &str) -> String {
    secret_from(&system_draw, prefix)
}

pub(crate) fn secret_from(draw: &Draw, prefix: &str) -> String {
    const DIGITS: &[u8; 32] = b"0123456789abcdefghijklmnopqrstuv";
    let mut bytes = [0; 52];
    draw(&mut bytes);
    let text: String = bytes.iter().map(|b| char::from(DIGITS[usize::from(b & 31)])).collect();
    format!("{prefix}_{text}")
}
