//! Charts, by the real helm: what it would render is planned, shown and approved, and an upgrade goes on only if it renders the very
//! same.

mod cli;
mod release;

use std::time::{Duration, Instant};

use crash::crash_point;
use fs_err as fs;
use kubernetes::{Cluster, Deployed, Entry, Inventory, ObjectRef, Output};
use model::deploy::{ApprovedPlan, Deploy, ResourceStatus, STALE_PLAN};
use model::kubernetes::{ClusterSpec, HelmSpec};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::Run;
use super::action::StepFailure;
use super::deploy::{Deployer, Planned, Workspace};
use super::kubernetes::api::Api;
use super::kubernetes::compare::{self, Compared, PlannedObject, Wanted};
use super::kubernetes::rollout::{self, Progress};
use super::kubernetes::state::{self, States};
use super::kubernetes::{explain, plan};
use super::manifest::{RESERVE_S, connect, named};
use super::stages::Stages;
use cli::Helm;
use release::Rendered;

const CHART: usize = 0;
const RENDER: usize = 1;
const PLAN: usize = 2;
const APPLY: usize = 1;
const OUTPUTS: usize = 2;

/// What a job of Helm works with.
pub(super) struct Release<'j> {
    pub(super) job: &'j HelmSpec,
    pub(super) workspace: Workspace,
    pub(super) cluster: Option<&'j ClusterSpec>,
    pub(super) timeout_s: u64,
}

/// All that an apply carries out.
#[derive(Serialize, Deserialize)]
struct PlanFile {
    cluster: Cluster,
    /// The release that the plan was made from; 0 where there was none.
    revision: u64,
    /// A release that another helm left unfinished: it is taken away first.
    stuck: Option<u64>,
    rendered: Rendered,
    objects: Vec<PlannedObject>,
}

