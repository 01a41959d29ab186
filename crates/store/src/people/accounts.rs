//! Orgs, accounts and API tokens. Tokens are kept as hashes; the token itself is shown once.

use model::runner::RunnerKind;
use model::{AccountId, AccountSessionId, Digest, OrgId, Role, RunnerId, Timestamp, TokenId};

use crate::crypto::insert_data_key;
use crate::db::{Row, Table, Tx, params, select, table};
use crate::events::{Note, record};
use crate::idempotency::{Created, Idempotency, idempotent, remember};
use crate::runners::{NewRunner, insert_runner};
use crate::{Reader, Refused, Result, Store, StoreError};

table! {
    #[derive(Debug, Clone)]
    pub struct Org from "orgs" {
        pub id: OrgId,
        pub name: String,
        /// Its jobs are played, not carried out.
        pub sandbox_mode: bool,
        /// How they are played.
        pub simulation: serde_json::Value,
        pub build_runner_id: RunnerId,
        pub created_by: AccountId,
        pub created_at: Timestamp,
        pub updated_at: Timestamp,
    }
}

#[derive(Debug, Clone)]
pub struct Account {
    pub id: AccountId,
    pub email: String,
    pub created_at: Timestamp,
}

#[derive(Debug, Clone)]
pub struct Member {
    pub org_id: OrgId,
    pub role: Role,
}

/// What somebody shows to be let in.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Credential {
    Token(TokenId),
    Session(AccountSessionId),
}

/// Who asks, and how far what they show reaches.
#[derive(Debug, Clone)]
pub struct SignedIn {
    pub by: Credential,
    /// Of the token; empty for a session.
    pub token_name: String,
    pub account: Account,
    /// Only this org, where there is one.
    pub org_id: Option<OrgId>,
    /// At most this role.
    pub role: Role,
    /// One for each role: an org may be there more than once.
    pub members: Vec<Member>,
}

impl SignedIn {
    /// The role in an org: the highest that the account has there, capped by the token.
    pub fn role_in(&self, org: &OrgId) -> Option<Role> {
        if self.org_id.as_ref().is_some_and(|only| only != org) {
            return None;
        }
        self.members.iter().filter(|m| m.org_id == *org).map(|m| m.role).max().map(|role| role.min(self.role))
    }

    /// Nothing narrows it: a person who is signed in, or a token of the account itself.
    pub fn is_whole(&self) -> bool {
        self.org_id.is_none() && self.role == Role::Admin
    }

    /// The orgs that it reaches, each with the role there.
    pub fn orgs(&self) -> Vec<(OrgId, Role)> {
        let mut orgs: Vec<OrgId> = self.members.iter().map(|m| m.org_id.clone()).collect();
        orgs.dedup();
        orgs.into_iter().filter_map(|org| self.role_in(&org).map(|role| (org, role))).collect()
    }
}

/// Reads who it is: the same columns for tokens and sessions.
pub(super) fn signed_in(rows: &[Row], by: Credential) -> Result<SignedIn> {
    let row = rows.first().ok_or(StoreError::NotFound("sign-in"))?;
    let account = Account { id: row.get("account_id")?, email: row.get("email")?, created_at: row.get("created_at")? };
    let mut members = Vec::new();
    for row in rows {
        if let Some(org_id) = row.get("member_of")? {
            members.push(Member { org_id, role: row.get("member_role")? });
        }
    }
    let role: Option<Role> = row.get("cap_role")?;
    Ok(SignedIn {
        by,
        token_name: row.get("token_name")?,
        account,
        org_id: row.get("cap_org")?,
        role: role.unwrap_or(Role::Admin),
        members,
    })
}

table! {
    #[derive(Debug, Clone)]
    pub struct Token from "tokens" {
        pub id: TokenId,
        pub name: String,
        pub role: Role,
        pub hint: String,
        pub account_id: AccountId,
        pub created_at: Timestamp,
        pub expires_at: Option<Timestamp>,
        pub revoked_at: Option<Timestamp>,
        pub last_used_at: Option<Timestamp>,
        /// It sends telemetry in the name of this runner, and does nothing else.
        pub runner_id: Option<RunnerId>,
    }
}

#[derive(Debug, Clone)]
pub struct NewToken {
    pub id: TokenId,
    pub account_id: AccountId,
    pub org_id: Option<OrgId>,
    pub role: Role,
    pub name: String,
    /// The token itself; only its hash is stored.
    pub token: String,
    pub expires_at: Option<Timestamp>,
    /// See [`Token::runner_id`].
    pub runner_id: Option<RunnerId>,
}

/// How a secret is looked up: by the hash of its 256 random bits.
pub(crate) fn hash(secret: &str) -> String {
    Digest::of(secret.as_bytes()).hex().to_owned()
}

/// A token for telemetry is kept under another hash: who asks for one of the other kind never finds it.
pub(crate) fn telemetry_hash(secret: &str) -> String {
    hash(&format!("telemetry:{secret}"))
}

