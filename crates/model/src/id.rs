//! Typed ids: a three-letter prefix, ten characters of time and thirteen of randomness, all `[0-9a-z]`, 26 in all.
//!
//! Time comes first, so ids sort by age. Ids end up in DNS, bucket and role names: no other characters, ever.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::Timestamp;

/// Length of every id.
pub const ID_LENGTH: usize = 26;
const TIME_LENGTH: usize = 10;
const DIGITS: &[u8; 36] = b"0123456789abcdefghijklmnopqrstuvwxyz";

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{text}` is not a valid id: expected `{prefix}` and 23 characters of [0-9a-z]")]
pub struct InvalidId {
    pub prefix: &'static str,
    pub text: String,
}

fn base36(mut value: u128, length: usize) -> String {
    let mut out = vec![b'0'; length];
    for slot in out.iter_mut().rev() {
        *slot = DIGITS[(value % 36) as usize];
        value /= 36;
    }
    out.into_iter().map(char::from).collect()
}

/// Makes the text of an id; `random` is drawn by the caller.
pub fn make(prefix: &'static str, now: Timestamp, random: u128) -> String {
    let mut text = String::with_capacity(ID_LENGTH);
    text.push_str(prefix);
    text.push_str(&base36(now.micros().max(0) as u128, TIME_LENGTH));
    text.push_str(&base36(random, ID_LENGTH - 3 - TIME_LENGTH));
    text
}

/// The id under another prefix: what is another view of the same thing needs no id of its own.
pub fn twin(prefix: &'static str, id: &str) -> String {
    format!("{prefix}{}", id.get(prefix.len()..).unwrap_or_default())
}

/// Whether `text` has the form of an id with this prefix.
pub fn is_valid(prefix: &str, text: &str) -> bool {
    text.len() == ID_LENGTH
        && text.starts_with(prefix)
        && text.bytes().all(|b| b.is_ascii_digit() || b.is_ascii_lowercase())
}

macro_rules! define_id {
    ($($(#[$doc:meta])* $name:ident, $prefix:literal;)*) => {$(
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
        #[serde(try_from = "String", into = "String")]
        pub struct $name(String);

        impl $name {
            pub const PREFIX: &'static str = $prefix;

            /// Makes a new id; `random` is drawn by the caller.
            pub fn new(now: Timestamp, random: u128) -> Self {
                Self(make($prefix, now, random))
            }

            pub fn parse(text: &str) -> Result<Self, InvalidId> {
                if is_valid($prefix, text) {
                    Ok(Self(text.to_owned()))
                } else {
                    Err(InvalidId { prefix: $prefix, text: text.chars().take(64).collect() })
                }
            }

            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl TryFrom<String> for $name {
            type Error = InvalidId;
            fn try_from(text: String) -> Result<Self, InvalidId> {
                Self::parse(&text)
            }
        }

        impl From<$name> for String {
            fn from(id: $name) -> String {
                id.0
            }
        }

        impl std::str::FromStr for $name {
            type Err = InvalidId;
            fn from_str(text: &str) -> Result<Self, InvalidId> {
                Self::parse(text)
            }
        }
    )*};
}

define_id! {
    /// A tenant: a vendor.
    OrgId, "org";
    /// A person or a service that signs in.
    AccountId, "acc";
    /// An API token.
    TokenId, "tok";
    /// A browser or a CLI that is signed in.
    AccountSessionId, "ses";
    /// Somebody who is asked to join an org.
    InviteId, "inv";
    /// A product of a vendor.
    AppId, "app";
    /// One immutable version of an app's files.
    ConfigId, "cfg";
    /// A part of a config.
    SectionId, "sec";
    /// A run of steps against an install.
    WorkflowId, "wfl";
    /// One attempt at a step of a workflow.
    StepId, "stp";
    /// A deployable part of an app.
    ComponentId, "cmp";
    /// A vendor's script that runs in installs.
    ActionId, "act";
    /// An OCI artifact made of one component.
    BuildId, "bld";
    /// One run of an action on an install.
    ActionRunId, "arn";
    /// A value that all installs of an app see.
    VariableId, "var";
    /// One version of an install's inputs.
    InputsId, "inp";
    /// One app running for one customer.
    InstallId, "ins";
    /// What carries out jobs.
    RunnerId, "run";
    /// A filter of the list of installs that somebody has saved.
    SavedViewId, "viw";
    /// What a runner joins with.
    CredentialId, "jcr";
    /// The unit of work that a runner takes.
    JobId, "job";
    /// One attempt at a job.
    ExecutionId, "exe";
    /// Where the output of a job goes.
    LogStreamId, "log";
    /// Where Terraform keeps what it knows of a component, or of the sandbox, of an install.
    WorkspaceId, "tfw";
    /// One version of a Terraform state.
    RevisionId, "tfr";
    /// A file that was sealed with the key of an install.
    UploadId, "upl";
    /// What one upload to the registry brings.
    BlobId, "blb";
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn an_id_has_26_characters_and_parses_back() {
        let id = JobId::new(Timestamp::from_micros(1_800_000_000_000_000), 7);
        assert_eq!(id.as_str().len(), ID_LENGTH);
        assert_eq!(JobId::parse(id.as_str()), Ok(id.clone()));
        assert!(OrgId::parse(id.as_str()).is_err());
        assert!(JobId::parse("job").is_err());
        assert!(JobId::parse(&id.as_str().to_uppercase()).is_err());
    }

    proptest! {
        #[test]
        fn ids_sort_by_time(a in 0i64..3_000_000_000_000_000, b in 0i64..3_000_000_000_000_000, r in any::<u128>(), s in any::<u128>()) {
            let (x, y) = (JobId::new(Timestamp::from_micros(a), r), JobId::new(Timestamp::from_micros(b), s));
            prop_assert!(is_valid("job", x.as_str()));
            if a != b {
                prop_assert_eq!(a < b, x < y);
            }
        }
    }
}
