//! The edges of the pure core: the system's clock and randomness.

use std::time::SystemTime;

use model::{Clock, Timestamp};

#[derive(Debug, Clone, Copy, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    fn now(&self) -> Timestamp {
        Timestamp::from_system(SystemTime::now())
    }
}

/// Randomness for an id.
pub fn random_u128() -> u128 {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes).expect("the system has randomness");
    u128::from_be_bytes(bytes)
}

/// A new secret of 256 bits: a prefix that scanners can find, and lower-case base 36.
pub fn secret(prefix: &str) -> String {
    const DIGITS: &[u8; 32] = b"0123456789abcdefghijklmnopqrstuv";
    let mut bytes = [0; 52];
    getrandom::fill(&mut bytes).expect("the system has randomness");
    let text: String = bytes.iter().map(|b| char::from(DIGITS[usize::from(b & 31)])).collect();
    format!("{prefix}_{text}")
}
