//! The customer's store of secrets. The runner reads it; nothing of what it holds leaves the customer's account.

mod directory;
mod vault;

use std::path::{Path, PathBuf};

use futures::future::BoxFuture;
use model::secrets::GENERATED_CHARS;

pub use directory::Directory;
use vault::Vault;

use crate::seal::vault::Tools;

/// The directory in the state directory where nothing else is said.
const FOLDER: &str = "secrets";
const VAULT: &str = "vault:";

/// Where secrets lie, by their names.
pub trait SecretStore: Send + Sync {
    /// None where there is no such secret. Whatever keeps the store from saying so is an error.
    fn read<'a>(&'a self, name: &'a str) -> BoxFuture<'a, Result<Option<Vec<u8>>, StoreError>>;

    /// Keeps a value where the store has none; says whether it was kept.
    fn keep<'a>(&'a self, name: &'a str, value: &'a str) -> BoxFuture<'a, Result<bool, StoreError>>;

    /// Where a person puts a secret.
    fn place(&self, name: &str) -> String;
}

#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    #[error("`{0}` can't be the name of a secret")]
    Name(String),
    #[error("{place} can't be read: {why}")]
    Unreadable { place: String, why: String },
    #[error("{place} can't be written: {why}")]
    Unwritable { place: String, why: String },
    #[error("{0}")]
    Setting(String),
}

/// The store that the runner was started with.
pub fn open(tools: &Tools, state_dir: &Path, ca_file: Option<&Path>) -> Result<Box<dyn SecretStore>, StoreError> {
    match tools.secret_store.as_deref() {
        Some(named) => match named.strip_prefix(VAULT) {
            Some(url) => Ok(Box::new(Vault::new(url, tools.vault_token_file.clone(), ca_file)?)),
            None => Ok(Box::new(Directory::named(named.into()))),
        },
        None => Ok(Box::new(Directory::new(folder(state_dir)))),
    }
}

/// The directory of secrets of a runner that has no other store.
pub fn folder(state_dir: &Path) -> PathBuf {
    state_dir.join(FOLDER)
}

/// A name may not lead out of the store.
fn checked(name: &str) -> Result<&str, StoreError> {
    let good = !name.is_empty()
        && !name.starts_with('.')
        && name.chars().all(|c| c.is_ascii_alphanumeric() || "-_.".contains(c));
    if good { Ok(name) } else { Err(StoreError::Name(name.to_owned())) }
}

/// Letters and digits that nobody can guess.
pub fn generated() -> Result<String, getrandom::Error> {
    const ALPHABET: &[u8; 62] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";
    let mut text = String::with_capacity(GENERATED_CHARS);
    while text.len() < GENERATED_CHARS {
        let mut bytes = [0_u8; 2 * GENERATED_CHARS];
        getrandom::fill(&mut bytes)?;
        // Each character is as likely as any other: 248 is four times 62.
        let picked = bytes.iter().filter(|byte| **byte < 248).map(|byte| char::from(ALPHABET[usize::from(byte % 62)]));
        text.extend(picked.take(GENERATED_CHARS - text.len()));
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_made_up_is_long_and_never_the_same() {
        let (one, two) = (generated().expect("random"), generated().expect("random"));
        assert_eq!(one.len(), GENERATED_CHARS);
        assert!(one.chars().all(|c| c.is_ascii_alphanumeric()));
        assert_ne!(one, two);
    }

    #[test]
    fn a_name_leads_nowhere_else() {
        for bad in ["", ".", "..", "../a", "a/b", ".a", "a b", "a\0"] {
            assert!(checked(bad).is_err(), "{bad:?}");
        }
        assert!(checked("db_password.v2").is_ok());
    }
}
