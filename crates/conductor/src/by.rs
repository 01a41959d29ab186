//! Who asks for a change.

use model::{AccountId, OrgId};

/// An account in an org.
#[derive(Debug, Clone)]
pub struct By {
    pub org: OrgId,
    pub account: AccountId,
    /// For people: the e-mail address, and the name of the token.
    pub who: String,
}

impl By {
    /// As events name it.
    pub fn actor(&self) -> &str {
        self.account.as_str()
    }
}
