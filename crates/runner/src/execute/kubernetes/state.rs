//! The state of what was deployed: written before anything is changed, so that whatever dies later, nothing is forgotten; and after.

use fs_err as fs;
use kubernetes::{Cluster, Deployed, Entry, Inventory, Output};
use serde_json::{Map, Value, json};

use super::super::Run;
use super::super::action::StepFailure;
use super::super::deploy::{Workspace, read_state};
use super::super::sealed::private_dir;
use crate::seal::rescue::ERRORED;
use crate::seal::vault::{Plain, VaultError};
use crate::session::random_hex;

/// What the control plane is told of the objects that are deployed; and a file with it.
const OBJECTS: &str = "objects";

/// Opens the state of a component; None before the first one.
pub(crate) async fn open(run: &Run<'_>, workspace: &Workspace) -> Result<Option<Inventory>, StepFailure> {
    let place = private_dir(run.host.dir).join("inventory.json");
    if workspace.keeper.load(&place).await?.is_none() {
        return Ok(None);
    }
    let text = fs::read(&place);
    let _ = fs::remove_file(&place);
    let read = Inventory::read(&text?).map_err(|e| StepFailure::new("sealed_file", e.to_string()))?;
    Ok(Some(read))
}

/// The states that one apply writes.
pub(crate) struct States {
    lineage: String,
    serial: u64,
    cluster: Cluster,
    deployed: Deployed,
}

impl States {
    pub(crate) fn new(before: Option<&Inventory>, cluster: &Cluster, deployed: Deployed) -> Self {
        let lineage = before.map_or_else(random_hex::<16>, |before| before.lineage.clone());
        Self { lineage, serial: before.map_or(0, |before| before.serial), cluster: cluster.clone(), deployed }
    }

    /// From now on nothing is deployed.
    pub(crate) fn torn_down(&mut self) {
        self.deployed.release = None;
    }

    /// How the last run of a Job ended well.
    pub(crate) fn ran(&mut self, run: Value) {
        self.deployed.ran = Some(run);
    }

    /// Saves the next state; returns what the control plane may know of it.
    pub(crate) async fn save(
        &mut self,
        run: &Run<'_>,
        workspace: &Workspace,
        objects: Vec<Entry>,
        outputs: Vec<(String, Output)>,
    ) -> Result<Map<String, Value>, StepFailure> {
        self.serial += 1;
        let inventory = Inventory {
            lineage: self.lineage.clone(),
            serial: self.serial,
            cluster: self.cluster.clone(),
            deployed: self.deployed.clone(),
            objects,
            outputs,
        };
        let named: Vec<_> = inventory.objects.iter().map(|entry| entry.of.clone()).collect();
        let text = inventory.text();
        let plain = Plain::Memory(text.clone().into());
        let saved = match workspace.keeper.push(plain, "").await {
            Ok(saved) => saved,
            Err(error) => return Err(waits(run, &text, &error)),
        };
        if saved.quarantined {
            return Err(StepFailure::new("lease_lost", "this execution lost its lease: the state is quarantined"));
        }
        let place = private_dir(run.host.dir).join("last.json");
        fs::write(&place, &text)?;
        let state = read_state(&place).map_err(|e| StepFailure::new("sealed_file", e))?;
        let mut told = workspace.keeper.outputs(&state).await?.document;
        // What is observed from now on: names, and nothing of what is in them.
        told.insert(OBJECTS.into(), run.host.secrets.masks().mask_value(json!(named)));
        fs::write(private_dir(run.host.dir).join(OBJECTS), told[OBJECTS].to_string())?;
        Ok(told)
    }
}

/// What an apply that failed may have left, as the state tells that it saved last: people are told how that is, too.
pub(crate) fn left(run: &Run<'_>) -> Map<String, Value> {
    let text = fs::read(private_dir(run.host.dir).join(OBJECTS)).ok();
    let objects = text.and_then(|text| serde_json::from_slice(&text).ok());
    objects.map(|objects: Value| (OBJECTS.to_owned(), objects)).into_iter().collect()
}

/// A state that nobody took is put where the session finds it, and brings it to the control plane.
fn waits(run: &Run<'_>, text: &str, error: &VaultError) -> StepFailure {
    let place = run.host.dir.work().join(ERRORED);
    let code = match fs::write(&place, text) {
        Ok(()) => model::deploy::STATE_WAITING,
        Err(_) => model::deploy::STATE_LOST,
    };
    StepFailure::new(code, format!("the state can't be uploaded: {error}"))
}
