//! Runners.

use super::*;

impl Client {
    // --- runners ---

    pub async fn runners(&self, install: Option<&str>) -> Result<Vec<Runner>> {
        let mut call = self.get("/v1/runners");
        call.push("install", install.map(str::to_owned));
        self.pages(call, usize::MAX).await
    }

    pub async fn runner(&self, runner: &str) -> Result<Runner> {
        self.json(self.get(format!("/v1/runners/{}", segment(runner)))).await
    }

    pub async fn create_join_command(&self, runner: &str) -> Result<JoinCommand> {
        self.json(self.post_empty(format!("/v1/runners/{}/join-commands", segment(runner)))?).await
    }

    pub async fn drain_runner(&self, runner: &str) -> Result<Runner> {
        self.json(self.post_empty(format!("/v1/runners/{}/drain", segment(runner)))?).await
    }

    pub async fn resume_runner(&self, runner: &str) -> Result<Runner> {
        self.json(self.post_empty(format!("/v1/runners/{}/resume", segment(runner)))?).await
    }

    pub async fn revoke_runner(&self, runner: &str) -> Result<Runner> {
        self.json(self.post_empty(format!("/v1/runners/{}/revoke", segment(runner)))?).await
    }

    pub async fn update_runner_settings(&self, runner: &str, body: &UpdateRunnerSettings) -> Result<Runner> {
        self.json(self.patch(format!("/v1/runners/{}/settings", segment(runner)), body)?).await
    }
}
