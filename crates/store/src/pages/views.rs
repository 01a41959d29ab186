//! Filters of the list of installs that people have saved.

use model::{AccountId, OrgId, SavedViewId, Timestamp};

use crate::db::{Table, params, select, table};
use crate::{Reader, Refused, Result, Store, StoreError};

/// Saved views of one person in one org.
pub const VIEWS_MAX: u64 = 100;

table! {
    #[derive(Debug, Clone)]
    pub struct SavedView from "saved_views" {
        pub id: SavedViewId,
        pub org_id: OrgId,
        pub account_id: AccountId,
        pub name: String,
        pub query: String,
        /// Everybody of the org sees it.
        pub shared: bool,
        pub created_at: Timestamp,
    }
}

impl Reader {
    /// Those of an account, and those that others share.
    pub async fn saved_views(&self, org: &OrgId, account: &AccountId) -> Result<Vec<SavedView>> {
        self.main()
            .glance((org.clone(), account.clone()), |tx, (org, account)| {
                Box::pin(async move {
                    let sql = select!(
                        SavedView,
                        "WHERE org_id = $1 AND (account_id = $2 OR shared = 1) ORDER BY CASE WHEN account_id = $2 THEN 0 ELSE 1 END, name, id LIMIT 500"
                    );
                    tx.query(sql, params![org, account]).await?.iter().map(SavedView::from_row).collect()
                })
            })
            .await
    }

    pub async fn saved_view(&self, org: &OrgId, id: &SavedViewId) -> Result<SavedView> {
        self.main()
            .glance((org.clone(), id.clone()), |tx, (org, id)| {
                Box::pin(async move {
                    let row = tx.get(select!(SavedView, "WHERE org_id = $1 AND id = $2"), params![org, id]).await?;
                    SavedView::from_row(&row.ok_or(StoreError::NotFound("view"))?)
                })
            })
            .await
    }
}

impl Store {
    /// Saves a view; one of the same name of the same person is replaced.
    pub async fn save_view(&self, view: SavedView) -> Result<SavedView> {
        self.main()
            .write(view, |tx, view| {
                Box::pin(async move {
                    let same = "DELETE FROM saved_views WHERE org_id = $1 AND account_id = $2 AND name = $3";
                    tx.exec(same, params![&view.org_id, &view.account_id, &view.name]).await?;
                    let count = "SELECT COUNT(*) AS count FROM saved_views WHERE org_id = $1 AND account_id = $2";
                    let row = tx.get(count, params![&view.org_id, &view.account_id]).await?;
                    if row.map_or(Ok(0), |row| row.get::<u64>("count"))? >= VIEWS_MAX {
                        return Err(Refused::TooManyViews.into());
                    }
                    let sql = "INSERT INTO saved_views (id, org_id, account_id, name, query, shared, created_at) VALUES ($1, $2, $3, $4, $5, $6, $7)";
                    let params = params![&view.id, &view.org_id, &view.account_id, &view.name, &view.query, u64::from(view.shared), view.created_at];
                    tx.exec(sql, params).await?;
                    Ok(view.clone())
                })
            })
            .await
    }

    pub async fn delete_view(&self, org: &OrgId, id: &SavedViewId) -> Result<()> {
        self.main()
            .write((org.clone(), id.clone()), |tx, (org, id)| {
                Box::pin(async move {
                    let sql = "DELETE FROM saved_views WHERE org_id = $1 AND id = $2";
                    match tx.exec(sql, params![org, id]).await? {
                        0 => Err(StoreError::NotFound("view")),
                        _ => Ok(()),
                    }
                })
            })
            .await
    }
}
