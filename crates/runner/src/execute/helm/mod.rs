//! Charts, by the real helm: what it would render is planned, shown and approved, and an upgrade goes on only if it renders the very
//! same.

mod cli;
mod hooks;
mod records;
mod release;
mod upgrade;

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use crash::crash_point;
use fs_err as fs;
use kubernetes::{Change, Cluster, Deployed, Entry, Inventory, ObjectRef, Output, Verb};
use model::deploy::{ApprovedPlan, Deploy, STALE_PLAN};
use model::kubernetes::{ClusterSpec, HelmSpec, Pulls, ReleaseStorage};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::Run;
use super::action::StepFailure;
use super::deploy::{Deployer, Planned, Workspace};
use super::kubernetes::api::Api;
use super::kubernetes::compare::{self, Act, By, Compared, PlannedObject, Wanted};
use super::kubernetes::pulls::{self, ImagePulls};
use super::kubernetes::state::{self, States};
use super::kubernetes::{explain, plan, rollout};
use super::manifest::{connect, named, work_s};
use super::stages::Stages;
use cli::Helm;
use hooks::{Moment, Parsed};
use records::{Known, Record};
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
    pub(super) pulls: Option<&'j Pulls>,
    pub(super) timeout_s: u64,
}

/// All that an apply carries out.
#[derive(Serialize, Deserialize)]
struct PlanFile {
    cluster: Cluster,
    /// The release that the plan was made from; none where there was none.
    records: Vec<Known>,
    /// Helm creates the namespace of the release.
    creates_namespace: bool,
    rendered: Rendered,
    objects: Vec<PlannedObject>,
}

/// What is there of a release.
struct There {
    records: Vec<Record>,
    /// What its record says of what is deployed.
    deployed: Vec<Value>,
    hooks: Vec<Parsed>,
    /// All that belongs to it, whatever record names it.
    entries: Vec<Entry>,
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
        let (config, api) = connect(run, self.cluster, &self.job.deploy).await?;
        let before = state::open(run, &self.workspace).await?;
        let job = self.meant(before.as_ref(), destroy);
        let mut helm = Helm::new(run, &job, &config, ImagePulls::of(run, self.pulls)?.as_ref())?;
        if !destroy {
            stays_in_place(&api, before.as_ref(), &job).await?;
            helm.fetch_chart(run, &job).await?;
        }
        stages.begin(run, RENDER);
        crash_point!("executor.before_plan");
        let mut ask = Vec::new();
        let there = find(&api, before.as_ref(), &job, destroy, &mut ask).await?;
        let records: Vec<Known> = there.records.iter().map(|record| record.known.clone()).collect();
        let (planned, file) = if destroy {
            let compared = teardown(&api, before.as_ref(), &there).await?;
            (compared, PlanFile::new(&api, records))
        } else {
            ask.extend(asked_of(&job, &records));
            let mut file = PlanFile::new(&api, records);
            file.creates_namespace = lacks_namespace(&api, &job.namespace).await?;
            helm.prepare(&there.records, file.creates_namespace)?;
            file.rendered = self.render(run, &api, &helm, &job, is_install(&file.records)).await?;
            stages.begin(run, PLAN);
            (self.compared(&api, &job, &there, &file, &mut ask).await?, file)
        };
        if destroy {
            stages.begin(run, PLAN);
        }
        crash_point!("executor.planned");
        let (mut compared, subject) = planned;
        compared.ask(&mut ask);
        let Compared { objects, changes, .. } = compared;
        let file = PlanFile { objects, ..file };
        let asked = if destroy { &[][..] } else { &self.job.deploy.policies };
        plan::planned(run, PLAN, &json!(file), &changes, asked, subject, ask).await
    }

    async fn apply(
        &self,
        run: &mut Run<'_>,
        stages: &mut Stages,
        approved: &ApprovedPlan,
        destroy: bool,
    ) -> Result<Map<String, Value>, StepFailure> {
        let until = Instant::now() + Duration::from_secs(work_s(self.timeout_s));
        stages.begin(run, CHART);
        let (config, api) = connect(run, self.cluster, &self.job.deploy).await?;
        let before = state::open(run, &self.workspace).await?;
        let job = self.meant(before.as_ref(), destroy);
        let pulls = ImagePulls::of(run, self.pulls)?;
        let mut helm = Helm::new(run, &job, &config, pulls.as_ref())?;
        let file = self.workspace.fetch_plan(run, approved).await?;
        let bad = |e: serde_json::Error| StepFailure::new("sealed_file", format!("the plan can't be read: {e}"));
        let file: PlanFile = serde_json::from_slice(&fs::read(&file)?).map_err(bad)?;
        if !destroy {
            stays_in_place(&api, before.as_ref(), &job).await?;
            helm.fetch_chart(run, &job).await?;
        }
        self.check_fresh(run, &api, &mut helm, &job, before.as_ref(), &file, destroy).await?;
        stages.begin(run, APPLY);
        crash_point!("executor.before_apply");
        let deployed = Deployed {
            release: Some(job.release.clone()),
            namespace: job.namespace.clone(),
            storage: Some(job.storage.as_str().to_owned()),
            ..Deployed::default()
        };
        let mut states = States::new(before.as_ref(), &api.cluster, deployed);
        let here = before.as_ref().filter(|before| before.cluster.uid == api.cluster.uid);
        let intended = intended(here, &file.objects);
        states.save(run, &self.workspace, intended, Vec::new()).await?;
        crash_point!("executor.intent_saved");
        let work = upgrade::Work { api: &api, helm: &helm, job: &job, file: &file, until };
        let entries: Vec<Entry> = if destroy { Vec::new() } else { release::entries(&file.objects) };
        let outcome = if destroy {
            work.uninstall(run, stages).await
        } else {
            let bringing = match &pulls {
                Some(pulls) => {
                    pulls.bring(run, &api, pulls.namespaces(file.objects.iter().map(|it| &it.object))).await?
                }
                None => None,
            };
            pulls::beside(bringing.as_ref(), work.upgrade(run, stages, &entries)).await
        };
        crash_point!("executor.applied");
        outcome?;
        stages.begin(run, OUTPUTS);
        if destroy {
            states.torn_down();
            return states.save(run, &self.workspace, Vec::new(), Vec::new()).await;
        }
        let (entries, outputs) = release::outputs(&api, &file.rendered, entries, &job.namespace).await?;
        states.save(run, &self.workspace, entries, outputs).await
    }
}