async fn insert_token(tx: &mut Tx<'_>, new: &NewToken, now: Timestamp) -> Result<()> {
    let hint: String = new.token.chars().take(8).collect();
    let hash = if new.runner_id.is_some() { telemetry_hash(&new.token) } else { hash(&new.token) };
    tx.exec(
        "INSERT INTO tokens (id, account_id, org_id, role, name, hint, hash, created_at, expires_at, runner_id) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)",
        params![&new.id, &new.account_id, new.org_id.as_ref(), new.role.as_str(), &new.name, hint, hash, now, new.expires_at, new.runner_id.as_ref()],
    )
    .await?;
    Ok(())
}

impl Reader {
    /// Finds the owner of a token that is neither revoked nor expired.
    pub async fn authenticate(&self, token: &str, now: Timestamp) -> Result<SignedIn> {
        self.main()
            .glance((hash(token), now), |tx, (hash, now)| {
                Box::pin(async move {
                    let rows = tx
                        .query(
                            "SELECT t.id, t.org_id AS cap_org, t.role AS cap_role, t.name AS token_name, a.id AS account_id, a.email, a.created_at, m.org_id AS member_of, m.role AS member_role FROM tokens t JOIN accounts a ON a.id = t.account_id LEFT JOIN members m ON m.account_id = a.id WHERE t.hash = $1 AND t.revoked_at IS NULL AND (t.expires_at IS NULL OR t.expires_at > $2) ORDER BY m.org_id",
                            params![hash, now],
                        )
                        .await?;
                    let row = rows.first().ok_or(StoreError::NotFound("token"))?;
                    signed_in(&rows, Credential::Token(row.get("id")?))
                })
            })
            .await
    }

    pub async fn org(&self, id: &OrgId) -> Result<Org> {
        self.main()
            .glance(id.clone(), |tx, id| {
                Box::pin(async move {
                    let sql = select!(Org, "WHERE id = $1");
                    Org::from_row(&tx.get(sql, params![&id]).await?.ok_or(StoreError::NotFound("org"))?)
                })
            })
            .await
    }

    pub async fn orgs_of(&self, account: &AccountId) -> Result<Vec<Org>> {
        self.main()
            .read(account.clone(), |tx, account| {
                Box::pin(async move {
                    let sql =
                        select!(Org, "WHERE id IN (SELECT org_id FROM members WHERE account_id = $1) ORDER BY id DESC");
                    tx.query(sql, params![&account]).await?.iter().map(Org::from_row).collect()
                })
            })
            .await
    }

    /// Tokens that are good for this org alone, and those of the account itself, which are good for all its orgs. Who manages no tokens
    /// sees their own.
    pub async fn tokens(
        &self,
        org: &OrgId,
        account: &AccountId,
        only_own: bool,
        offset: u64,
        limit: u64,
    ) -> Result<Vec<Token>> {
        self.main()
            .read((org.clone(), account.clone(), only_own, offset, limit), |tx, (org, account, only_own, offset, limit)| {
                Box::pin(async move {
                    let sql = select!(
                        Token,
                        "WHERE ((org_id = $1 AND $5 = 0) OR ((org_id IS NULL OR org_id = $1) AND account_id = $2)) ORDER BY id DESC LIMIT $3 OFFSET $4"
                    );
                    let rows = tx.query(sql, params![&org, &account, limit, offset, only_own]).await?;
                    rows.iter().map(Token::from_row).collect()
                })
            })
            .await
    }

    /// Whether a token is neither revoked nor expired: asked again and again while something long is sent to its owner.
    pub(crate) async fn token_is_good(&self, id: &TokenId, org: &OrgId, now: Timestamp) -> Result<bool> {
        self.main()
            .glance((id.clone(), org.clone(), now), |tx, (id, org, now)| { Box::pin(async move {
                    let sql = "SELECT t.id FROM tokens t WHERE t.id = $1 AND t.revoked_at IS NULL AND (t.expires_at IS NULL OR t.expires_at > $2) AND EXISTS (SELECT 1 FROM members m WHERE m.account_id = t.account_id AND m.org_id = $3)";
                    Ok(tx.get(sql, params![&id, now, org]).await?.is_some())
                }) })
            .await
    }
}

impl Store {
    /// Makes the first account with a token, when there is no account yet. Returns whether it did.
    pub async fn bootstrap(&self, account: AccountId, email: &str, token: NewToken, now: Timestamp) -> Result<bool> {
        self.main()
            .write((account, email.to_owned(), token, now), |tx, (account, email, token, now)| {
                Box::pin(async move {
                    if tx.get("SELECT id FROM accounts LIMIT 1", vec![]).await?.is_some() {
                        return Ok(false);
                    }
                    tx.exec(
                        "INSERT INTO accounts (id, email, created_at) VALUES ($1, $2, $3)",
                        params![&account, email, now],
                    )
                    .await?;
                    insert_token(tx, token, *now).await?;
                    Ok(true)
                })
            })
            .await
    }

