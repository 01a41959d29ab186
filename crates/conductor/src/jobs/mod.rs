//! Owns making jobs: complete specs, signed orders, idempotency; and settling those whose outcome is unknown.
//! Handlers, workflows and reconcilers call it.
//! No job without a complete spec.
//!
//! Makes a job: the spec is rendered and frozen, its order is signed, and both are queued in one transaction.

pub(crate) mod settle;

use std::collections::BTreeMap;

use engine::WorkflowKind;
use model::deploy::SealedValue;
use model::kubernetes::{ClusterSpec, Pulls};
use model::papers::Order;
use model::spec::{
    ActionSpec, JobSpec, Limits, Source, StepSpec, Work, check_env, check_secrets, check_steps, check_timeout,
};
use model::time::parse_duration;
use model::{
    ActionRunId, AppId, Digest, InstallId, JobId, JobType, LogStreamId, SectionId, StepId, WorkflowId, constants,
};
use store::{
    ActionRun, Build, EntityKind, Idempotency, Install, Job, NewJob, Queued, Revision, Runner, Section, StoreError,
};

use crate::apps::InstallTree;
use crate::error::{JobError, Result};
use crate::{By, Conductor, NewWorkflow};

/// A run of an action of the app, as somebody asks for it.
#[derive(Debug, Clone)]
pub struct WantedActionRun {
    pub action: ActionRef,
    pub env_vars: BTreeMap<String, String>,
    /// Values that must not appear in the log.
    pub secrets: Vec<String>,
    pub role: Option<String>,
}

/// Which action is meant.
#[derive(Debug, Clone)]
pub enum ActionRef {
    Name(String),
    /// Its section in a config.
    Config(SectionId),
}

/// Whether people may start an action.
pub fn check_by_hand(action: &config::Action) -> Result<(), JobError> {
    if action.triggers.iter().any(|t| t.r#type == "manual") {
        return Ok(());
    }
    Err(JobError::NotByHand(action.name.clone()))
}

/// An ad-hoc action.
#[derive(Debug, Clone)]
pub struct NewAction {
    pub name: Option<String>,
    pub steps: Vec<StepSpec>,
    pub run_env: BTreeMap<String, String>,
    pub timeout_s: u64,
    pub secrets: Vec<String>,
    pub limits: Limits,
    pub target: Option<String>,
    pub priority: i64,
}

/// An action of a synced app, and how it is run this time.
#[derive(Debug, Clone)]
pub(crate) struct SyncedAction {
    /// The component that puts out the cluster it works on; the sandbox's, or the runner's own, without one.
    pub(crate) context: Option<String>,
    /// The action's id, and its section in the config; a script of a runbook has neither.
    pub id: Option<(String, SectionId)>,
    pub action: config::Action,
    /// Digests of the app's local sources, by directory.
    pub local_sources: BTreeMap<String, String>,
    pub trigger_type: String,
    pub run_env: BTreeMap<String, String>,
    /// What a hook is told about what started it.
    pub hook_env: BTreeMap<String, String>,
    /// The step of a workflow that it is.
    pub step_id: StepId,
    /// Values that must not appear in the log, beside the sensitive ones of the install.
    pub secrets: Vec<String>,
}

/// A job that is about the runner itself.
#[derive(Debug, Clone)]
pub struct NewRunnerJob {
    pub work: Work,
    pub priority: i64,
}

pub(crate) struct Draft {
    pub(crate) name: Option<String>,
    pub(crate) install: Option<(InstallId, AppId)>,
    pub(crate) target: Option<String>,
    pub(crate) priority: i64,
    pub(crate) timeout_s: u64,
    pub(crate) limits: Limits,
    pub(crate) secrets: Vec<String>,
    pub(crate) sealed: Vec<SealedValue>,
    pub(crate) cluster: Option<ClusterSpec>,
    pub(crate) pulls: Option<Pulls>,
    pub(crate) store_secrets: Vec<String>,
    pub(crate) role: Option<String>,
    pub(crate) work: Work,
    pub(crate) run: Option<NewRun>,
    pub(crate) build: Option<Box<Build>>,
    pub(crate) step_id: Option<StepId>,
    /// The earlier state that it makes the current one again.
    pub(crate) restores: Option<Revision>,
}

impl Draft {
    /// A job of no install and no step, which holds nothing.
    pub(crate) fn new(work: Work) -> Self {
        Self {
            name: None,
            install: None,
            target: None,
            priority: 0,
            timeout_s: work.job_type().facts().timeout_s,
            limits: Limits::default(),
            secrets: Vec::new(),
            sealed: Vec::new(),
            cluster: None,
            pulls: None,
            store_secrets: Vec::new(),
            role: None,
            work,
            run: None,
            build: None,
            step_id: None,
            restores: None,
        }
    }
}

