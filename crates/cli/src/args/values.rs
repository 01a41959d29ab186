//! Single values: how each is written, and what is said about one that is wrong.

use std::time::Duration;

use model::{JobGroup, JobId, JobState, JobType, Outcome, Role, Timestamp};

use crate::commands::is_brief;

/// A label that is set, or one that goes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Label {
    Set(String, String),
    Remove(String),
}

/// A name, or an id, which has the form of a name too.
pub(super) fn name(text: &str) -> Result<String, String> {
    if is_brief(text) {
        return Err("this id is shortened: use the name, or the whole id, which `--wide` shows".into());
    }
    model::name::check(text).map(|()| text.to_owned())
}

pub(super) fn key_number(text: &str) -> Result<(String, u64), String> {
    let (key, value) = key_value(text)?;
    Ok((key, value.parse().map_err(|_| format!("`{value}` is not a number"))?))
}

pub(super) fn key_value(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((key, value)) if !key.is_empty() => Ok((key.to_owned(), value.to_owned())),
        Some(_) | None => Err("write it as NAME=VALUE".into()),
    }
}

pub(super) fn label(text: &str) -> Result<Label, String> {
    let label = match (text.split_once('='), text.strip_suffix('-')) {
        (Some((key, value)), _) => Label::Set(key.to_owned(), value.to_owned()),
        (None, Some(key)) => Label::Remove(key.to_owned()),
        (None, None) => return Err("write it as KEY=VALUE, or as KEY- to remove it".into()),
    };
    let (Label::Set(key, _) | Label::Remove(key)) = &label;
    model::labels::check_key(key).map(|()| label)
}

pub(super) fn selector(text: &str) -> Result<String, String> {
    model::labels::Selector::parse(text).map(|selector| selector.to_string())
}

pub(super) fn variable(text: &str) -> Result<(String, String), String> {
    if text.contains('=') {
        return key_value(text);
    }
    match std::env::var(text) {
        Ok(value) => Ok((text.to_owned(), value)),
        Err(_) => Err(format!("`{text}` is not set in this shell; write it as KEY=VALUE")),
    }
}

/// A Go duration, or days and weeks.
pub(super) fn duration(text: &str) -> Result<Duration, String> {
    for (suffix, day_count) in [('d', 1), ('w', 7)] {
        if let Some(count) = text.strip_suffix(suffix).and_then(|n| n.parse::<u32>().ok()) {
            return Ok(Duration::from_secs(u64::from(count) * day_count * 86_400));
        }
    }
    model::time::parse_duration(text)
}

pub(super) fn size(text: &str) -> Result<u64, String> {
    let digits = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    let scale: u64 = match unit.trim().to_ascii_lowercase().as_str() {
        "" | "b" => 1,
        "k" | "ki" | "kib" => 1 << 10,
        "m" | "mi" | "mib" => 1 << 20,
        "g" | "gi" | "gib" => 1 << 30,
        "t" | "ti" | "tib" => 1 << 40,
        "kb" => 1_000,
        "mb" => 1_000_000,
        "gb" => 1_000_000_000,
        _ => return Err(format!("`{unit}` is not a unit; write the size like `512MiB` or `1GiB`")),
    };
    match number.parse::<f64>() {
        Ok(value) if value.is_finite() => Ok((value * scale as f64) as u64),
        Ok(_) | Err(_) => Err("write the size like `512MiB` or `1GiB`".into()),
    }
}

pub(super) fn cpu_millis(text: &str) -> Result<u64, String> {
    match text.parse::<f64>() {
        Ok(cores) if (0.001..=100_000.0).contains(&cores) => Ok((cores * 1000.0).round() as u64),
        Ok(_) | Err(_) => Err("write the number of cores like `0.5` or `2`".into()),
    }
}

pub(super) fn group_slots(text: &str) -> Result<(JobGroup, u32), String> {
    let (group, slots) = key_value(text).map_err(|_| "write it as GROUP=SLOTS, like `actions=8`")?;
    let known = || JobGroup::ALL.map(JobGroup::as_str).join(", ");
    let group =
        JobGroup::parse(&group).ok_or_else(|| format!("`{group}` is not a job group; expected one of {}", known()))?;
    Ok((group, slots.parse().map_err(|_| format!("`{slots}` is not a number of slots"))?))
}

/// The id of a job, whole or as tables show it.
pub(super) fn job_id(text: &str) -> Result<String, String> {
    if is_brief(text) {
        return Ok(text.to_owned());
    }
    JobId::parse(text).map(|id| id.to_string()).map_err(|error| error.to_string())
}

pub(super) fn job_state(text: &str) -> Result<JobState, String> {
    JobState::parse(text).ok_or_else(|| format!("expected one of {}", JobState::ALL.map(JobState::as_str).join(", ")))
}

pub(super) fn job_type(text: &str) -> Result<JobType, String> {
    JobType::parse(text).ok_or_else(|| format!("expected one of {}", JobType::ALL.map(JobType::as_str).join(", ")))
}

pub(super) fn role(text: &str) -> Result<Role, String> {
    Role::parse(text).ok_or_else(|| "expected `read-only`, `approver`, `operator` or `admin`".into())
}

pub(super) fn settled(text: &str) -> Result<Outcome, String> {
    match text {
        "finished" => Ok(Outcome::Finished),
        "failed" => Ok(Outcome::Failed),
        "cancelled" => Ok(Outcome::Cancelled),
        _ => Err("expected `finished`, `failed` or `cancelled`".into()),
    }
}

pub(super) fn moment(text: &str) -> Result<Timestamp, String> {
    if let Ok(back) = model::time::parse_duration(text) {
        return Ok(Timestamp::from_system(std::time::SystemTime::now() - back));
    }
    Timestamp::try_from(text.to_owned())
        .map_err(|_| format!("`{text}` is not a time; write `10m`, or `2026-01-31T12:00:00Z`"))
}

pub(super) fn at_least_one(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(0) | Err(_) => Err("expected a number of at least 1".to_owned()),
        Ok(n) => Ok(n),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn single_values() {
        for (text, expected) in
            [("1", 1), ("1k", 1024), ("512MiB", 512 << 20), ("1.5 GiB", 3 << 29), ("2GB", 2_000_000_000)]
        {
            assert_eq!(size(text), Ok(expected), "{text}");
        }
        assert!(size("1 parsec").is_err() && size("big").is_err() && size("").is_err());
        assert_eq!(duration("30d"), Ok(Duration::from_secs(30 * 86_400)));
        assert_eq!(duration("1h30m"), Ok(Duration::from_secs(5400)));
        assert_eq!((cpu_millis("0.5"), cpu_millis("2")), (Ok(500), Ok(2000)));
        assert!(cpu_millis("0").is_err() && cpu_millis("NaN").is_err());
        assert_eq!(group_slots("actions=8"), Ok((JobGroup::Actions, 8)));
        assert!(group_slots("cooking=1").is_err_and(|e| e.contains("health-checks")));
        assert_eq!(key_value("a=b=c"), Ok(("a".into(), "b=c".into())));
    }
}
