//! Who belongs to an org: identities at providers, members with their roles, and invites.

use model::{AccountId, InviteId, OrgId, Role, Timestamp};
use serde_json::json;

use super::accounts::hash;
use super::sessions::end_sessions;
use crate::db::{Table, Tx, params, select, table};
use crate::events::{Note, record};
use crate::idempotency::{Idempotency, idempotent, remember};
use crate::{Reader, Refused, Result, Store, StoreError};

/// A person of an org, for people.
#[derive(Debug, Clone)]
pub struct OrgMember {
    pub account_id: AccountId,
    pub email: String,
    /// The highest of its roles.
    pub role: Role,
    /// Where its roles come from: empty is a person's doing, else the provider whose groups give it.
    pub sources: Vec<String>,
    pub created_at: Timestamp,
    /// When one of its sessions was last used.
    pub seen_at: Option<Timestamp>,
}

table! {
    #[derive(Debug, Clone)]
    pub struct Invite from "invites" {
        pub id: InviteId,
        pub org_id: OrgId,
        pub email: String,
        pub role: Role,
        pub created_by: AccountId,
        pub created_at: Timestamp,
        pub expires_at: Timestamp,
        pub accepted_at: Option<Timestamp>,
        pub accepted_by: Option<AccountId>,
        pub revoked_at: Option<Timestamp>,
    }
}

impl Invite {
    pub fn is_open(&self, now: Timestamp) -> bool {
        self.accepted_at.is_none() && self.revoked_at.is_none() && self.expires_at > now
    }
}

#[derive(Debug, Clone)]
pub struct NewInvite {
    pub id: InviteId,
    pub org_id: OrgId,
    pub email: String,
    pub role: Role,
    /// The secret of its link; only its hash is stored.
    pub secret: String,
    pub created_by: AccountId,
    pub expires_at: Timestamp,
}

/// Open invites of an org.
const INVITES_MAX: u64 = 1000;
/// Invites that an org makes within a day, and those for one address: each may be a mail.
const INVITES_A_DAY_MAX: u64 = 500;
const INVITES_OF_ADDRESS_A_DAY_MAX: u64 = 5;

/// Accounts that a person has made admins of an org: what groups give may go at any time.
async fn admins(tx: &mut Tx<'_>, org: &OrgId, but: Option<&AccountId>) -> Result<u64> {
    let sql = "SELECT COUNT(DISTINCT account_id) AS admins FROM members WHERE org_id = $1 AND role = 'admin' AND source = '' AND (CAST($2 AS TEXT) IS NULL OR account_id <> $2)";
    tx.get(sql, params![org, but]).await?.ok_or(StoreError::NotFound("count"))?.get("admins")
}

/// Makes changes of one org's members one after the other, so that two admins can't remove each other.
async fn lock_org(tx: &mut Tx<'_>, org: &OrgId) -> Result<()> {
    let changed = tx.exec("UPDATE orgs SET updated_at = updated_at WHERE id = $1", params![org]).await?;
    if changed == 0 { Err(StoreError::NotFound("org")) } else { Ok(()) }
}

/// Open invites of who is no admin any more, or no member, are over.
async fn revoke_invites(tx: &mut Tx<'_>, org: &OrgId, by: &AccountId, now: Timestamp) -> Result<()> {
    let sql = "UPDATE invites SET revoked_at = $3 WHERE org_id = $1 AND created_by = $2 AND accepted_at IS NULL AND revoked_at IS NULL";
    tx.exec(sql, params![org, by, now]).await.map(drop)
}

async fn give_role(tx: &mut Tx<'_>, org: &OrgId, account: &AccountId, role: Role, now: Timestamp) -> Result<()> {
    tx.exec("DELETE FROM members WHERE org_id = $1 AND account_id = $2 AND source = ''", params![org, account]).await?;
    tx.exec(
        "INSERT INTO members (org_id, account_id, source, role, created_at) VALUES ($1, $2, '', $3, $4)",
        params![org, account, role.as_str(), now],
    )
    .await?;
    Ok(())
}

async fn accept(tx: &mut Tx<'_>, invite: &Invite, account: &AccountId, now: Timestamp) -> Result<()> {
    let changed = tx
        .exec(
            "UPDATE invites SET accepted_at = $2, accepted_by = $3 WHERE id = $1 AND accepted_at IS NULL AND revoked_at IS NULL AND expires_at > $2",
            params![&invite.id, now, account],
        )
        .await?;
    if changed == 0 {
        return Err(StoreError::NotFound("invite"));
    }
    // Who has a higher role already keeps it.
    let sql = "SELECT role FROM members WHERE org_id = $1 AND account_id = $2 AND source = ''";
    let had: Option<Role> = match tx.get(sql, params![&invite.org_id, account]).await? {
        Some(row) => Some(row.get("role")?),
        None => None,
    };
    if had.is_none_or(|had| had < invite.role) {
        give_role(tx, &invite.org_id, account, invite.role, now).await?;
    }
    let note = Note {
        org: &invite.org_id,
        now,
        kind: "invite.accepted",
        subject: ("invite", invite.id.as_str()),
        actor: account.as_str(),
        data: json!({ "email": invite.email, "role": invite.role }),
    };
    record(tx, note).await
}

