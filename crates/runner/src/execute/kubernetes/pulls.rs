//! Pods pull images from the control plane's registry with a Secret in their namespace, whose login ends after a day.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as B64;
use kubernetes::{ObjectRef, PullSecret};
use model::build::{Credentials, PullLogin};
use model::kubernetes::Pulls;
use serde_json::{Value, json};

use super::super::Run;
use super::super::action::StepFailure;
use super::super::build::own_registry;
use super::api::{Api, ApiError, Apply};

/// Between two looks at a namespace that is not there yet.
const LOOK: Duration = Duration::from_millis(300);

/// The way of an install's pods to images of the control plane's registry.
pub(crate) struct ImagePulls {
    pub(crate) secret: PullSecret,
    host: String,
}

impl ImagePulls {
    /// None where the job has nothing to pull there.
    pub(crate) fn of(run: &Run<'_>, pulls: Option<&Pulls>) -> Result<Option<Self>, StepFailure> {
        let Some(pulls) = pulls else { return Ok(None) };
        let host = own_registry(&run.context.runner_url)?;
        let repositories = pulls.repositories.iter().map(|name| format!("{host}/{name}")).collect();
        Ok(Some(Self { secret: PullSecret { name: pulls.secret.clone(), repositories }, host }))
    }

    /// The namespaces whose pods name the Secret.
    pub(crate) fn namespaces<'o>(&self, objects: impl IntoIterator<Item = &'o Value>) -> BTreeSet<String> {
        let needing = objects.into_iter().filter(|object| self.secret.is_in(object));
        needing.filter_map(|object| object["metadata"]["namespace"].as_str()).map(str::to_owned).collect()
    }

    /// Gets a login, and brings it to these namespaces while the objects are on their way.
    pub(crate) async fn bring(
        &self,
        run: &Run<'_>,
        api: &Api,
        namespaces: BTreeSet<String>,
    ) -> Result<Option<Bringing>, StepFailure> {
        if namespaces.is_empty() {
            return Ok(None);
        }
        let PullLogin { login, .. } =
            run.fetcher.pull_login(run.host.dir).await.map_err(|e| {
                StepFailure::new("registry_login", format!("no login for the pods of this install: {e}"))
            })?;
        run.host.secrets.add([login.password.clone()]);
        let api = api.as_manager(super::super::secrets::manager(run)?);
        let (name, content) = (self.secret.name.clone(), content(&self.host, &login));
        Ok(Some(Bringing { api, name, content, left: RefCell::new(namespaces) }))
    }
}

/// A Secret on its way to namespaces that may not be there yet.
pub(crate) struct Bringing {
    api: Api,
    name: String,
    content: String,
    left: RefCell<BTreeSet<String>>,
}

/// Does work that brings namespaces along, and the Secret to each as soon as it is there. Work that has succeeded has brought it.
pub(crate) async fn beside<T>(
    bringing: Option<&Bringing>,
    work: impl Future<Output = Result<T, StepFailure>>,
) -> Result<T, StepFailure> {
    let Some(bringing) = bringing else { return work.await };
    let done = tokio::select! {
        done = work => done?,
        never = bringing.go_on() => match never {},
    };
    bringing.finish().await?;
    Ok(done)
}

impl Bringing {
    async fn go_on(&self) -> std::convert::Infallible {
        loop {
            // What does not succeed is tried again at the end, and said there.
            drop(self.write_all(true).await);
            tokio::time::sleep(LOOK).await;
        }
    }

    /// Everything is there, or the reason why not.
    pub(crate) async fn finish(&self) -> Result<(), StepFailure> {
        self.write_all(false).await
    }

    /// Renews it wherever it is. A namespace that is gone, or never had it, keeps nobody from the others. Returns where it was renewed.
    pub(crate) async fn renew(&self) -> Result<Vec<String>, StepFailure> {
        let (mut renewed, mut failed) = (Vec::new(), Vec::new());
        for namespace in self.left.take() {
            let of = self.secret(&namespace);
            let written = match self.api.get(&of).await {
                Ok(None) => continue,
                Ok(Some(_)) => self.write(&namespace).await,
                Err(error) => Err(error),
            };
            match written {
                Ok(()) => renewed.push(namespace),
                Err(error) => failed.push(format!("{}: {}", of.address(), error.message())),
            }
        }
        match failed.is_empty() {
            true => Ok(renewed),
            false => Err(StepFailure::new(
                "registry_login",
                format!("pods can't pull images for long: {}", failed.join("; ")),
            )),
        }
    }

    async fn write_all(&self, patient: bool) -> Result<(), StepFailure> {
        let left = self.left.borrow().clone();
        for namespace in left {
            match self.write(&namespace).await {
                Ok(()) => drop(self.left.borrow_mut().remove(&namespace)),
                Err(error) if patient && error.is_missing() => {}
                Err(error) => return Err(error.of("write", &self.secret(&namespace).address())),
            }
        }
        Ok(())
    }

    async fn write(&self, namespace: &str) -> Result<(), ApiError> {
        let of = self.secret(namespace);
        let Some(kind) = self.api.kind(&of).await? else { return Ok(()) };
        let wanted = json!({
            "apiVersion": "v1", "kind": "Secret", "type": "kubernetes.io/dockerconfigjson",
            "metadata": { "name": self.name, "namespace": namespace, "labels": { "app.kubernetes.io/managed-by": "ferry" } },
            "data": { ".dockerconfigjson": self.content },
        });
        self.api.apply(&of, &kind, &wanted, Apply { dry_run: false, force: true }).await.map(drop)
    }

    fn secret(&self, namespace: &str) -> ObjectRef {
        ObjectRef {
            group: String::new(),
            version: "v1".into(),
            kind: "Secret".into(),
            namespace: Some(namespace.to_owned()),
            name: self.name.clone(),
        }
    }
}

/// As docker keeps a login.
fn content(host: &str, login: &Credentials) -> String {
    let auth = B64.encode(format!("{}:{}", login.username, login.password));
    let entry = json!({ "username": login.username, "password": login.password, "auth": auth });
    B64.encode(json!({ "auths": { host: entry } }).to_string())
}
