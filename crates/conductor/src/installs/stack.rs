//! The stack of an install: what the customer applies, and what it tells when it was. It is a part of the install's state, so every
//! version of it is kept.

use std::collections::BTreeMap;

use model::{ConfigId, Digest, InputsId, InstallId, Timestamp, WorkflowId};
use serde_json::{Map, Value, json};
use store::{Install, InstallInputs, StoreError};

use crate::Conductor;
use crate::error::{InstallError, Result};

/// How often a write that met another one is tried anew.
const TRIES: usize = 20;

/// The part of the state that it is.
pub const STACK: &str = "stack";

/// What a stack tells about itself.
#[derive(Debug, Clone)]
pub struct PhoneHome {
    pub outputs: Map<String, Value>,
    /// Inputs that the customer gives in the stack.
    pub inputs: BTreeMap<String, String>,
}

impl Conductor {
    /// The next version of a stack; what was told before is kept until it is told anew.
    pub(crate) fn new_stack(&self, before: &Value, simulated: bool, config: &ConfigId, now: Timestamp) -> Value {
        let outputs = if before["outputs"].is_object() { before["outputs"].clone() } else { json!({}) };
        json!({
            "status": if simulated { "active" } else { "awaiting-user-run" },
            "generation": before["generation"].as_u64().unwrap_or_default() + 1,
            "phone_home_id": self.secret("phs"),
            "config_id": config,
            "created_at": now,
            "outputs": outputs,
        })
    }

    /// A stack tells that it was applied. Whoever knows the id of the version is the stack; any other is not found. What is told
    /// twice is the same as once.
    pub async fn phone_home(&self, install: &InstallId, id: &str, told: PhoneHome) -> Result<Option<WorkflowId>> {
        let mut started = None;
        for _ in 0..TRIES {
            let install = self.store.install_of_anyone(install).await?;
            let moves = self.store.install_moves(&install.id).await?;
            let part = self.store.install_part(&install.org_id, &install.id, STACK).await?;
            let mut stack = part.ok_or(StoreError::NotFound("stack"))?;
            let known = stack["phone_home_id"].as_str().unwrap_or_default();
            // As digests, so that the time of the comparison says nothing.
            if known.is_empty() || Digest::of(known.as_bytes()) != Digest::of(id.as_bytes()) {
                return Err(StoreError::NotFound("stack").into());
            }
            if let (Some(told), Some(wanted)) = (told.outputs.get("region").and_then(Value::as_str), region(&install))
                && told != wanted
            {
                let (told, wanted) = (told.to_owned(), wanted.to_owned());
                return Err(InstallError::OtherRegion { told, wanted }.into());
            }
            // The inputs first: what waits for the stack must find them.
            let workflow = self.customer_inputs(&install, told.inputs.clone()).await?;
            if workflow.is_some() {
                started = workflow;
                continue;
            }
            if stack["status"] == "active" && stack["outputs"] == json!(told.outputs) {
                return Ok(started);
            }
            stack["status"] = json!("active");
            stack["outputs"] = json!(told.outputs);
            if self.store.put_install_part(&install, moves, (STACK, &stack), ("stack", self.now())).await? {
                return Ok(started);
            }
        }
        Err(InstallError::Busy.into())
    }

    /// Takes inputs that only the customer gives; what has changed is deployed.
    async fn customer_inputs(&self, install: &Install, told: BTreeMap<String, String>) -> Result<Option<WorkflowId>> {
        let now = self.now();
        if told.is_empty() {
            return Ok(None);
        }
        let Some(document) = self.document_of(install).await? else { return Ok(None) };
        let before = self.store.current_inputs(&install.org_id, &install.id).await?;
        let version = before.as_ref().map_or(0, |before| before.version) + 1;
        let mut values = before.map(|before| before.values).unwrap_or_default();
        let mut changed = Vec::new();
        for (name, value) in told {
            let input = document.config.inputs.iter().find(|input| input.name == name && input.user_configurable);
            let Some(input) = input else {
                return Err(InstallError::NotForCustomers(name).into());
            };
            if !value.is_empty() {
                let accepted = input.accepts(&value);
                accepted.map_err(|why| InstallError::CustomerInput { name: name.clone(), why })?;
            }
            if values.get(&name).map_or("", String::as_str) != value {
                changed.push(name.clone());
                values.insert(name, value);
            }
        }
        if changed.is_empty() {
            return Ok(None);
        }
        values.retain(|_, value| !value.is_empty());
        let id = InputsId::new(now, self.random_u128());
        let created_by = install.created_by.clone();
        let inputs = InstallInputs { id, install_id: install.id.clone(), version, values, created_by, created_at: now };
        self.write_inputs(install, inputs, changed).await
    }

    /// Whether anything of an install is there that must be torn down: its sandbox, or a component. Images go with what they lie in.
    pub async fn is_deployed(&self, install: &Install) -> Result<bool> {
        let (_, parts) = self.store.install_parts(&install.org_id, &install.id, None).await?;
        let active = parts.into_iter().filter(|(part, value)| part != STACK && crate::workflows::is_there(value));
        let active: Vec<String> = active.map(|(part, _)| part).collect();
        if active.is_empty() {
            return Ok(false);
        }
        let Some(document) = self.document_of(install).await? else { return Ok(true) };
        let is_image = |part: &str| {
            let name = part.strip_prefix("components/").unwrap_or_default();
            let found = document.config.components.iter().find(|component| component.common.name == name);
            found.is_some_and(|component| component.kind.is_image())
        };
        Ok(!active.iter().all(|part| is_image(part)))
    }
}

/// Where the install shall be.
fn region(install: &Install) -> Option<&str> {
    let place = |account: &str, key: &str| install.cloud.get(account)?.get(key)?.as_str();
    place("aws_account", "region")
        .or_else(|| place("azure_account", "location"))
        .or_else(|| place("gcp_account", "region"))
}
