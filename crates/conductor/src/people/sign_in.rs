//! Signing in and out: browsers, CLIs, one-time links, and roles that a provider's groups give.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD as B64;
use model::{AccountId, AccountSessionId, Digest, Role, Timestamp};
use store::{
    Credential, DeviceLogin, DevicePoll, GroupsDue, NewDeviceLogin, NewSession, Refreshed, SessionKind, SignedIn,
    Store, StoreError, Vouched,
};

use super::admission::{Admission, Claims};
use crate::Conductor;
use crate::error::{PeopleError, Result};

/// A one-time link is good for an hour.
const LINK_S: i64 = 3600;
/// A CLI waits so long for a person.
const DEVICE_S: i64 = 600;
/// So long a CLI may take from the browser's answer to its question.
const LOOPBACK_S: i64 = 60;
/// So often a CLI may ask.
const POLL_S: u64 = 3;
/// CLIs that wait, of one address.
const DEVICES_MAX: u64 = 20;
/// Letters that are not mistaken for each other, and make no words.
const CODE: &[u8; 20] = b"BCDFGHJKLMNPQRSTVWXZ";

/// How long sign-ins last, in seconds.
#[derive(Debug, Clone, Copy)]
pub struct SignInLimits {
    pub browser_idle_s: u64,
    pub browser_s: u64,
    /// After this a CLI asks for new secrets, without a question to the person.
    pub cli_access_s: u64,
    pub cli_idle_s: u64,
    pub cli_s: u64,
    /// Groups are read again after this time: well within the hour.
    pub groups_s: u64,
}

impl Default for SignInLimits {
    fn default() -> Self {
        Self {
            browser_idle_s: 12 * 3600,
            browser_s: 7 * 86_400,
            cli_access_s: 3600,
            cli_idle_s: 30 * 86_400,
            cli_s: 90 * 86_400,
            groups_s: 45 * 60,
        }
    }
}

/// Where somebody comes from.
#[derive(Debug, Clone, Default)]
pub struct Visitor {
    /// A browser's name, or the host of a CLI.
    pub name: String,
    pub address: String,
}

/// A browser that is signed in: the secret of its cookie.
#[derive(Debug, Clone)]
pub struct SignedInBrowser {
    pub account: AccountId,
    pub secret: String,
    pub expires_at: Timestamp,
}

/// What a CLI is given.
#[derive(Debug, Clone)]
pub struct CliSecrets {
    pub access: String,
    pub refresh: String,
    pub access_until: Timestamp,
}

/// What a CLI shows the person, and what it asks with.
#[derive(Debug, Clone)]
pub struct DeviceStarted {
    pub secret: String,
    pub user_code: String,
    pub expires_in_s: u64,
    pub interval_s: u64,
}

fn seconds(s: u64) -> i64 {
    i64::try_from(s).unwrap_or(i64::MAX / 4_000_000)
}

/// As somebody types it: upper case, with or without the dash.
pub(crate) fn user_code(typed: &str) -> String {
    typed.chars().filter(char::is_ascii_alphanumeric).map(|c| c.to_ascii_uppercase()).take(16).collect()
}

impl Conductor {
    fn new_session(&self, account: &AccountId, kind: SessionKind, visitor: &Visitor, provider: &str) -> NewSession {
        let (now, limits) = (self.now(), &self.sign_in_limits);
        let (idle_s, all_s) = match kind {
            SessionKind::Browser => (limits.browser_idle_s, limits.browser_s),
            SessionKind::Cli => (limits.cli_idle_s, limits.cli_s),
        };
        let expires_at = now.plus_s(seconds(all_s));
        let short = |text: &str| text.chars().filter(|c| !c.is_control()).take(120).collect::<String>();
        let id = AccountSessionId::new(now, self.random_u128());
        NewSession {
            refresh: (kind == SessionKind::Cli).then(|| self.refresh_token(&id)),
            id,
            account_id: account.clone(),
            kind,
            secret: self.secret(if kind == SessionKind::Cli { "fra" } else { "frs" }),
            name: short(&visitor.name),
            address: short(&visitor.address),
            provider: provider.to_owned(),
            token_id: None,
            access_until: match kind {
                SessionKind::Browser => expires_at,
                SessionKind::Cli => now.plus_s(seconds(limits.cli_access_s)),
            },
            idle_s,
            expires_at,
        }
    }

