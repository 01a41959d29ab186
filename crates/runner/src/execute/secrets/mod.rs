//! Brings secrets from the customer's store to Kubernetes. All are read before the first is written, and what leaves this process
//! are names, lengths and times.

mod readers;
mod write;

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as B64;
use crash::crash_point;
use futures::StreamExt as _;
use model::Outcome;
use model::kubernetes::ClusterSpec;
use model::secrets::{
    SECRET_VALUE_BYTES_MAX, SecretFormat, SecretOutput, SecretOutputs, SecretSpec, SecretTarget, SecretsSpec,
};
use model::spec::JobSpec;
use serde_json::Value;

use super::action::StepFailure;
use super::kubernetes::api::Api;
use super::kubernetes::pulls::ImagePulls;
use super::kubernetes::{AT_ONCE, cluster, plan};
use super::manifest::unless_stopped;
use super::stages::Stages;
use super::{Done, Run};
use crate::seal::vault::Tools;
use crate::secret_store::{self, SecretStore};
pub(in crate::execute) use write::manager;
use write::{Object, Written};

/// A job does not wait longer for a store that is away.
const HIDE: std::time::Duration = std::time::Duration::from_secs(10);
const READ: usize = 0;
const WRITE: usize = 1;
const RESTART: usize = 2;

pub(super) async fn run(run: &mut Run<'_>, spec: &SecretsSpec, job: &JobSpec) -> Done {
    let mut stages = Stages::new(&["read", "write", "readers"]);
    let stop = run.stop.clone();
    match unless_stopped(stop, sync(run, &mut stages, spec, job)).await {
        Ok(outputs) => {
            let Ok(Value::Object(outputs)) = serde_json::to_value(outputs) else {
                unreachable!("outputs are an object")
            };
            Done { outcome: Outcome::Finished, error: None, steps: stages.finish(run), outputs }
        }
        Err(failure) => stages.fail(run, failure),
    }
}

async fn sync(
    run: &Run<'_>,
    stages: &mut Stages,
    spec: &SecretsSpec,
    job: &JobSpec,
) -> Result<SecretOutputs, StepFailure> {
    stages.begin(run, READ);
    let values = if spec.secrets.is_empty() { Vec::new() } else { read_all(run, &spec.secrets).await? };
    let objects = grouped(spec, &values)?;
    stages.begin(run, WRITE);
    let config = cluster::kubeconfig(run, job.cluster.as_ref().unwrap_or(&ClusterSpec::Runner {}))?;
    let api = cluster::open(&config, write::manager(run)?).await?;
    crash_point!("executor.before_secrets");
    let mut written: BTreeMap<SecretTarget, Written> = BTreeMap::new();
    for ((namespace, name), object) in &objects {
        let done = write::object(&api, namespace, name, object).await?;
        crash_point!("executor.secret_written");
        let changed = done.values().filter(|one| one.changed).count();
        run.say(Some(WRITE), &format!("Secret/{namespace}/{name}: {} of {} keys are new", changed, done.len()));
        written.extend(
            done.into_iter()
                .map(|(key, one)| (SecretTarget { namespace: namespace.clone(), name: name.clone(), key }, one)),
        );
    }
    for namespace in &spec.pulls_gone {
        if write::take_away(&api, namespace, &spec.pull_secret).await? {
            run.say(Some(WRITE), &format!("Secret/{namespace}/{} is taken away", spec.pull_secret));
        }
    }
    if let Some(pulls) = ImagePulls::of(run, job.pulls.as_ref())? {
        let namespaces: BTreeSet<String> = spec.pulls_renewed.iter().cloned().collect();
        if let Some(bringing) = pulls.bring(run, &api, namespaces).await? {
            let renewed = bringing.renew().await?;
            run.say(Some(WRITE), &format!("pods can pull images for another day in: {}", renewed.join(", ")));
        }
    }
    let left = take_away(run, &api, spec, &values, &objects).await?;
    // A namespace goes at the very end only: until then something else may come into it.
    for namespace in &spec.namespaces {
        if let Some(told) = write::remove_namespace(&api, namespace).await? {
            run.say(Some(WRITE), &told);
        }
    }
    stages.begin(run, RESTART);
    let readers = readers::of(run, &api, &written).await;
    Ok(SecretOutputs { left, ..outputs(run, spec, &values, &written, &readers) })
}

