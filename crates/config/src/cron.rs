//! Schedules: five fields, in UTC.

use croner::Cron;
use croner::errors::CronError;
use croner::parser::{CronParser, Seconds};
use jiff::tz::TimeZone;
use model::Timestamp;

pub(crate) fn parse(text: &str) -> Result<Cron, CronError> {
    CronParser::builder().seconds(Seconds::Disallowed).build().parse(text)
}

/// The first tick of a schedule after a moment; none if it is no schedule, or has no tick any more.
pub fn next_tick(schedule: &str, after: Timestamp) -> Option<Timestamp> {
    let at = jiff::Timestamp::from_microsecond(after.micros()).ok()?.to_zoned(TimeZone::UTC);
    let next = parse(schedule).ok()?.find_next_occurrence(&at, false).ok()?;
    Some(Timestamp::from_micros(next.timestamp().as_microsecond()))
}
