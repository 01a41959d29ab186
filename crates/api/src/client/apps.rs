//! Apps: their versions, components, actions and variables, and the inputs of installs.

use reqwest::Method;
use serde_json::Value;

use super::{Client, Result, UPLOAD_TIMEOUT, segment};
use crate::control::{
    ActionRun, ActionWorkflow, ActionWorkflowConfig, App, AppConfig, AppInputConfig, AppVariable, Component,
    CreateActionWorkflowRun, CreateApp, CreateAppVariable, InstallActionWorkflow, InstallInputs, Rendered, SyncApp,
    SyncedApp, UpdateApp, UpdateInstallInputs, WorkflowStarted,
};

impl Client {
    // --- apps and installs ---

    pub async fn apps(&self) -> Result<Vec<App>> {
        self.pages(self.get("/v1/apps"), usize::MAX).await
    }

    pub async fn create_app(&self, body: &CreateApp) -> Result<App> {
        self.json(self.post("/v1/apps", body)?).await
    }

    pub async fn app(&self, app: &str) -> Result<App> {
        self.json(self.get(format!("/v1/apps/{}", segment(app)))).await
    }

    pub async fn update_app(&self, app: &str, body: &UpdateApp) -> Result<App> {
        self.json(self.patch(format!("/v1/apps/{}", segment(app)), body)?).await
    }

    pub async fn delete_app(&self, app: &str) -> Result<bool> {
        self.json(self.call(Method::DELETE, format!("/v1/apps/{}", segment(app)))).await
    }

    /// Syncs a whole app, or, with `plan_only`, says what that would change.
    pub async fn sync_app(&self, app: &str, body: &SyncApp) -> Result<SyncedApp> {
        let mut call = self.post(format!("/v1/apps/{}/sync", segment(app)), body)?;
        call.timeout = UPLOAD_TIMEOUT;
        self.json(call).await
    }

    /// Versions and drafts, newest first.
    pub async fn app_configs(&self, app: &str, limit: usize) -> Result<Vec<AppConfig>> {
        self.pages(self.get(format!("/v1/apps/{}/configs", segment(app))), limit).await
    }

    /// What changed from `against` to `config`: ids, numbers, or `latest`.
    pub async fn app_config_diff(&self, app: &str, config: &str, against: &str) -> Result<Vec<Value>> {
        let path = format!("/v1/apps/{}/config/{}/diff", segment(app), segment(config));
        let mut call = self.get(path);
        call.push("against", Some(against.to_owned()));
        self.json(call).await
    }

    pub async fn components(&self, app: &str) -> Result<Vec<Component>> {
        self.pages(self.get(format!("/v1/apps/{}/components", segment(app))), usize::MAX).await
    }

    pub async fn retire_component(&self, id: &str) -> Result<bool> {
        self.json(self.call(Method::DELETE, format!("/v1/components/{}", segment(id)))).await
    }

    pub async fn actions(&self, app: &str) -> Result<Vec<ActionWorkflow>> {
        self.pages(self.get(format!("/v1/apps/{}/action-workflows", segment(app))), usize::MAX).await
    }

    pub async fn action(&self, app: &str, action: &str) -> Result<ActionWorkflow> {
        self.json(self.get(format!("/v1/apps/{}/action-workflows/{}", segment(app), segment(action)))).await
    }

    pub async fn action_config(&self, id: &str) -> Result<ActionWorkflowConfig> {
        self.json(self.get(format!("/v1/action-workflows/{}/latest-config", segment(id)))).await
    }

    pub async fn retire_action(&self, id: &str) -> Result<bool> {
        self.json(self.call(Method::DELETE, format!("/v1/action-workflows/{}", segment(id)))).await
    }

    /// The actions of an install, each with its last run.
    pub async fn install_actions(&self, install: &str) -> Result<Vec<InstallActionWorkflow>> {
        self.pages(self.get(format!("/v1/installs/{}/action-workflows", segment(install))), usize::MAX).await
    }

    pub async fn run_action(&self, install: &str, body: &CreateActionWorkflowRun) -> Result<WorkflowStarted> {
        self.json(self.post(format!("/v1/installs/{}/action-workflows/runs", segment(install)), body)?).await
    }

    pub async fn action_run(&self, install: &str, run: &str) -> Result<ActionRun> {
        self.json(self.get(format!("/v1/installs/{}/action-workflows/runs/{}", segment(install), segment(run)))).await
    }

    pub async fn variables(&self, app: &str) -> Result<Vec<AppVariable>> {
        self.pages(self.get(format!("/v1/apps/{}/secrets", segment(app))), usize::MAX).await
    }

    pub async fn set_variable(&self, app: &str, body: &CreateAppVariable) -> Result<AppVariable> {
        self.json(self.post(format!("/v1/apps/{}/secret", segment(app)), body)?).await
    }

    pub async fn delete_variable(&self, app: &str, name: &str) -> Result<bool> {
        let path = format!("/v1/apps/{}/secret/{}", segment(app), segment(name));
        self.json(self.call(Method::DELETE, path)).await
    }

    /// The inputs that the active version of an app declares.
    pub async fn declared_inputs(&self, app: &str) -> Result<AppInputConfig> {
        self.json(self.get(format!("/v1/apps/{}/input-latest-config", segment(app)))).await
    }

    pub async fn install_inputs(&self, install: &str) -> Result<InstallInputs> {
        self.json(self.get(format!("/v1/installs/{}/inputs/current", segment(install)))).await
    }

    pub async fn update_install_inputs(&self, install: &str, body: &UpdateInstallInputs) -> Result<InstallInputs> {
        self.json(self.patch(format!("/v1/installs/{}/inputs", segment(install)), body)?).await
    }

    /// What a `component` or an `action` would receive on an install.
    pub async fn render(&self, install: &str, kind: &'static str, name: &str) -> Result<Rendered> {
        let mut call = self.get(format!("/v1/installs/{}/render", segment(install)));
        call.push(kind, Some(name.to_owned()));
        self.json(call).await
    }
}
