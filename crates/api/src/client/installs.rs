//! What installs say about themselves.

use reqwest::Method;

use super::{Client, Result, encode, segment};
use crate::control::{
    AddInstallLabels, CreateInstall, Install, InstallConfig, RemoveInstallLabels, ToggleInstallComponent,
    UpdateInstallConfig, WorkflowStarted,
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
}
