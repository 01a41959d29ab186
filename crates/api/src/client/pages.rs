//! What pages are painted from: the fleet, what needs a person, plans that wait.

use super::{Client, Result};
use crate::control::{Approvals, Attention, Fleet};

impl Client {
    /// Installs as flat rows; `query` as the API has it.
    pub async fn fleet(&self, query: &[(&'static str, Option<String>)]) -> Result<Fleet> {
        let mut call = self.get("/v1/fleet");
        for (key, value) in query {
            call.push(key, value.clone());
        }
        self.json(call).await
    }

    pub async fn attention(&self) -> Result<Attention> {
        self.json(self.get("/v1/attention")).await
    }

    pub async fn approvals(&self, query: &[(&'static str, Option<String>)]) -> Result<Approvals> {
        let mut call = self.get("/v1/approvals");
        for (key, value) in query {
            call.push(key, value.clone());
        }
        self.json(call).await
    }
}
