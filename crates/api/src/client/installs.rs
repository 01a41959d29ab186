//! What installs say about themselves.

use reqwest::Method;

use super::{Client, Result, encode, segment};
use crate::control::{
    AddInstallLabels, CreateInstall, FleetHealth, HealthTransition, Install, InstallConfig, InstallHealth,
    PushHealthCheck, RemoveInstallLabels, ToggleInstallComponent, UpdateInstallConfig, WorkflowStarted,
};

fn path(install: &str, rest: &str) -> String {
    format!("/v1/installs/{}/{rest}", segment(install))
}

impl Client {
    /// All installs, or those of one app.
    pub async fn installs(&self, app: Option<&str>) -> Result<Vec<Install>> {
        self.select_installs(app, None).await
    }

    pub async fn create_install(&self, app: &str, body: &CreateInstall) -> Result<Install> {
        self.json(self.post(format!("/v1/apps/{}/installs", segment(app)), body)?).await
    }

    pub async fn install(&self, install: &str) -> Result<Install> {
        self.json(self.get(format!("/v1/installs/{}", segment(install)))).await
    }

    /// All installs, or those of one app, that a selector takes: `env=prod,tier!=dev`.
    pub async fn select_installs(&self, app: Option<&str>, selector: Option<&str>) -> Result<Vec<Install>> {
        let path = app.map_or_else(|| "/v1/installs".to_owned(), |a| format!("/v1/apps/{}/installs", segment(a)));
        let mut call = self.get(path);
        call.push("labels", selector.map(str::to_owned));
        self.pages(call, usize::MAX).await
    }

    pub async fn add_install_labels(&self, install: &str, body: &AddInstallLabels) -> Result<Install> {
        self.json(self.post(path(install, "labels"), body)?).await
    }

    pub async fn remove_install_labels(&self, install: &str, body: &RemoveInstallLabels) -> Result<Install> {
        let mut call = self.call(Method::DELETE, path(install, "labels"));
        call.body = Some(("application/json", encode(body)?));
        self.json(call).await
    }

    pub async fn create_install_config(&self, install: &str, body: &UpdateInstallConfig) -> Result<InstallConfig> {
        self.json(self.post(path(install, "configs"), body)?).await
    }

    pub async fn update_install_config(
        &self,
        install: &str,
        config: &str,
        body: &UpdateInstallConfig,
    ) -> Result<InstallConfig> {
        self.json(self.patch(path(install, &format!("configs/{}", segment(config))), body)?).await
    }

    /// The install as a file: what `installs sync` takes.
    pub async fn install_file(&self, install: &str) -> Result<String> {
        let (_, bytes) = self.answer(&self.get(path(install, "generate-cli-install-config"))).await?;
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }

    /// Switches a component on or off, and starts what brings it up or tears it down; nothing where nothing is there.
    pub async fn toggle_component(
        &self,
        install: &str,
        component: &str,
        body: &ToggleInstallComponent,
    ) -> Result<WorkflowStarted> {
        self.json(self.post(path(install, &format!("components/{}/toggle", segment(component))), body)?).await
    }

    /// How well the components of an install are, with bars for so many days.
    pub async fn install_health(&self, install: &str, days: Option<u32>) -> Result<InstallHealth> {
        let mut call = self.get(path(install, "health"));
        call.push("days", days.map(|days| days.to_string()));
        self.json(call).await
    }

    /// How many installs that a selector takes are how well.
    pub async fn fleet_health(&self, selector: Option<&str>) -> Result<FleetHealth> {
        let mut call = self.get("/v1/installs/health");
        call.push("labels", selector.map(str::to_owned));
        self.json(call).await
    }

    /// Verdicts that became others, newest first, and whether there are more.
    pub async fn health_history(
        &self,
        install: &str,
        component: Option<&str>,
        limit: usize,
    ) -> Result<(Vec<HealthTransition>, bool)> {
        let mut call = self.get(path(install, "health/history"));
        call.push("component", component.map(str::to_owned));
        let mut found = self.pages(call, limit + 1).await?;
        let more = found.len() > limit;
        found.truncate(limit);
        Ok((found, more))
    }

    /// Tells what a check has found out about a component.
    pub async fn push_health_check(
        &self,
        install: &str,
        component: &str,
        name: &str,
        body: &PushHealthCheck,
    ) -> Result<InstallHealth> {
        let rest = format!("components/{}/health/checks/{}", segment(component), segment(name));
        let mut call = self.call(Method::PUT, path(install, &rest));
        call.body = Some(("application/json", encode(body)?));
        self.json(call).await
    }

    /// Forgets a check of a component.
    pub async fn delete_health_check(&self, install: &str, component: &str, name: &str) -> Result<InstallHealth> {
        let rest = format!("components/{}/health/checks/{}", segment(component), segment(name));
        self.json(self.call(Method::DELETE, path(install, &rest))).await
    }
}
