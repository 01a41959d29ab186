//! Plain objects: a manifest, or a kustomization that was rendered when it was built.

use std::time::{Duration, Instant};

use crash::crash_point;
use fs_err as fs;
use kubernetes::{Cluster, Deployed, Entry, Inventory, ObjectRef, Output};
use model::deploy::{ApprovedPlan, Deploy, STALE_PLAN};
use model::kubernetes::{ClusterSpec, ManifestSource, ManifestSpec, Pulls};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::action::StepFailure;
use super::deploy::{Deployer, Planned, Workspace};
use super::kubernetes::api::Api;
use super::kubernetes::compare::{self, Act, By, Compared, PlannedObject, Wanted};
use super::kubernetes::pulls::{self, Bringing, ImagePulls};
use super::kubernetes::rollout::{self, Progress};
use super::kubernetes::state::{self, States};
use super::kubernetes::{cluster, plan};
use super::stages::Stages;
use super::{Run, artifact, secrets};

const OBJECTS: usize = 0;
const PLAN: usize = 1;
const APPLY: usize = 1;
const WAIT: usize = 2;
const OUTPUTS: usize = 3;
/// What a job keeps of its time, at most, for writing down what happened.
const RESERVE_S: u64 = 20;

/// How long an apply may work, of the time that its job has.
pub(super) fn work_s(timeout_s: u64) -> u64 {
    (timeout_s - RESERVE_S.min(timeout_s / 3)).max(1)
}

/// What a job on objects works with.
pub(super) struct Objects<'j> {
    pub(super) job: &'j ManifestSpec,
    pub(super) workspace: Workspace,
    pub(super) cluster: Option<&'j ClusterSpec>,
    pub(super) pulls: Option<&'j Pulls>,
    pub(super) timeout_s: u64,
    pub(super) disk_bytes: u64,
}

/// All that an apply carries out.
#[derive(Serialize, Deserialize)]
struct PlanFile {
    cluster: Cluster,
    objects: Vec<PlannedObject>,
}

impl Deployer for Objects<'_> {
    const PLAN_STAGES: &'static [&'static str] = &["objects", "plan", "keep"];
    const APPLY_STAGES: &'static [&'static str] = &["objects", "apply", "wait", "outputs"];

    const DIFF_FIELD: Option<&'static str> = Some("k8s_content_diff");

    fn deploy(&self) -> &Deploy {
        &self.job.deploy
    }

    fn workspace(&self) -> &Workspace {
        &self.workspace
    }

    async fn plan(&self, run: &mut Run<'_>, stages: &mut Stages, destroy: bool) -> Result<Planned, StepFailure> {
        let stop = run.stop.clone();
        unless_stopped(stop, self.make(run, stages, destroy)).await
    }

    async fn apply(
        &self,
        run: &mut Run<'_>,
        stages: &mut Stages,
        approved: &ApprovedPlan,
        _: bool,
    ) -> Result<Map<String, Value>, StepFailure> {
        let stop = run.stop.clone();
        unless_stopped(stop, Box::pin(self.carry_out(run, stages, approved))).await
    }
}

/// Ends work between two requests when the job is stopped.
pub(super) async fn unless_stopped<T>(
    mut stop: tokio::sync::watch::Receiver<Option<crate::confine::process::Stop>>,
    work: impl Future<Output = Result<T, StepFailure>>,
) -> Result<T, StepFailure> {
    tokio::select! {
        done = work => done,
        stop = super::watch::stopped(&mut stop) => Err(StepFailure::Stopped(stop)),
    }
}

/// The way into the cluster of a job.
pub(super) async fn connect(
    run: &Run<'_>,
    spec: Option<&ClusterSpec>,
    deploy: &Deploy,
) -> Result<(Value, Api), StepFailure> {
    let config = cluster::kubeconfig(run, spec.unwrap_or(&ClusterSpec::Runner {}))?;
    let mut api = cluster::connect(&config, &deploy.workspace_id).await?;
    api.hide(run.host.secrets.shared());
    Ok((config, api))
}

