//! The part of the Runner API that is about the install: its workspaces, and what is to be observed.

use api::runner::{HealthAnswer, HealthRequest, WatchAnswer};
use api::terraform::{
    InstallKeyAnswer, InstallKeyRequest, LockAnswer, LockRequest, PlanRequest, StateAnswer, StateRequest,
    UnlockRequest, WorkspaceHead, WorkspaceRequest, WorkspacesAnswer,
};
use bytes::Bytes;
use model::{UploadId, WorkspaceId};
use reqwest::Method;

use super::client::{About, CALL, CallError, FETCH, SessionClient, json, random_hex, raw, read};

impl SessionClient {
    fn of_runner(&self, method: Method, rest: &str, body: Bytes) -> reqwest::RequestBuilder {
        let bound = if body.is_empty() { CALL } else { FETCH };
        self.request(method, &format!("/v1/runners/{}/{rest}", self.runner()), &random_hex::<8>(), body, bound)
    }

    pub async fn workspaces(&self) -> Result<WorkspacesAnswer, CallError> {
        read(self.of_runner(Method::GET, "workspaces", Bytes::new())).await
    }

    /// The workspace of a part of the install; it is made where there is none.
    pub async fn open_workspace(&self, target: &str) -> Result<WorkspaceHead, CallError> {
        let body = json(&WorkspaceRequest { target: target.to_owned() })?;
        read(self.of_runner(Method::POST, "workspaces", body)).await
    }

    pub async fn workspace(&self, id: &WorkspaceId) -> Result<WorkspaceHead, CallError> {
        read(self.of_runner(Method::GET, &format!("workspaces/{id}"), Bytes::new())).await
    }

    pub async fn lock_workspace(&self, id: &WorkspaceId, request: &LockRequest) -> Result<LockAnswer, CallError> {
        read(self.of_runner(Method::POST, &format!("workspaces/{id}/lock"), json(request)?)).await
    }

    pub async fn unlock_workspace(&self, id: &WorkspaceId, lock_id: &str) -> Result<LockAnswer, CallError> {
        let body = json(&UnlockRequest { lock_id: lock_id.to_owned() })?;
        read(self.of_runner(Method::POST, &format!("workspaces/{id}/unlock"), body)).await
    }

    pub async fn write_state(&self, id: &WorkspaceId, request: &StateRequest) -> Result<StateAnswer, CallError> {
        read(self.of_runner(Method::POST, &format!("workspaces/{id}/states"), json(request)?)).await
    }

    /// What to observe; the answer is signed for the nonce.
    pub async fn watch(&self, nonce: &str) -> Result<WatchAnswer, CallError> {
        let path = format!("/v1/runners/{}/watch", self.runner());
        read(self.request(Method::GET, &path, nonce, Bytes::new(), FETCH)).await
    }

    pub async fn report_health(&self, request: &HealthRequest) -> Result<HealthAnswer, CallError> {
        read(self.of_runner(Method::POST, "health", json(request)?)).await
    }

    pub async fn put_piece(&self, upload: &UploadId, piece: u32, bytes: Bytes) -> Result<(), CallError> {
        raw(self.of_runner(Method::PUT, &format!("sealed/{upload}/{piece}"), bytes)).await.map(drop)
    }

    pub async fn piece(&self, upload: &UploadId, piece: u32) -> Result<Bytes, CallError> {
        let path = format!("/v1/runners/{}/sealed/{upload}/{piece}", self.runner());
        raw(self.request(Method::GET, &path, &random_hex::<8>(), Bytes::new(), FETCH)).await
    }

    /// Names the key that the install seals with; the one that stands comes back.
    pub async fn install_key(&self, fingerprint: Option<String>) -> Result<InstallKeyAnswer, CallError> {
        read(self.of_runner(Method::POST, "install-key", json(&InstallKeyRequest { fingerprint })?)).await
    }

    pub async fn plan(&self, about: About<'_>, request: &PlanRequest) -> Result<(), CallError> {
        raw(self.on(Method::POST, about, "plan", json(request)?, FETCH)).await.map(drop)
    }
}
