//! The parts of a job that is not a script: each is shown as a step.

use model::deploy::ResourceProgress;
use model::{JobError, Outcome, StepResult, StepStatus};
use serde_json::Map;

use super::action::{StepFailure, report};
use super::{Done, Run, now};

pub(super) struct Stages {
    steps: Vec<StepResult>,
    at: Option<usize>,
}

impl Stages {
    pub(super) fn new(names: &[&str]) -> Self {
        Self { steps: names.iter().map(|name| StepResult::pending(name)).collect(), at: None }
    }

    pub(super) fn steps(&self) -> &[StepResult] {
        &self.steps
    }

    /// What Terraform has done in a stage.
    pub(super) fn set_resources(&mut self, stage: usize, resources: Vec<ResourceProgress>) {
        self.steps[stage].resources = resources;
    }

    /// The one before has finished, this one begins.
    pub(super) fn begin(&mut self, run: &Run<'_>, stage: usize) {
        self.end(StepStatus::Finished);
        self.steps[stage].status = StepStatus::InProgress;
        self.steps[stage].started_at = Some(now());
        self.at = Some(stage);
        report(run, &self.steps);
    }

    fn end(&mut self, status: StepStatus) {
        if let Some(at) = self.at.take() {
            self.steps[at].status = status;
            self.steps[at].finished_at = Some(now());
        }
    }

    /// All is done; what was not begun was not needed.
    pub(super) fn finish(mut self, run: &Run<'_>) -> Vec<StepResult> {
        self.end(StepStatus::Finished);
        self.leave_rest();
        report(run, &self.steps);
        self.steps
    }

    fn leave_rest(&mut self) {
        for step in self.steps.iter_mut().filter(|step| step.status == StepStatus::Pending) {
            step.status = StepStatus::NotAttempted;
        }
    }

    pub(super) fn fail(mut self, run: &Run<'_>, failure: StepFailure) -> Done {
        let at = self.at.unwrap_or_default();
        let (outcome, status, error, exit_code) = match failure {
            StepFailure::Stopped(stop) => (stop.outcome(), stop.step_status(), stop.error(), None),
            StepFailure::Failed { error, exit_code } => (Outcome::Failed, StepStatus::Error, error, exit_code),
        };
        self.end(status);
        self.leave_rest();
        let error = JobError { message: format!("{}: {}", self.steps[at].name, error.message), ..error };
        self.steps[at].error = Some(error.message.clone());
        self.steps[at].exit_code = exit_code;
        run.say(Some(at), &error.message);
        report(run, &self.steps);
        Done { outcome, error: Some(error), steps: self.steps, outputs: Map::new() }
    }
}