impl Objects<'_> {
    async fn make(&self, run: &mut Run<'_>, stages: &mut Stages, destroy: bool) -> Result<Planned, StepFailure> {
        stages.begin(run, OBJECTS);
        let (_, api) = connect(run, self.cluster, &self.job.deploy).await?;
        let mut objects = if destroy { Vec::new() } else { self.objects(run).await? };
        let before = state::open(run, &self.workspace).await?;
        stages.begin(run, PLAN);
        crash_point!("executor.before_plan");
        let mut ask = Vec::new();
        let there = plan::known(&api, before.as_ref(), &mut ask);
        let mut compared = if destroy {
            plan::teardown(&api, before.as_ref(), there, By::Us).await?
        } else {
            compare::placed(&api, &mut objects, &self.job.namespace).await?;
            if let Some(pulls) = ImagePulls::of(run, self.pulls)? {
                for object in &mut objects {
                    pulls.secret.add_to(object);
                }
            }
            let wanted = Wanted {
                objects: compare::sorted(objects.clone()),
                before: there,
                manifests_before: std::collections::BTreeMap::new(),
                ignore: &self.job.rollout.ignore,
                secrets_manager: Some(secrets::manager(run)?),
                release: None,
            };
            compare::compare(&api, &wanted).await?
        };
        crash_point!("executor.planned");
        compared.ask(&mut ask);
        let Compared { objects: planned, changes, .. } = compared;
        let file = PlanFile { cluster: api.cluster.clone(), objects: planned };
        let asked = if destroy { &[][..] } else { &self.job.deploy.policies };
        plan::planned(run, PLAN, &json!(file), &changes, asked, objects, ask).await
    }

    async fn objects(&self, run: &mut Run<'_>) -> Result<Vec<Value>, StepFailure> {
        let text = match &self.job.manifest {
            ManifestSource::Text { contents } => contents.clone(),
            ManifestSource::Artifact { repository, digest } => {
                let place = run.host.dir.work().join("manifest");
                artifact::unpacked(run, repository, digest, &place, self.disk_bytes).await?;
                fs::read_to_string(place.join("manifest.yaml"))?
            }
        };
        let bad = |e: kubernetes::ManifestError| StepFailure::new("bad_manifest", e.to_string());
        let objects = kubernetes::parse(&text).map_err(bad)?;
        run.say(Some(OBJECTS), &format!("{} in the manifest", plan::count(objects.len(), "object")));
        Ok(objects)
    }

    async fn carry_out(
        &self,
        run: &mut Run<'_>,
        stages: &mut Stages,
        approved: &ApprovedPlan,
    ) -> Result<Map<String, Value>, StepFailure> {
        let until = Instant::now() + Duration::from_secs(work_s(self.timeout_s));
        stages.begin(run, OBJECTS);
        let (_, api) = connect(run, self.cluster, &self.job.deploy).await?;
        let file = self.workspace.fetch_plan(run, approved).await?;
        let bad = |e: serde_json::Error| StepFailure::new("sealed_file", format!("the plan can't be read: {e}"));
        let PlanFile { cluster, objects } = serde_json::from_slice(&fs::read(&file)?).map_err(bad)?;
        if cluster.uid != api.cluster.uid {
            return Err(StepFailure::new(STALE_PLAN, "the cluster was replaced since the plan was made"));
        }
        let before = state::open(run, &self.workspace).await?;
        rollout::unchanged(&api, &objects).await?;
        stages.begin(run, APPLY);
        crash_point!("executor.before_apply");
        let deployed = Deployed { namespace: self.job.namespace.clone(), ..Deployed::default() };
        let mut states = States::new(before.as_ref(), &api.cluster, deployed);
        // Whatever dies from now on: what may be there by then is known.
        let outputs = outputs(&self.job.namespace, &objects);
        states.save(run, &self.workspace, intended(before.as_ref(), &api.cluster, &objects), outputs.clone()).await?;
        crash_point!("executor.intent_saved");
        let mut progress = Progress::new(stages, APPLY);
        let bringing = self.bring_pulls(run, &api, &objects).await?;
        let work = rollout::carry_out(run, &api, &objects, &mut progress, until);
        let applied = pulls::beside(bringing.as_ref(), work).await;
        stages.set_resources(APPLY, progress.shown());
        let uids = applied?;
        crash_point!("executor.applied");
        let stays = objects.iter().filter(|it| it.act != Act::Delete && it.act != Act::Forget);
        let entries: Vec<Entry> = stays
            .map(|it| Entry { of: it.of.clone(), uid: uids.get(&it.of.address()).cloned().unwrap_or_default() })
            .collect();
        stages.begin(run, WAIT);
        let told = states.save(run, &self.workspace, entries.clone(), outputs).await?;
        if self.job.rollout.wait {
            let mut progress = Progress::new(stages, WAIT);
            let ready = rollout::wait_ready(run, &api, &entries, &mut progress, WAIT, until).await;
            stages.set_resources(WAIT, progress.shown());
            ready?;
        }
        stages.begin(run, OUTPUTS);
        Ok(told)
    }
}

impl Objects<'_> {
    async fn bring_pulls(
        &self,
        run: &Run<'_>,
        api: &Api,
        objects: &[PlannedObject],
    ) -> Result<Option<Bringing>, StepFailure> {
        let Some(pulls) = ImagePulls::of(run, self.pulls)? else { return Ok(None) };
        pulls.bring(run, api, pulls.namespaces(objects.iter().map(|it| &it.object))).await
    }
}

/// All that may be there while an apply is on its way: what was there, and what comes.
fn intended(before: Option<&Inventory>, cluster: &Cluster, objects: &[PlannedObject]) -> Vec<Entry> {
    let old = before.filter(|before| before.cluster.uid == cluster.uid).map(|before| before.objects.clone());
    let mut entries = old.unwrap_or_default();
    for planned in objects.iter().filter(|it| matches!(it.act, Act::Apply | Act::Replace | Act::Keep)) {
        let uid = if planned.act == Act::Keep { planned.uid.clone() } else { String::new() };
        match entries.iter_mut().find(|entry| entry.of.is_same(&planned.of)) {
            Some(entry) => entry.uid = uid,
            None => entries.push(Entry { of: planned.of.clone(), uid }),
        }
    }
    entries
}

fn outputs(namespace: &str, objects: &[PlannedObject]) -> Vec<(String, Output)> {
    let stays = objects.iter().filter(|it| !matches!(it.act, Act::Delete | Act::Forget));
    let resources: Vec<Value> = stays.map(|it| named(&it.of)).collect();
    if resources.is_empty() {
        return Vec::new();
    }
    let open = |value: Value| Output { value, sensitive: false };
    vec![("namespace".into(), open(json!(namespace))), ("resources".into(), open(json!(resources)))]
}

pub(super) fn named(of: &ObjectRef) -> Value {
    json!({ "api_version": of.api_version(), "kind": of.kind, "namespace": of.namespace, "name": of.name })
}