impl PlanFile {
    fn new(api: &Api, records: Vec<Known>) -> Self {
        Self {
            cluster: api.cluster.clone(),
            records,
            creates_namespace: false,
            rendered: Rendered::default(),
            objects: Vec::new(),
        }
    }
}

impl Release<'_> {
    /// The release that the job is about. A teardown takes away what was deployed, as it was deployed, whatever the app says today.
    fn meant(&self, before: Option<&Inventory>, destroy: bool) -> HelmSpec {
        let mut job = self.job.clone();
        if destroy {
            if let Some(before) = before {
                deployed_as(&mut job, &before.deployed);
            }
            job.values.clear();
            job.values_files.clear();
            job.values_override.clear();
        }
        job
    }

    /// Renders the chart twice: what differs each time can't be approved.
    async fn render(
        &self,
        run: &mut Run<'_>,
        api: &Api,
        helm: &Helm,
        job: &HelmSpec,
        install: bool,
    ) -> Result<Rendered, StepFailure> {
        let rendered = helm.render(run, api, job, RENDER, install).await?;
        let again = helm.render(run, api, job, RENDER, install).await?;
        match rendered.differs(&again) {
            Some(template) => Err(StepFailure::new(
                "chart_not_stable",
                format!(
                    "the template {template} renders something else each time, so its plan can't be approved: it may use random values, dates or generated certificates. Give those as values"
                ),
            )),
            None => Ok(rendered),
        }
    }

    /// What an upgrade would change, and all objects that policies look at.
    async fn compared(
        &self,
        api: &Api,
        job: &HelmSpec,
        there: &There,
        file: &PlanFile,
        ask: &mut Vec<String>,
    ) -> Result<(Compared, Vec<Value>), StepFailure> {
        let install = is_install(&file.records);
        let mut subject = release::of_release(&file.rendered.manifest)?;
        // Helm creates these once, before everything else.
        subject.extend(self.new_definitions(api, job, release::definitions(&file.rendered.crds)?, ask).await?);
        let of_release = subject.len();
        let mut hooks = parsed(&file.rendered.hooks)?;
        hooks.retain(|hook| !hook.is_test());
        subject.extend(hooks.iter().flat_map(|hook| hook.objects.clone()));
        compare::placed(api, &mut subject, &job.namespace).await?;
        let mut placed = subject[of_release..].iter();
        for object in hooks.iter_mut().flat_map(|hook| &mut hook.objects) {
            placed.next().into_iter().for_each(|it| object.clone_from(it));
        }
        let by_address = |object: &Value| Some((ObjectRef::of(object)?.address(), object.clone()));
        let wanted = Wanted {
            objects: compare::sorted(subject[..of_release].to_vec()),
            before: &there.entries,
            manifests_before: there.deployed.iter().filter_map(by_address).collect(),
            ignore: &job.rollout.ignore,
            secrets_manager: None,
            release: Some((&job.release, &job.namespace)),
        };
        let mut compared = compare::compare(api, &wanted).await?;
        let has_namespace = wanted.objects.iter().filter_map(ObjectRef::of).any(|of| of == namespace(&job.namespace));
        if file.creates_namespace && !has_namespace {
            compared.changes.insert(0, creates(namespace(&job.namespace), "which Helm creates for the release"));
        }
        compared.changes.extend(records::stuck(&file.records).iter().map(|stuck| {
            record_goes(stuck, format!("because it was left {}, and Helm would go no further", stuck.status))
        }));
        let something_else = compared.changes.iter().any(|change| change.verb != Verb::Nothing);
        let moment = if install { Moment::Install } else { Moment::Upgrade };
        let mut run = hooks::changes(moment, &there.hooks, &hooks, something_else);
        let foreign = hooks::replaced(api, &mut run, &hooks, &there.hooks).await?;
        if !foreign.is_empty() {
            ask.push(format!("its hooks replace what is there already: {}", plan::named(foreign)));
        }
        compared.changes.extend(run);
        Ok((compared, subject))
    }

    /// The definitions of a chart that are not there yet. Helm leaves the others as they are, whatever the chart says.
    async fn new_definitions(
        &self,
        api: &Api,
        job: &HelmSpec,
        definitions: Vec<Value>,
        ask: &mut Vec<String>,
    ) -> Result<Vec<Value>, StepFailure> {
        let (mut new, mut known) = (Vec::new(), Vec::new());
        for definition in definitions {
            let Some(of) = ObjectRef::of(&definition) else { continue };
            match api.get(&of).await.map_err(|e| e.of("read", &of.address()))? {
                None => new.push(definition),
                Some(_) => known.push(definition),
            }
        }
        let release = Some((job.release.as_str(), job.namespace.as_str()));
        let (manifests_before, secrets_manager) = (BTreeMap::new(), None);
        let wanted = Wanted { objects: known, before: &[], manifests_before, ignore: &[], secrets_manager, release };
        let compared = compare::compare(api, &wanted).await?;
        let others: Vec<String> = compared
            .changes
            .iter()
            .filter(|change| change.verb != Verb::Nothing)
            .map(|change| change.of.address())
            .collect();
        if !others.is_empty() {
            ask.push(format!(
                "Helm leaves definitions that are there already as they are, although the chart says something else of {}: update them yourself where the chart needs that",
                plan::named(others)
            ));
        }
        Ok(new)
    }

    /// Refuses a plan that does not fit what is there any more; nothing has begun.
    #[expect(clippy::too_many_arguments, reason = "each is another thing")]
    async fn check_fresh(
        &self,
        run: &mut Run<'_>,
        api: &Api,
        helm: &mut Helm,
        job: &HelmSpec,
        before: Option<&Inventory>,
        file: &PlanFile,
        destroy: bool,
    ) -> Result<(), StepFailure> {
        let stale = |text: String| StepFailure::new(STALE_PLAN, text);
        if file.cluster.uid != api.cluster.uid {
            return Err(stale("the cluster was replaced since the plan was made".into()));
        }
        let records = if destroy && !is_deployed(api, before) { Vec::new() } else { records::of(api, job).await? };
        let last = |known: Option<&Known>| {
            known.map_or_else(
                || "not there".to_owned(),
                |known| format!("at revision {} ({})", known.revision, known.status),
            )
        };
        if !records.iter().map(|record| &record.known).eq(&file.records) {
            let text = format!(
                "the release {} is {}, and when the plan was made it was {}",
                job.release,
                last(records.last().map(|record| &record.known)),
                last(file.records.last())
            );
            return Err(stale(text));
        }
        rollout::unchanged(api, &file.objects).await?;
        helm.prepare(&records, file.creates_namespace)?;
        if destroy {
            return Ok(());
        }
        // Hooks do not pass the post-renderer.
        let now = helm.render(run, api, job, CHART, is_install(&file.records)).await?;
        match file.rendered.differs(&now) {
            Some(template) => Err(stale(format!("the template {template} renders something else than was approved"))),
            None => Ok(()),
        }
    }
}

