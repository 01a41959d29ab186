//! Ids as tables show them. The API takes whole ids only, so `job…fghijklm` is looked up among the newest objects of its kind.

use std::collections::BTreeSet;

use api::client::{Client, JobFilter};
use model::{BuildId, JobId, StepId, WorkflowId};

use crate::error::{CliError, Exit, Result};

/// How many of a kind are looked at.
const NEWEST: usize = 500;
/// Of how many workflows the steps are looked at.
const NEWEST_WORKFLOWS: usize = 20;
const CUT: char = '…';

/// Whether a text is an id as tables show it.
pub(crate) fn is_brief(text: &str) -> bool {
    text.contains(CUT)
}

/// Whether a table shows this id so.
pub(crate) fn stands_for(brief: &str, id: &str) -> bool {
    brief.split_once(CUT).is_some_and(|(prefix, tail)| {
        prefix.len() + tail.len() < id.len() && id.starts_with(prefix) && id.ends_with(tail) && !tail.is_empty()
    })
}

/// The whole id; one that is whole already is returned as it is.
pub(crate) async fn whole(client: &Client, given: &str) -> Result<String> {
    let Some((prefix, _)) = given.split_once(CUT) else { return Ok(given.to_owned()) };
    let known: Vec<String> = match prefix {
        JobId::PREFIX => {
            let jobs = client.jobs(&JobFilter::default(), NEWEST).await?;
            jobs.into_iter().map(|job| job.id.to_string()).collect()
        }
        WorkflowId::PREFIX => client.workflows(None, NEWEST).await?.into_iter().map(|workflow| workflow.id).collect(),
        BuildId::PREFIX => client.builds(None, None, NEWEST).await?.into_iter().map(|build| build.stamp.id).collect(),
        StepId::PREFIX => {
            let mut steps = Vec::new();
            for workflow in client.workflows(None, NEWEST_WORKFLOWS).await? {
                steps.extend(client.workflow(&workflow.id).await?.steps.into_iter().map(|step| step.id));
            }
            steps
        }
        _ => Vec::new(),
    };
    pick(given, known.iter().map(String::as_str))
}

/// A whole job id.
pub(crate) async fn job(client: &Client, given: &str) -> Result<JobId> {
    let id = whole(client, given).await?;
    JobId::parse(&id).map_err(|error| CliError::usage(error.to_string()))
}

/// The one of these ids that is meant.
pub(crate) fn pick<'a>(given: &str, known: impl Iterator<Item = &'a str>) -> Result<String> {
    if !is_brief(given) {
        return Ok(given.to_owned());
    }
    let found: BTreeSet<&str> = known.filter(|id| stands_for(given, id)).collect();
    let mut found = found.into_iter();
    match (found.next(), found.next()) {
        (Some(id), None) => Ok(id.to_owned()),
        (None, _) => Err(CliError::new(Exit::NotFound, format!("`{given}` is shortened, and no recent id matches it"))
            .hint("give the whole id; lists show it with `--wide`")),
        (Some(first), Some(second)) => {
            Err(CliError::usage(format!("`{given}` is shortened and could be `{first}` or `{second}`"))
                .hint("give the whole id"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::output::brief_id;

    #[test]
    fn a_shortened_id_finds_the_whole_one() {
        let (one, other) = ("job0123456789abcdefghijklm", "job0123456789abcdefghijkln");
        let known = [one, other];
        let pick = |given: &str| pick(given, known.into_iter());
        assert_eq!(pick(&brief_id(one)).as_deref(), Ok(one));
        assert_eq!(pick(other).as_deref(), Ok(other));
        assert_eq!(pick("jobx").as_deref(), Ok("jobx"), "the server judges what is not shortened");
        let twins = ["job0000000000abcdefghijklm", one];
        let error = super::pick("job…fghijklm", twins.into_iter()).expect_err("two");
        assert!(error.message.contains("could be"), "{error}");
        for given in ["job…", "wfl…fghijklm", "job…zzz"] {
            assert_eq!(pick(given).map_err(|error| error.exit), Err(Exit::NotFound), "{given}");
        }
    }
}
