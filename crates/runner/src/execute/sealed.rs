//! Values that stand as placeholders in a spec: only here, on the customer's side, can they be filled in.

use std::collections::BTreeMap;
use std::path::Path;

use model::deploy::SealedValue;
use model::spec::{JobSpec, SECRET_BYTES_MIN, Work};
use model::{InstallId, UploadId};
use serde_json::Value;

use super::{ArtifactFetcher, Done};
use crate::directory::{ExecutionContext, ExecutionDir};
use crate::seal::vault::{Vault, VaultError};

impl From<VaultError> for Done {
    fn from(error: VaultError) -> Self {
        Self::not_attempted(error.code(), error.to_string())
    }
}

/// Where an execution keeps what its children must not see.
pub(super) fn private_dir(dir: &ExecutionDir) -> std::path::PathBuf {
    dir.path().join("private")
}

/// The install's vault, for a spec that needs it.
pub(super) async fn vault(
    dir: &ExecutionDir,
    context: &ExecutionContext,
    fetcher: &dyn ArtifactFetcher,
    spec: &JobSpec,
) -> Result<Option<Vault>, Done> {
    if spec.work.deploy().is_none() && spec.sealed.is_empty() {
        return Ok(None);
    }
    let install = spec.install_id.clone();
    let install: InstallId = install.ok_or_else(|| Done::not_attempted("bad_spec", "the job is of no install"))?;
    let client = fetcher.client(dir).map_err(|e| Done::not_attempted("executor_error", e))?;
    let scratch = private_dir(dir);
    Ok(Some(Vault::unlock(client, install, &context.tools, &context.state_dir, scratch).await?))
}

/// Fills the placeholders in; returns the values, which must not be seen in any log. A file without a path holds values that
/// were filled in before, and that what was made of them may still show.
pub(super) async fn fill(vault: &Vault, dir: &ExecutionDir, spec: &mut JobSpec) -> Result<Vec<String>, Done> {
    let bad = |why: &str| Done::not_attempted("sealed_file", format!("a sealed output can't be filled in: {why}"));
    let opened = opened(vault, &private_dir(dir), &spec.sealed).await;
    let Opened { values, before } = opened.map_err(|(code, why)| Done::not_attempted(code, why))?;
    if !values.is_empty() {
        if let Work::HelmChartDeploy(helm) = &mut spec.work {
            // A comma in a password is no next pair.
            for value in helm.values.values_mut() {
                for (placeholder, text) in &values {
                    *value = value.replace(placeholder, &kubernetes::escaped_value(text));
                }
            }
        }
        let both = serde_json::to_value((&spec.work, &spec.cluster)).map_err(|e| bad(&e.to_string()))?;
        (spec.work, spec.cluster) = serde_json::from_value(replaced(both, &values)).map_err(|e| bad(&e.to_string()))?;
    }
    Ok(values.into_iter().map(|(_, value)| value).chain(before).collect())
}

/// Values that were sealed.
pub(crate) struct Opened {
    /// Each with its placeholder.
    pub(crate) values: Vec<(String, String)>,
    /// Those that were filled in before.
    pub(crate) before: Vec<String>,
}

/// Opens sealed values; a failure has a code and a sentence.
pub(crate) async fn opened(
    vault: &Vault,
    private: &Path,
    sealed: &[SealedValue],
) -> Result<Opened, (&'static str, String)> {
    let bad = |why: &str| ("sealed_file", format!("a sealed output can't be filled in: {why}"));
    let mut files: BTreeMap<UploadId, Value> = BTreeMap::new();
    let mut values: Vec<(String, String)> = Vec::new();
    let mut before: Vec<String> = Vec::new();
    for SealedValue { placeholder, file, path } in sealed {
        if !files.contains_key(&file.upload_id) {
            let place = private.join("outputs.json");
            vault.fetch(file, &place).await.map_err(|e| (e.code(), e.to_string()))?;
            let text = fs_err::read(&place).map_err(|e| bad(&e.to_string()))?;
            let _ = fs_err::remove_file(&place);
            files.insert(file.upload_id.clone(), serde_json::from_slice(&text).map_err(|e| bad(&e.to_string()))?);
        }
        let mut found = &files[&file.upload_id];
        if path.is_empty() {
            before.extend(found.as_array().into_iter().flatten().filter_map(Value::as_str).map(str::to_owned));
            continue;
        }
        for key in path {
            found = found.get(key).ok_or_else(|| bad(&format!("there is no `{}`", path.join("."))))?;
        }
        let text = found.as_str().map_or_else(|| found.to_string(), str::to_owned);
        if !found.is_object() && !found.is_array() && text.len() < SECRET_BYTES_MIN {
            let name = path.join(".");
            let text = format!(
                "the sensitive output `{name}` has fewer than {SECRET_BYTES_MIN} characters and can't be masked: make it longer, or do not mark it sensitive"
            );
            return Err(("short_secret", text));
        }
        values.push((placeholder.clone(), text));
    }
    Ok(Opened { values, before })
}

pub(crate) fn replaced(value: Value, values: &[(String, String)]) -> Value {
    match value {
        Value::String(text) => {
            Value::String(values.iter().fold(text, |text, (placeholder, value)| text.replace(placeholder, value)))
        }
        Value::Array(items) => items.into_iter().map(|item| replaced(item, values)).collect(),
        Value::Object(fields) => fields
            .into_iter()
            .map(|(key, field)| (key, replaced(field, values)))
            .collect::<serde_json::Map<_, _>>()
            .into(),
        Value::Null | Value::Bool(_) | Value::Number(_) => value,
    }
}