/// A run of a synced action: its job is not made yet.
pub(crate) struct NewRun {
    id: ActionRunId,
    install_id: InstallId,
    action_id: String,
    section_id: SectionId,
    trigger_type: String,
}

impl NewRun {
    /// The run, once its job is made.
    fn of(self, job_id: &JobId, actor: &str, now: model::Timestamp) -> ActionRun {
        ActionRun {
            id: self.id,
            install_id: self.install_id,
            action_id: self.action_id,
            section_id: self.section_id,
            job_id: job_id.clone(),
            trigger_type: self.trigger_type,
            created_by: actor.to_owned(),
            created_at: now,
        }
    }
}

/// What every script of an install is told.
fn builtin_env(install: &Install, trigger_type: &str) -> BTreeMap<String, String> {
    BTreeMap::from([
        (model::env::ORG_ID.to_owned(), install.org_id.to_string()),
        (model::env::APP_ID.to_owned(), install.app_id.to_string()),
        (model::env::INSTALL_ID.to_owned(), install.id.to_string()),
        (model::spec::TRIGGER_TYPE.to_owned(), trigger_type.to_owned()),
    ])
}

/// A directory of a repository, as the runner fetches it.
pub(crate) fn git(repo: &config::Repo, submodules: bool) -> Source {
    Source::Git {
        url: if repo.repo.contains("://") || repo.repo.starts_with("git@") {
            repo.repo.clone()
        } else {
            format!("https://github.com/{}.git", repo.repo.trim_end_matches(".git"))
        },
        reference: Some(repo.branch.clone()),
        directory: Some(repo.directory.clone()).filter(|directory| directory != "."),
        submodules,
        credentials: None,
    }
}

/// A directory of the app itself, as it was uploaded.
pub(crate) fn local_archive(local: &config::Local, local_sources: &BTreeMap<String, String>) -> Result<Source> {
    let digest = local.path().and_then(|path| Digest::parse(local_sources.get(&path)?).ok());
    let missing = || JobError::NotUploaded(local.directory.clone());
    Ok(Source::Archive { digest: digest.ok_or_else(missing)?, directory: None })
}

/// Where the files of a step are, as the runner fetches them.
fn source(step: &config::ActionStep, local_sources: &BTreeMap<String, String>) -> Result<Option<Source>> {
    if let Some(local) = &step.local {
        let found = local_archive(local, local_sources);
        return found.map(Some).map_err(|_| {
            JobError::StepNotUploaded { step: step.name.clone(), directory: local.directory.clone() }.into()
        });
    }
    Ok(step.public_repo.as_ref().or(step.connected_repo.as_ref()).map(|repo| git(repo, false)))
}

impl Conductor {
    /// Runs an action of the app on an install, its templates rendered against what is known now.
    pub(crate) async fn run_synced_action(
        &self,
        install: Install,
        runner: &Runner,
        synced: SyncedAction,
        tree: &InstallTree,
        actor: &str,
    ) -> Result<()> {
        let (rendering, mut sealed) = tree.render(&serde_json::to_value(&synced.action.steps).map_err(corrupt)?);
        if let Some(problem) = rendering.problems.first() {
            let mut at = problem.path.split('/').skip(1);
            let step = at.next().and_then(|n| n.parse::<usize>().ok()).and_then(|n| synced.action.steps.get(n));
            let (step, field) = (step.map_or("", |s| s.name.as_str()), at.collect::<Vec<_>>().join("."));
            let problem = tree.masked(&format!("step `{step}`, {field}: {}", problem.message));
            return Err(JobError::Unrenderable { action: synced.action.name, problem }.into());
        }
        let steps: Vec<config::ActionStep> = serde_json::from_value(rendering.value).map_err(corrupt)?;
        let steps = steps.into_iter().map(|step| {
            let source = source(&step, &synced.local_sources)?;
            let config::ActionStep { name, env_vars, inline_contents, command, .. } = step;
            Ok(StepSpec { name, inline_contents, command, source, env: env_vars })
        });
        let steps = steps.collect::<Result<Vec<_>>>()?;
        check_steps(&steps).map_err(JobError::Spec)?;
        let timeout = synced.action.timeout.as_deref().and_then(|text| parse_duration(text).ok());
        let spec = ActionSpec {
            steps,
            builtin_env: builtin_env(&install, &synced.trigger_type).into_iter().chain(synced.hook_env).collect(),
            run_env: synced.run_env,
            override_env: BTreeMap::new(),
        };
        let trigger_type = synced.trigger_type;
        let run = synced.id.map(|(action_id, section_id)| NewRun {
            id: ActionRunId::new(self.now(), self.random_u128()),
            install_id: install.id.clone(),
            action_id,
            section_id,
            trigger_type,
        });
        let cluster = match synced.action.enable_kube_config {
            Some(false) => None,
            Some(true) | None => {
                let (cluster, more) = tree.cluster(synced.context.as_deref());
                sealed.extend(more);
                Some(cluster)
            }
        };
        let timeout_s = timeout.map_or(JobType::ActionsWorkflow.facts().timeout_s, |t| t.as_secs().max(1));
        let store_secrets = self.store_secrets(&install).await?;
        let draft = Draft {
            store_secrets,
            name: Some(synced.action.name),
            install: Some((install.id, install.app_id)),
            secrets: tree.secrets().into_iter().chain(synced.secrets).collect(),
            sealed,
            cluster,
            run,
            step_id: Some(synced.step_id),
            timeout_s,
            ..Draft::new(Work::ActionsWorkflow(spec))
        };
        self.submit(draft, runner, actor, None).await.map(|_| ())
    }