    /// It names its session, so that one that was copied and used is known as such.
    fn refresh_token(&self, id: &AccountSessionId) -> String {
        format!("{}_{id}", self.secret("frr"))
    }

    async fn begin_browser(&self, new: NewSession) -> Result<SignedInBrowser> {
        let begun =
            SignedInBrowser { account: new.account_id.clone(), secret: new.secret.clone(), expires_at: new.expires_at };
        self.store.begin_session(new, self.now()).await?;
        self.people_changed();
        Ok(begun)
    }

    /// The orgs that groups give roles in, as far as they exist.
    async fn roles_of(&self, admission: &Admission, claims: &Claims) -> Result<Vec<(model::OrgId, Role)>> {
        let roles = admission.roles(claims);
        let orgs = self.store.orgs_named(roles.keys().cloned().collect()).await?;
        let mut found: Vec<(model::OrgId, Role)> = Vec::new();
        for (name, org) in orgs {
            let role = roles[&name];
            match found.iter_mut().find(|(known, _)| *known == org) {
                Some((_, had)) => *had = (*had).max(role),
                None => found.push((org, role)),
            }
        }
        Ok(found)
    }

    /// Signs a browser in for whom a provider vouches; with the secret of an invite, it is accepted, too.
    pub async fn sign_in(
        &self,
        admission: &Admission,
        claims: &Claims,
        provider_refresh: Option<String>,
        invite: Option<&str>,
        visitor: &Visitor,
    ) -> Result<SignedInBrowser> {
        let now = self.now();
        let known = self.store.account_of(&claims.issuer, &claims.subject).await?;
        let is_member = match &known {
            Some(account) => !self.store.orgs_of(account).await?.is_empty(),
            None => false,
        };
        // An invite that is over is no reason to refuse who may come in without it.
        let invite = match invite {
            Some(secret) => match self.store.invite_of_link(secret, now).await {
                Ok((invite, _)) => Some((secret, invite)),
                Err(StoreError::NotFound(_)) => None,
                Err(other) => return Err(other.into()),
            },
            None => None,
        };
        let admitted = self.admit(admission, claims, invite.as_ref().map(|(_, invite)| invite), is_member).await;
        let (email, roles) = match (admitted, &known) {
            (Ok(admitted), _) => admitted,
            (Err(error), Some(account)) => {
                self.store.note_refused(account, &error.to_string(), &visitor.address, now).await?;
                return Err(error);
            }
            (Err(error), None) => return Err(error),
        };
        let who = Vouched {
            provider: admission.provider.clone(),
            issuer: claims.issuer.clone(),
            subject: claims.subject.clone(),
            email,
            roles,
            refresh: provider_refresh.filter(|_| !admission.grants.is_empty()),
            groups_due_at: (!admission.grants.is_empty()).then(|| now.plus_s(seconds(self.sign_in_limits.groups_s))),
        };
        let asks_again = who.refresh.is_some();
        let account = self.store.sign_in_as(who, AccountId::new(now, self.random_u128()), now).await?;
        if let Some((secret, _)) = invite {
            self.store.accept_invite(secret, &account, now).await?;
        }
        let mut new = self.new_session(&account, SessionKind::Browser, visitor, &admission.provider);
        if !admission.grants.is_empty() && !asks_again {
            // Nobody can ask the provider again, so the person signs in again within the hour.
            new.expires_at = new.expires_at.min(now.plus_s(seconds(self.sign_in_limits.groups_s)));
        }
        self.begin_browser(new).await
    }

    async fn admit(
        &self,
        admission: &Admission,
        claims: &Claims,
        invite: Option<&store::Invite>,
        is_member: bool,
    ) -> Result<(String, Vec<(model::OrgId, Role)>)> {
        let email = admission.email(claims)?;
        let roles = self.roles_of(admission, claims).await?;
        if let Some(invite) = invite {
            if invite.email != email {
                return Err(PeopleError::OtherInvitee { invited: invite.email.clone(), email }.into());
            }
        } else if !is_member && roles.is_empty() && !admission.allows(&email) {
            return Err(PeopleError::NotInvited { email }.into());
        }
        Ok((email, roles))
    }

