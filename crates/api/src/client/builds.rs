//! Builds, their artifacts in the registry, and the logins that sources ask for.

use bytes::Bytes;
use futures::StreamExt as _;
use futures::stream::BoxStream;
use model::JobId;
use reqwest::Method;
use reqwest::header::ACCEPT;

use super::{Client, ClientError, Result, next_chunk, segment, succeeded, transport};
use crate::control::{Build, Component, CreateBuild, CreateSourceLogin, Job, SourceLogin, SyncArtifact};

/// What a manifest may be, newest first.
const MANIFESTS: &str = "application/vnd.oci.image.manifest.v1+json, application/vnd.oci.image.index.v1+json, application/vnd.docker.distribution.manifest.v2+json, application/vnd.docker.distribution.manifest.list.v2+json";

impl Client {
    /// Newest first: of an app, of a component, or of all.
    pub async fn builds(&self, app: Option<&str>, component: Option<&str>, limit: usize) -> Result<Vec<Build>> {
        let mut call = self.get("/v1/builds");
        call.push("app_id", app.map(str::to_owned));
        call.push("component_id", component.map(str::to_owned));
        self.pages(call, limit).await
    }

    pub async fn build(&self, id: &str) -> Result<Build> {
        self.json(self.get(format!("/v1/builds/{}", segment(id)))).await
    }

    pub async fn latest_build(&self, component: &str) -> Result<Build> {
        self.json(self.get(format!("/v1/components/{}/builds/latest", segment(component)))).await
    }

    /// The newest good build of a component as the active config has it.
    pub async fn current_build(&self, component: &str) -> Result<Build> {
        self.json(self.get(format!("/v1/components/{}/builds/current", segment(component)))).await
    }

    pub async fn create_build(&self, component: &str, body: &CreateBuild) -> Result<Build> {
        self.json(self.post(format!("/v1/components/{}/builds", segment(component)), body)?).await
    }

    pub async fn cancel_build(&self, id: &str) -> Result<Build> {
        self.json(self.post_empty(format!("/v1/builds/{}/cancel", segment(id)))?).await
    }

    /// Components of all apps of the org.
    pub async fn all_components(&self) -> Result<Vec<Component>> {
        self.pages(self.get("/v1/components"), usize::MAX).await
    }

    pub async fn component(&self, app: Option<&str>, name: &str) -> Result<Component> {
        let path = match app {
            Some(app) => format!("/v1/apps/{}/component/{}", segment(app), segment(name)),
            None => format!("/v1/components/{}", segment(name)),
        };
        self.json(self.get(path)).await
    }

    pub async fn sync_artifact(&self, install: &str, body: &SyncArtifact) -> Result<Job> {
        self.json(self.post(format!("/v1/installs/{}/artifact-syncs", segment(install)), body)?).await
    }

    pub async fn source_logins(&self) -> Result<Vec<SourceLogin>> {
        self.json(self.get("/v1/source-logins")).await
    }

    pub async fn create_source_login(&self, body: &CreateSourceLogin) -> Result<SourceLogin> {
        self.json(self.post("/v1/source-logins", body)?).await
    }

    pub async fn delete_source_login(&self, prefix: &str) -> Result<bool> {
        let mut call = self.call(Method::DELETE, "/v1/source-logins/by-prefix");
        call.push("prefix", Some(prefix.to_owned()));
        self.json(call).await
    }

    /// A manifest of the registry, as it is, byte for byte.
    pub async fn manifest(&self, repository: &str, reference: &str) -> Result<Bytes> {
        let response = self.registry(&format!("{repository}/manifests/{reference}")).await?;
        super::read_whole(response, self.url()).await
    }

    /// A blob of the registry, piece by piece.
    pub async fn blob(&self, repository: &str, digest: &str) -> Result<BoxStream<'static, Result<Bytes>>> {
        let response = self.registry(&format!("{repository}/blobs/{digest}")).await?;
        let url = self.url().to_owned();
        let pieces = futures::stream::unfold(Some((response, url)), async |state| {
            let (mut response, url) = state?;
            match next_chunk(&mut response, &url).await {
                Ok(Some(bytes)) => Some((Ok(bytes), Some((response, url)))),
                Ok(None) => None,
                Err(error) => Some((Err(error), None)),
            }
        });
        Ok(pieces.boxed())
    }

    /// Asks the registry, with the API token as password.
    async fn registry(&self, path: &str) -> Result<reqwest::Response> {
        let request = self.http.get(format!("{}/v2/{path}", self.base)).header(ACCEPT, MANIFESTS);
        let request = request.basic_auth(self.org().unwrap_or("ferry"), self.token());
        let sent = tokio::time::timeout(self.timeout, request.send()).await;
        let sent = sent.map_err(|_| super::silent(self.url(), self.timeout))?;
        succeeded(sent.map_err(|e| transport(self.url(), &e))?, self.url()).await
    }

    /// The job of a build, where it has one.
    pub fn job_of(build: &Build) -> Option<JobId> {
        build.runner_job.as_ref().map(|job| job.id.clone())
    }
}

impl ClientError {
    /// Whether something is not there.
    pub fn is_not_found(&self) -> bool {
        self.status() == Some(404)
    }
}
