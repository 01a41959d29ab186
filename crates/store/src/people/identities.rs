//! Who people are at their providers, and the roles that groups give.

use model::{AccountId, OrgId, Role, Timestamp};
use serde_json::json;

use super::sessions::{end_sessions, record_everywhere};
use crate::db::{Tx, params};
use crate::events::{Note, record};
use crate::{Reader, Result, Store};

/// What a provider says of somebody, checked.
#[derive(Debug, Clone)]
pub struct Vouched {
    pub provider: String,
    pub issuer: String,
    pub subject: String,
    pub email: String,
    /// The roles that its groups give, by org.
    pub roles: Vec<(OrgId, Role)>,
    /// With it the provider is asked for the groups again.
    pub refresh: Option<String>,
    /// When its groups are due, where they give roles: asked for, or taken where nobody can ask.
    pub groups_due_at: Option<Timestamp>,
}

/// Somebody whose provider is asked for the groups again.
#[derive(Debug, Clone)]
pub struct GroupsDue {
    pub issuer: String,
    pub subject: String,
    pub account_id: AccountId,
    pub provider: String,
    /// None where the provider can't be asked.
    pub refresh: Option<String>,
    /// Until when whoever has taken it may answer; a sign-in meanwhile is newer than the answer.
    pub claimed: Timestamp,
}

pub(crate) const SEALED: &str = "provider-refresh";

/// Gives the roles that a provider's groups give, and takes those that they no longer give. Returns whether anything changed.
async fn take_roles(
    tx: &mut Tx<'_>,
    account: &AccountId,
    provider: &str,
    roles: &[(OrgId, Role)],
    now: Timestamp,
) -> Result<bool> {
    let rows = tx
        .query("SELECT org_id, role FROM members WHERE account_id = $1 AND source = $2", params![account, provider])
        .await?;
    let mut had = Vec::new();
    for row in &rows {
        had.push((row.get::<OrgId>("org_id")?, row.get::<Role>("role")?));
    }
    let mut changed = false;
    let data = |role: Option<Role>| json!({ "role": role, "groups_of": provider });
    for (org, role) in roles {
        if had.contains(&(org.clone(), *role)) {
            continue;
        }
        changed = true;
        tx.exec(
            "DELETE FROM members WHERE org_id = $1 AND account_id = $2 AND source = $3",
            params![org, account, provider],
        )
        .await?;
        tx.exec(
            "INSERT INTO members (org_id, account_id, source, role, created_at) VALUES ($1, $2, $3, $4, $5)",
            params![org, account, provider, role.as_str(), now],
        )
        .await?;
        let subject = ("account", account.as_str());
        record(tx, Note { org, now, kind: "member.role", subject, actor: "ferry", data: data(Some(*role)) }).await?;
    }
    for (org, _) in had.iter().filter(|(org, _)| roles.iter().all(|(known, _)| known != org)) {
        changed = true;
        tx.exec(
            "DELETE FROM members WHERE org_id = $1 AND account_id = $2 AND source = $3",
            params![org, account, provider],
        )
        .await?;
        let subject = ("account", account.as_str());
        record(tx, Note { org, now, kind: "member.removed", subject, actor: "ferry", data: data(None) }).await?;
    }
    Ok(changed)
}

impl Reader {
    /// The account of somebody at a provider.
    pub async fn account_of(&self, issuer: &str, subject: &str) -> Result<Option<AccountId>> {
        self.main()
            .read((issuer.to_owned(), subject.to_owned()), |tx, (issuer, subject)| {
                Box::pin(async move {
                    let sql = "SELECT account_id FROM identities WHERE issuer = $1 AND subject = $2";
                    tx.get(sql, params![issuer, subject]).await?.map(|row| row.get("account_id")).transpose()
                })
            })
            .await
    }

