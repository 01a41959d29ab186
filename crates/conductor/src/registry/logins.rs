//! Logins that builds use at git hosts and registries.

use model::Timestamp;
use store::SourceLogin;

use crate::error::{BuildError, Result};
use crate::{By, Conductor};

/// A login that is asked for.
#[derive(Clone)]
pub struct WantedLogin {
    pub prefix: String,
    pub username: String,
    pub password: String,
    pub expires_at: Option<Timestamp>,
}

/// A prefix as it is kept: without a scheme, without a slash at its end.
fn bare(prefix: &str) -> String {
    prefix.split_once("://").map_or(prefix, |(_, rest)| rest).trim_end_matches('/').to_owned()
}

impl Conductor {
    /// Keeps a login, in place of the one before.
    pub async fn put_source_login(&self, by: &By, wanted: WantedLogin) -> Result<SourceLogin> {
        let WantedLogin { prefix, username, password, expires_at } = wanted;
        let prefix = bare(&prefix);
        let now = self.now();
        let wrong = if prefix.is_empty()
            || prefix.len() > 255
            || prefix.contains(|c: char| c.is_whitespace() || c.is_control())
        {
            Some("`prefix` is a host, or a host and the beginning of a path: `github.com/acme`")
        } else if password.len() < model::spec::SECRET_BYTES_MIN || password.contains(['\n', '\0']) {
            Some("the password must have 6 characters or more, on one line")
        } else if username.len() > 255 || username.contains(|c: char| c.is_control() || c == ':') {
            Some("the user name can't have `:` or control characters")
        } else if expires_at.is_some_and(|at| at <= now) {
            Some("`expires_at` has passed already")
        } else {
            None
        };
        if let Some(wrong) = wrong {
            return Err(BuildError::Login(wrong).into());
        }
        let login = SourceLogin { prefix, username, expires_at, created_by: by.account.clone(), created_at: now };
        self.store.put_source_login(&by.org, login.clone(), &password).await?;
        Ok(login)
    }

    pub async fn delete_source_login(&self, by: &By, prefix: &str) -> Result<()> {
        Ok(self.store.delete_source_login(&by.org, &bare(prefix), &by.account, self.now()).await?)
    }
}