/// Takes away what is not wanted any more, or has no value any more: whole objects, where nothing of ours stays in them. What the
/// runner may not take away any more keeps no sync from the rest, and is tried again by the next one.
async fn take_away(
    run: &Run<'_>,
    api: &Api,
    spec: &SecretsSpec,
    values: &[Option<Vec<u8>>],
    wanted: &BTreeMap<(String, String), Object>,
) -> Result<Vec<SecretTarget>, StepFailure> {
    let without_value = spec.secrets.iter().zip(values).filter(|(_, value)| value.is_none());
    let without_value = without_value.flat_map(|(secret, _)| &secret.targets);
    let mut gone: BTreeMap<(String, String), Vec<SecretTarget>> = BTreeMap::new();
    for target in spec.gone.iter().chain(without_value) {
        gone.entry((target.namespace.clone(), target.name.clone())).or_default().push(target.clone());
    }
    gone.retain(|of, _| !wanted.contains_key(of));
    let goes_on = spec.namespaces.is_empty();
    let mut left = Vec::new();
    for ((namespace, name), targets) in gone {
        match write::take_away(api, &namespace, &name).await {
            Ok(true) => run.say(Some(WRITE), &format!("Secret/{namespace}/{name} is taken away")),
            Ok(false) => {}
            Err(StepFailure::Failed { error, .. }) if goes_on && error.code == "cluster_forbidden" => {
                let why = error.message;
                run.say(
                    Some(WRITE),
                    &format!("Secret/{namespace}/{name} stays, though it is not wanted any more: {why}"),
                );
                left.extend(targets);
            }
            Err(failure) => return Err(failure),
        }
    }
    Ok(left)
}

/// Learns the values of the app's secrets, so that nothing of the job shows them.
pub(super) async fn hide(run: &Run<'_>, names: &[String]) {
    if names.is_empty() {
        return;
    }
    let context = run.context;
    let known = known_values(names, &context.tools, &context.state_dir, context.ca_file.as_deref()).await;
    run.host.secrets.add(known.values.into_values().flatten());
    if let Some(told) = known.told {
        run.say(None, &told);
    }
}

/// What the customer's store says of secrets, as texts may show them.
#[derive(Debug, Default)]
pub(crate) struct KnownValues {
    /// By the name of the secret; one without a value has none.
    pub(crate) values: BTreeMap<String, Vec<String>>,
    /// Those that can't be read, and why.
    pub(crate) told: Option<String>,
}

/// The values of secrets in the customer's store. One that can't be read keeps nobody from the others.
pub(crate) async fn known_values(
    names: &[String],
    tools: &Tools,
    state_dir: &Path,
    ca_file: Option<&Path>,
) -> KnownValues {
    let store = match secret_store::open(tools, state_dir, ca_file) {
        Ok(store) => store,
        Err(error) => {
            let told = format!("the app's secrets can't be read, so nobody knows what to mask of them: {error}");
            return KnownValues { told: Some(told), ..KnownValues::default() };
        }
    };
    let (store, until) = (&*store, tokio::time::Instant::now() + HIDE);
    let read = names.iter().map(|name| async move {
        let found = match tokio::time::timeout_at(until, store.read(name)).await {
            Ok(found) => found.map_err(|e| e.to_string()),
            Err(_) => Err("the store does not answer".to_owned()),
        };
        (name, found)
    });
    let found: Vec<_> = futures::stream::iter(read).buffered(AT_ONCE).collect().await;
    let (mut known, mut failed, mut why) = (KnownValues::default(), Vec::new(), None);
    for (name, found) in found {
        match found {
            Ok(value) => drop(known.values.insert(name.clone(), value.iter().flat_map(|value| forms(value)).collect())),
            Err(error) => {
                failed.push(format!("`{name}`"));
                why.get_or_insert(error);
            }
        }
    }
    known.told = why.map(|why| {
        format!("the app's secrets {} can't be read, so nobody knows what to mask of them: {why}", plan::named(failed))
    });
    known
}