    /// The orgs with these names.
    pub async fn orgs_named(&self, names: Vec<String>) -> Result<Vec<(String, OrgId)>> {
        self.main()
            .read(names, |tx, names| {
                Box::pin(async move {
                    let mut found = Vec::new();
                    for name in names {
                        if let Some(row) =
                            tx.get("SELECT id FROM orgs WHERE id = $1 OR name = $1 ORDER BY CASE WHEN id = $1 THEN 0 ELSE 1 END LIMIT 1", params![name]).await?
                        {
                            found.push((name.clone(), row.get("id")?));
                        }
                    }
                    Ok(found)
                })
            })
            .await
    }
}

impl Store {
    /// The account of whoever a provider vouches for; `new` becomes its id when it signs in for the first time. Its roles follow its
    /// groups.
    pub async fn sign_in_as(&self, who: Vouched, new: AccountId, now: Timestamp) -> Result<AccountId> {
        let sealed = who.refresh.as_ref().map(|refresh| self.seal_for_browser(SEALED, refresh.as_bytes()));
        self.main()
            .write((who, sealed, new, now), |tx, (who, sealed, new, now)| {
                Box::pin(async move {
                    let sql = "SELECT account_id FROM identities WHERE issuer = $1 AND subject = $2";
                    let account = match tx.get(sql, params![&who.issuer, &who.subject]).await? {
                        Some(row) => {
                            let account: AccountId = row.get("account_id")?;
                            tx.exec(
                                "UPDATE identities SET seen_at = $3, email = $4, provider = $5 WHERE issuer = $1 AND subject = $2",
                                params![&who.issuer, &who.subject, now, &who.email, &who.provider],
                            )
                            .await?;
                            tx.exec("UPDATE accounts SET email = $2 WHERE id = $1", params![&account, &who.email]).await?;
                            account
                        }
                        None => {
                            let sql = "INSERT INTO accounts (id, email, created_at) VALUES ($1, $2, $3)";
                            tx.exec(sql, params![new, &who.email, now]).await?;
                            tx.exec(
                                "INSERT INTO identities (issuer, subject, account_id, provider, email, created_at, seen_at) VALUES ($1, $2, $3, $4, $5, $6, $6)",
                                params![&who.issuer, &who.subject, new, &who.provider, &who.email, now],
                            )
                            .await?;
                            new.clone()
                        }
                    };
                    let sql = "UPDATE identities SET refresh = $3, groups_due_at = $4 WHERE issuer = $1 AND subject = $2";
                    tx.exec(sql, params![&who.issuer, &who.subject, sealed.clone(), who.groups_due_at]).await?;
                    take_roles(tx, &account, &who.provider, &who.roles, *now).await?;
                    Ok(account)
                })
            })
            .await
    }

    /// People whose groups are due, and who are signed in or have a token: theirs go with their groups. They are due again at `again`,
    /// so that replicas share the work. Who can't be asked is due once.
    pub async fn take_due_groups(&self, again: Timestamp, limit: u64, now: Timestamp) -> Result<Vec<GroupsDue>> {
        let rows = self
            .main()
            .write((again, limit, now), |tx, (again, limit, now)| {
                Box::pin(async move {
                    let rows = tx
                        .query(
                            "SELECT i.issuer, i.subject, i.account_id, i.provider, i.refresh FROM identities i WHERE i.groups_due_at <= $1 AND (i.refresh IS NULL OR EXISTS (SELECT 1 FROM account_sessions s WHERE s.account_id = i.account_id AND s.ended_at IS NULL AND s.expires_at > $1) OR EXISTS (SELECT 1 FROM tokens t WHERE t.account_id = i.account_id AND t.revoked_at IS NULL AND (t.expires_at IS NULL OR t.expires_at > $1))) ORDER BY i.groups_due_at LIMIT $2",
                            params![now, limit],
                        )
                        .await?;
                    for row in &rows {
                        let (issuer, subject): (String, String) = (row.get("issuer")?, row.get("subject")?);
                        let sql = "UPDATE identities SET groups_due_at = $3 WHERE issuer = $1 AND subject = $2";
                        tx.exec(sql, params![issuer, subject, again]).await?;
                    }
                    Ok(rows)
                })
            })
            .await?;
        let due = rows.iter().map(|row| {
            let sealed: Option<Vec<u8>> = row.get("refresh")?;
            // One that no key opens any more is like none.
            let refresh = sealed.and_then(|sealed| self.open_from_browser(SEALED, &sealed));
            Ok(GroupsDue {
                issuer: row.get("issuer")?,
                subject: row.get("subject")?,
                account_id: row.get("account_id")?,
                provider: row.get("provider")?,
                refresh: refresh.and_then(|plain| String::from_utf8(plain).ok()),
                claimed: again,
            })
        });
        due.collect()
    }

