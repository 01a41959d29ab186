//! Jobs, ad-hoc action runs and the archives that they bring along.

use super::*;

impl Client {
    pub async fn create_action_run(&self, install: &str, body: &CreateActionRun) -> Result<Job> {
        self.json(self.post(format!("/v1/installs/{}/action-runs", segment(install)), body)?).await
    }

    /// Uploads a tar archive under its digest; a second upload of the same bytes changes nothing.
    pub async fn put_archive(&self, digest: &Digest, tar: Bytes) -> Result<Archive> {
        let mut call = self.call(Method::PUT, format!("/v1/archives/{digest}"));
        call.body = Some(("application/x-tar", tar));
        call.timeout = UPLOAD_TIMEOUT;
        self.json(call).await
    }

    /// An archive that was uploaded before.
    pub async fn archive(&self, digest: &Digest) -> Result<Archive> {
        self.json(self.get(format!("/v1/archives/{digest}"))).await
    }

    // --- jobs ---

    /// The newest jobs first, at most `limit`.
    pub async fn jobs(&self, filter: &JobFilter, limit: usize) -> Result<Vec<Job>> {
        let mut call = self.get("/v1/runner-jobs");
        call.push("install", filter.install.clone());
        call.push("runner", filter.runner.clone());
        call.push("status", filter.status.map(|s| s.as_str().to_owned()));
        call.push("type", filter.job_type.map(|t| t.as_str().to_owned()));
        call.push("without", filter.without.map(|t| t.as_str().to_owned()));
        self.pages(call, limit).await
    }

    pub async fn job(&self, id: &JobId) -> Result<Job> {
        self.json(self.get(format!("/v1/runner-jobs/{id}"))).await
    }

    /// Asks for the end of a job; whether it is reached, the job says.
    pub async fn cancel_job(&self, id: &JobId) -> Result<Job> {
        self.json(self.post_empty(format!("/v1/runner-jobs/{id}/cancel"))?).await
    }

    pub async fn settle_job(&self, id: &JobId, body: &SettleJob) -> Result<Job> {
        self.json(self.post(format!("/v1/runner-jobs/{id}/settle"), body)?).await
    }

    pub async fn create_runner_job(&self, runner: &str, body: &CreateRunnerJob) -> Result<Job> {
        self.json(self.post(format!("/v1/runners/{}/jobs", segment(runner)), body)?).await
    }
}
