//! Who is signed in: browsers and CLIs, one-time links, and CLIs that wait for a person. Secrets are kept as hashes.

use model::{AccountId, AccountSessionId, OrgId, Timestamp, TokenId};
use serde_json::json;

use super::accounts::{Credential, SignedIn, hash, signed_in};
use crate::db::{Table, Tx, params, select, table, text_values};
use crate::events::{Note, record};
use crate::{Reader, Refused, Result, Store, StoreError};

/// What is signed in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum SessionKind {
    Browser,
    Cli,
}

impl SessionKind {
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Browser => "browser",
            Self::Cli => "cli",
        }
    }

    fn parse(text: &str) -> Option<Self> {
        [Self::Browser, Self::Cli].into_iter().find(|kind| kind.as_str() == text)
    }
}

text_values!(SessionKind);

table! {
    #[derive(Debug, Clone)]
    pub struct AccountSession from "account_sessions" {
        pub id: AccountSessionId,
        pub account_id: AccountId,
        pub kind: SessionKind,
        /// What it is, for people: a browser's name, or the host of a CLI.
        pub name: String,
        pub address: String,
        /// Who vouched for the person; empty for a link or a token.
        pub provider: String,
        pub created_at: Timestamp,
        pub seen_at: Timestamp,
        pub access_until: Timestamp,
        pub idle_s: u64,
        pub expires_at: Timestamp,
        /// The token that it was traded for.
        pub token_id: Option<TokenId>,
        pub ended_at: Option<Timestamp>,
        pub ended_why: Option<String>,
    }
}

impl AccountSession {
    pub fn is_open(&self, now: Timestamp) -> bool {
        let idle_until = self.seen_at.plus_s(i64::try_from(self.idle_s).unwrap_or(i64::MAX / 4_000_000));
        self.ended_at.is_none() && self.expires_at > now && idle_until > now
    }
}

/// A session that begins.
#[derive(Debug, Clone)]
pub struct NewSession {
    pub id: AccountSessionId,
    pub account_id: AccountId,
    pub kind: SessionKind,
    /// The secret itself; only its hash is stored.
    pub secret: String,
    /// Good once, for a new secret.
    pub refresh: Option<String>,
    pub name: String,
    pub address: String,
    pub provider: String,
    /// The token that it was traded for: it reaches as far, and ends with it.
    pub token_id: Option<TokenId>,
    pub access_until: Timestamp,
    pub idle_s: u64,
    pub expires_at: Timestamp,
}

/// A CLI that asks to be let in.
#[derive(Debug, Clone)]
pub struct NewDeviceLogin {
    /// What it asks with again; only its hash is stored.
    pub secret: String,
    /// What the person types.
    pub user_code: Option<String>,
    /// SHA-256 of what the CLI shows when it takes its session (PKCE).
    pub challenge: Option<String>,
    pub host: String,
    pub address: String,
    pub expires_at: Timestamp,
    pub interval_s: u64,
    /// Who let it in already.
    pub account_id: Option<AccountId>,
    /// The session that the person answered from.
    pub session_id: Option<AccountSessionId>,
}

table! {
    #[derive(Debug, Clone)]
    pub struct DeviceLogin from "device_logins" {
        pub host: String,
        pub address: String,
        pub created_at: Timestamp,
        pub expires_at: Timestamp,
        pub interval_s: u64,
        pub polled_at: Option<Timestamp>,
        pub challenge: Option<String>,
        pub account_id: Option<AccountId>,
        pub session_id: Option<AccountSessionId>,
        pub answer: Option<String>,
    }
}

/// What a CLI that asks again is told.
#[derive(Debug, Clone)]
pub enum DevicePoll {
    Pending,
    /// It asks too often: so many seconds from now on.
    SlowDown(u64),
    Denied,
    Expired,
    /// The person, and the session that said yes.
    Approved(Box<DeviceLogin>),
}

/// What came of a refresh token.
#[derive(Debug, Clone)]
pub enum Refreshed {
    /// With the time until which the new access token is good.
    Renewed(Timestamp),
    /// It was used before: somebody else has it, so the session is over.
    Reused,
    Unknown,
}

/// A refresh token whose answer was lost may be sent again for so long.
const LOST_ANSWER_S: i64 = 60;
/// Open sessions of one account; the oldest one ends when there are more.
const SESSIONS_MAX: u64 = 100;
const SLOW_DOWN_S: u64 = 5;