async fn open_invite(tx: &mut Tx<'_>, hash: &str, now: Timestamp) -> Result<Invite> {
    let sql = select!(Invite, "WHERE hash = $1 AND accepted_at IS NULL AND revoked_at IS NULL AND expires_at > $2");
    Invite::from_row(&tx.get(sql, params![hash, now]).await?.ok_or(StoreError::NotFound("invite"))?)
}

impl Reader {
    pub async fn members(&self, org: &OrgId) -> Result<Vec<OrgMember>> {
        self.main()
            .read(org.clone(), |tx, org| {
                Box::pin(async move {
                    let rows = tx
                        .query(
                            "SELECT m.account_id, a.email, m.role, m.source, m.created_at, (SELECT MAX(s.seen_at) FROM account_sessions s WHERE s.account_id = m.account_id) AS seen_at FROM members m JOIN accounts a ON a.id = m.account_id WHERE m.org_id = $1 ORDER BY a.email, m.account_id, m.source",
                            params![org],
                        )
                        .await?;
                    let mut found: Vec<OrgMember> = Vec::new();
                    for row in &rows {
                        let one = OrgMember {
                            account_id: row.get("account_id")?,
                            email: row.get("email")?,
                            role: row.get("role")?,
                            sources: vec![row.get("source")?],
                            created_at: row.get("created_at")?,
                            seen_at: row.get("seen_at")?,
                        };
                        match found.last_mut().filter(|last| last.account_id == one.account_id) {
                            Some(last) => {
                                last.role = last.role.max(one.role);
                                last.sources.extend(one.sources);
                                last.created_at = last.created_at.min(one.created_at);
                            }
                            None => found.push(one),
                        }
                    }
                    Ok(found)
                })
            })
            .await
    }

    pub async fn invites(&self, org: &OrgId, offset: u64, limit: u64) -> Result<Vec<Invite>> {
        self.main()
            .read((org.clone(), offset, limit), |tx, (org, offset, limit)| {
                Box::pin(async move {
                    let sql = select!(Invite, "WHERE org_id = $1 ORDER BY id DESC LIMIT $2 OFFSET $3");
                    tx.query(sql, params![org, limit, offset]).await?.iter().map(Invite::from_row).collect()
                })
            })
            .await
    }

    /// The invite of a link, with the name of its org.
    pub async fn invite_of_link(&self, secret: &str, now: Timestamp) -> Result<(Invite, String)> {
        self.main()
            .read((hash(secret), now), |tx, (hash, now)| {
                Box::pin(async move {
                    let invite = open_invite(tx, hash, *now).await?;
                    let row = tx.get("SELECT name FROM orgs WHERE id = $1", params![&invite.org_id]).await?;
                    Ok((invite, row.ok_or(StoreError::NotFound("org"))?.get("name")?))
                })
            })
            .await
    }

    /// The secret of the invite that a repeated request asks for: the same each time, so that an answer that was lost can be given
    /// again. Nobody without the master key can know it.
    pub fn secret_of_request(&self, idem: &Idempotency) -> Result<String> {
        let keys = self.masters().derive("ferry secrets of repeated requests");
        let key = keys.first().ok_or_else(|| StoreError::Config("there is no master key".into()))?;
        let text = format!("{}\n{}\n{}", idem.scope, idem.key, idem.request_digest);
        let tag = ring::hmac::sign(&ring::hmac::Key::new(ring::hmac::HMAC_SHA256, key), text.as_bytes());
        Ok(hex::encode(tag.as_ref()))
    }

    /// Accounts with this address or id, each with how many orgs it belongs to.
    pub async fn accounts_named(&self, wanted: &str) -> Result<Vec<(AccountId, u64)>> {
        let sql = "SELECT a.id, (SELECT COUNT(DISTINCT m.org_id) FROM members m WHERE m.account_id = a.id) AS orgs FROM accounts a WHERE a.email = $1 OR a.id = $1 ORDER BY a.id LIMIT 20";
        let rows = self.main().query(sql, params![wanted]).await?;
        rows.iter().map(|row| Ok((row.get("id")?, row.get("orgs")?))).collect()
    }
}