    /// Who is signed in already takes an invite.
    pub async fn accept_invite(&self, who: &SignedIn, secret: &str) -> Result<()> {
        let (invite, org) = self.store.invite_of_link(secret, self.now()).await?;
        // It would be used up for an account that has no use for it.
        if who.role_in(&invite.org_id).is_some_and(|role| role >= invite.role) {
            return Err(PeopleError::MemberAlready { email: who.account.email.clone(), org }.into());
        }
        if invite.email != who.account.email {
            return Err(PeopleError::OtherInvitee { invited: invite.email, email: who.account.email.clone() }.into());
        }
        self.store.accept_invite(secret, &who.account.id, self.now()).await?;
        self.people_changed();
        Ok(())
    }

    /// Where no provider is configured, the link of an invite is the sign-in: it makes an account.
    pub async fn accept_invite_without_provider(&self, secret: &str, visitor: &Visitor) -> Result<SignedInBrowser> {
        let now = self.now();
        let account = AccountId::new(now, self.random_u128());
        self.store.accept_invite_as_new(secret, &account, now).await?;
        self.begin_browser(self.new_session(&account, SessionKind::Browser, visitor, "")).await
    }

    /// A browser session in place of an API token: it reaches as far, and ends with it.
    pub async fn trade_token(&self, who: &SignedIn, visitor: &Visitor) -> Result<SignedInBrowser> {
        let Credential::Token(token) = &who.by else { return Err(PeopleError::NeedsSession.into()) };
        let new = self.new_session(&who.account.id, SessionKind::Browser, visitor, "");
        self.begin_browser(NewSession { token_id: Some(token.clone()), ..new }).await
    }

    /// Signs out: one session, or all of the account.
    pub async fn end_sessions(
        &self,
        who: &AccountId,
        only: Option<&AccountSessionId>,
        why: &'static str,
    ) -> Result<u64> {
        let ended = self.store.end_account_sessions(who, only, None, why, self.now()).await;
        self.people_changed();
        Ok(ended?)
    }

    /// A link that signs one browser in as whoever asks.
    pub async fn sign_in_link(&self, who: &SignedIn) -> Result<(String, Timestamp)> {
        // It would reach further than the token.
        if !who.is_whole() {
            return Err(PeopleError::OneOrg.into());
        }
        let by = match &who.by {
            Credential::Session(id) => Some(id),
            Credential::Token(_) => None,
        };
        let (secret, now) = (self.secret("frl"), self.now());
        let expires_at = now.plus_s(LINK_S);
        self.store.create_sign_in_link(&secret, Some(&who.account.id), by, expires_at, now).await?;
        Ok((secret, expires_at))
    }

    pub async fn use_link(&self, secret: &str, email: &str, visitor: &Visitor) -> Result<SignedInBrowser> {
        let email = model::name::email(email).map_err(PeopleError::Email)?;
        let new = self.new_session(&AccountId::new(self.now(), self.random_u128()), SessionKind::Browser, visitor, "");
        let (secret_of_cookie, expires_at) = (new.secret.clone(), new.expires_at);
        let account = self.store.use_sign_in_link(secret, &email, new, self.now()).await?;
        self.people_changed();
        Ok(SignedInBrowser { account, secret: secret_of_cookie, expires_at })
    }