/// An event in every org of an account.
pub(super) async fn record_everywhere(
    tx: &mut Tx<'_>,
    account: &AccountId,
    actor: &str,
    kind: &'static str,
    subject: (&'static str, &str),
    data: &serde_json::Value,
    now: Timestamp,
) -> Result<()> {
    let rows = tx.query("SELECT DISTINCT org_id FROM members WHERE account_id = $1", params![account]).await?;
    for row in rows {
        let org: OrgId = row.get("org_id")?;
        record(tx, Note { org: &org, now, kind, subject, actor, data: data.clone() }).await?;
    }
    Ok(())
}

async fn insert_session(tx: &mut Tx<'_>, new: &NewSession, now: Timestamp) -> Result<()> {
    tx.exec(
        "INSERT INTO account_sessions (id, account_id, kind, hash, refresh_hash, name, address, provider, token_id, created_at, seen_at, access_until, idle_s, expires_at) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $10, $11, $12, $13)",
        params![&new.id, &new.account_id, new.kind, hash(&new.secret), new.refresh.as_deref().map(hash), &new.name, &new.address, &new.provider, new.token_id.as_ref(), now, new.access_until, new.idle_s, new.expires_at],
    )
    .await?;
    // The oldest ones go.
    // Those of a token never push out those of the person.
    let of = new.token_id.as_ref().map_or("", |id| id.as_str());
    tx.exec(
        "UPDATE account_sessions SET ended_at = $2, ended_why = 'too many' WHERE account_id = $1 AND COALESCE(token_id, '') = $4 AND ended_at IS NULL AND id NOT IN (SELECT id FROM account_sessions WHERE account_id = $1 AND COALESCE(token_id, '') = $4 AND ended_at IS NULL ORDER BY id DESC LIMIT $3)",
        params![&new.account_id, now, SESSIONS_MAX, of],
    )
    .await?;
    let data = json!({ "what": new.kind.as_str(), "name": new.name, "address": new.address, "provider": new.provider });
    record_everywhere(
        tx,
        &new.account_id,
        new.account_id.as_str(),
        "person.signed-in",
        ("session", new.id.as_str()),
        &data,
        now,
    )
    .await
}

/// A session that is open, by its id.
async fn open_session(tx: &mut Tx<'_>, id: &AccountSessionId, now: Timestamp) -> Result<AccountSession> {
    let row = tx.get(select!(AccountSession, "WHERE id = $1"), params![id]).await?;
    let session = AccountSession::from_row(&row.ok_or(StoreError::NotFound("session"))?)?;
    if session.is_open(now) { Ok(session) } else { Err(StoreError::NotFound("session")) }
}

/// Ends sessions; tells the account's orgs.
pub(super) async fn end_sessions(
    tx: &mut Tx<'_>,
    account: &AccountId,
    only: Option<&AccountSessionId>,
    provider: Option<&str>,
    (actor, why): (&str, &str),
    now: Timestamp,
) -> Result<u64> {
    let ended = tx
        .exec(
            "UPDATE account_sessions SET ended_at = $3, ended_why = $4 WHERE account_id = $1 AND (CAST($2 AS TEXT) IS NULL OR id = $2) AND (CAST($5 AS TEXT) IS NULL OR provider = $5) AND ended_at IS NULL",
            params![account, only, now, why, provider],
        )
        .await?;
    if only.is_none() {
        // A link that nobody has used yet would be a way back in.
        tx.exec("DELETE FROM sign_in_links WHERE account_id = $1 AND used_at IS NULL", params![account]).await?;
    }
    if ended > 0 {
        let data = json!({ "why": why, "sessions": ended });
        let subject = only.map_or(("account", account.as_str()), |id| ("session", id.as_str()));
        record_everywhere(tx, account, actor, "person.signed-out", subject, &data, now).await?;
    }
    Ok(ended)
}

impl Reader {
    /// Finds who holds the secret of an open session of this kind.
    pub async fn authenticate_session(&self, kind: SessionKind, secret: &str, now: Timestamp) -> Result<SignedIn> {
        self.main()
            .glance((kind, hash(secret), now), |tx, (kind, hash, now)| {
                Box::pin(async move {
                    let rows = tx
                        .query(
                            "SELECT s.id, t.org_id AS cap_org, t.role AS cap_role, '' AS token_name, a.id AS account_id, a.email, a.created_at, m.org_id AS member_of, m.role AS member_role FROM account_sessions s JOIN accounts a ON a.id = s.account_id LEFT JOIN tokens t ON t.id = s.token_id LEFT JOIN members m ON m.account_id = a.id WHERE s.hash = $1 AND s.kind = $2 AND s.ended_at IS NULL AND s.access_until > $3 AND s.expires_at > $3 AND s.seen_at + s.idle_s * 1000000 > $3 AND (s.token_id IS NULL OR (t.revoked_at IS NULL AND (t.expires_at IS NULL OR t.expires_at > $3))) ORDER BY m.org_id",
                            params![hash, kind, now],
                        )
                        .await?;
                    let row = rows.first().ok_or(StoreError::NotFound("session"))?;
                    signed_in(&rows, Credential::Session(row.get("id")?))
                })
            })
            .await
    }

    /// Whether what a stream was opened with is still good.
    pub async fn credential_is_good(&self, by: &Credential, org: &OrgId, now: Timestamp) -> Result<bool> {
        let id = match by {
            Credential::Token(id) => return self.token_is_good(id, org, now).await,
            Credential::Session(id) => id.clone(),
        };
        self.main()
            .glance((id, org.clone(), now), |tx, (id, org, now)| {
                Box::pin(async move {
                    let sql = "SELECT s.id FROM account_sessions s LEFT JOIN tokens t ON t.id = s.token_id WHERE s.id = $1 AND s.ended_at IS NULL AND s.expires_at > $2 AND (s.token_id IS NULL OR (t.revoked_at IS NULL AND (t.expires_at IS NULL OR t.expires_at > $2))) AND EXISTS (SELECT 1 FROM members m WHERE m.account_id = s.account_id AND m.org_id = $3)";
                    Ok(tx.get(sql, params![&id, now, org]).await?.is_some())
                })
            })
            .await
    }

    /// The open sessions of an account, the newest first.
    pub async fn account_sessions(&self, account: &AccountId, now: Timestamp) -> Result<Vec<AccountSession>> {
        self.main()
            .read((account.clone(), now), |tx, (account, now)| {
                Box::pin(async move {
                    let sql = select!(
                        AccountSession,
                        "WHERE account_id = $1 AND ended_at IS NULL AND expires_at > $2 AND seen_at + idle_s * 1000000 > $2 ORDER BY id DESC LIMIT 500"
                    );
                    tx.query(sql, params![account, now]).await?.iter().map(AccountSession::from_row).collect()
                })
            })
            .await
    }

    /// A CLI that waits for the person who types this code.
    pub async fn device_login(&self, user_code: &str, now: Timestamp) -> Result<DeviceLogin> {
        self.main()
            .glance((hash(user_code), now), |tx, (hash, now)| {
                Box::pin(async move {
                    let sql = select!(DeviceLogin, "WHERE user_code_hash = $1 AND expires_at > $2 AND answer IS NULL");
                    let row = tx.get(sql, params![hash, now]).await?.ok_or(StoreError::NotFound("code"))?;
                    DeviceLogin::from_row(&row)
                })
            })
            .await
    }

    /// Whether a link can still be used, and whether it makes the first account.
    pub async fn sign_in_link(&self, secret: &str, now: Timestamp) -> Result<bool> {
        self.main()
            .glance((hash(secret), now), |tx, (hash, now)| {
                Box::pin(async move {
                    let sql =
                        "SELECT account_id FROM sign_in_links WHERE hash = $1 AND used_at IS NULL AND expires_at > $2";
                    let row = tx.get(sql, params![hash, now]).await?.ok_or(StoreError::NotFound("link"))?;
                    Ok(row.get::<Option<AccountId>>("account_id")?.is_none())
                })
            })
            .await
    }

    /// Whether there is no account yet.
    pub async fn is_empty(&self) -> Result<bool> {
        let found = self.main().query("SELECT id FROM accounts LIMIT 1", vec![]).await?;
        Ok(found.is_empty())
    }

    /// Seals a value that only servers with our master keys can open: what a browser carries for a moment.
    pub fn seal_for_browser(&self, purpose: &str, plain: &[u8]) -> Vec<u8> {
        let (key, sealed) = self.masters().wrap(purpose, plain);
        [key.as_bytes(), b":", &sealed].concat()
    }

    pub fn open_from_browser(&self, purpose: &str, sealed: &[u8]) -> Option<Vec<u8>> {
        let at = sealed.iter().position(|b| *b == b':')?;
        let key = std::str::from_utf8(&sealed[..at]).ok()?;
        self.masters().unwrap(key, purpose, &sealed[at + 1..]).ok()
    }
}

impl Store {
    pub async fn begin_session(&self, new: NewSession, now: Timestamp) -> Result<()> {
        self.main()
            .write((new, now), |tx, (new, now)| Box::pin(async move { insert_session(tx, new, *now).await }))
            .await
    }

    /// Begins a session that another one, which is open, has let in. It is bounded by what bounds that one: its token, and its end where
    /// that is near because nobody can ask the provider again.
    pub async fn begin_session_by(
        &self,
        new: NewSession,
        by: &AccountSessionId,
        short_s: i64,
        now: Timestamp,
    ) -> Result<NewSession> {
        self.main()
            .write((new, by.clone(), short_s, now), |tx, (new, by, short_s, now)| {
                Box::pin(async move {
                    let by = open_session(tx, by, *now).await?;
                    let is_short = by.expires_at <= by.created_at.plus_s(*short_s);
                    let expires_at = if is_short { new.expires_at.min(by.expires_at) } else { new.expires_at };
                    let new = NewSession {
                        account_id: by.account_id,
                        provider: by.provider,
                        token_id: by.token_id,
                        access_until: new.access_until.min(expires_at),
                        expires_at,
                        ..new.clone()
                    };
                    insert_session(tx, &new, *now).await?;
                    Ok(new)
                })
            })
            .await
    }

    /// Gives a CLI new secrets for its refresh token. One that is not the current one was used before, by whomever: the session ends.
    pub async fn refresh_session(
        &self,
        id: &AccountSessionId,
        refresh: &str,
        (secret, next): (&str, &str),
        access_s: i64,
        now: Timestamp,
    ) -> Result<Refreshed> {
        let hashes = (hash(refresh), hash(secret), hash(next));
        self.main()
            .write((id.clone(), hashes, access_s, now), |tx, (id, (old, secret, next), access_s, now)| {
                Box::pin(async move {
                    let session = match open_session(tx, id, *now).await {
                        Ok(session) if session.kind == SessionKind::Cli => session,
                        Ok(_) | Err(StoreError::NotFound(_)) => return Ok(Refreshed::Unknown),
                        Err(other) => return Err(other),
                    };
                    let sql = "SELECT refresh_hash, spent_hash, spent_at FROM account_sessions WHERE id = $1";
                    let row = tx.get(sql, params![id]).await?.ok_or(StoreError::NotFound("session"))?;
                    let (current, spent): (Option<String>, Option<String>) = (row.get("refresh_hash")?, row.get("spent_hash")?);
                    let spent_at: Option<Timestamp> = row.get("spent_at")?;
                    let is_again = spent.as_ref() == Some(old);
                    // The answer may have been lost.
                    let is_lost = is_again && spent_at.is_some_and(|at| at.plus_s(LOST_ANSWER_S) >= *now);
                    if current.as_ref() != Some(old) && !is_lost {
                        let why = "its refresh token was used twice";
                        end_sessions(tx, &session.account_id, Some(id), None, ("ferry", why), *now).await?;
                        return Ok(Refreshed::Reused);
                    }
                    let access_until = now.plus_s(*access_s).min(session.expires_at);
                    let spent_at = if is_again { spent_at } else { Some(*now) };
                    tx.exec(
                        "UPDATE account_sessions SET hash = $2, refresh_hash = $3, spent_at = $7, spent_hash = $4, access_until = $6, seen_at = $5 WHERE id = $1",
                        params![id, secret, next, old, now, access_until, spent_at],
                    )
                    .await?;
                    Ok(Refreshed::Renewed(access_until))
                })
            })
            .await
    }

    /// Ends a session of an account; without an id all of them, or those that a provider vouches for.
    pub async fn end_account_sessions(
        &self,
        account: &AccountId,
        only: Option<&AccountSessionId>,
        provider: Option<&str>,
        why: &'static str,
        now: Timestamp,
    ) -> Result<u64> {
        let provider = provider.map(str::to_owned);
        self.main()
            .write((account.clone(), only.cloned(), provider, why, now), |tx, (account, only, provider, why, now)| {
                Box::pin(async move {
                    end_sessions(tx, account, only.as_ref(), provider.as_deref(), (account.as_str(), *why), *now).await
                })
            })
            .await
    }

    /// Notes when sessions were last used; called in batches.
    pub async fn touch_sessions(&self, used: Vec<(AccountSessionId, Timestamp)>) -> Result<()> {
        self.main()
            .write(used, |tx, used| {
                Box::pin(async move {
                    for (id, at) in used {
                        let sql = "UPDATE account_sessions SET seen_at = $2 WHERE id = $1 AND seen_at < $2";
                        tx.exec_later(sql, params![&id, at]).await?;
                    }
                    Ok(())
                })
            })
            .await
    }

    /// Makes a link that signs one browser in; without an account it makes the first one.
    pub async fn create_sign_in_link(
        &self,
        secret: &str,
        account: Option<&AccountId>,
        by: Option<&AccountSessionId>,
        expires_at: Timestamp,
        now: Timestamp,
    ) -> Result<()> {
        self.main()
            .write((hash(secret), account.cloned(), by.cloned(), expires_at, now), |tx, (hash, account, by, expires_at, now)| {
                Box::pin(async move {
                    // Only the newest link makes the first account.
                    if account.is_none() {
                        tx.exec("DELETE FROM sign_in_links WHERE account_id IS NULL", vec![]).await?;
                    }
                    tx.exec(
                        "INSERT INTO sign_in_links (hash, account_id, created_at, expires_at, session_id) VALUES ($1, $2, $3, $4, $5)",
                        params![hash, account.as_ref(), now, expires_at, by.as_ref()],
                    )
                    .await?;
                    if let Some(account) = account {
                        let data = json!({ "expires_at": expires_at });
                        let subject = ("account", account.as_str());
                        // Without a session it was made beside the server, or with a token.
                        let actor = if by.is_some() { account.as_str() } else { "ferry" };
                        record_everywhere(tx, account, actor, "person.link-created", subject, &data, *now).await?;
                    }
                    Ok(())
                })
            })
            .await
    }

    /// Uses a link: it is over, and its session begins. A link for the first account makes it, if there is still none.
    pub async fn use_sign_in_link(
        &self,
        secret: &str,
        email: &str,
        new: NewSession,
        now: Timestamp,
    ) -> Result<AccountId> {
        self.main()
            .write((hash(secret), email.to_owned(), new, now), |tx, (hash, email, new, now)| {
                Box::pin(async move {
                    let sql =
                        "UPDATE sign_in_links SET used_at = $2 WHERE hash = $1 AND used_at IS NULL AND expires_at > $2";
                    if tx.exec(sql, params![hash, now]).await? == 0 {
                        return Err(StoreError::NotFound("link"));
                    }
                    let row = tx
                        .get("SELECT account_id, session_id FROM sign_in_links WHERE hash = $1", params![hash])
                        .await?;
                    let row = row.ok_or(StoreError::NotFound("link"))?;
                    let (of, by): (Option<AccountId>, Option<AccountSessionId>) =
                        (row.get("account_id")?, row.get("session_id")?);
                    let mut new = new.clone();
                    // It reaches no further than the session that made the link, and lasts no longer.
                    if let Some(by) = by {
                        let by = open_session(tx, &by, *now).await?;
                        new.expires_at = new.expires_at.min(by.expires_at);
                        new.access_until = new.access_until.min(by.expires_at);
                        (new.provider, new.token_id) = (by.provider, by.token_id);
                    }
                    let account = match of {
                        Some(account) => account,
                        None => {
                            if tx.get("SELECT id FROM accounts LIMIT 1", vec![]).await?.is_some() {
                                return Err(Refused::NotTheFirst.into());
                            }
                            let sql = "INSERT INTO accounts (id, email, created_at) VALUES ($1, $2, $3)";
                            tx.exec(sql, params![&new.account_id, email, now]).await?;
                            new.account_id.clone()
                        }
                    };
                    let session = NewSession { account_id: account.clone(), ..new };
                    insert_session(tx, &session, *now).await?;
                    Ok(account)
                })
            })
            .await
    }

    pub async fn begin_device_login(&self, new: NewDeviceLogin, open_max: u64, now: Timestamp) -> Result<()> {
        self.main()
            .write((new, open_max, now), |tx, (new, open_max, now)| {
                Box::pin(async move {
                    let row = tx.get("SELECT COUNT(*) AS open FROM device_logins WHERE expires_at > $1 AND address = $2 AND user_code_hash IS NOT NULL", params![now, &new.address]).await?;
                    let open: u64 = row.ok_or(StoreError::NotFound("count"))?.get("open")?;
                    if open >= *open_max {
                        return Err(Refused::TooManyDevices(*open_max).into());
                    }
                    let answer = new.account_id.as_ref().map(|_| "approved");
                    tx.exec(
                        "INSERT INTO device_logins (hash, user_code_hash, challenge, host, address, created_at, expires_at, interval_s, account_id, session_id, answer) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)",
                        params![hash(&new.secret), new.user_code.as_deref().map(hash), new.challenge.as_deref(), &new.host, &new.address, now, new.expires_at, new.interval_s, new.account_id.as_ref(), new.session_id.as_ref(), answer],
                    )
                    .await?;
                    Ok(())
                })
            })
            .await
    }

    /// A person says whether the CLI with this code may come in.
    pub async fn answer_device_login(
        &self,
        user_code: &str,
        account: &AccountId,
        session: &AccountSessionId,
        yes: bool,
        now: Timestamp,
    ) -> Result<DeviceLogin> {
        self.main()
            .write((hash(user_code), account.clone(), session.clone(), yes, now), |tx, (hash, account, session, yes, now)| {
                Box::pin(async move {
                    let sql = select!(DeviceLogin, "WHERE user_code_hash = $1 AND expires_at > $2 AND answer IS NULL");
                    let row = tx.get(sql, params![hash, now]).await?.ok_or(StoreError::NotFound("code"))?;
                    let answer = if *yes { "approved" } else { "denied" };
                    tx.exec(
                        "UPDATE device_logins SET answer = $2, account_id = $3, session_id = $4 WHERE user_code_hash = $1",
                        params![hash, answer, account, session],
                    )
                    .await?;
                    DeviceLogin::from_row(&row)
                })
            })
            .await
    }

    /// A CLI asks whether it may come in. A yes is told once.
    pub async fn poll_device_login(&self, secret: &str, now: Timestamp) -> Result<DevicePoll> {
        self.main()
            .write((hash(secret), now), |tx, (hash, now)| {
                Box::pin(async move {
                    let sql = select!(DeviceLogin, "WHERE hash = $1");
                    let Some(row) = tx.get(sql, params![hash]).await? else { return Ok(DevicePoll::Expired) };
                    let login = DeviceLogin::from_row(&row)?;
                    if login.expires_at <= *now {
                        return Ok(DevicePoll::Expired);
                    }
                    let early = |at: Timestamp| at.plus_s(login.interval_s as i64).micros() - 500_000 > now.micros();
                    match login.answer.as_deref() {
                        Some("approved") => {
                            tx.exec("UPDATE device_logins SET answer = 'taken' WHERE hash = $1", params![hash]).await?;
                            Ok(DevicePoll::Approved(Box::new(login)))
                        }
                        Some("denied") => Ok(DevicePoll::Denied),
                        Some(_) => Ok(DevicePoll::Expired),
                        None if login.polled_at.is_some_and(early) => {
                            let slower = (login.interval_s + SLOW_DOWN_S).min(60);
                            let sql = "UPDATE device_logins SET polled_at = $2, interval_s = $3 WHERE hash = $1";
                            tx.exec(sql, params![hash, now, slower]).await?;
                            Ok(DevicePoll::SlowDown(slower))
                        }
                        None => {
                            let sql = "UPDATE device_logins SET polled_at = $2 WHERE hash = $1";
                            tx.exec(sql, params![hash, now]).await?;
                            Ok(DevicePoll::Pending)
                        }
                    }
                })
            })
            .await
    }

    /// Forgets sessions, links and codes that are long over.
    pub async fn prune_sign_ins(&self, before: Timestamp, now: Timestamp) -> Result<()> {
        self.main()
            .write((before, now), |tx, (before, now)| {
                Box::pin(async move {
                    tx.exec("DELETE FROM account_sessions WHERE ended_at < $1 OR expires_at < $1 OR seen_at + idle_s * 1000000 < $1", params![before]).await?;
                    tx.exec("DELETE FROM sign_in_links WHERE expires_at < $1", params![before]).await?;
                    tx.exec("DELETE FROM device_logins WHERE expires_at < $1", params![now]).await?;
                    tx.exec("DELETE FROM invites WHERE expires_at < $1 AND accepted_at IS NULL", params![before]).await?;
                    Ok(())
                })
            })
            .await
    }
}