impl Store {
    /// The invite of a link makes an account: only where no provider is configured.
    pub async fn accept_invite_as_new(&self, secret: &str, id: &AccountId, now: Timestamp) -> Result<Invite> {
        self.main()
            .write((hash(secret), id.clone(), now), |tx, (hash, id, now)| {
                Box::pin(async move {
                    let invite = open_invite(tx, hash, *now).await?;
                    let sql = "INSERT INTO accounts (id, email, created_at) VALUES ($1, $2, $3)";
                    tx.exec(sql, params![&id, &invite.email, now]).await?;
                    accept(tx, &invite, id, *now).await?;
                    Ok(invite)
                })
            })
            .await
    }

    /// Returns the invite; under a key that was used before, the one that it made.
    pub async fn create_invite(
        &self,
        new: NewInvite,
        idem: Option<Idempotency>,
        now: Timestamp,
    ) -> Result<(Invite, bool)> {
        self.main()
            .write((new, idem, now), |tx, (new, idem, now)| {
                Box::pin(async move {
                    if let Some(id) = idempotent(tx, idem.as_ref()).await? {
                        let row = tx.get(select!(Invite, "WHERE org_id = $1 AND id = $2"), params![&new.org_id, id]).await?;
                        return Ok((Invite::from_row(&row.ok_or(StoreError::NotFound("invite"))?)?, true));
                    }
                    let count = async |tx: &mut Tx<'_>, sql: &'static str, since: Timestamp, email: Option<&str>| -> Result<u64> {
                        let row = tx.get(sql, params![&new.org_id, since, email]).await?;
                        row.ok_or(StoreError::NotFound("count"))?.get("found")
                    };
                    let open = "SELECT COUNT(*) AS found FROM invites WHERE org_id = $1 AND accepted_at IS NULL AND revoked_at IS NULL AND expires_at > $2 AND CAST($3 AS TEXT) IS NULL";
                    if count(tx, open, *now, None).await? >= INVITES_MAX {
                        return Err(Refused::TooManyInvites(INVITES_MAX).into());
                    }
                    // Each may be a mail.
                    let made = "SELECT COUNT(*) AS found FROM invites WHERE org_id = $1 AND created_at > $2 AND (CAST($3 AS TEXT) IS NULL OR email = $3)";
                    let yesterday = now.plus_s(-86_400);
                    if count(tx, made, yesterday, None).await? >= INVITES_A_DAY_MAX {
                        return Err(Refused::InvitesADay(INVITES_A_DAY_MAX).into());
                    }
                    if count(tx, made, yesterday, Some(&new.email)).await? >= INVITES_OF_ADDRESS_A_DAY_MAX {
                        return Err(Refused::InvitesOfAddress(INVITES_OF_ADDRESS_A_DAY_MAX).into());
                    }
                    // A new invite takes the place of an earlier one.
                    tx.exec(
                        "UPDATE invites SET revoked_at = $3 WHERE org_id = $1 AND email = $2 AND accepted_at IS NULL AND revoked_at IS NULL",
                        params![&new.org_id, &new.email, now],
                    )
                    .await?;
                    tx.exec(
                        "INSERT INTO invites (id, org_id, email, role, hash, created_by, created_at, expires_at) VALUES ($1, $2, $3, $4, $5, $6, $7, $8)",
                        params![&new.id, &new.org_id, &new.email, new.role.as_str(), hash(&new.secret), &new.created_by, now, new.expires_at],
                    )
                    .await?;
                    let note = Note {
                        org: &new.org_id,
                        now: *now,
                        kind: "invite.created",
                        subject: ("invite", new.id.as_str()),
                        actor: new.created_by.as_str(),
                        data: json!({ "email": new.email, "role": new.role }),
                    };
                    record(tx, note).await?;
                    remember(tx, idem.as_ref(), new.id.as_str(), *now).await?;
                    let invite = Invite {
                        id: new.id.clone(),
                        org_id: new.org_id.clone(),
                        email: new.email.clone(),
                        role: new.role,
                        created_by: new.created_by.clone(),
                        created_at: *now,
                        expires_at: new.expires_at,
                        accepted_at: None,
                        accepted_by: None,
                        revoked_at: None,
                    };
                    Ok((invite, false))
                })
            })
            .await
    }

    pub async fn revoke_invite(&self, org: &OrgId, id: &InviteId, by: &AccountId, now: Timestamp) -> Result<Invite> {
        self.main()
            .write((org.clone(), id.clone(), by.clone(), now), |tx, (org, id, by, now)| {
                Box::pin(async move {
                    let changed = tx
                        .exec(
                            "UPDATE invites SET revoked_at = $3 WHERE org_id = $1 AND id = $2 AND revoked_at IS NULL AND accepted_at IS NULL",
                            params![org, id, now],
                        )
                        .await?;
                    if changed > 0 {
                        let subject = ("invite", id.as_str());
                        let data = json!({});
                        record(tx, Note { org, now: *now, kind: "invite.revoked", subject, actor: by.as_str(), data }).await?;
                    }
                    let sql = select!(Invite, "WHERE org_id = $1 AND id = $2");
                    Invite::from_row(&tx.get(sql, params![org, id]).await?.ok_or(StoreError::NotFound("invite"))?)
                })
            })
            .await
    }