impl Deployer for Release<'_> {
    const PLAN_STAGES: &'static [&'static str] = &["chart", "render", "plan", "keep"];
    const APPLY_STAGES: &'static [&'static str] = &["chart", "apply", "outputs"];

    const DIFF_FIELD: Option<&'static str> = Some("helm_content_diff");

    fn deploy(&self) -> &Deploy {
        &self.job.deploy
    }

    fn workspace(&self) -> &Workspace {
        &self.workspace
    }

    async fn plan(&self, run: &mut Run<'_>, stages: &mut Stages, destroy: bool) -> Result<Planned, StepFailure> {
        stages.begin(run, CHART);
        let (config, api) = connect(run, self.cluster).await?;
        let mut helm = Helm::new(run, self.job, &config)?;
        let before = state::open(run, &self.workspace).await?;
        self.check_storage(before.as_ref())?;
        if !destroy {
            helm.fetch_chart(run, self.job).await?;
        }
        stages.begin(run, RENDER);
        crash_point!("executor.before_plan");
        let history = helm.history(run, RENDER).await?;
        let last = history.last();
        let stuck = last.filter(|last| last.status.starts_with("pending")).map(|last| last.revision);
        let mut ask = Vec::new();
        let there = plan::known(&api, before.as_ref(), &mut ask);
        if let Some(stuck) = stuck {
            ask.push(format!(
                "revision {stuck} of the release {} was left {}: it is taken away before anything else",
                self.job.release,
                last.map(|last| last.status.as_str()).unwrap_or_default()
            ));
            helm.without_revision(&api, self.job, stuck).await?;
        }
        let of = (self.job.release.as_str(), self.job.namespace.as_str());
        let old = helm.manifest(run, RENDER, &history).await?;
        let mut old = release::objects(&old)?;
        compare::placed(&api, &mut old, of.1).await?;
        let entries: Vec<Entry> =
            old.iter().filter_map(ObjectRef::of).map(|of| Entry { of, uid: String::new() }).collect();
        let install = history.iter().all(|known| Some(known.revision) == stuck);
        let (rendered, objects) = if destroy { Default::default() } else { self.render(run, &helm, install).await? };
        stages.begin(run, PLAN);
        let mut wanted = objects.clone();
        compare::placed(&api, &mut wanted, of.1).await?;
        let by_address = |object: &Value| Some((ObjectRef::of(object)?.address(), object.clone()));
        let compared = if destroy {
            let before = before.as_ref().filter(|_| there.is_empty());
            plan::teardown(&api, before, if history.is_empty() { there } else { &entries }, Some(of)).await?
        } else {
            let wanted = Wanted {
                objects: compare::sorted(wanted.clone()),
                before: &entries,
                manifests_before: old.iter().filter_map(by_address).collect(),
                ignore: &self.job.rollout.ignore,
                release: Some(of),
            };
            compare::compare(&api, &wanted).await?
        };
        crash_point!("executor.planned");
        let Compared { objects: planned, changes, conflicts } = compared;
        if !conflicts.is_empty() {
            ask.push(format!("it takes over {}", plan::named(conflicts)));
        }
        let revision = last.map_or(0, |last| last.revision);
        let file = PlanFile { cluster: api.cluster.clone(), revision, stuck, rendered, objects: planned };
        let asked = if destroy { &[][..] } else { &self.job.deploy.policies };
        plan::planned(run, PLAN, &json!(file), &changes, asked, wanted, ask).await
    }

    async fn apply(
        &self,
        run: &mut Run<'_>,
        stages: &mut Stages,
        approved: &ApprovedPlan,
        destroy: bool,
    ) -> Result<Map<String, Value>, StepFailure> {
        let until = Instant::now() + Duration::from_secs(self.timeout_s.saturating_sub(RESERVE_S).max(1));
        stages.begin(run, CHART);
        let (config, api) = connect(run, self.cluster).await?;
        let helm = Helm::new(run, self.job, &config)?;
        let file = self.workspace.fetch_plan(run, approved).await?;
        let bad = |e: serde_json::Error| StepFailure::new("sealed_file", format!("the plan can't be read: {e}"));
        let file: PlanFile = serde_json::from_slice(&fs::read(&file)?).map_err(bad)?;
        self.check_fresh(run, &api, &helm, &file).await?;
        if !destroy {
            helm.fetch_chart(run, self.job).await?;
        }
        let before = state::open(run, &self.workspace).await?;
        stages.begin(run, APPLY);
        crash_point!("executor.before_apply");
        let deployed = Deployed {
            release: Some(self.job.release.clone()),
            namespace: self.job.namespace.clone(),
            storage: Some(self.job.storage.as_str().to_owned()),
        };
        let mut states = States::new(before.as_ref(), &api.cluster, deployed);
        let here = before.as_ref().filter(|before| before.cluster.uid == api.cluster.uid);
        let intended = intended(here, &file.objects);
        states.save(run, &self.workspace, intended, Vec::new()).await?;
        crash_point!("executor.intent_saved");
        if let Some(stuck) = file.stuck {
            run.say(Some(APPLY), &format!("taking away revision {stuck}, which was left unfinished"));
            helm.forget_revision(&api, self.job, stuck).await?;
        }
        let entries: Vec<Entry> = if destroy { Vec::new() } else { release::entries(&file.objects) };
        let outcome = if destroy {
            helm.uninstall(run, self.job, APPLY, until).await
        } else {
            self.upgrade(run, stages, &api, &helm, &file, &entries, until).await
        };
        crash_point!("executor.applied");
        outcome?;
        stages.begin(run, OUTPUTS);
        if destroy {
            self.check_gone(&api, &file.objects).await?;
            return states.save(run, &self.workspace, Vec::new(), Vec::new()).await;
        }
        let (entries, outputs) = release::outputs(&api, &file.rendered, entries, &self.job.namespace).await?;
        states.save(run, &self.workspace, entries, outputs).await
    }
}

