//! What a chart renders to, and what became of it in the cluster.

use std::cell::RefCell;
use std::time::{Duration, Instant};

use kubernetes::{Entry, ObjectRef, Output, Status, status_of};
use model::deploy::ResourceStatus;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::super::action::StepFailure;
use super::super::kubernetes::api::Api;
use super::super::kubernetes::compare::{Act, PlannedObject};
use super::super::kubernetes::rollout::Progress;
use super::super::{Run, now};
use super::hooks::Hook;
use super::{explain, named, open};

/// A longer manifest is no output.
const MANIFEST_BYTES_MAX: usize = 256 << 10;
/// How often progress is looked at.
const LOOK: Duration = Duration::from_secs(1);
/// What is not ready is explained this often in the log.
const LOOKS_TO_SAY: u32 = 20;
/// What is not ready is explained this often for the error.
const LOOKS_TO_EXPLAIN: u32 = 3;
/// Objects that are named in an error.
const NAMED_MAX: usize = 3;

/// What helm would apply.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Rendered {
    /// As helm keeps it.
    pub(super) manifest: String,
    /// Byte for byte as helm hands it to a post-renderer, where that is something else.
    #[serde(default)]
    pub(super) gated: Option<String>,
    /// What helm gets back from its post-renderer, where that is something else again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) returned: Option<String>,
    pub(super) hooks: Vec<Hook>,
    pub(super) crds: String,
}

impl Rendered {
    /// The first template that rendered something else the other time.
    pub(super) fn differs(&self, other: &Self) -> Option<String> {
        let hook = self.hooks.iter().zip(&other.hooks).find(|(a, b)| a != b).map(|(a, _)| a.path.clone());
        if hook.is_some() || self.hooks.len() != other.hooks.len() {
            return Some(hook.unwrap_or_else(|| "of a hook".into()));
        }
        if self.crds != other.crds {
            return Some("of a custom resource definition".into());
        }
        if self.manifest == other.manifest {
            return (self.gated != other.gated).then(|| "of a hook".into());
        }
        let (a, b) = (sections(&self.manifest), sections(&other.manifest));
        let differing = a.iter().zip(&b).find(|(a, b)| a != b).map(|((source, _), _)| (*source).to_owned());
        Some(differing.unwrap_or_else(|| "of the chart".into()))
    }
}

/// The templates of a rendered manifest, each with what it rendered to.
fn sections(manifest: &str) -> Vec<(&str, &str)> {
    let parts = manifest.split("---\n# Source: ").skip(1);
    parts.map(|part| part.split_once('\n').unwrap_or((part, ""))).collect()
}

/// A manifest without its Secrets.
fn without_secrets(manifest: &str) -> String {
    let is_secret = |body: &str| objects(body).map_or(true, |all| all.iter().any(|object| object["kind"] == "Secret"));
    let parts = sections(manifest).into_iter().map(|(source, body)| match is_secret(body) {
        true => format!("---\n# Source: {source}\n# left out: a Secret\n"),
        false => format!("---\n# Source: {source}\n{body}"),
    });
    parts.collect()
}

/// The objects of a manifest; none in an empty one.
pub(super) fn objects(manifest: &str) -> Result<Vec<Value>, StepFailure> {
    match kubernetes::parse(manifest) {
        Err(kubernetes::ManifestError::Empty) => Ok(Vec::new()),
        parsed => parsed.map_err(|e| StepFailure::new("bad_manifest", e.to_string())),
    }
}

/// The objects of a release. What Helm 4 hands to a post-renderer holds the hooks, too, and says where each object comes from.
pub(super) fn of_release(manifest: &str) -> Result<Vec<Value>, StepFailure> {
    let mut all = objects(manifest)?;
    all.retain(|object| !kubernetes::is_hook(object));
    for object in &mut all {
        if let Some(notes) = object.pointer_mut("/metadata/annotations").and_then(Value::as_object_mut) {
            notes.remove("postrenderer.helm.sh/postrender-filename");
        }
    }
    Ok(all)
}

