//! Terraform's workspaces and their states.

use serde_json::Value;

use super::{Client, Result, segment};
use crate::control::{Job, TerraformState, TerraformWorkspace};

fn path(workspace: &str, rest: &str) -> String {
    format!("/v1/terraform-workspaces/{}{rest}", segment(workspace))
}

impl Client {
    pub async fn workspaces(&self, install: &str) -> Result<Vec<TerraformWorkspace>> {
        self.json(self.get(format!("/v1/installs/{}/terraform-workspaces", segment(install)))).await
    }

    pub async fn workspace(&self, id: &str) -> Result<TerraformWorkspace> {
        self.json(self.get(path(id, ""))).await
    }

    /// Newest first.
    pub async fn states(&self, workspace: &str, limit: usize) -> Result<Vec<TerraformState>> {
        self.pages(self.get(path(workspace, "/states")), limit).await
    }

    /// A state with its resources.
    pub async fn state(&self, workspace: &str, id: &str) -> Result<TerraformState> {
        self.json(self.get(path(workspace, &format!("/states/{}", segment(id))))).await
    }

    /// A state as Terraform shows one, without values.
    pub async fn state_json(&self, workspace: &str, id: &str) -> Result<Value> {
        self.json(self.get(path(workspace, &format!("/state-json/{}", segment(id))))).await
    }

    /// Has the install's runner make an earlier state the current one again.
    pub async fn restore_state(&self, workspace: &str, id: &str) -> Result<Job> {
        self.json(self.post_empty(path(workspace, &format!("/states/{}/restore", segment(id))))?).await
    }

    /// Frees the lock of a person, or of a job that is gone.
    pub async fn unlock_workspace(&self, id: &str) -> Result<TerraformWorkspace> {
        self.json(self.post_empty(path(id, "/unlock"))?).await
    }
}