/// Names the release as it was deployed.
fn deployed_as(job: &mut HelmSpec, deployed: &Deployed) {
    let Some(release) = &deployed.release else { return };
    job.release.clone_from(release);
    job.namespace.clone_from(&deployed.namespace);
    let all = [ReleaseStorage::Configmap, ReleaseStorage::Secret];
    let storage = all.into_iter().find(|known| Some(known.as_str()) == deployed.storage.as_deref());
    job.storage = storage.unwrap_or(job.storage);
}

/// Whether the component has deployed a release to this cluster.
fn is_deployed(api: &Api, before: Option<&Inventory>) -> bool {
    before.is_some_and(|before| before.cluster.uid == api.cluster.uid && before.deployed.release.is_some())
}

/// A release of another name, or one that is kept in another place, can't be seen from here: it would be installed a second time.
async fn stays_in_place(api: &Api, before: Option<&Inventory>, job: &HelmSpec) -> Result<(), StepFailure> {
    let Some(before) = before.filter(|_| is_deployed(api, before)) else { return Ok(()) };
    let mut was = job.clone();
    deployed_as(&mut was, &before.deployed);
    let place = |job: &HelmSpec| {
        format!("{} in the namespace {}, kept in {}s", job.release, job.namespace, job.storage.as_str())
    };
    let (was_in, is_in) = (place(&was), place(job));
    if was_in == is_in || records::of(api, &was).await?.is_empty() {
        return Ok(());
    }
    let text = format!(
        "the release {was_in}, is deployed, and the app now asks for {is_in}: Helm would install a second one. Tear the component down first, or keep its `chart_name`, `namespace` and `storage_driver`"
    );
    Err(StepFailure::new("release_moved", text))
}

