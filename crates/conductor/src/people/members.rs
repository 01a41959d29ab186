//! Members of an org, and invites.

use model::{AccountId, InviteId, Role};
use store::{Idempotency, Invite, NewInvite};

use crate::error::{PeopleError, Result};
use crate::{By, Conductor};

/// How long the link of an invite is good.
const INVITE_DAYS: i64 = 7;

/// An invite that is asked for.
#[derive(Debug, Clone)]
pub struct WantedInvite {
    pub email: String,
    pub role: Role,
}

/// An invite with the secret of its link, which is nowhere else.
#[derive(Debug, Clone)]
pub struct Invited {
    pub invite: Invite,
    pub secret: String,
    /// The same request made it before.
    pub replayed: bool,
}

impl Conductor {
    /// Invites somebody; an open invite for the same address ends. The same request again gives the same invite and link.
    pub async fn invite(
        &self,
        by: &By,
        role: Role,
        wanted: WantedInvite,
        idem: Option<Idempotency>,
    ) -> Result<Invited> {
        let email = model::name::email(&wanted.email).map_err(PeopleError::Email)?;
        if wanted.role > role {
            return Err(PeopleError::HigherRole(role).into());
        }
        let now = self.now();
        let secret = match &idem {
            Some(idem) => format!("fri_{}", self.store.secret_of_request(idem)?),
            None => self.secret("fri"),
        };
        let new = NewInvite {
            id: InviteId::new(now, self.random_u128()),
            org_id: by.org.clone(),
            email,
            role: wanted.role,
            secret: secret.clone(),
            created_by: by.account.clone(),
            expires_at: now.plus_s(INVITE_DAYS * 86_400),
        };
        let (invite, replayed) = self.store.create_invite(new, idem, now).await?;
        Ok(Invited { invite, secret, replayed })
    }

    pub async fn revoke_invite(&self, by: &By, id: &InviteId) -> Result<Invite> {
        Ok(self.store.revoke_invite(&by.org, id, &by.account, self.now()).await?)
    }

    /// Gives a member another role; never one above one's own, and the last admin stays one.
    pub async fn set_member_role(&self, by: &By, account: &AccountId, role: Role) -> Result<()> {
        let set = self.store.set_member_role(&by.org, account, role, &by.account, self.now()).await;
        self.people_changed();
        Ok(set?)
    }

    /// Removes a member with its sessions and its tokens for the org. Returns the providers whose groups would bring it back.
    pub async fn remove_member(&self, by: &By, account: &AccountId) -> Result<Vec<String>> {
        let removed = self.store.remove_member(&by.org, account, &by.account, self.now()).await;
        self.people_changed();
        Ok(removed?)
    }
}