    /// The account takes the invite of a link.
    pub async fn accept_invite(&self, secret: &str, account: &AccountId, now: Timestamp) -> Result<Invite> {
        self.main()
            .write((hash(secret), account.clone(), now), |tx, (hash, account, now)| {
                Box::pin(async move {
                    let invite = open_invite(tx, hash, *now).await?;
                    accept(tx, &invite, account, *now).await?;
                    Ok(invite)
                })
            })
            .await
    }

    /// Changes the role that a person has given to a member; the last admin stays one.
    pub async fn set_member_role(
        &self,
        org: &OrgId,
        account: &AccountId,
        role: Role,
        by: &AccountId,
        now: Timestamp,
    ) -> Result<()> {
        self.main()
            .write((org.clone(), account.clone(), role, by.clone(), now), |tx, (org, account, role, by, now)| {
                Box::pin(async move {
                    lock_org(tx, org).await?;
                    let sql = "SELECT source, role FROM members WHERE org_id = $1 AND account_id = $2";
                    let rows = tx.query(sql, params![org, account]).await?;
                    if rows.is_empty() {
                        return Err(StoreError::NotFound("member"));
                    }
                    let mut of_groups = Vec::new();
                    for row in &rows {
                        let (source, given): (String, Role) = (row.get("source")?, row.get("role")?);
                        if !source.is_empty() {
                            of_groups.push((source, given));
                        }
                    }
                    if let Some((provider, given)) = of_groups.into_iter().find(|(_, given)| given > role) {
                        return Err(Refused::RoleOfGroups { provider, role: given }.into());
                    }
                    if *role != Role::Admin && admins(tx, org, Some(account)).await? == 0 {
                        return Err(Refused::LastAdmin.into());
                    }
                    give_role(tx, org, account, *role, *now).await?;
                    if *role != Role::Admin {
                        revoke_invites(tx, org, account, *now).await?;
                    }
                    let note = Note {
                        org,
                        now: *now,
                        kind: "member.role",
                        subject: ("account", account.as_str()),
                        actor: by.as_str(),
                        data: json!({ "role": role }),
                    };
                    record(tx, note).await
                })
            })
            .await
    }

    /// Removes a member: its roles, its tokens for this org, and all its sessions. The last admin stays. Returns the providers whose
    /// groups would bring it back.
    pub async fn remove_member(
        &self,
        org: &OrgId,
        account: &AccountId,
        by: &AccountId,
        now: Timestamp,
    ) -> Result<Vec<String>> {
        self.main()
            .write((org.clone(), account.clone(), by.clone(), now), |tx, (org, account, by, now)| {
                Box::pin(async move {
                    lock_org(tx, org).await?;
                    let sql = "SELECT source FROM members WHERE org_id = $1 AND account_id = $2";
                    let rows = tx.query(sql, params![org, account]).await?;
                    if rows.is_empty() {
                        return Err(StoreError::NotFound("member"));
                    }
                    if admins(tx, org, Some(account)).await? == 0 {
                        return Err(Refused::LastAdmin.into());
                    }
                    let mut sources = Vec::new();
                    for row in &rows {
                        sources.push(row.get::<String>("source")?);
                    }
                    end_sessions(tx, account, None, None, (by.as_str(), "an admin has signed the person out"), *now).await?;
                    revoke_invites(tx, org, account, *now).await?;
                    tx.exec(
                        "UPDATE invites SET revoked_at = $3 WHERE org_id = $1 AND email = (SELECT email FROM accounts WHERE id = $2) AND accepted_at IS NULL AND revoked_at IS NULL",
                        params![org, account, now],
                    )
                    .await?;
                    let sql = "DELETE FROM members WHERE org_id = $1 AND account_id = $2";
                    tx.exec(sql, params![org, account]).await?;
                    tx.exec(
                        "UPDATE tokens SET revoked_at = $3 WHERE org_id = $1 AND account_id = $2 AND revoked_at IS NULL AND runner_id IS NULL",
                        params![org, account, now],
                    )
                    .await?;
                    let note = Note {
                        org,
                        now: *now,
                        kind: "member.removed",
                        subject: ("account", account.as_str()),
                        actor: by.as_str(),
                        data: json!({}),
                    };
                    record(tx, note).await?;
                    Ok(sources.into_iter().filter(|source| !source.is_empty()).collect())
                })
            })
            .await
    }
}