/// Looks up what is there of the release. What was deployed to another cluster, or by somebody else, is none of a teardown's.
async fn find(
    api: &Api,
    before: Option<&Inventory>,
    job: &HelmSpec,
    destroy: bool,
    ask: &mut Vec<String>,
) -> Result<There, StepFailure> {
    let known = plan::known(api, before, ask);
    let is_ours = is_deployed(api, before);
    let records = if destroy && !is_ours { Vec::new() } else { records::of(api, job).await? };
    if let Some(last) = records.last().filter(|_| !is_ours) {
        ask.push(format!(
            "the release {} is there already, at revision {}, and was not deployed by this component: it is taken over",
            job.release, last.known.revision
        ));
    }
    let deployed_record = records::counts(&records, destroy);
    let (mut deployed, mut hooks) = (Vec::new(), Vec::new());
    if let Some(record) = deployed_record {
        deployed = record.objects(api, &job.namespace).await?;
        hooks = parsed(&record.hooks()?)?;
        for hook in &mut hooks {
            // A kind that is gone has no hooks either.
            drop(compare::placed(api, &mut hook.objects, &job.namespace).await);
        }
    }
    let mut entries: Vec<Entry> = deployed.iter().filter_map(entry).collect();
    // An upgrade that failed may have brought what no later one knows of.
    let mut others: Vec<Entry> = known.to_vec();
    let since = records::counts(&records, false).map_or(0, |record| record.known.revision);
    let counts = deployed_record.map(|record| record.known.revision);
    for record in records.iter().filter(|it| it.known.revision >= since && Some(it.known.revision) != counts) {
        others.extend(record.objects(api, &job.namespace).await?.iter().filter_map(entry));
    }
    for other in records::owned(api, others, job).await? {
        if !entries.iter().any(|known| known.of.is_same(&other.of)) {
            entries.push(other);
        }
    }
    Ok(There { records, deployed, hooks, entries })
}

fn entry(object: &Value) -> Option<Entry> {
    Some(Entry { of: ObjectRef::of(object)?, uid: String::new() })
}

fn parsed(hooks: &[hooks::Hook]) -> Result<Vec<Parsed>, StepFailure> {
    let parse = |hook: &hooks::Hook| Ok(Parsed { objects: release::objects(&hook.manifest)?, hook: hook.clone() });
    hooks.iter().map(parse).collect()
}