fn forms(value: &[u8]) -> Vec<String> {
    let decoded = B64.decode(value.trim_ascii()).ok().and_then(|bytes| String::from_utf8(bytes).ok());
    let plain = String::from_utf8_lossy(value).into_owned();
    [Some(plain), Some(B64.encode(value)), decoded.filter(|text| !text.is_empty())].into_iter().flatten().collect()
}

/// Reads every secret; one that can't be had is an error, and all of them are named.
async fn read_all(run: &Run<'_>, secrets: &[SecretSpec]) -> Result<Vec<Option<Vec<u8>>>, StepFailure> {
    let (tools, state_dir) = (&run.context.tools, &run.context.state_dir);
    let store = secret_store::open(tools, state_dir, run.context.ca_file.as_deref())
        .map_err(|e| StepFailure::new("secret_store", e.to_string()))?;
    let read = secrets.iter().map(|secret| read(&*store, secret));
    let found: Vec<_> = futures::stream::iter(read).buffered(AT_ONCE).collect().await;
    let (mut values, mut problems) = (Vec::new(), Vec::new());
    for one in found {
        match one {
            Ok(value) => values.push(value),
            Err(problem) => problems.push(problem),
        }
    }
    // Whatever is said from now on: no value is in it.
    run.host.secrets.add(values.iter().flatten().flat_map(|value| forms(value)));
    if problems.is_empty() {
        let there = values.iter().flatten().count();
        run.say(Some(READ), &format!("{there} of {} secrets have a value", secrets.len()));
        return Ok(values);
    }
    Err(StepFailure::new("secret_missing", problems.join("; ")))
}

async fn read(store: &dyn SecretStore, secret: &SecretSpec) -> Result<Option<Vec<u8>>, String> {
    let of = |problem: String| format!("secret `{}`: {problem}", secret.name);
    let mut found = store.read(&secret.name).await.map_err(|e| of(e.to_string()))?;
    if found.is_none() && secret.auto_generate && secret.known {
        let place = store.place(&secret.name);
        return Err(of(format!(
            "its value is gone from {place}, and what uses it has the old one: bring it back, or write another one there"
        )));
    }
    if found.is_none() && secret.auto_generate {
        let made = secret_store::generated().map_err(|e| of(e.to_string()))?;
        let kept = store.keep(&secret.name, &made).await.map_err(|e| of(e.to_string()))?;
        // Another one may have been faster: what the store holds counts.
        found = if kept {
            Some(made.into_bytes())
        } else {
            store.read(&secret.name).await.map_err(|e| of(e.to_string()))?
        };
        if found.is_none() {
            return Err(of(format!(
                "{} was deleted, so no value was made up: write one there",
                store.place(&secret.name)
            )));
        }
    }
    // A disk that is full leaves such a file: what uses the secret must not lose its value over that.
    if found.as_ref().is_some_and(|value| value.trim_ascii().is_empty()) {
        let place = store.place(&secret.name);
        return Err(of(format!("{place} is empty: write the value there, or delete it")));
    }
    let found = found.or_else(|| secret.default.clone().map(String::into_bytes));
    let Some(value) = found.filter(|value| !value.is_empty()) else {
        return match secret.required {
            true => Err(of(format!("there is no value: write it to {}", store.place(&secret.name)))),
            false => Ok(None),
        };
    };
    let value = match secret.format {
        SecretFormat::Plain => value,
        SecretFormat::Base64 => {
            let packed: Vec<u8> = value.into_iter().filter(|byte| !byte.is_ascii_whitespace()).collect();
            B64.decode(packed)
                .map_err(|_| of(format!("{} does not hold base64, as its format says", store.place(&secret.name))))?
        }
    };
    match value.len() > SECRET_VALUE_BYTES_MAX {
        true => Err(of(format!("its {} bytes are more than a Kubernetes Secret holds (1 MiB)", value.len()))),
        false => Ok(Some(value)),
    }
}

