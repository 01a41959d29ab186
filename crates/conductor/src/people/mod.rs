//! Owns changes to orgs, members, invites, API tokens and sign-ins.
//! Handlers call it.
//! No HTTP, no SQL: it checks what may be said, and writes it in one transaction.

pub(crate) mod admission;
pub(crate) mod members;
pub(crate) mod sign_in;
pub(crate) mod views;

use std::collections::BTreeMap;

use model::runner::RunnerKind;
use model::{AccountId, OrgId, Role, RunnerId, Timestamp, TokenId};
use store::{Credential, Idempotency, NewRunner, NewToken, Org, SignedIn, StoreError, Token};

use crate::error::{PeopleError, Result};
use crate::{By, Conductor};

/// The settings of a simulation, and the most that each may be.
const SIMULATION: [(&str, u64); 6] = [
    ("seed", u64::MAX),
    ("step_ms", 3_600_000),
    ("fail_percent", 100),
    ("drift_percent", 100),
    ("unknown_percent", 100),
    ("resources", 5_000),
];

/// An org that is asked for.
#[derive(Debug, Clone, Default)]
pub struct WantedOrg {
    pub name: String,
    /// Nothing is deployed for real.
    pub simulated: bool,
    pub simulation: BTreeMap<String, u64>,
}

/// A token that is asked for.
#[derive(Debug, Clone)]
pub struct WantedToken {
    pub name: String,
    pub role: Role,
    pub expires_in_s: Option<u64>,
    /// For the telemetry of this runner, and nothing else.
    pub runner_id: Option<RunnerId>,
}

impl Conductor {
    /// Creates an org with its build runner; the account becomes its admin.
    pub async fn create_org(&self, owner: &SignedIn, wanted: WantedOrg, idem: Option<Idempotency>) -> Result<Org> {
        if owner.org_id.is_some() {
            return Err(PeopleError::OneOrg.into());
        }
        model::name::check(&wanted.name).map_err(PeopleError::Name)?;
        if OrgId::parse(&wanted.name).is_ok() {
            return Err(PeopleError::Name(format!("`{}` is an id; choose a name", wanted.name)).into());
        }
        for (name, value) in &wanted.simulation {
            let known = SIMULATION.iter().find(|(known, _)| known == name);
            let (_, most) = known.ok_or_else(|| PeopleError::NoSuchSetting {
                name: name.clone(),
                known: SIMULATION.map(|(name, _)| name).join(", "),
            })?;
            if value > most {
                return Err(PeopleError::SettingTooLarge { name: name.clone(), most: *most }.into());
            }
        }
        let now = self.now();
        let id = OrgId::new(now, self.random_u128());
        let runner = NewRunner {
            id: RunnerId::new(now, self.random_u128()),
            org_id: id.clone(),
            name: "build".into(),
            kind: RunnerKind::Build,
            install_id: None,
        };
        let org = Org {
            id,
            name: wanted.name,
            sandbox_mode: wanted.simulated,
            simulation: serde_json::json!(wanted.simulation),
            build_runner_id: runner.id.clone(),
            created_by: owner.account.id.clone(),
            created_at: now,
            updated_at: now,
        };
        let created = self.store.create_org(org, runner, idem).await?;
        self.people_changed();
        let id = OrgId::parse(&created.id).map_err(|_| StoreError::corrupt("id of an org"))?;
        Ok(self.store.org(&id).await?)
    }

    /// Creates a token for the org of who asks; never one with a higher role. The secret is in the answer, and nowhere else.
    pub async fn create_token(
        &self,
        by: &By,
        who: &SignedIn,
        wanted: WantedToken,
        idem: Option<Idempotency>,
    ) -> Result<(NewToken, Timestamp)> {
        let role = who.role_in(&by.org).unwrap_or(Role::ReadOnly);
        // A token makes no other one that could outlive it, unless it manages tokens.
        if role < Role::Admin && !(who.is_whole() && matches!(who.by, Credential::Session(_))) {
            return Err(PeopleError::NeedsSession.into());
        }
        model::name::check(&wanted.name).map_err(PeopleError::Name)?;
        if wanted.runner_id.is_some() && role < Role::Operator {
            return Err(PeopleError::TelemetryToken.into());
        }
        if wanted.expires_in_s == Some(0) {
            return Err(PeopleError::Expired.into());
        }
        if let Some(runner) = &wanted.runner_id {
            self.store.runner(&by.org, runner.as_str()).await?;
        }
        let now = self.now();
        let new = NewToken {
            id: TokenId::new(now, self.random_u128()),
            account_id: by.account.clone(),
            org_id: Some(by.org.clone()),
            role: wanted.role.min(role),
            name: wanted.name,
            token: self.secret("fry"),
            expires_at: wanted.expires_in_s.map(|s| now.plus_s(i64::try_from(s).unwrap_or(i64::MAX / 4_000_000))),
            runner_id: wanted.runner_id,
        };
        self.store.create_token(&by.org, new.clone(), idem, now).await?;
        Ok((new, now))
    }

    /// Revokes a token; at once, and for good. Who is no admin revokes only their own.
    pub async fn revoke_token(&self, by: &By, who: &SignedIn, id: &TokenId) -> Result<Token> {
        let only_own = who.role_in(&by.org).is_none_or(|role| role < Role::Admin);
        if only_own && !who.is_whole() {
            return Err(PeopleError::Narrow.into());
        }
        // Those of the account itself are no matter of one org's.
        let of_account = who.is_whole();
        let revoked = self.store.revoke_token(&by.org, id, &by.account, (only_own, of_account), self.now()).await;
        self.people_changed();
        Ok(revoked?)
    }

    /// Whoever has looked up a person looks again.
    pub(crate) fn people_changed(&self) {
        self.store.notifier().wake(store::topic::PEOPLE.to_owned());
    }

    /// Notes when tokens were last used.
    pub async fn touch_tokens(&self, uses: Vec<(TokenId, Timestamp)>) -> Result<()> {
        Ok(self.store.touch_tokens(uses).await?)
    }
}

/// Makes the first account of a server with this token; false when there is one already.
pub async fn first_account(store: &store::Store, email: &str, token: String, now: Timestamp) -> Result<bool> {
    let account = AccountId::new(now, crate::random_u128());
    let token = NewToken {
        id: TokenId::new(now, crate::random_u128()),
        account_id: account.clone(),
        org_id: None,
        role: Role::Admin,
        name: "bootstrap".into(),
        token,
        expires_at: None,
        runner_id: None,
    };
    Ok(store.bootstrap(account, email, token, now).await?)
}