fn is_install(records: &[Known]) -> bool {
    records.len() == records::stuck(records).len()
}

/// What a person is asked about records that stand in the way.
fn asked_of(job: &HelmSpec, records: &[Known]) -> Option<String> {
    let last = records::stuck(records).last()?;
    Some(format!(
        "revision {} of the release {} was left {}: it is taken away before anything else",
        last.revision, job.release, last.status
    ))
}

fn namespace(name: &str) -> ObjectRef {
    ObjectRef {
        group: String::new(),
        version: "v1".into(),
        kind: "Namespace".into(),
        namespace: None,
        name: name.into(),
    }
}

/// Whether the namespace of a release is missing. Who may not look leaves it to helm, which says what it lacks.
async fn lacks_namespace(api: &Api, name: &str) -> Result<bool, StepFailure> {
    let of = namespace(name);
    match api.get(&of).await {
        Ok(live) => Ok(live.is_none()),
        Err(error) if error.code() == 403 => Ok(false),
        Err(error) => Err(error.of("read", &of.address())),
    }
}

fn creates(of: ObjectRef, why: &str) -> Change {
    let after = json!({ "apiVersion": of.api_version(), "kind": of.kind, "metadata": { "name": of.name } });
    Change { of, verb: Verb::Create, before: Value::Null, after, reason: Some(why.to_owned()), fixed: Vec::new() }
}

/// A record is taken away. What it holds is Helm's own.
fn record_goes(record: &Known, reason: String) -> Change {
    let (of, before, after) = (record.of.clone(), json!({}), Value::Null);
    Change { of, verb: Verb::Delete, before, after, reason: Some(reason), fixed: Vec::new() }
}

/// What a teardown takes away: all that belongs to the release, and its records.
async fn teardown(api: &Api, before: Option<&Inventory>, there: &There) -> Result<(Compared, Vec<Value>), StepFailure> {
    let elsewhere = before.filter(|before| before.cluster.uid != api.cluster.uid);
    let mut compared = plan::teardown(api, elsewhere, &there.entries, By::Uninstall).await?;
    for (planned, change) in compared.objects.iter_mut().zip(&mut compared.changes) {
        // Helm looks at what it has recorded; what no record names any more goes by what it says itself.
        let recorded = there.deployed.iter().find(|it| ObjectRef::of(it).is_some_and(|of| of.is_same(&planned.of)));
        if planned.act == Act::Delete && release::is_kept(recorded.unwrap_or(&change.before)) {
            planned.act = Act::Forget;
            change.verb = Verb::Forget;
            change.reason = Some("because the chart says `resource-policy: keep`".into());
        }
    }
    let Some(last) = there.records.last() else { return Ok((compared, Vec::new())) };
    let mut run = hooks::changes(Moment::Uninstall, &[], &there.hooks, true);
    hooks::replaced(api, &mut run, &there.hooks, &there.hooks).await?;
    compared.changes.extend(run);
    for of in there.hooks.iter().flat_map(|hook| &hook.objects).filter_map(ObjectRef::of) {
        let is_told = compared.changes.iter().any(|change| change.of.is_same(&of));
        let live = api.get(&of).await.map_err(|e| e.of("read", &of.address()))?;
        if let Some(live) = live.filter(|_| !is_told) {
            let reason = Some("because Helm leaves what a hook has made".to_owned());
            let (before, after) = (live, Value::Null);
            compared.changes.push(Change { of, verb: Verb::Forget, before, after, reason, fixed: Vec::new() });
        }
    }
    // A release without objects has its records all the same.
    if !compared.changes.iter().any(|change| matches!(change.verb, Verb::Create | Verb::Delete)) {
        compared.changes.push(record_goes(&last.known, "which is all that there is of the release".to_owned()));
    }
    Ok((compared, Vec::new()))
}

/// All that may be there while an apply is on its way.
fn intended(before: Option<&Inventory>, objects: &[PlannedObject]) -> Vec<Entry> {
    let mut entries = before.map(|before| before.objects.clone()).unwrap_or_default();
    let goes = objects.iter().filter(|planned| planned.act == Act::Delete);
    let goes = goes.map(|planned| Entry { of: planned.of.clone(), uid: planned.uid.clone() });
    for entry in release::entries(objects).into_iter().chain(goes) {
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
