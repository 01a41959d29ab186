//! What lists show of an install, put together ahead of time: its parts, their drift, its labels and its version.

use std::collections::{BTreeMap, BTreeSet};

use model::{InstallId, OrgId, PartStatus, Timestamp};
use serde_json::Value;
use store::{Install, Look, Summary, SummaryPart};

use crate::error::Result;
use crate::reconcile::go_on;
use crate::{Conductor, Document, InstallStatus};

/// Summaries that one look makes.
const BATCH: u64 = 256;
/// Summaries that somebody who asks for a list waits for.
const AWAITED: u64 = 32;

impl Conductor {
    /// Makes the summaries that are out of date.
    pub async fn reconcile_summaries(&self) -> Result<()> {
        // What fails stays behind and is passed by: it must keep nobody else waiting.
        let mut failed = 0;
        loop {
            let due = self.store.unsummarized(None, failed, BATCH).await?;
            let count = due.len() as u64;
            for (org, install, seen) in due {
                failed += u64::from(!go_on("summary", self.summarize(&org, &install, seen).await));
            }
            if count < BATCH {
                return Ok(());
            }
        }
    }

    /// Makes those of one org now, as many as somebody will wait for; the others come with the next look.
    pub async fn refresh_summaries(&self, org: &OrgId) -> Result<()> {
        for (org, install, seen) in self.store.unsummarized(Some(org), 0, AWAITED).await? {
            go_on("summary", self.summarize(&org, &install, seen).await);
        }
        Ok(())
    }

    async fn summarize(&self, org: &OrgId, install: &InstallId, seen: u64) -> Result<()> {
        let install = match self.store.install(org, install.as_str()).await {
            Ok(install) => install,
            // Forgotten meanwhile.
            Err(store::StoreError::NotFound(_)) => return Ok(()),
            Err(other) => return Err(other.into()),
        };
        let summary = self.summary(&install).await?;
        Ok(self.store.put_summary(org, seen, summary, self.now()).await?)
    }

    /// An install as lists show it, as it is now.
    pub async fn summary(&self, install: &Install) -> Result<Summary> {
        let parts = self.parts_now(install).await?;
        let looks = self.store.looks(&install.org_id, &install.id).await?;
        let changed_at = self.store.state_versions(&install.org_id, &install.id, 0, 1).await?;
        let changed_at = changed_at.first().map_or(install.created_at, |version| version.created_at);
        let document = self.document_of(install).await?;
        let labels = match &document {
            Some(document) => self.rendered_labels(install, &document.config).await?,
            None => crate::apps::own_labels(install),
        };
        let mut summary = summarized(install, &parts, &looks, document.as_deref(), changed_at);
        summary.labels = labels;
        Ok(summary)
    }
}

/// What is known of drift at a part.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Drift {
    /// There is nothing that could drift.
    Absent,
    NeverLooked,
    None,
    Drifted,
    LookFailed,
}

/// A look tells of a part as long as nothing was deployed there since.
pub fn drift_of(look: Option<&Look>, part: Option<&Value>) -> Drift {
    let Some(part) = part.filter(|part| crate::is_there(part)) else { return Drift::Absent };
    let Some(look) = look else { return Drift::NeverLooked };
    match look.status.as_str() {
        _ if Some(look.generation) != part["generation"].as_u64() && look.attempt.is_some() => Drift::LookFailed,
        _ if Some(look.generation) != part["generation"].as_u64() => Drift::NeverLooked,
        "drifted" => Drift::Drifted,
        "no-drift" if look.attempt.is_none() => Drift::None,
        _ => Drift::LookFailed,
    }
}

/// The versions that the parts were deployed from which the install wants.
fn wanted_versions(components: &[SummaryPart]) -> impl Iterator<Item = u64> {
    components.iter().filter(|part| !part.disabled).filter_map(|part| part.version)
}

/// Pure: what follows from the parts, the looks and the app.
fn summarized(
    install: &Install,
    parts: &BTreeMap<String, Value>,
    looks: &[Look],
    document: Option<&Document>,
    changed_at: Timestamp,
) -> Summary {
    let disabled = document.map(|document| crate::disabled(install, &document.config)).unwrap_or_default();
    let together = InstallStatus::of(parts, document, &disabled);
    let status = |part: &str| PartStatus::parse(parts.get(part).and_then(|part| part["status"].as_str()));
    let looked = |part: &str| drift_of(looks.iter().find(|look| look.part == part), parts.get(part));
    let drifted = |part: &str| looked(part) == Drift::Drifted;
    let wanted = document.into_iter().flat_map(|document| &document.config.components);
    let kinds: BTreeMap<&str, &str> = wanted.map(|c| (c.common.name.as_str(), c.kind.name())).collect();
    let there = parts.keys().filter_map(|part| part.strip_prefix("components/"));
    let there = there.filter(|name| status(&format!("components/{name}")).is_there());
    let names: BTreeSet<&str> = there.chain(kinds.keys().copied()).collect();
    let component = |name: &str| {
        let part = format!("components/{name}");
        let status = status(&part);
        SummaryPart {
            name: name.to_owned(),
            kind: kinds.get(name).copied().unwrap_or_default().to_owned(),
            status: status.as_str().to_owned(),
            drifted: drifted(&part),
            disabled: disabled.contains(name),
            version: parts.get(&part).filter(|_| status.is_there()).and_then(|part| part["config_version"].as_u64()),
        }
    };
    let components: Vec<SummaryPart> = names.into_iter().map(component).collect();
    let sandbox_drifted = u64::from(drifted("sandbox"));
    let is_image = |kind: &str| matches!(kind, "container_image" | "docker_build");
    let to_look =
        components.iter().filter(|part| !is_image(&part.kind)).map(|part| format!("components/{}", part.name));
    let to_look = to_look.chain(std::iter::once("sandbox".to_owned()));
    let unlooked = to_look.filter(|part| matches!(looked(part), Drift::NeverLooked | Drift::LookFailed)).count() as u64;
    let sandbox_version = parts.get("sandbox").and_then(|part| part["config_version"].as_u64());
    // A sandbox that the app does not have says nothing about the whole.
    let has_sandbox = document.is_none_or(|document| document.config.sandbox.is_some()) || status("sandbox").is_there();
    let whole = if has_sandbox && together.sandbox != PartStatus::Pending {
        PartStatus::worst([together.sandbox, together.components])
    } else {
        together.components
    };
    let region = ["/aws_account/region", "/azure_account/location", "/gcp_account/region"];
    let region = region.iter().find_map(|path| install.cloud.pointer(path)).and_then(Value::as_str);
    Summary {
        id: install.id.clone(),
        name: install.name.clone(),
        app_id: install.app_id.clone(),
        runner_id: install.runner_id.clone(),
        platform: install.platform.clone(),
        region: region.unwrap_or_default().to_owned(),
        labels: BTreeMap::new(),
        status: whole.as_str().to_owned(),
        sandbox_status: together.sandbox.as_str().to_owned(),
        drifted: components.iter().filter(|part| part.drifted).count() as u64 + sandbox_drifted,
        // The sandbox has a version of its own: a deploy of all components leaves it where it is.
        version: wanted_versions(&components).min().or(sandbox_version),
        unlooked,
        components,
        kept: install.config_id.is_some(),
        created_at: install.created_at,
        changed_at,
    }
}
