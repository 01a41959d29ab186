//! Owns changes to runners: their credentials and settings, and what a joined runner does to its executions and states.
//! Handlers of both APIs call it.
//! No HTTP, no SQL. Who speaks was proved before.

mod executions;
mod states;

use model::runner::RunnerReport;
use model::waiting::Sightings;
use model::{CredentialId, OrgId, RunnerId, Timestamp};
use store::{Joined, Runner, RunnerChange};

use crate::error::Result;
use crate::{By, Conductor};

pub use executions::Renewed;
pub use states::{NewPlan, NewState, check_piece};

/// A session of a runner: the one that was joined last is not fenced.
#[derive(Debug, Clone, Copy)]
pub struct SessionOf<'a> {
    pub runner: &'a RunnerId,
    pub generation: u64,
}

impl Conductor {
    /// Creates a credential that a runner joins with. The secret is in the answer, and nowhere else.
    pub async fn join_credential(&self, org: &OrgId, runner: &RunnerId, actor: &str) -> Result<(CredentialId, String)> {
        let now = self.now();
        let (id, credential) = (CredentialId::new(now, self.random_u128()), self.secret("fjc"));
        self.store.add_credential(org, runner, id.clone(), &credential, actor, now).await?;
        Ok((id, credential))
    }

    /// Drains, resumes or revokes a runner, or changes its settings.
    pub async fn change_runner(&self, by: &By, runner: &RunnerId, change: RunnerChange) -> Result<Runner> {
        Ok(self.store.change_runner(&by.org, runner, change, by.actor(), self.now()).await?)
    }

    /// Opens a new session, which fences the one before.
    pub async fn join(&self, credential: &str, public_key: &str, version: &str, hostname: &str) -> Result<Joined> {
        Ok(self.store.join(credential, public_key, version, hostname, self.now()).await?)
    }

    /// Claims a build runner for this host until then; false where another host has it.
    pub async fn host_runner(&self, runner: &RunnerId, host: &str, until: Timestamp) -> Result<bool> {
        Ok(self.store.host_runner(runner, host, self.now(), until).await?)
    }

    /// Notes who was seen, and what they reported.
    pub async fn note_sightings(&self, seen: Vec<(RunnerId, Sightings, Option<RunnerReport>)>) -> Result<()> {
        Ok(self.store.note_sightings(seen).await?)
    }
}