    /// Cancels a job. One that runs ends when its runner has interrupted it; asking twice is harmless.
    pub async fn cancel_job(&self, by: &By, id: &JobId) -> Result<Job> {
        Ok(self.store.cancel(&by.org, id, by.actor(), self.now()).await?)
    }

    /// Starts an action of the app on an install, as a workflow. Its job is queued before this returns, so that whoever has the
    /// answer can look at the run.
    pub async fn run_app_action(
        &self,
        by: &By,
        install: &Install,
        wanted: WantedActionRun,
        idem: Option<Idempotency>,
    ) -> Result<WorkflowId> {
        check_env(&wanted.env_vars).map_err(JobError::Spec)?;
        check_secrets(&wanted.secrets).map_err(JobError::Spec)?;
        let config = self.config_of(install).await?;
        let sections = self.store.sections(&by.org, &config.id).await?;
        let kind = EntityKind::Action.section();
        let meant = |section: &Section| match &wanted.action {
            ActionRef::Config(id) => section.id == *id,
            ActionRef::Name(name) => section.kind == kind && section.name == *name,
        };
        let Some(section) = sections.into_iter().find(meant) else {
            let app = self.store.app(&by.org, install.app_id.as_str()).await?.name;
            return Err(JobError::NoSuchAction { app, version: config.version.unwrap_or_default() }.into());
        };
        let (alone, _) = crate::apps::assemble([&section.body])?;
        let action = alone.actions.into_iter().next().ok_or(StoreError::NotFound("action"))?;
        check_by_hand(&action)?;
        let mut new =
            NewWorkflow::new(WorkflowKind::ActionWorkflowRun { action: action.name, trigger: "manual".into() });
        new.given.env_vars = wanted.env_vars;
        new.given.masked_values = wanted.secrets;
        new.role = wanted.role;
        let id = self.start_workflow(install, new, &by.account, idem).await?;
        let loaded = self.tell_workflow(&by.org, &id, engine::Event::Look, by.actor()).await?;
        match loaded.workflow.failure() {
            Some(step) if self.store.job_of_step(&by.org, &step.id).await?.is_none() => {
                Err(JobError::NotStarted(step.reason.clone()).into())
            }
            _ => Ok(id),
        }
    }

    /// Runs an action that carries its steps with it.
    pub async fn submit_action(
        &self,
        install: Install,
        runner: &Runner,
        action: NewAction,
        actor: &str,
        idem: Option<Idempotency>,
    ) -> Result<Queued> {
        check_timeout(action.timeout_s).map_err(JobError::Spec)?;
        check_steps(&action.steps).map_err(JobError::Spec)?;
        check_env(&action.run_env).map_err(JobError::Spec)?;
        check_secrets(&action.secrets).map_err(JobError::Spec)?;
        for step in &action.steps {
            if let Some(Source::Archive { digest, .. }) = &step.source
                && !self.store.has_archive(&install.org_id, digest).await?
            {
                return Err(JobError::NoArchive { step: step.name.clone(), digest: digest.clone() }.into());
            }
        }
        if runner.report.as_ref().is_some_and(|report| report.no_ad_hoc) {
            return Err(JobError::AdHocOff.into());
        }
        let builtin_env = builtin_env(&install, model::spec::AD_HOC);
        let spec =
            ActionSpec { steps: action.steps, builtin_env, run_env: action.run_env, override_env: BTreeMap::new() };
        let store_secrets = self.store_secrets(&install).await?;
        let draft = Draft {
            store_secrets,
            name: action.name,
            install: Some((install.id, install.app_id)),
            target: action.target,
            priority: action.priority,
            limits: action.limits,
            secrets: action.secrets,
            timeout_s: action.timeout_s,
            ..Draft::new(Work::ActionsWorkflow(spec))
        };
        self.submit(draft, runner, actor, idem).await
    }

