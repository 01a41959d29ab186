//! Workflows and their steps.

use serde_json::Value;

use super::{Client, Result, segment};
use crate::control::{
    CreateStepApprovalResponse, CreateWorkflow, ForgetInstall, Install, InstallComponent, InstallRunbook,
    InstallSchedule, InstallState, InstallStateVersion, PolicyReport, StepApprovalResponse, StepRetried, UpdateInstall,
    UpdateWorkflow, Workflow, WorkflowStarted, WorkflowStep,
};

fn step_path(workflow: &str, step: &str) -> String {
    format!("/v1/workflows/{}/steps/{}", segment(workflow), segment(step))
}

impl Client {
    pub async fn start_workflow(&self, install: &str, body: &CreateWorkflow) -> Result<WorkflowStarted> {
        self.json(self.post(format!("/v1/installs/{}/workflows", segment(install)), body)?).await
    }

    /// Newest first: of an install, or of all.
    pub async fn workflows(&self, install: Option<&str>, limit: usize) -> Result<Vec<Workflow>> {
        let path = match install {
            Some(install) => format!("/v1/installs/{}/workflows", segment(install)),
            None => "/v1/workflows".to_owned(),
        };
        self.pages(self.get(path), limit).await
    }

    /// A workflow with its steps.
    pub async fn workflow(&self, id: &str) -> Result<Workflow> {
        self.json(self.get(format!("/v1/workflows/{}", segment(id)))).await
    }

    /// The steps of a workflow, every attempt, in their order.
    pub async fn workflow_steps(&self, id: &str, limit: usize) -> Result<Vec<WorkflowStep>> {
        self.pages(self.get(format!("/v1/workflows/{}/steps", segment(id))), limit).await
    }

    pub async fn approve_all(&self, id: &str) -> Result<Workflow> {
        let body = UpdateWorkflow { approval_option: "approve-all".into() };
        self.json(self.patch(format!("/v1/workflows/{}", segment(id)), &body)?).await
    }

    pub async fn cancel_workflow(&self, id: &str) -> Result<Value> {
        self.json(self.post_empty(format!("/v1/workflows/{}/cancel", segment(id)))?).await
    }

    /// A step, wherever it belongs.
    pub async fn step(&self, id: &str) -> Result<WorkflowStep> {
        self.json(self.get(format!("/v1/workflow-steps/{}", segment(id)))).await
    }

    /// What a plan would change.
    pub async fn step_plan(&self, workflow: &str, step: &str, approval: &str) -> Result<Value> {
        let path = format!("{}/approvals/{}/contents", step_path(workflow, step), segment(approval));
        self.json(self.get(path)).await
    }

    pub async fn answer_step(
        &self,
        workflow: &str,
        step: &str,
        approval: &str,
        body: &CreateStepApprovalResponse,
    ) -> Result<StepApprovalResponse> {
        let path = format!("{}/approvals/{}/response", step_path(workflow, step), segment(approval));
        self.json(self.post(path, body)?).await
    }

    pub async fn retry_step(&self, workflow: &str, step: &str) -> Result<StepRetried> {
        self.json(self.post_empty(format!("{}/retry", step_path(workflow, step)))?).await
    }

    pub async fn skip_step(&self, workflow: &str, step: &str) -> Result<StepRetried> {
        self.json(self.post_empty(format!("{}/skip", step_path(workflow, step)))?).await
    }

    pub async fn install_components(&self, install: &str) -> Result<Vec<InstallComponent>> {
        self.pages(self.get(format!("/v1/installs/{}/components", segment(install))), usize::MAX).await
    }

    pub async fn schedules(&self, install: &str) -> Result<Vec<InstallSchedule>> {
        self.json(self.get(format!("/v1/installs/{}/schedules", segment(install)))).await
    }

    pub async fn policy_reports(&self, install: &str, limit: usize) -> Result<Vec<PolicyReport>> {
        self.pages(self.get(format!("/v1/installs/{}/policy-reports", segment(install))), limit).await
    }

    pub async fn forget_install(&self, install: &str, force: bool) -> Result<Value> {
        self.json(self.post(format!("/v1/installs/{}/forget", segment(install)), &ForgetInstall { force })?).await
    }

    pub async fn runbooks(&self, install: &str) -> Result<Vec<InstallRunbook>> {
        self.pages(self.get(format!("/v1/installs/{}/runbooks", segment(install))), usize::MAX).await
    }

    pub async fn runbook(&self, install: &str, runbook: &str) -> Result<InstallRunbook> {
        self.json(self.get(format!("/v1/installs/{}/runbooks/{}", segment(install), segment(runbook)))).await
    }

    pub async fn update_install(&self, install: &str, body: &UpdateInstall) -> Result<Install> {
        self.json(self.patch(format!("/v1/installs/{}", segment(install)), body)?).await
    }

    pub async fn install_state(&self, install: &str, version: Option<u64>) -> Result<InstallState> {
        let mut call = self.get(format!("/v1/installs/{}/state", segment(install)));
        call.push("version", version.map(|version| version.to_string()));
        self.json(call).await
    }

    pub async fn install_state_versions(&self, install: &str, limit: usize) -> Result<Vec<InstallStateVersion>> {
        self.pages(self.get(format!("/v1/installs/{}/state/versions", segment(install))), limit).await
    }
}
