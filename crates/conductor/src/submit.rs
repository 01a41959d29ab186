//! Makes a job: the spec is rendered and frozen, its order is signed, and both are queued in one transaction.

use std::collections::BTreeMap;

use model::papers::Order;
use model::spec::{ActionSpec, JobSpec, Limits, StepSpec, Work};
use model::{Digest, JobId, LogStreamId, constants};
use store::{Idempotency, Install, Job, NewJob, Result, Runner, StoreError};

use crate::Conductor;

/// An ad-hoc action, already checked.
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

/// A job that is about the runner itself.
#[derive(Debug, Clone)]
pub struct NewRunnerJob {
    pub work: Work,
    pub priority: i64,
}

struct Draft {
    name: Option<String>,
    install: Option<Install>,
    target: Option<String>,
    priority: i64,
    timeout_s: u64,
    limits: Limits,
    secrets: Vec<String>,
    work: Work,
}

impl Conductor {
    pub async fn submit_action(
        &self,
        install: Install,
        runner: &Runner,
        action: NewAction,
        actor: &str,
        idem: Option<Idempotency>,
    ) -> Result<Job> {
        let builtin_env = BTreeMap::from([
            ("NUON_ORG_ID".to_owned(), install.org_id.to_string()),
            ("NUON_APP_ID".to_owned(), install.app_id.to_string()),
            ("NUON_INSTALL_ID".to_owned(), install.id.to_string()),
            ("TRIGGER_TYPE".to_owned(), "adhoc".to_owned()),
        ]);
        let spec =
            ActionSpec { steps: action.steps, builtin_env, run_env: action.run_env, override_env: BTreeMap::new() };
        let draft = Draft {
            name: action.name,
            install: Some(install),
            target: action.target,
            priority: action.priority,
            timeout_s: action.timeout_s,
            limits: action.limits,
            secrets: action.secrets,
            work: Work::ActionsWorkflow(spec),
        };
        self.submit(draft, runner, actor, idem).await
    }

    pub async fn submit_runner_job(
        &self,
        runner: &Runner,
        job: NewRunnerJob,
        actor: &str,
        idem: Option<Idempotency>,
    ) -> Result<Job> {
        let install = match &runner.install_id {
            Some(id) => Some(self.store.install(&runner.org_id, id.as_str()).await?),
            None => None,
        };
        let draft = Draft {
            name: None,
            install,
            target: None,
            priority: job.priority,
            timeout_s: constants::ACTION_TIMEOUT_S,
            limits: Limits::default(),
            secrets: Vec::new(),
            work: job.work,
        };
        self.submit(draft, runner, actor, idem).await
    }

    async fn submit(&self, draft: Draft, runner: &Runner, actor: &str, idem: Option<Idempotency>) -> Result<Job> {
        let now = self.now();
        let job_id = JobId::new(now, self.random_u128());
        let job_type = draft.work.job_type();
        let install_id = draft.install.as_ref().map(|i| i.id.clone());
        let artifact_digests = draft.work.artifacts();
        let spec = JobSpec {
            org_id: runner.org_id.clone(),
            app_id: draft.install.map(|i| i.app_id),
            install_id: install_id.clone(),
            job_id: job_id.clone(),
            timeout_s: draft.timeout_s,
            grace_s: constants::SCRIPT_GRACE_S,
            limits: draft.limits,
            secrets: draft.secrets,
            work: draft.work,
        };
        let spec = serde_json::to_vec(&spec).map_err(|e| StoreError::Conflict(e.to_string()))?;
        if spec.len() > constants::SPEC_BYTES {
            let limit = constants::SPEC_BYTES >> 20;
            return Err(StoreError::Conflict(format!("the job's spec has {} bytes; at most {limit} MiB", spec.len())));
        }
        let order = Order {
            org_id: runner.org_id.clone(),
            runner_id: runner.id.clone(),
            install_id: install_id.clone(),
            job_id: job_id.clone(),
            job_type,
            operation: "exec".into(),
            role: None,
            spec_digest: Digest::of(&spec),
            artifact_digests,
            plan_digest: None,
            not_before: now,
            not_after: now.plus_s(constants::ORDER_LIFE_S as i64),
        };
        let new = NewJob {
            id: job_id,
            org_id: runner.org_id.clone(),
            runner_id: runner.id.clone(),
            install_id,
            job_type,
            operation: "exec".into(),
            name: draft.name,
            target: draft.target,
            priority: draft.priority,
            timeout_s: draft.timeout_s,
            spec,
            order: self.signing_keys().signatory.order(&order),
            log_stream_id: LogStreamId::new(now, self.random_u128()),
            created_by: actor.to_owned(),
            now,
        };
        Ok(self.store.enqueue(new, idem).await?.job)
    }
}