    pub async fn submit_runner_job(
        &self,
        runner: &Runner,
        job: NewRunnerJob,
        actor: &str,
        idem: Option<Idempotency>,
    ) -> Result<Queued> {
        let install = match (&runner.install_id, &runner.app_id) {
            (Some(install), Some(app)) => Some((install.clone(), app.clone())),
            (Some(_), None) => return Err(StoreError::NotFound("install").into()),
            (None, _) => None,
        };
        let draft = Draft { install, priority: job.priority, ..Draft::new(job.work) };
        self.submit(draft, runner, actor, idem).await
    }

    /// Names of the secrets that the customer keeps for the app.
    pub(crate) async fn store_secrets(&self, install: &Install) -> Result<Vec<String>> {
        let document = self.document_of(install).await?;
        let secrets = document.iter().flat_map(|document| &document.config.secrets);
        Ok(secrets.map(|secret| secret.name.clone()).collect())
    }

    pub(crate) async fn submit(
        &self,
        draft: Draft,
        runner: &Runner,
        actor: &str,
        idem: Option<Idempotency>,
    ) -> Result<Queued> {
        let waits_s = draft.work.waits_ms() / 1000;
        if waits_s >= draft.timeout_s {
            return Err(JobError::OverTimeout { waits_s, timeout_s: draft.timeout_s }.into());
        }
        let now = self.now();
        let job_id = JobId::new(now, self.random_u128());
        let job_type = draft.work.job_type();
        let (install_id, app_id) = draft.install.unzip();
        let artifact_digests = draft.work.artifacts();
        let (operation, plan_digest) = (draft.work.operation().to_owned(), draft.work.plan_digest());
        let spec = JobSpec {
            org_id: runner.org_id.clone(),
            app_id: app_id.or_else(|| draft.build.as_ref().map(|b| b.app_id.clone())),
            install_id: install_id.clone(),
            job_id: job_id.clone(),
            timeout_s: draft.timeout_s,
            grace_s: draft.work.job_type().facts().grace_s,
            limits: draft.limits,
            secrets: draft.secrets,
            sealed: draft.sealed,
            cluster: draft.cluster,
            pulls: draft.pulls,
            store_secrets: draft.store_secrets,
            trace: crate::trace::current(),
            work: draft.work,
        };
        let spec = serde_json::to_vec(&spec).map_err(|_| JobError::Unwritable)?;
        if spec.len() > constants::SPEC_BYTES {
            return Err(JobError::TooLarge { bytes: spec.len(), most_mib: constants::SPEC_BYTES >> 20 }.into());
        }
        let order = Order {
            org_id: runner.org_id.clone(),
            runner_id: runner.id.clone(),
            install_id: install_id.clone(),
            job_id: job_id.clone(),
            job_type,
            operation: operation.clone(),
            role: draft.role,
            spec_digest: Digest::of(&spec),
            artifact_digests,
            plan_digest,
            not_before: now,
            not_after: now.plus_s(constants::ORDER_LIFE_S as i64),
        };
        let new = NewJob {
            id: job_id.clone(),
            org_id: runner.org_id.clone(),
            runner_id: runner.id.clone(),
            install_id,
            job_type,
            operation,
            name: draft.name,
            target: draft.target,
            priority: draft.priority,
            timeout_s: draft.timeout_s,
            spec,
            order: self.signing_keys().signatory.order(&order),
            log_stream_id: LogStreamId::new(now, self.random_u128()),
            created_by: actor.to_owned(),
            run: draft.run.map(|run| run.of(&job_id, actor, now)),
            build: draft.build.map(|build| Box::new(Build { job_id: Some(job_id), ..*build })),
            step_id: draft.step_id,
            restores: draft.restores,
            now,
        };
        Ok(self.store.enqueue(new, idem).await?)
    }
}

fn corrupt(_: serde_json::Error) -> StoreError {
    StoreError::corrupt("action")
}