/// What each Kubernetes Secret is to hold.
fn grouped(spec: &SecretsSpec, values: &[Option<Vec<u8>>]) -> Result<BTreeMap<(String, String), Object>, StepFailure> {
    let mut objects: BTreeMap<(String, String), Object> = BTreeMap::new();
    for (index, value) in values.iter().enumerate() {
        let Some(value) = value else { continue };
        for target in &spec.secrets[index].targets {
            let object = objects.entry((target.namespace.clone(), target.name.clone())).or_default();
            if object.insert(target.key.clone(), value.clone()).is_some() {
                return Err(StepFailure::new(
                    "bad_spec",
                    format!(
                        "two secrets of the app are to be written to key `{}` of Secret/{}/{}: give each its own key",
                        target.key, target.namespace, target.name
                    ),
                ));
            }
        }
    }
    Ok(objects)
}

fn outputs(
    run: &Run<'_>,
    spec: &SecretsSpec,
    values: &[Option<Vec<u8>>],
    written: &BTreeMap<SecretTarget, Written>,
    readers: &BTreeMap<SecretTarget, BTreeSet<String>>,
) -> SecretOutputs {
    let of = |(secret, value): (&SecretSpec, &Option<Vec<u8>>)| {
        let known: Vec<&Written> = secret.targets.iter().filter_map(|target| written.get(target)).collect();
        let changed = known.iter().any(|one| one.changed);
        let readers: BTreeSet<String> =
            secret.targets.iter().filter_map(|target| readers.get(target)).flatten().cloned().collect();
        let readers: Vec<String> = readers.into_iter().collect();
        if !readers.is_empty() {
            run.say(
                Some(RESTART),
                &format!("secret `{}` has changed, and is still the old one for {}", secret.name, readers.join(", ")),
            );
        }
        let first = secret.targets.first();
        let text = |of: fn(&SecretTarget) -> &String| first.map(of).cloned().unwrap_or_default();
        let output = SecretOutput {
            name: secret.name.clone(),
            exists: value.is_some(),
            length: value.as_ref().map_or(0, |value| value.len() as u64),
            timestamp: known.iter().map(|one| one.at).max(),
            changed,
            targets: secret.targets.clone(),
            readers,
            kubernetes_namespace: text(|target| &target.namespace),
            kubernetes_name: text(|target| &target.name),
            kubernetes_key: text(|target| &target.key),
        };
        (secret.name.clone(), output)
    };
    SecretOutputs { secrets: spec.secrets.iter().zip(values).map(of).collect(), left: Vec::new() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::secret_store::Directory;

    #[tokio::test]
    async fn an_emptied_file_is_an_error_and_not_a_secret_without_a_value() {
        let dir = tempfile::tempdir().expect("dir");
        let store = Directory::named(dir.path().to_owned());
        let nothing: SecretSpec = serde_json::from_str(r#"{ "name": "a", "targets": [] }"#).expect("a spec");
        assert_eq!(read(&store, &nothing).await, Ok(None));
        for text in ["", "\n", " \n"] {
            fs_err::write(dir.path().join("a"), text).expect("a file");
            for settings in [
                nothing.clone(),
                SecretSpec { default: Some("d".into()), ..nothing.clone() },
                SecretSpec { auto_generate: true, known: true, ..nothing.clone() },
                SecretSpec { auto_generate: true, ..nothing.clone() },
            ] {
                let why = read(&store, &settings).await.expect_err("refused");
                assert!(why.contains("`a`") && why.contains("is empty"), "{why}");
            }
        }
    }

    #[tokio::test]
    async fn a_secret_that_cannot_be_read_keeps_nobody_from_masking_the_others() {
        let dir = tempfile::tempdir().expect("dir");
        let folder = secret_store::folder(dir.path());
        fs_err::create_dir_all(folder.join("folder")).expect("a folder is no secret");
        fs_err::write(folder.join("a"), "one two three").expect("a file");
        let names = ["a", "absent", "folder"].map(str::to_owned);
        let known = known_values(&names, &Tools::default(), dir.path(), None).await;
        assert!(known.values["a"].contains(&"one two three".to_owned()) && known.values["absent"].is_empty());
        assert!(!known.values.contains_key("folder"));
        let told = known.told.expect("one can't be read");
        assert!(told.contains("`folder`") && !told.contains("`a`"), "{told}");
    }
}
