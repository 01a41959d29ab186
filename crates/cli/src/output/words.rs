//! Numbers, times and foreign text, as a person reads them.

use std::time::Duration;

use model::Timestamp;

/// Text of others must not steer the terminal.
pub(crate) fn clean(text: &str) -> String {
    text.chars().map(|c| if c.is_control() && c != '\n' { '\u{fffd}' } else { c }).collect()
}

/// A text without what moves the cursor, on one line.
pub(crate) fn one_line(text: &str) -> String {
    clean(text).replace('\n', " ")
}

/// `1 policy`, `2 policies`.
pub(crate) fn count(number: usize, one: &str, many: &str) -> String {
    format!("{number} {}", if number == 1 { one } else { many })
}

/// `3 min ago`, `in 2 h`, `now`.
pub(super) fn relative(time: Timestamp, now: Timestamp) -> String {
    let future = time > now;
    let seconds = if future { time.since(now) } else { now.since(time) }.as_secs();
    let length = match seconds {
        0 => return "now".to_owned(),
        1..60 => format!("{seconds} s"),
        60..3600 => format!("{} min", seconds / 60),
        3600..172_800 => format!("{} h", seconds / 3600),
        _ => format!("{} days", seconds / 86_400),
    };
    if future { format!("in {length}") } else { format!("{length} ago") }
}

/// `2026-11-18 16:21:24Z`
pub(super) fn exact(time: Timestamp) -> String {
    let text = time.to_string();
    let whole = text.split('.').next().unwrap_or_default().trim_end_matches('Z').replacen('T', " ", 1);
    format!("{whole}Z")
}

/// A duration in its largest unit, or two of them where one is too coarse.
pub(crate) fn short(duration: Duration) -> String {
    let s = duration.as_secs();
    match s {
        0 => format!("{}ms", duration.as_millis()),
        1..60 => format!("{s}s"),
        60..600 if !s.is_multiple_of(60) => format!("{}m{}s", s / 60, s % 60),
        60..3600 => format!("{}m", s / 60),
        3600..36_000 if !(s / 60).is_multiple_of(60) => format!("{}h{}m", s / 3600, s / 60 % 60),
        3600..172_800 => format!("{}h", s / 3600),
        _ => format!("{}d", s / 86_400),
    }
}

/// `1.5 GiB`, `512 MiB`.
pub(crate) fn bytes(count: u64) -> String {
    let mut value = count as f64;
    let mut units = ["B", "KiB", "MiB", "GiB", "TiB"].iter();
    let mut unit = units.next().copied().unwrap_or_default();
    for next in units {
        if value < 1024.0 {
            break;
        }
        value /= 1024.0;
        unit = next;
    }
    let text = format!("{value:.1}");
    format!("{} {unit}", text.strip_suffix(".0").unwrap_or(&text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_and_sizes_are_short() {
        for (ms, text) in [
            (5, "5ms"),
            (3_000, "3s"),
            (60_000, "1m"),
            (90_000, "1m30s"),
            (700_000, "11m"),
            (3_600_000, "1h"),
            (5_400_000, "1h30m"),
            (100_000_000, "27h"),
            (864_000_000, "10d"),
        ] {
            assert_eq!(short(Duration::from_millis(ms)), text);
        }
        for (count, text) in [(0, "0 B"), (1023, "1023 B"), (1 << 20, "1 MiB"), (3 << 29, "1.5 GiB")] {
            assert_eq!(bytes(count), text);
        }
    }

    #[test]
    fn times_are_relative_or_to_the_second() {
        let now = Timestamp::from_micros(1_800_000_000_123_456);
        for (after_s, text) in [
            (0, "now"),
            (-3, "3 s ago"),
            (-59, "59 s ago"),
            (-180, "3 min ago"),
            (-3_599, "59 min ago"),
            (-7_300, "2 h ago"),
            (-172_799, "47 h ago"),
            (-172_800, "2 days ago"),
            (120, "in 2 min"),
            (7_200, "in 2 h"),
            (2_592_000, "in 30 days"),
        ] {
            assert_eq!(relative(now.plus_s(after_s), now), text, "{after_s}");
        }
        assert_eq!(exact(now), "2027-01-15 08:00:00Z");
    }
}
