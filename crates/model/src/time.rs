//! Points in time as microseconds since 1970 UTC; RFC 3339 on the wire.

use std::fmt;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[cfg_attr(feature = "schema", schema(value_type = String, format = DateTime))]
#[serde(try_from = "String", into = "String")]
pub struct Timestamp(i64);

impl Timestamp {
    pub const fn from_micros(micros: i64) -> Self {
        Self(micros)
    }

    pub fn from_system(time: SystemTime) -> Self {
        Self(time.duration_since(UNIX_EPOCH).map_or(0, |d| d.as_micros() as i64))
    }

    /// Since 1970, as logs count; what is before or after all of that is its edge.
    pub const fn nanos(self) -> u64 {
        let nanos = self.0.saturating_mul(1_000);
        if nanos < 0 { 0 } else { nanos as u64 }
    }

    pub const fn micros(self) -> i64 {
        self.0
    }

    #[must_use]
    pub const fn plus_s(self, seconds: i64) -> Self {
        Self(self.0.saturating_add(seconds.saturating_mul(1_000_000)))
    }

    #[must_use]
    pub const fn plus_ms(self, milliseconds: i64) -> Self {
        Self(self.0.saturating_add(milliseconds.saturating_mul(1_000)))
    }

    /// Time from `earlier` to this, zero when it lies in the future.
    pub fn since(self, earlier: Self) -> Duration {
        Duration::from_micros(self.0.saturating_sub(earlier.0).max(0) as u64)
    }
}

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match jiff::Timestamp::from_microsecond(self.0) {
            Ok(time) => write!(f, "{time:.6}"),
            Err(_) => write!(f, "{}us", self.0),
        }
    }
}

impl From<Timestamp> for String {
    fn from(time: Timestamp) -> String {
        time.to_string()
    }
}

impl TryFrom<String> for Timestamp {
    type Error = String;
    fn try_from(text: String) -> Result<Self, String> {
        text.parse::<jiff::Timestamp>()
            .map(|t| Self(t.as_microsecond()))
            .map_err(|e| format!("`{text}` is not an RFC 3339 time: {e}"))
    }
}

/// Where the time comes from: the system in production, a fake in tests.
pub trait Clock: Send + Sync {
    fn now(&self) -> Timestamp;

    /// Counts on whatever is done to the clock on the wall: by how much the two differ later, that one was set.
    fn steady(&self) -> Duration;
}

/// Parses a duration the way Go writes it (`1h30m`, `300ms`, `45s`); a bare number means seconds.
pub fn parse_duration(text: &str) -> Result<Duration, String> {
    if let Ok(seconds) = text.parse::<u64>() {
        return Ok(Duration::from_secs(seconds));
    }
    let hint = "write it like `90s`, `5m` or `1h30m`";
    let parsed: jiff::SignedDuration = text.parse().map_err(|_| format!("`{text}` is not a duration; {hint}"))?;
    Duration::try_from(parsed).map_err(|_| format!("`{text}` is negative; {hint}"))
}

/// Parses a duration in Go's form: `1h30m`, `1.5h`, `250ms`. A whole number alone counts seconds.
pub fn parse_go_duration(text: &str) -> Result<Duration, String> {
    let is_unit = |c: char| c.is_ascii_alphabetic() || c == 'µ';
    let mut rest = text;
    while !rest.is_empty() && !text.bytes().all(|b| b.is_ascii_digit()) {
        let number = rest.find(is_unit).unwrap_or(rest.len());
        let unit = rest[number..].find(|c| !is_unit(c)).map_or(rest.len(), |at| number + at);
        let good =
            rest[..number].parse::<f64>().is_ok() && rest[..number].bytes().all(|b| b.is_ascii_digit() || b == b'.');
        if !good || !["ns", "us", "µs", "ms", "s", "m", "h"].contains(&&rest[number..unit]) {
            return Err(format!("`{text}` is not a duration; write it like `90s`, `5m` or `1h30m`"));
        }
        rest = &rest[unit..];
    }
    parse_duration(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_travel_as_rfc_3339() {
        let time = Timestamp::from_micros(1_763_200_000_123_456);
        let text = serde_json::to_string(&time).expect("json");
        assert_eq!(text, "\"2025-11-15T09:46:40.123456Z\"");
        assert_eq!(serde_json::from_str::<Timestamp>(&text).expect("time"), time);
        assert!(serde_json::from_str::<Timestamp>("\"yesterday\"").is_err());
    }

    #[test]
    fn durations_of_the_app_format_are_those_of_go() {
        for (text, millis) in [
            ("90s", 90_000),
            ("1h30m", 5_400_000),
            ("1.5h", 5_400_000),
            ("250ms", 250),
            ("2m0s", 120_000),
            ("45", 45_000),
        ] {
            assert_eq!(parse_go_duration(text), Ok(Duration::from_millis(millis)), "{text}");
        }
        for text in ["1 minute", "5 m", "1d", "", "s", "m5", "-1h", "1..5h", "5M", "5m ", "1e3s"] {
            assert!(parse_go_duration(text).is_err(), "{text}");
        }
    }

    #[test]
    fn durations_are_written_as_in_go() {
        for (text, seconds) in [("90s", 90), ("5m", 300), ("1h30m0s", 5400), ("45", 45), ("1.5h", 5400)] {
            assert_eq!(parse_duration(text), Ok(Duration::from_secs(seconds)), "{text}");
        }
        for text in ["-1h", "1d", "", "soon"] {
            assert!(parse_duration(text).is_err(), "{text}");
        }
    }
}
