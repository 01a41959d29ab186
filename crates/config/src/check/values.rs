//! Texts that have a form: durations, schedules, regions, names.

use crate::diagnostic::{Said, did_you_mean, error, warning};
use crate::table::{Cloud, NameRule, Shape};
use crate::{Code, Place};

/// Regions that a misspelt one is compared with. One that is not among them may still be right.
const AWS_REGIONS: &[&str] = &[
    "af-south-1",
    "ap-east-1",
    "ap-east-2",
    "ap-northeast-1",
    "ap-northeast-2",
    "ap-northeast-3",
    "ap-south-1",
    "ap-south-2",
    "ap-southeast-1",
    "ap-southeast-2",
    "ap-southeast-3",
    "ap-southeast-4",
    "ap-southeast-5",
    "ap-southeast-6",
    "ap-southeast-7",
    "ca-central-1",
    "ca-west-1",
    "cn-north-1",
    "cn-northwest-1",
    "eu-central-1",
    "eu-central-2",
    "eu-north-1",
    "eu-south-1",
    "eu-south-2",
    "eu-west-1",
    "eu-west-2",
    "eu-west-3",
    "eusc-de-east-1",
    "il-central-1",
    "me-central-1",
    "me-south-1",
    "mx-central-1",
    "sa-east-1",
    "us-east-1",
    "us-east-2",
    "us-gov-east-1",
    "us-gov-west-1",
    "us-west-1",
    "us-west-2",
];

/// What is wrong with a text, and where in it.
pub(super) fn check(key: &str, shape: &Shape, text: &str) -> Option<(Said, Option<Place>)> {
    let said = match shape {
        Shape::Choice(values) => choice(key, values, &[], text),
        Shape::Renamed(values, old) => choice(key, values, old, text),
        Shape::Duration { min_s, max_s } => duration(key, *min_s, *max_s, text),
        Shape::Cron => cron(key, text),
        Shape::Region(cloud) => region(*cloud, text),
        Shape::Name(NameRule::Dotted) => name(text),
        Shape::Json => return json(key, text),
        _ => None,
    };
    said.map(|said| (said, None))
}

fn choice(key: &str, values: &[&str], old: &[(&str, &str)], text: &str) -> Option<Said> {
    if values.contains(&text) || old.iter().any(|(old, _)| *old == text) {
        return None;
    }
    let near = did_you_mean(text, values.iter().copied());
    let all = || format!("one of {}", values.iter().map(|value| format!("`{value}`")).collect::<Vec<_>>().join(", "));
    Some(error(Code::BadValue, format!("`{text}` is not a value of `{key}`")).hint(near.unwrap_or_else(all)))
}

fn duration(key: &str, min_s: u64, max_s: u64, text: &str) -> Option<Said> {
    match model::time::parse_go_duration(text) {
        Err(message) => Some(error(Code::BadDuration, message)),
        Ok(length) if length.as_secs_f64() < min_s as f64 || length.as_secs_f64() > max_s as f64 => {
            Some(error(Code::BadDuration, format!("`{key}` must be from {min_s}s to {max_s}s, not `{text}`")))
        }
        Ok(_) => None,
    }
}

fn cron(key: &str, text: &str) -> Option<Said> {
    let wrong = crate::cron::parse(text).err()?;
    Some(
        error(Code::BadCron, format!("`{key}` is not a schedule: {wrong}"))
            .hint("five fields: minute, hour, day of month, month, day of week, as `0 3 * * *`"),
    )
}

/// A region that is not formed like one is wrong; one that is formed like one may be new.
fn region(cloud: Cloud, text: &str) -> Option<Said> {
    let (formed, example) = match cloud {
        Cloud::Aws => (is_aws_region(text), "us-east-1"),
        Cloud::Gcp => (is_gcp_region(text), "us-central1"),
        Cloud::Azure => (text.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit()), "eastus"),
    };
    let near = (cloud == Cloud::Aws && !AWS_REGIONS.contains(&text))
        .then(|| did_you_mean(text, AWS_REGIONS.iter().copied()))
        .flatten();
    match (formed, near) {
        (true, None) => None,
        (true, Some(near)) => {
            Some(warning(Code::BadRegion, format!("there is no region `{text}` that is known")).hint(near))
        }
        (false, near) => Some(
            error(Code::BadRegion, format!("`{text}` is not formed like a region"))
                .hint(near.unwrap_or_else(|| format!("regions are written like `{example}`"))),
        ),
    }
}

fn is_aws_region(text: &str) -> bool {
    let parts: Vec<&str> = text.split('-').collect();
    let words =
        parts.iter().take(parts.len() - 1).all(|part| !part.is_empty() && part.bytes().all(|b| b.is_ascii_lowercase()));
    parts.len() >= 3
        && words
        && parts.last().is_some_and(|last| last.len() == 1 && last.bytes().all(|b| b.is_ascii_digit()))
}

fn is_gcp_region(text: &str) -> bool {
    let Some((first, rest)) = text.split_once('-') else { return false };
    let word = rest.trim_end_matches(|c: char| c.is_ascii_digit());
    let letters = |part: &str| !part.is_empty() && part.bytes().all(|b| b.is_ascii_lowercase());
    letters(first) && letters(word) && word.len() < rest.len()
}

/// Names that templates say after a dot; they may be templates themselves.
fn name(text: &str) -> Option<Said> {
    let good = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || matches!(c, '_' | '.' | '{' | '}');
    let bad = text.chars().find(|&c| !(good(c) || c == ' ' && text.contains("{{")))?;
    let better: String = text
        .chars()
        .map(|c| {
            if good(c) {
                c
            } else if good(c.to_ascii_lowercase()) {
                c.to_ascii_lowercase()
            } else {
                '_'
            }
        })
        .collect();
    Some(
        error(
            Code::BadName,
            format!(
                "the name `{text}` contains {bad:?}; only lower-case letters, digits and `_` can be said in a template"
            ),
        )
        .hint(format!("call it `{better}`")),
    )
}

/// JSON in which templates may stand.
fn json(key: &str, text: &str) -> Option<(Said, Option<Place>)> {
    if text.trim().is_empty() || text.contains("{{") {
        return None;
    }
    let wrong = serde_json::from_str::<serde::de::IgnoredAny>(text).err()?;
    let place = Place { line: wrong.line().max(1), column: wrong.column().max(1) };
    let message = wrong.to_string();
    let message = message.split(" at line").next().unwrap_or(&message);
    Some((error(Code::BadJson, format!("`{key}` must be JSON: {message}")), Some(place)))
}