    /// Notes that tokens were used; called in batches.
    pub async fn touch_tokens(&self, used: Vec<(TokenId, Timestamp)>) -> Result<()> {
        self.main()
            .write(used, |tx, used| {
                Box::pin(async move {
                    for (id, at) in used {
                        tx.exec_later("UPDATE tokens SET last_used_at = $2 WHERE id = $1", params![&id, at]).await?;
                    }
                    Ok(())
                })
            })
            .await
    }

    /// Makes an org with its data key and its build runner; the account becomes its admin.
    pub async fn create_org(&self, org: Org, runner: NewRunner, idem: Option<Idempotency>) -> Result<Created> {
        let key = self.masters().new_data_key(&org.id, 1);
        self.main()
            .write((org, key, runner, idem), |tx, (org, key, runner, idem)| { Box::pin(async move {
                    if let Some(found) = idempotent(tx, idem.as_ref()).await? {
                        return Ok(Created { id: found, replayed: true });
                    }
                    if tx.get("SELECT id FROM orgs WHERE name = $1", params![&org.name]).await?.is_some() {
                        return Err(StoreError::NameTaken(org.name.clone()));
                    }
                    let now = org.created_at;
                    tx.exec(
                        "INSERT INTO orgs (id, name, sandbox_mode, build_runner_id, created_by, created_at, updated_at, simulation) VALUES ($1, $2, $3, $4, $5, $6, $6, $7)",
                        params![&org.id, &org.name, org.sandbox_mode, &org.build_runner_id, &org.created_by, now, org.simulation.to_string()],
                    )
                    .await?;
                    insert_data_key(tx, &org.id, 1, key, now).await?;
                    tx.exec(
                        "INSERT INTO members (org_id, account_id, role, created_at) VALUES ($1, $2, $3, $4)",
                        params![&org.id, &org.created_by, Role::Admin.as_str(), now],
                    )
                    .await?;
                    debug_assert_eq!(runner.kind, RunnerKind::Build);
                    insert_runner(tx, runner, now).await?;
                    let note = Note {
                        org: &org.id,
                        now,
                        kind: "org.created",
                        subject: ("org", org.id.as_str()),
                        actor: org.created_by.as_str(),
                        data: serde_json::json!({ "name": org.name }),
                    };
                    record(tx, note).await?;
                    remember(tx, idem.as_ref(), org.id.as_str(), now).await?;
                    Ok(Created { id: org.id.to_string(), replayed: false })
                }) })
            .await
    }

    /// A token is shown once, so a repeated request can't be answered with it again.
    pub async fn create_token(
        &self,
        org: &OrgId,
        new: NewToken,
        idem: Option<Idempotency>,
        now: Timestamp,
    ) -> Result<()> {
        self.main()
            .write((org.clone(), new, idem, now), |tx, (org, new, idem, now)| {
                Box::pin(async move {
                    if let Some(found) = idempotent(tx, idem.as_ref()).await? {
                        return Err(Refused::TokenShown(found).into());
                    }
                    insert_token(tx, new, *now).await?;
                    remember(tx, idem.as_ref(), new.id.as_str(), *now).await?;
                    let note = Note {
                        org,
                        now: *now,
                        kind: "token.created",
                        subject: ("token", new.id.as_str()),
                        actor: new.account_id.as_str(),
                        data: serde_json::json!({ "name": new.name, "role": new.role }),
                    };
                    record(tx, note).await
                })
            })
            .await
    }

    /// Revokes a token of the org, with `only_own` one that is the account's own, and with `of_account` also one that is good for all
    /// its orgs.
    pub async fn revoke_token(
        &self,
        org: &OrgId,
        id: &TokenId,
        account: &AccountId,
        (only_own, of_account): (bool, bool),
        now: Timestamp,
    ) -> Result<Token> {
        self.main()
            .write((org.clone(), id.clone(), account.clone(), (only_own, of_account), now), |tx, (org, id, account, (only_own, of_account), now)| { Box::pin(async move {
                    let changed = tx
                        .exec(
                            "UPDATE tokens SET revoked_at = $4 WHERE id = $1 AND ((org_id = $2 AND ($5 = 0 OR account_id = $3)) OR (org_id IS NULL AND account_id = $3 AND $6 = 1)) AND revoked_at IS NULL",
                            params![&id, &org, &account, now, only_own, of_account],
                        )
                        .await?;
                    if changed > 0 {
                        let note = Note {
                            org,
                            now: *now,
                            kind: "token.revoked",
                            subject: ("token", id.as_str()),
                            actor: account.as_str(),
                            data: serde_json::json!({}),
                        };
                        record(tx, note).await?;
                    }
                    let sql = select!(Token,
                        "WHERE id = $1 AND ((org_id = $2 AND ($4 = 0 OR account_id = $3)) OR (org_id IS NULL AND account_id = $3 AND $5 = 1))"
                    );
                    Token::from_row(&tx.get(sql, params![&id, &org, &account, only_own, of_account]).await?.ok_or(StoreError::NotFound("token"))?)
                }) })
            .await
    }
}
