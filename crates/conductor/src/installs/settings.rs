//! What an install says about itself: its name, labels, approvals, who keeps it, and which components are in.

use std::collections::BTreeMap;

use engine::WorkflowKind;
use model::WorkflowId;
use model::labels::{self, Labels};
use store::{ApprovalOption, Idempotency, Install, StoreError};

use crate::error::{Error, InstallError, Result};
use crate::{By, Conductor, NewWorkflow};

/// Longest marker of who keeps an install.
const MANAGED_BY_BYTES_MAX: usize = 128;

/// What is to change; `None` and empty stay as they are.
#[derive(Debug, Clone, Default)]
pub struct SettingsChange {
    /// As it was written.
    pub approval_option: Option<String>,
    pub toggles: BTreeMap<String, bool>,
    pub labels: Option<Labels>,
    pub managed_by: Option<String>,
    pub name: Option<String>,
}

impl SettingsChange {
    pub(super) fn apply(&self, install: &mut Install) {
        let settings = &mut install.settings;
        if let Some(option) = self.approval_option.as_deref().and_then(ApprovalOption::parse) {
            settings.approval_option = Some(option);
        }
        if let Some(labels) = &self.labels {
            settings.labels.clone_from(labels);
        }
        if let Some(managed_by) = &self.managed_by {
            settings.managed_by.clone_from(managed_by);
        }
        settings.components.extend(self.toggles.clone());
        if let Some(name) = &self.name {
            install.name.clone_from(name);
        }
    }
}

/// How a component of an install is switched on or off.
#[derive(Debug, Clone)]
pub struct Toggle {
    pub component: String,
    pub on: bool,
    /// Only plans what would follow.
    pub plan_only: bool,
}

impl Conductor {
    /// Whether all of it may be said of an install.
    pub(super) async fn check_settings(&self, install: &Install, change: &SettingsChange) -> Result<()> {
        if let Some(option) = &change.approval_option
            && ApprovalOption::parse(option).is_none()
        {
            return Err(InstallError::ApprovalOption(option.clone()).into());
        }
        if let Some(name) = &change.name {
            model::name::check(name).map_err(InstallError::Name)?;
        }
        if let Some(labels) = &change.labels {
            labels::check(labels).map_err(InstallError::Labels)?;
        }
        let is_line = |by: &String| by.len() <= MANAGED_BY_BYTES_MAX && !by.chars().any(char::is_control);
        if !change.managed_by.as_ref().is_none_or(is_line) {
            return Err(InstallError::ManagedBy(MANAGED_BY_BYTES_MAX).into());
        }
        if change.toggles.is_empty() {
            return Ok(());
        }
        let document = self.document_of(install).await?;
        for name in change.toggles.keys() {
            let mut components = document.iter().flat_map(|document| &document.config.components);
            let found = components.find(|component| component.common.name == *name);
            let component = found.ok_or_else(|| InstallError::NoComponent(name.clone()))?;
            if !component.common.toggleable {
                return Err(InstallError::NotToggleable(name.clone()).into());
            }
        }
        Ok(())
    }

    pub async fn update_install(&self, by: &By, install: &Install, change: SettingsChange) -> Result<Install> {
        self.check_settings(install, &change).await?;
        let changed = self.store.change_install(&by.org, &install.id, by.actor(), self.now(), move |install| {
            change.apply(install);
            Ok(())
        });
        Ok(changed.await?)
    }

    /// Adds labels to an install; those that it has already get the new value.
    pub async fn add_labels(&self, by: &By, install: &Install, added: Labels) -> Result<Install> {
        labels::check(&added).map_err(InstallError::Labels)?;
        self.relabel(by, install, move |labels| labels.extend(added.clone())).await
    }

    /// Removes labels of an install's own. Those of the app stay; what is not there is gone already.
    pub async fn remove_labels(&self, by: &By, install: &Install, removed: Vec<String>) -> Result<Install> {
        self.relabel(by, install, move |labels| labels.retain(|key, _| !removed.contains(key))).await
    }

    async fn relabel(
        &self,
        by: &By,
        install: &Install,
        how: impl Fn(&mut Labels) + Send + Sync + 'static,
    ) -> Result<Install> {
        let changed = self.store.change_install(&by.org, &install.id, by.actor(), self.now(), move |install| {
            how(&mut install.settings.labels);
            labels::check(&install.settings.labels).map_err(store::Refused::Labels)?;
            Ok(())
        });
        Ok(changed.await?)
    }

    /// Switches a component of an install on or off, and starts what deploys it or tears it down, in one transaction. None where
    /// there is nothing to do yet.
    pub async fn toggle_component(
        &self,
        by: &By,
        install: &Install,
        toggle: Toggle,
        idem: Option<Idempotency>,
    ) -> Result<Option<WorkflowId>> {
        let Toggle { component, on, plan_only } = toggle;
        let switched = BTreeMap::from([(component.clone(), on)]);
        let change = SettingsChange { toggles: switched.clone(), ..SettingsChange::default() };
        self.check_settings(install, &change).await?;
        let (_, parts) = self.store.install_parts(&by.org, &install.id, None).await?;
        let there = parts.get(&format!("components/{component}")).is_some_and(crate::is_there);
        let work = match on {
            true if parts.values().any(crate::is_there) => {
                Some(WorkflowKind::ManualDeploy { component, dependents: false })
            }
            false if there => Some(WorkflowKind::TeardownComponent { component, with_dependents: false, force: false }),
            _ => None,
        };
        let Some(kind) = work else {
            if !plan_only {
                self.update_install(by, install, change).await?;
            }
            return Ok(None);
        };
        // Planned as the install is when the switch is turned.
        let mut turned = install.clone();
        change.apply(&mut turned);
        let mut new = NewWorkflow::new(kind);
        new.request.plan_only = plan_only;
        new.toggles = if plan_only { BTreeMap::new() } else { switched };
        let started = self.start_workflow(&turned, new, &by.account, idem).await;
        let started = started.map_err(|error| match error {
            Error::Store(StoreError::HasDependents { component, dependents }) => {
                InstallError::SwitchOffFirst { component, dependents }.into()
            }
            other => other,
        });
        started.map(Some)
    }
}