    /// The provider has answered: roles follow the groups. Its new refresh token is kept, and when to ask again; without one nobody
    /// asks again, and the sessions that it vouched for end. Says nothing where the person has signed in meanwhile. Returns whether
    /// anything changed.
    pub async fn groups_read(
        &self,
        due: &GroupsDue,
        roles: Vec<(OrgId, Role)>,
        kept: Option<(&str, Timestamp)>,
        now: Timestamp,
    ) -> Result<bool> {
        let sealed = kept.map(|(refresh, again)| (self.seal_for_browser(SEALED, refresh.as_bytes()), again));
        self.main()
            .write((due.clone(), roles, sealed, now), |tx, (due, roles, sealed, now)| {
                Box::pin(async move {
                    let (refresh, again) = sealed.clone().unzip();
                    let ended = refresh.is_none();
                    let changed = tx
                        .exec(
                            "UPDATE identities SET refresh = $3, groups_due_at = $4 WHERE issuer = $1 AND subject = $2 AND groups_due_at = $5",
                            params![&due.issuer, &due.subject, refresh, again, due.claimed],
                        )
                        .await?;
                    if changed == 0 {
                        return Ok(false);
                    }
                    // Before the roles go: the orgs are to hear of it.
                    if ended {
                        let why = "the provider refused to renew it";
                        let of = Some(due.provider.as_str());
                        end_sessions(tx, &due.account_id, None, of, ("ferry", why), *now).await?;
                    }
                    let taken = take_roles(tx, &due.account_id, &due.provider, roles, *now).await?;
                    Ok(taken || ended)
                })
            })
            .await
    }

    /// Takes what providers have given that are not among these any more: roles of those that give none, sessions of those that are gone.
    pub async fn forget_other_providers(
        &self,
        known: Vec<String>,
        with_roles: Vec<String>,
        now: Timestamp,
    ) -> Result<()> {
        self.main()
            .write((known, with_roles, now), |tx, (known, with_roles, now)| {
                Box::pin(async move {
                    for row in tx.query("SELECT DISTINCT account_id, source FROM members WHERE source <> ''", vec![]).await? {
                        let (account, source): (AccountId, String) = (row.get("account_id")?, row.get("source")?);
                        if !with_roles.contains(&source) {
                            take_roles(tx, &account, &source, &[], *now).await?;
                        }
                    }
                    let sql = "SELECT DISTINCT account_id, provider FROM account_sessions WHERE provider <> '' AND ended_at IS NULL";
                    for row in tx.query(sql, vec![]).await? {
                        let (account, provider): (AccountId, String) = (row.get("account_id")?, row.get("provider")?);
                        if !known.contains(&provider) {
                            let why = "its provider is not configured any more";
                            end_sessions(tx, &account, None, Some(&provider), ("ferry", why), *now).await?;
                        }
                    }
                    Ok(())
                })
            })
            .await
    }

    /// Notes a failed sign-in in the orgs of an account.
    pub async fn note_refused(&self, account: &AccountId, why: &str, address: &str, now: Timestamp) -> Result<()> {
        let data = json!({ "why": why, "address": address });
        self.main()
            .write((account.clone(), data, now), |tx, (account, data, now)| {
                Box::pin(async move {
                    let subject = ("account", account.as_str());
                    record_everywhere(tx, account, account.as_str(), "person.refused", subject, data, *now).await
                })
            })
            .await
    }
}