    /// A CLI without a browser asks to be let in.
    pub async fn begin_device(&self, visitor: &Visitor) -> Result<DeviceStarted> {
        let now = self.now();
        let mut bytes = [0; 16];
        (self.draw)(&mut bytes);
        // 20 letters: a byte below 240 picks each as often; eight of sixteen are always enough but once in 10^9.
        let letters: String =
            bytes.iter().filter(|b| **b < 240).map(|b| char::from(CODE[usize::from(b % 20)])).take(8).collect();
        let secret = self.secret("frd");
        let new = NewDeviceLogin {
            secret: secret.clone(),
            user_code: Some(letters.clone()),
            challenge: None,
            host: visitor.name.chars().filter(|c| !c.is_control()).take(120).collect(),
            address: visitor.address.clone(),
            expires_at: now.plus_s(DEVICE_S),
            interval_s: POLL_S,
            account_id: None,
            session_id: None,
        };
        self.store.begin_device_login(new, DEVICES_MAX, now).await?;
        let (first, last) = letters.split_at(letters.len() / 2);
        Ok(DeviceStarted {
            secret,
            user_code: format!("{first}-{last}"),
            expires_in_s: DEVICE_S as u64,
            interval_s: POLL_S,
        })
    }

    /// The CLI that shows this code, if one waits.
    pub async fn device_of(&self, typed: &str) -> Result<DeviceLogin> {
        Ok(self.store.device_login(&user_code(typed), self.now()).await?)
    }

    pub async fn answer_device(&self, who: &SignedIn, typed: &str, yes: bool) -> Result<DeviceLogin> {
        let Credential::Session(session) = &who.by else { return Err(PeopleError::NeedsSession.into()) };
        let answered =
            self.store.answer_device_login(&user_code(typed), &who.account.id, session, yes, self.now()).await;
        Ok(answered?)
    }

    /// A CLI on the machine of the browser is let in: the code that its address is told.
    pub async fn let_in_loopback(&self, who: &SignedIn, challenge: &str, visitor: &Visitor) -> Result<String> {
        let Credential::Session(session) = &who.by else { return Err(PeopleError::NeedsSession.into()) };
        let (secret, now) = (self.secret("frc"), self.now());
        let new = NewDeviceLogin {
            secret: secret.clone(),
            user_code: None,
            challenge: Some(challenge.to_owned()),
            host: visitor.name.chars().filter(|c| !c.is_control()).take(120).collect(),
            address: visitor.address.clone(),
            expires_at: now.plus_s(LOOPBACK_S),
            interval_s: 0,
            account_id: Some(who.account.id.clone()),
            session_id: Some(session.clone()),
        };
        self.store.begin_device_login(new, DEVICES_MAX, now).await?;
        Ok(secret)
    }

    /// What a CLI that asks is told; a yes comes with its secrets, once.
    pub async fn poll_device(
        &self,
        secret: &str,
        verifier: Option<&str>,
        visitor: &Visitor,
    ) -> Result<(DevicePoll, Option<CliSecrets>)> {
        let poll = self.store.poll_device_login(secret, self.now()).await?;
        let DevicePoll::Approved(login) = &poll else { return Ok((poll, None)) };
        if let Some(challenge) = &login.challenge {
            let shown = Digest::of(verifier.unwrap_or_default().as_bytes());
            let shown = hex::decode(shown.hex()).map(|bytes| B64.encode(bytes)).unwrap_or_default();
            if shown != *challenge {
                return Err(PeopleError::Challenge.into());
            }
        }
        let account = login.account_id.as_ref().ok_or(StoreError::NotFound("account"))?;
        let said_by = login.session_id.as_ref().ok_or(StoreError::NotFound("session"))?;
        let name = if login.host.is_empty() { visitor.name.clone() } else { login.host.clone() };
        let visitor = Visitor { name, address: visitor.address.clone() };
        let new = self.new_session(account, SessionKind::Cli, &visitor, "");
        // The session that said yes may have ended since, and with it the right to say so.
        let short_s = seconds(self.sign_in_limits.groups_s);
        let new = self.store.begin_session_by(new, said_by, short_s, self.now()).await?;
        let secrets = CliSecrets {
            access: new.secret.clone(),
            refresh: new.refresh.clone().unwrap_or_default(),
            access_until: new.access_until,
        };
        self.people_changed();
        Ok((poll, Some(secrets)))
    }

