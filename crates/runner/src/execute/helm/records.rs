//! What Helm keeps of a release: one record for each revision, read as Helm stores them.

use std::io::Read as _;

use kubernetes::{Entry, ObjectRef};
use model::kubernetes::{HelmSpec, ReleaseStorage};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::super::action::StepFailure;
use super::super::kubernetes::api::{Api, encoded};
use super::super::kubernetes::compare;
use super::hooks::{self, Hook};
use super::release;

/// An opened record of a release.
const RECORD_BYTES_MAX: u64 = 64 << 20;

/// A record, by what tells it from every other.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Known {
    pub(super) of: ObjectRef,
    pub(super) uid: String,
    pub(super) revision: u64,
    pub(super) status: String,
}

/// One revision of a release.
pub(super) struct Record {
    pub(super) known: Known,
    pub(super) content: Value,
}

impl Record {
    pub(super) fn hooks(&self) -> Result<Vec<Hook>, StepFailure> {
        hooks::read(&self.content["hooks"])
    }

    /// Its objects of kinds that the cluster serves; the others are gone with their kind.
    pub(super) async fn objects(&self, api: &Api, namespace: &str) -> Result<Vec<Value>, StepFailure> {
        let mut there = Vec::new();
        for object in release::objects(self.content["manifest"].as_str().unwrap_or_default())? {
            let Some(of) = ObjectRef::of(&object) else { continue };
            if api.served(&of).await.map_err(|e| e.of("look up the kind of", &of.address()))?.is_some() {
                there.push(object);
            }
        }
        compare::placed(api, &mut there, namespace).await?;
        Ok(there)
    }
}

/// The records of a release, oldest first; none where it is not installed.
pub(super) async fn of(api: &Api, job: &HelmSpec) -> Result<Vec<Record>, StepFailure> {
    let (plural, kind) = match job.storage {
        ReleaseStorage::Configmap => ("configmaps", "ConfigMap"),
        ReleaseStorage::Secret => ("secrets", "Secret"),
    };
    let query = format!("&labelSelector=owner%3Dhelm%2Cname%3D{}", encoded(&job.release));
    let found = api.list("v1", plural, &job.namespace, &query).await;
    let found = found.map_err(|e| e.of("list", &format!("the {plural} of the release {}", job.release)))?;
    let mut records = Vec::new();
    for object in &found {
        let data = object["data"]["release"].as_str().unwrap_or_default();
        let content = unpacked(data, plural == "secrets").map_err(|why| {
            StepFailure::new("helm_failed", format!("a record of the release {} can't be read: {why}", job.release))
        })?;
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let of = ObjectRef {
            group: String::new(),
            version: "v1".into(),
            kind: kind.into(),
            namespace: Some(job.namespace.clone()),
            name: text(&object["metadata"]["name"]),
        };
        let known = Known {
            of,
            uid: text(&object["metadata"]["uid"]),
            revision: content["version"].as_u64().unwrap_or_default(),
            status: text(&content["info"]["status"]),
        };
        records.push(Record { known, content });
    }
    records.sort_by_key(|record| record.known.revision);
    // A history that was kept when the release was uninstalled.
    if records.last().is_some_and(|last| last.known.status == "uninstalled") {
        records.clear();
    }
    Ok(records)
}

/// A record: packed JSON in base64, twice so in a Secret.
fn unpacked(data: &str, in_secret: bool) -> Result<Value, String> {
    use base64::Engine as _;
    use base64::engine::general_purpose::STANDARD as B64;
    let mut packed = B64.decode(data).map_err(|e| e.to_string())?;
    if in_secret {
        packed = B64.decode(packed).map_err(|e| e.to_string())?;
    }
    let mut text = Vec::new();
    let opened = flate2::read::GzDecoder::new(packed.as_slice()).take(RECORD_BYTES_MAX).read_to_end(&mut text);
    opened.map_err(|e| e.to_string())?;
    serde_json::from_slice(&text).map_err(|e| format!("line {}, column {}", e.line(), e.column()))
}

/// The records that keep Helm from going on: of what another helm began and did not end. Where it was taking the release away, no
/// record is of use any more.
pub(super) fn stuck(records: &[Known]) -> &[Known] {
    match records.last() {
        Some(last) if last.status == "uninstalling" => records,
        _ => {
            let ended = records.iter().rposition(|known| !known.status.starts_with("pending")).map_or(0, |at| at + 1);
            &records[ended..]
        }
    }
}

/// The record of what is deployed; where nothing is, of what was tried last. Helm takes away what the last one names, deployed or not.
pub(super) fn counts(records: &[Record], destroy: bool) -> Option<&Record> {
    let deployed = records.iter().rev().find(|record| record.known.status == "deployed");
    deployed.filter(|_| !destroy).or_else(|| records.last())
}

/// Those of some objects that are there and carry the marks of the release.
pub(super) async fn owned(api: &Api, entries: Vec<Entry>, job: &HelmSpec) -> Result<Vec<Entry>, StepFailure> {
    let mut found = Vec::new();
    for entry in entries {
        let live = api.get(&entry.of).await.map_err(|e| e.of("read", &entry.of.address()))?;
        let notes = live.map(|live| live["metadata"]["annotations"].clone()).unwrap_or_default();
        let is_ours = notes["meta.helm.sh/release-name"] == job.release.as_str()
            && notes["meta.helm.sh/release-namespace"] == job.namespace.as_str();
        if is_ours {
            found.push(entry);
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn known(revision: u64, status: &str) -> Known {
        let of = ObjectRef {
            group: String::new(),
            version: "v1".into(),
            kind: "Secret".into(),
            namespace: None,
            name: format!("v{revision}"),
        };
        Known { of, uid: String::new(), revision, status: status.into() }
    }

    #[test]
    fn what_keeps_helm_from_going_on_is_found() {
        for (statuses, stuck_ones) in [
            (&[][..], &[][..]),
            (&["deployed"], &[]),
            (&["deployed", "pending-upgrade"], &[2]),
            (&["pending-install"], &[1]),
            (&["superseded", "uninstalling"], &[1, 2]),
            (&["deployed", "failed"], &[]),
        ] {
            let all: Vec<Known> = (1_u64..).zip(statuses).map(|(n, status)| known(n, status)).collect();
            let found: Vec<u64> = stuck(&all).iter().map(|one| one.revision).collect();
            assert_eq!(found, stuck_ones, "{statuses:?}");
        }
    }
}