/// What the folders `crds` of a chart hold. Helm creates it past the post-renderer, so nothing else may stand there.
pub(super) fn definitions(text: &str) -> Result<Vec<Value>, StepFailure> {
    let objects = objects(text)?;
    match objects.iter().filter_map(ObjectRef::of).find(|of| !of.is_crd()) {
        None => Ok(objects),
        Some(other) => Err(StepFailure::new(
            "bad_manifest",
            format!(
                "the folder `crds` of the chart holds {}: only a CustomResourceDefinition may stand there, since Helm creates it apart from the release. Move it to `templates`",
                other.address()
            ),
        )),
    }
}

/// The hooks of a chart that was rendered without a cluster.
pub(super) fn hooks(text: &str) -> Result<Vec<Hook>, StepFailure> {
    let mut found = Vec::new();
    for (source, body) in sections(text) {
        for object in objects(body)? {
            let Some(events) = object["metadata"]["annotations"]["helm.sh/hook"].as_str() else { continue };
            let events = events.split(',').map(|event| event.trim().to_owned()).collect();
            found.push(Hook { path: source.to_owned(), manifest: object.to_string(), events });
        }
    }
    Ok(found)
}

/// Whether Helm leaves an object where it is.
pub(super) fn is_kept(object: &Value) -> bool {
    object["metadata"]["annotations"]["helm.sh/resource-policy"] == "keep"
}

/// The objects that stay or come.
pub(super) fn entries(objects: &[PlannedObject]) -> Vec<Entry> {
    let stays = objects.iter().filter(|it| matches!(it.act, Act::Apply | Act::Replace | Act::Keep));
    stays
        .map(|it| Entry { of: it.of.clone(), uid: if it.act == Act::Keep { it.uid.clone() } else { String::new() } })
        .collect()
}

fn status(live: Option<&Value>) -> Status {
    match live {
        None => Status::Progressing("it is not there yet".into()),
        Some(live) => status_of(live, now().micros() / 1_000_000),
    }
}

/// Follows what helm does, until it is dropped. What is not ready before helm gives up is kept in `seen`: a rollback takes it away.
pub(super) async fn watch(
    run: &Run<'_>,
    api: &Api,
    entries: &[Entry],
    progress: &mut Progress,
    stage: usize,
    (seen, until): (&RefCell<Vec<String>>, Instant),
) {
    for round in 1_u32.. {
        tokio::time::sleep(LOOK).await;
        let mut waiting = Vec::new();
        for entry in entries {
            let Ok(live) = api.get(&entry.of).await else { continue };
            let ready = status(live.as_ref()) == Status::Ready;
            let shown = if ready { ResourceStatus::Done } else { ResourceStatus::Started };
            progress.set(run, &entry.of.address(), "apply", shown);
            if !ready {
                waiting.push((entry, live));
            }
        }
        progress.tell(run);
        if round % LOOKS_TO_EXPLAIN == 0 {
            let told = not_ready(api, entries).await;
            // Helm may have begun to roll back, which makes everything ready again.
            if Instant::now() < until && !told.is_empty() {
                seen.replace(told);
            }
        }
        if round % LOOKS_TO_SAY == 0 {
            for (entry, live) in waiting.iter().take(NAMED_MAX) {
                let (Status::Progressing(why) | Status::Failed(why) | Status::Terminating(why)) = status(live.as_ref())
                else {
                    continue;
                };
                run.say(
                    Some(stage),
                    &format!("waits: {}", explain::why(api, &entry.of, live.as_ref(), &why).await.text),
                );
            }
        }
    }
}

