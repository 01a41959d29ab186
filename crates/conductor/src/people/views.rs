//! Filters of the fleet that people have saved.

use model::SavedViewId;
use store::{SavedView, StoreError};

use crate::error::Result;
use crate::{By, Conductor};

impl Conductor {
    /// Saves a filter of the fleet under a name; what its owner had under that name is replaced.
    pub async fn save_view(&self, by: &By, name: String, query: String, shared: bool) -> Result<SavedView> {
        let now = self.now();
        let view = SavedView {
            id: SavedViewId::new(now, self.random_u128()),
            org_id: by.org.clone(),
            account_id: by.account.clone(),
            name,
            query,
            shared,
            created_at: now,
        };
        Ok(self.store.save_view(view).await?)
    }

    /// Deletes a view of one's own; an admin, one that others share too. Of those of others nobody else knows.
    pub async fn delete_view(&self, by: &By, id: &SavedViewId, admin: bool) -> Result<()> {
        let view = self.store.saved_view(&by.org, id).await?;
        if view.account_id != by.account && !(admin && view.shared) {
            return Err(StoreError::NotFound("view").into());
        }
        Ok(self.store.delete_view(&by.org, id).await?)
    }
}