    /// New secrets for a CLI; `None` where it has to sign in again.
    pub async fn refresh_cli(&self, refresh: &str) -> Result<Option<CliSecrets>> {
        let named = refresh.rsplit_once('_').and_then(|(_, id)| AccountSessionId::parse(id).ok());
        let Some(id) = named else { return Ok(None) };
        let (access, next) = (self.secret("fra"), self.refresh_token(&id));
        let access_s = seconds(self.sign_in_limits.cli_access_s);
        let refreshed = self.store.refresh_session(&id, refresh, (&access, &next), access_s, self.now()).await?;
        self.people_changed();
        Ok(match refreshed {
            Refreshed::Renewed(access_until) => Some(CliSecrets { access, refresh: next, access_until }),
            Refreshed::Reused | Refreshed::Unknown => None,
        })
    }

    /// Notes when sessions were last used.
    pub async fn touch_sessions(&self, uses: Vec<(AccountSessionId, Timestamp)>) -> Result<()> {
        Ok(self.store.touch_sessions(uses).await?)
    }

    /// People whose provider is to be asked for their groups. Whoever takes them has ten minutes.
    pub async fn due_groups(&self, limit: u64) -> Result<Vec<GroupsDue>> {
        Ok(self.store.take_due_groups(self.now().plus_s(600), limit, self.now()).await?)
    }

    /// The provider has answered: roles follow the groups.
    pub async fn groups_read(
        &self,
        due: &GroupsDue,
        admission: &Admission,
        claims: &Claims,
        refresh: Option<&str>,
    ) -> Result<()> {
        let (now, roles) = (self.now(), self.roles_of(admission, claims).await?);
        let again = now.plus_s(seconds(self.sign_in_limits.groups_s));
        let kept = refresh.or(due.refresh.as_deref()).map(|refresh| (refresh, again));
        if self.store.groups_read(due, roles, kept, now).await? {
            self.people_changed();
        }
        Ok(())
    }

    /// The provider refused, or can't be asked: the sessions that it vouched for are over, and what its groups gave is taken until the
    /// next sign-in.
    pub async fn groups_refused(&self, due: &GroupsDue) -> Result<()> {
        if self.store.groups_read(due, Vec::new(), None, self.now()).await? {
            self.people_changed();
        }
        Ok(())
    }

    /// What providers have given that are not configured any more is taken.
    pub async fn forget_other_providers(&self, known: Vec<String>, with_roles: Vec<String>) -> Result<()> {
        let forgotten = self.store.forget_other_providers(known, with_roles, self.now()).await;
        self.people_changed();
        Ok(forgotten?)
    }
}

/// A link that makes the first account, where there is none.
pub async fn first_link(store: &Store, now: Timestamp) -> Result<Option<String>> {
    if !store.is_empty().await? {
        return Ok(None);
    }
    let secret = crate::secret("frl");
    store.create_sign_in_link(&secret, None, None, now.plus_s(LINK_S), now).await?;
    Ok(Some(secret))
}

/// A link for the account with this address or id, made beside the server: for who can't sign in any more. Of several with one
/// address, the one that belongs to an org.
pub async fn link_for(store: &Store, wanted: &str, now: Timestamp) -> Result<String> {
    let wanted = wanted.trim().to_lowercase();
    let found = store.accounts_named(&wanted).await?;
    let members: Vec<&AccountId> = found.iter().filter(|(_, orgs)| *orgs > 0).map(|(id, _)| id).collect();
    let account = match (found.as_slice(), members.as_slice()) {
        ([(one, _)], _) => one,
        (_, [one]) => *one,
        ([], _) => return Err(StoreError::NotFound("account with this address").into()),
        (several, _) => {
            let ids: Vec<String> = several.iter().map(|(id, orgs)| format!("{id} (in {orgs} orgs)")).collect();
            return Err(PeopleError::SeveralAccounts { email: wanted, ids: ids.join(", ") }.into());
        }
    };
    let secret = crate::secret("frl");
    store.create_sign_in_link(&secret, Some(account), None, now.plus_s(LINK_S), now).await?;
    Ok(secret)
}

#[cfg(test)]
mod tests {
    #[test]
    fn a_code_is_read_as_it_is_typed() {
        for typed in ["BCDF-GHJK", "bcdf ghjk", " BcDfGhJk\n"] {
            assert_eq!(super::user_code(typed), "BCDFGHJK", "{typed}");
        }
    }
}