/// What is not ready, and why.
pub(super) async fn not_ready(api: &Api, entries: &[Entry]) -> Vec<String> {
    let mut told = Vec::new();
    for entry in entries {
        let Ok(Some(live)) = api.get(&entry.of).await else { continue };
        let (Status::Progressing(why) | Status::Failed(why) | Status::Terminating(why)) = status(Some(&live)) else {
            continue;
        };
        told.push(explain::why(api, &entry.of, Some(&live), &why).await.text);
        if told.len() == NAMED_MAX {
            break;
        }
    }
    told
}

/// What a release puts out, and its objects with their uids.
pub(super) async fn outputs(
    api: &Api,
    rendered: &Rendered,
    entries: Vec<Entry>,
    namespace: &str,
) -> Result<(Vec<Entry>, Vec<(String, Output)>), StepFailure> {
    let (mut known, mut services, mut ingresses, mut deployments) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for mut entry in entries {
        let live = api.get(&entry.of).await.map_err(|e| e.of("read", &entry.of.address()))?;
        let Some(live) = live else {
            return Err(StepFailure::new("not_ready", format!("{} is gone", entry.of.address())));
        };
        entry.uid = live["metadata"]["uid"].as_str().unwrap_or_default().to_owned();
        let mut told = named(&entry.of);
        match entry.of.kind.as_str() {
            "Service" => {
                told["type"] = live["spec"]["type"].clone();
                told["cluster_ip"] = live["spec"]["clusterIP"].clone();
                told["ports"] = live["spec"]["ports"].clone();
                told["load_balancer"] = live["status"]["loadBalancer"]["ingress"].clone();
                services.push(told);
            }
            "Ingress" => {
                let rules = live["spec"]["rules"].as_array().into_iter().flatten();
                told["hosts"] = rules.map(|rule| rule["host"].clone()).collect();
                told["load_balancer"] = live["status"]["loadBalancer"]["ingress"].clone();
                ingresses.push(told);
            }
            "Deployment" => {
                told["replicas"] = live["spec"]["replicas"].clone();
                told["ready_replicas"] = live["status"]["readyReplicas"].clone();
                deployments.push(told);
            }
            _ => {}
        }
        known.push(entry);
    }
    let resources: Vec<Value> = known.iter().map(|entry: &Entry| named(&entry.of)).collect();
    let mut outputs = vec![
        open("namespace", json!(namespace)),
        open("resources", json!(resources)),
        open("services", json!(services)),
        open("ingresses", json!(ingresses)),
        open("deployments", json!(deployments)),
    ];
    // Not sensitive as a whole: each of its lines would be masked in every log.
    let manifest = without_secrets(&rendered.manifest);
    if manifest.len() <= MANIFEST_BYTES_MAX {
        outputs.push(open("manifest", json!(manifest)));
    }
    Ok((known, outputs))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_template_that_differs_is_named() {
        let rendered = |secret: &str| Rendered {
            manifest: format!(
                "---\n# Source: web/templates/a.yaml\na: 1\n---\n# Source: web/templates/secret.yaml\nb: {secret}\n"
            ),
            ..Rendered::default()
        };
        assert_eq!(rendered("x").differs(&rendered("x")), None);
        assert_eq!(rendered("x").differs(&rendered("y")).as_deref(), Some("web/templates/secret.yaml"));
    }

    #[test]
    fn secrets_are_left_out_of_the_manifest() {
        let manifest = "---\n# Source: web/templates/a.yaml\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n---\n# Source: web/templates/b.yaml\napiVersion: v1\nkind: Secret\nmetadata: {name: b}\nstringData: {key: word}\n";
        let told = without_secrets(manifest);
        assert!(told.contains("kind: ConfigMap") && !told.contains("word"), "{told}");
    }

    #[test]
    fn an_empty_chart_has_no_objects() {
        assert_eq!(objects("\n---\n# nothing\n").expect("objects"), Vec::<Value>::new());
        let one = objects("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n").expect("objects");
        assert_eq!(one[0]["metadata"]["name"], "a");
    }
}
