//! Members, invites, sessions and one-time links.

use model::{AccountId, AccountSessionId, InviteId, OrgId, Role, Timestamp};
use serde::{Deserialize, Serialize};

wire! {
    /// Somebody who belongs to an org.
    pub struct OrgMember {
        pub account_id: AccountId,
        pub email: String,
        /// The highest of the roles that the person has there.
        pub role: Role,
        /// Providers whose groups give a role; a role from a person is not named.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        pub groups_of: Vec<String>,
        pub created_at: Timestamp,
        /// When a browser or a CLI of this person was last used.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub seen_at: Option<Timestamp>,
    }

    pub struct UpdateMember {
        pub role: Role,
    }

    /// What became of a removal.
    pub struct MemberRemoved {
        pub account_id: AccountId,
        /// Providers whose groups give the person a role again with the next sign-in.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        pub groups_of: Vec<String>,
    }

    /// Somebody who is asked to join an org.
    pub struct OrgInvite {
        pub id: InviteId,
        pub org_id: OrgId,
        pub email: String,
        /// The role in the words of existing clients: `org_admin` for an admin, else the role's own name.
        pub role_type: String,
        pub role: Role,
        /// `pending`, `accepted` or `revoked`; one that has expired is `revoked`.
        pub status: String,
        pub created_by_id: AccountId,
        pub created_at: Timestamp,
        pub updated_at: Timestamp,
        pub expires_at: Timestamp,
        /// The link for the person: only in the answer that creates it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub url: Option<String>,
        /// Whether it was mailed: only in the answer that creates it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub mailed: Option<bool>,
    }

    pub struct CreateOrgInvite {
        pub email: String,
        /// `org_admin`, or a role by its own name; `org_admin` when absent, as existing clients expect.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub role_type: Option<String>,
        /// Wins over `role_type`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub role: Option<Role>,
    }

    /// A browser or a CLI that is signed in.
    pub struct AccountSession {
        pub id: AccountSessionId,
        /// `browser` or `cli`.
        pub kind: String,
        pub name: String,
        pub address: String,
        /// Who vouched for the person; empty for a link or a token.
        pub provider: String,
        /// The one that asks.
        pub current: bool,
        pub created_at: Timestamp,
        pub seen_at: Timestamp,
        pub expires_at: Timestamp,
    }

    pub struct SessionsEnded {
        pub ended: u64,
    }

    /// A link that signs one browser in, once.
    pub struct SignInLink {
        pub url: String,
        pub expires_at: Timestamp,
    }

    /// Who is signed in.
    pub struct CurrentSession {
        pub account_id: AccountId,
        pub email: String,
        /// What the request showed: `token`, `browser` or `cli`.
        pub by: String,
        pub orgs: Vec<OrgRole>,
    }

    /// An org, and the role in it.
    pub struct OrgRole {
        pub id: OrgId,
        pub name: String,
        pub role: Role,
    }

    /// What a CLI is given to sign in by a code (RFC 8628).
    pub struct DeviceStarted {
        pub device_code: String,
        pub user_code: String,
        pub verification_uri: String,
        pub expires_in: u64,
        pub interval: u64,
    }

    /// What a CLI signs its requests with, and what it asks for new ones with.
    pub struct CliTokens {
        pub access_token: String,
        pub refresh_token: String,
        pub token_type: String,
        pub expires_in: u64,
    }
}
