//! A deployer that only tests have: one file on the runner's host. It is the least that a type of component must bring to keep to
//! the contract of deployers.

use crash::crash_point;
use fs_err as fs;
use kubernetes::{Change, Cluster, Deployed, Entry, ObjectRef, Output, Verb};
use model::deploy::{ApprovedPlan, Deploy, STALE_PLAN};
use model::kubernetes::{ManifestSource, ManifestSpec};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::Run;
use super::action::StepFailure;
use super::deploy::{Deployer, Planned, Workspace};
use super::kubernetes::plan;
use super::kubernetes::state::{self, States};
use super::stages::Stages;

/// Manifests of this namespace are files, and reach no cluster.
const NAMESPACE: &str = "files-of-tests";

pub(super) struct OneFile<'j> {
    pub(super) job: &'j ManifestSpec,
    pub(super) workspace: Workspace,
}

pub(super) fn is_meant(job: &ManifestSpec) -> bool {
    job.namespace == NAMESPACE
}

#[derive(Serialize, Deserialize)]
struct PlanFile {
    path: String,
    found: Option<String>,
    wanted: Option<String>,
}

impl Deployer for OneFile<'_> {
    const PLAN_STAGES: &'static [&'static str] = &["plan", "keep"];
    const APPLY_STAGES: &'static [&'static str] = &["apply"];

    fn deploy(&self) -> &Deploy {
        &self.job.deploy
    }

    fn workspace(&self) -> &Workspace {
        &self.workspace
    }

    async fn plan(&self, run: &mut Run<'_>, stages: &mut Stages, destroy: bool) -> Result<Planned, StepFailure> {
        stages.begin(run, 0);
        crash_point!("executor.before_plan");
        let (path, wanted) = if destroy { (self.deployed(run).await?, None) } else { self.wanted()? };
        let found = fs::read_to_string(&path).ok();
        let verb = match (&found, &wanted) {
            (before, after) if before == after => Verb::Nothing,
            (None, _) => Verb::Create,
            (_, None) => Verb::Delete,
            _ => Verb::Update,
        };
        let shown = |text: &Option<String>| text.as_ref().map_or(Value::Null, |text| json!({ "text": text }));
        let (before, after) = (shown(&found), shown(&wanted));
        let change = Change { of: named(&path), verb, before, after, reason: None, fixed: Vec::new() };
        let file = PlanFile { path, found, wanted };
        crash_point!("executor.planned");
        let policies = &self.job.deploy.policies;
        plan::planned(run, 0, &json!(file), &[change], policies, Vec::new(), Vec::new()).await
    }

    async fn apply(
        &self,
        run: &mut Run<'_>,
        stages: &mut Stages,
        approved: &ApprovedPlan,
        _: bool,
    ) -> Result<Map<String, Value>, StepFailure> {
        stages.begin(run, 0);
        let file = self.workspace.fetch_plan(run, approved).await?;
        let bad = |e: serde_json::Error| StepFailure::new("sealed_file", e.to_string());
        let PlanFile { path, found, wanted } = serde_json::from_slice(&fs::read(&file)?).map_err(bad)?;
        if fs::read_to_string(&path).ok() != found {
            return Err(StepFailure::new(STALE_PLAN, "the file was changed since the plan was made"));
        }
        crash_point!("executor.before_apply");
        let before = state::open(run, &self.workspace).await?;
        let host = Cluster { uid: "host".into(), server: "host".into() };
        let mut states = States::new(before.as_ref(), &host, Deployed::default());
        let entry = |uid: &str| vec![Entry { of: named(&path), uid: uid.to_owned() }];
        states.save(run, &self.workspace, entry(""), Vec::new()).await?;
        crash_point!("executor.intent_saved");
        let (entries, outputs) = match wanted {
            Some(text) => {
                fs::write(&path, &text)?;
                (entry("written"), vec![("text".to_owned(), Output { value: json!(text), sensitive: false })])
            }
            None => {
                let _ = fs::remove_file(&path);
                (Vec::new(), Vec::new())
            }
        };
        crash_point!("executor.applied");
        states.save(run, &self.workspace, entries, outputs).await
    }
}

impl OneFile<'_> {
    /// Path and text of the file.
    fn wanted(&self) -> Result<(String, Option<String>), StepFailure> {
        let bad = |why: String| StepFailure::new("bad_manifest", why);
        let ManifestSource::Text { contents } = &self.job.manifest else { return Err(bad("no text".into())) };
        let objects = kubernetes::parse(contents).map_err(|e| bad(e.to_string()))?;
        let spec = &objects.first().ok_or_else(|| bad("no object".into()))?["spec"];
        match (spec["path"].as_str(), spec["text"].as_str()) {
            (Some(path), Some(text)) => Ok((path.to_owned(), Some(text.to_owned()))),
            _ => Err(bad("no path or no text".into())),
        }
    }

    /// What was deployed, whatever the app says today.
    async fn deployed(&self, run: &Run<'_>) -> Result<String, StepFailure> {
        let before = state::open(run, &self.workspace).await?;
        let entry = before.and_then(|before| before.objects.into_iter().next());
        entry.map(|entry| entry.of.name).ok_or_else(|| StepFailure::new("bad_manifest", "nothing was deployed"))
    }
}

fn named(path: &str) -> ObjectRef {
    ObjectRef {
        group: "ferry.test".into(),
        version: "v1".into(),
        kind: "File".into(),
        namespace: None,
        name: path.to_owned(),
    }
}
