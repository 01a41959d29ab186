//! Owns changes to installs: creating and forgetting them, their inputs, settings and stacks; and how an install stands as a whole.
//! Handlers call it; workflows ask it.
//! No HTTP, no SQL: it checks what may be said, and writes it in one transaction.

pub(crate) mod inputs;
pub(crate) mod overrides;
pub(crate) mod settings;
pub(crate) mod stack;
pub(crate) mod summary;

use std::collections::{BTreeMap, BTreeSet};

use model::runner::RunnerKind;
use model::{InstallId, JobState, PartStatus, RunnerId, WorkflowId};
use serde_json::Value;
use store::{App, Idempotency, Install, InstallSettings, JobFilter, NewRunner};

use crate::error::{InstallError, Result};
use crate::installs::settings::SettingsChange;
use crate::{By, Conductor, Document, NewWorkflow};

/// How often an install is looked at that something happens to meanwhile.
const LOOKS_MAX: u32 = 10;
/// Open jobs of a forgotten install that are ended at once; those beyond end by their own time.
const JOBS_MAX: u64 = 1000;

/// An install that is asked for.
#[derive(Debug, Clone)]
pub struct WantedInstall {
    pub name: String,
    /// `aws`, `azure`, `gcp` or `local`.
    pub platform: &'static str,
    /// Region and the like, as the API has it.
    pub cloud: Value,
    pub settings: SettingsChange,
    pub inputs: BTreeMap<String, String>,
}

/// How the parts of an install stand.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct InstallStatus {
    pub sandbox: PartStatus,
    /// All components together: as the worst of those that the install wants.
    pub components: PartStatus,
}

impl InstallStatus {
    fn of(parts: &BTreeMap<String, Value>, document: Option<&Document>, disabled: &BTreeSet<String>) -> Self {
        let status = |part: &str| PartStatus::parse(parts.get(part).and_then(|part| part["status"].as_str()));
        let deployed = parts.keys().filter_map(|part| part.strip_prefix("components/"));
        let wanted = document.into_iter().flat_map(|document| &document.config.components);
        let wanted: BTreeSet<&str> =
            wanted.map(|known| known.common.name.as_str()).filter(|name| !disabled.contains(*name)).collect();
        // What is there and is not wanted counts too; what is gone, as it should be, does not.
        let names: BTreeSet<&str> = deployed
            .filter(|name| status(&format!("components/{name}")).is_there() || document.is_none())
            .chain(wanted)
            .collect();
        let together = PartStatus::worst(names.into_iter().map(|name| status(&format!("components/{name}"))));
        // What was never deployed does not wait for anything where all is gone.
        let gone = status("sandbox") == PartStatus::Inactive && together == PartStatus::Pending;
        Self { sandbox: status("sandbox"), components: if gone { PartStatus::Inactive } else { together } }
    }
}

impl Conductor {
    /// How an install stands now.
    pub async fn install_status(&self, install: &Install) -> Result<InstallStatus> {
        let parts = self.parts_now(install).await?;
        let document = self.document_of(install).await?;
        let disabled = document.as_ref().map(|document| crate::disabled(install, &document.config));
        Ok(InstallStatus::of(&parts, document.as_deref(), &disabled.unwrap_or_default()))
    }

    /// Creates an install with its runner and, where the app has a config, the workflow that provisions it: all of it, or nothing.
    /// The same request again finds both. The workflow begins at once, and waits for the customer where it must.
    pub async fn create_install(
        &self,
        by: &By,
        app: &App,
        wanted: WantedInstall,
        idem: Option<Idempotency>,
    ) -> Result<(Install, Option<WorkflowId>)> {
        model::name::check(&wanted.name).map_err(InstallError::Name)?;
        let now = self.now();
        let id = InstallId::new(now, self.random_u128());
        let runner = NewRunner {
            id: RunnerId::new(now, self.random_u128()),
            org_id: by.org.clone(),
            name: wanted.name.clone(),
            kind: RunnerKind::Install,
            install_id: Some(id.clone()),
        };
        let mut install = Install {
            id,
            org_id: by.org.clone(),
            app_id: app.id.clone(),
            name: wanted.name,
            platform: wanted.platform.into(),
            cloud: wanted.cloud,
            runner_id: runner.id.clone(),
            config_id: None,
            settings: InstallSettings::default(),
            created_by: by.account.clone(),
            created_at: now,
            updated_at: now,
        };
        self.check_settings(&install, &wanted.settings).await?;
        wanted.settings.apply(&mut install);
        let inputs = self.first_inputs(&install, wanted.inputs).await?;
        let first = match self.store.active_config(&by.org, &app.id).await? {
            Some(_) => {
                let new = NewWorkflow::new(engine::WorkflowKind::Provision);
                Some(self.plan_workflow(&install, new, &BTreeMap::new(), &by.account).await?)
            }
            None => None,
        };
        let created = self.store.create_install(install, runner, inputs, first, idem).await?;
        let install = self.store.install(&by.org, &created.id).await?;
        let first = self.store.first_workflow(&by.org, &install.id).await?;
        Ok((install, first))
    }

    /// Forgets an install: it is removed here, and its runner can't connect any more. What it has made in the customer's account
    /// stays there, so without `force` something that is deployed is not forgotten.
    pub async fn forget_install(&self, by: &By, install: &Install, force: bool) -> Result<()> {
        let mut looks = 0;
        loop {
            let moves = self.store.install_moves(&install.id).await?;
            if !force && self.is_deployed(install).await? {
                return Err(InstallError::StillDeployed(install.name.clone()).into());
            }
            if self.store.forget_install(install, (!force).then_some(moves), by.actor(), self.now()).await? {
                break;
            }
            looks += 1;
            if looks == LOOKS_MAX {
                return Err(InstallError::Busy.into());
            }
        }
        // Nobody is left to carry them out.
        for open in [JobState::Queued, JobState::Claimed, JobState::Running] {
            let filter = JobFilter { install: Some(install.id.clone()), state: Some(open), ..JobFilter::default() };
            for job in self.store.jobs(&by.org, filter, 0, JOBS_MAX).await? {
                self.store.cancel(&by.org, &job.id, by.actor(), self.now()).await?;
            }
        }
        Ok(())
    }
}
