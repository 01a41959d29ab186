//! An image of another registry: found by tag, by digest, or as the newest version that a policy allows.

use model::build::{BuiltFrom, Recipe};

use super::super::Run;
use super::super::action::StepFailure;
use super::Found;
use crate::oci::{Auth, OciError, Remote, split_image, stored_credentials};

pub(super) async fn resolve(
    run: &mut Run<'_>,
    step: usize,
    recipe: &Recipe,
) -> Result<(BuiltFrom, Found), StepFailure> {
    let Recipe::ContainerImage { image, tag, update_policy, credentials, plain_http } = recipe else {
        return Err(StepFailure::new("bad_spec", "the recipe names no image"));
    };
    let (host, path) = split_image(image);
    let scheme = if *plain_http { "http" } else { "https" };
    let login = match credentials {
        Some(login) => Some(login.clone()),
        None => stored_credentials(&host).await,
    };
    let remote = Remote::new(&format!("{scheme}://{host}"), &path, Auth::Login(login), run.context.ca_file.as_deref())?;
    let look = async {
        let reference = match update_policy {
            Some(policy) => newest(&remote.tags().await?, policy)?,
            None => tag.clone().unwrap_or_else(|| "latest".into()),
        };
        let root = remote.manifest(&reference).await?;
        Ok::<_, OciError>((reference, root))
    };
    let (reference, root) = tokio::select! {
        found = look => found?,
        stop = run.stopped() => return Err(StepFailure::Stopped(stop)),
    };
    run.say(Some(step), &format!("{image}:{reference} is {}", root.digest));
    let from = BuiltFrom { revision: root.digest.to_string(), reference: Some(reference), ..BuiltFrom::default() };
    Ok((from, Found::Image(Box::new(remote), Box::new(root))))
}

/// The tag with the newest version that the policy allows; those before a release only where the policy names one.
fn newest(tags: &[String], policy: &str) -> Result<String, OciError> {
    let wanted = semver::VersionReq::parse(policy)
        .map_err(|e| OciError::Bad(format!("`{policy}` is no range of versions: {e}")))?;
    let version = |tag: &String| {
        let version = semver::Version::parse(tag.strip_prefix('v').unwrap_or(tag)).ok()?;
        wanted.matches(&version).then(|| (version, tag.clone()))
    };
    let newest = tags.iter().filter_map(version).max_by(|a, b| a.0.cmp(&b.0));
    newest
        .map(|(_, tag)| tag)
        .ok_or_else(|| OciError::Bad(format!("none of {} tags is a version within `{policy}`", tags.len())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_allowed_version_is_found() {
        let tags = ["1.2.0", "v1.10.0", "1.9.9", "2.0.0", "latest", "1.11.0-rc1", "1.2"].map(str::to_owned);
        assert_eq!(newest(&tags, ">=1.2, <2").ok().as_deref(), Some("v1.10.0"));
        assert_eq!(newest(&tags, "^2").ok().as_deref(), Some("2.0.0"));
        assert!(newest(&tags, "^3").is_err());
        assert!(newest(&tags, "newest please").is_err());
    }
}