impl Release<'_> {
    /// A release that is kept in one place can't be seen from another: it would be installed a second time.
    fn check_storage(&self, before: Option<&Inventory>) -> Result<(), StepFailure> {
        let there = before.and_then(|before| before.deployed.storage.as_deref().filter(|_| !before.objects.is_empty()));
        match there {
            Some(there) if there != self.job.storage.as_str() => Err(StepFailure::new(
                "storage_changed",
                format!(
                    "the release {} is kept in {there}s, and the app now asks for {}s: Helm would not see it. Tear the component down first, or keep `storage_driver = \"{there}\"`",
                    self.job.release,
                    self.job.storage.as_str()
                ),
            )),
            _ => Ok(()),
        }
    }

    /// Renders the chart twice: what differs each time can't be approved.
    async fn render(
        &self,
        run: &mut Run<'_>,
        helm: &Helm,
        install: bool,
    ) -> Result<(Rendered, Vec<Value>), StepFailure> {
        let rendered = helm.render(run, self.job, RENDER, install).await?;
        let again = helm.render(run, self.job, RENDER, install).await?;
        if let Some(template) = rendered.differs(&again) {
            return Err(StepFailure::new(
                "chart_not_stable",
                format!(
                    "the template {template} renders something else each time, so its plan can't be approved: it may use random values, dates or generated certificates. Give those as values"
                ),
            ));
        }
        let mut objects = release::objects(&rendered.manifest)?;
        // Helm creates these once, before everything else.
        if install && !self.job.skip_crds {
            for object in release::objects(&rendered.crds)? {
                objects.push(object);
            }
        }
        Ok((rendered, objects))
    }

    /// Refuses a plan that does not fit what is there any more; nothing has begun.
    async fn check_fresh(&self, run: &mut Run<'_>, api: &Api, helm: &Helm, file: &PlanFile) -> Result<(), StepFailure> {
        let stale = |text: String| StepFailure::new(STALE_PLAN, text);
        if file.cluster.uid != api.cluster.uid {
            return Err(stale("the cluster was replaced since the plan was made".into()));
        }
        let history = helm.history(run, CHART).await?;
        let now = history.last().map_or(0, |last| last.revision);
        if now != file.revision {
            let text = format!(
                "the release {} is at revision {now}, and the plan was made from revision {}",
                self.job.release, file.revision
            );
            return Err(stale(text));
        }
        rollout::unchanged(api, &file.objects).await
    }

    #[expect(clippy::too_many_arguments, reason = "each is another thing")]
    async fn upgrade(
        &self,
        run: &mut Run<'_>,
        stages: &mut Stages,
        api: &Api,
        helm: &Helm,
        file: &PlanFile,
        entries: &[Entry],
        until: Instant,
    ) -> Result<(), StepFailure> {
        if !file.rendered.hooks.is_empty() {
            // They do not pass the post-renderer.
            let now = helm.render(run, self.job, APPLY, file.revision == 0).await?;
            if let Some(template) = file.rendered.differs(&now) {
                return Err(StepFailure::new(
                    STALE_PLAN,
                    format!("the template {template} renders something else than was approved"),
                ));
            }
        }
        let mut progress = Progress::new(stages, APPLY);
        for entry in entries {
            progress.set(run, &entry.of.address(), "apply", ResourceStatus::Started);
        }
        progress.tell(run);
        let stop = run.stop.clone();
        let watched: &Run<'_> = run;
        let seen = std::cell::RefCell::new(Vec::new());
        let ended = {
            let upgrade = helm.upgrade(watched, self.job, &file.rendered, APPLY, until, stop);
            let watch = release::watch(watched, api, entries, &mut progress, APPLY, (&seen, until));
            tokio::select! {
                ended = upgrade => ended,
                () = watch => unreachable!("it never ends"),
            }
        };
        crash_point!("executor.helm_ended");
        let outcome = match ended {
            Ok(()) => {
                if self.job.rollout.wait {
                    // Helm takes a container for ready that crashes right after its start.
                    let workloads: Vec<Entry> =
                        entries.iter().filter(|entry| rollout::keeps_running(&entry.of)).cloned().collect();
                    rollout::wait_ready(watched, api, &workloads, &mut progress, APPLY, until).await?;
                }
                entries.iter().for_each(|entry| progress.set(run, &entry.of.address(), "apply", ResourceStatus::Done));
                Ok(())
            }
            Err(StepFailure::Failed { error, exit_code }) => {
                let mut why = release::not_ready(api, entries).await;
                // After a rollback, what is there now is not what failed.
                if self.job.rollout.rollback {
                    why = seen.take();
                }
                let why = if why.is_empty() { String::new() } else { format!(". {}", why.join("; ")) };
                let message = format!("{}{why}", error.message);
                Err(StepFailure::Failed { error: model::JobError { message, ..error }, exit_code })
            }
            Err(stopped @ StepFailure::Stopped(_)) => Err(stopped),
        };
        progress.tell(run);
        stages.set_resources(APPLY, progress.shown());
        outcome
    }

    /// Helm goes on when something does not go away.
    async fn check_gone(&self, api: &Api, objects: &[PlannedObject]) -> Result<(), StepFailure> {
        let mut left = Vec::new();
        for planned in objects.iter().filter(|it| it.act == compare::Act::Delete) {
            let live = api.get(&planned.of).await.map_err(|e| e.of("read", &planned.of.address()))?;
            if let Some(live) = live.filter(|live| live["metadata"]["uid"] == planned.uid.as_str()) {
                left.push(rollout::still_there(&planned.of, &live));
            }
        }
        match left.is_empty() {
            true => Ok(()),
            false => Err(StepFailure::new("object_terminating", plan::named(left))),
        }
    }
}

/// All that may be there while an apply is on its way.
fn intended(before: Option<&Inventory>, objects: &[PlannedObject]) -> Vec<Entry> {
    let mut entries = before.map(|before| before.objects.clone()).unwrap_or_default();
    for entry in release::entries(objects) {
        match entries.iter_mut().find(|known| known.of.is_same(&entry.of)) {
            Some(known) => known.uid = entry.uid,
            None => entries.push(entry),
        }
    }
    entries
}

/// A value that everybody may see.
fn open(name: &str, value: Value) -> (String, Output) {
    (name.to_owned(), Output { value, sensitive: false })
}
