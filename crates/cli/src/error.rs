//! What goes wrong in a command: a sentence, a hint, and the exit code that follows from its kind.

use std::fmt;
use std::io;

use api::client::ClientError;

/// How a command that does not wait for a job ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exit {
    Done = 0,
    Failed = 1,
    Usage = 2,
    Denied = 3,
    NotFound = 4,
    Conflict = 5,
    Unreachable = 6,
}

impl Exit {
    pub const fn code(self) -> u8 {
        self as u8
    }

    const fn of_status(status: u16) -> Self {
        match status {
            401 | 403 => Self::Denied,
            404 => Self::NotFound,
            409 => Self::Conflict,
            502..=504 => Self::Unreachable,
            _ => Self::Failed,
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CliError {
    pub exit: Exit,
    pub message: String,
    pub hint: Option<String>,
    /// The server's stable code.
    pub code: Option<String>,
    /// Finds the request in the server's log.
    pub request_id: Option<String>,
}

pub(crate) type Result<T> = std::result::Result<T, CliError>;

impl CliError {
    pub(crate) fn new(exit: Exit, message: impl Into<String>) -> Self {
        Self { exit, message: message.into(), hint: None, code: None, request_id: None }
    }

    pub(crate) fn failed(message: impl Into<String>) -> Self {
        Self::new(Exit::Failed, message)
    }

    pub(crate) fn usage(message: impl Into<String>) -> Self {
        Self::new(Exit::Usage, message)
    }

    #[must_use]
    pub(crate) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }
}

impl fmt::Display for CliError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for CliError {}

impl From<ClientError> for CliError {
    fn from(error: ClientError) -> Self {
        let mut result = Self::failed(error.to_string());
        result.hint = error.hint().map(str::to_owned);
        match error {
            ClientError::Api { status, body } => {
                result.exit = Exit::of_status(status);
                if status == 401 && result.hint.is_none() {
                    result.hint = Some(format!("sign in with `ferry auth login`, or set {}", model::env::TOKEN));
                }
                result.code = Some(body.code).filter(|c| !c.is_empty());
                // A request id helps only where the fault is the server's.
                result.request_id = Some(body.request_id).filter(|id| !id.is_empty() && status >= 500);
            }
            ClientError::Transport { .. } => result.exit = Exit::Unreachable,
            ClientError::Setup { .. } => result.exit = Exit::Usage,
            ClientError::Decode { .. } => {}
        }
        result
    }
}

impl From<io::Error> for CliError {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            // Whoever read our output has seen enough.
            io::ErrorKind::BrokenPipe => Self::new(Exit::Done, ""),
            _ => Self::failed(error.to_string()),
        }
    }
}

#[cfg(test)]
mod tests {
    use api::ErrorBody;

    use super::*;

    #[test]
    fn every_kind_of_error_has_its_exit_code() {
        let api = |status| {
            let body = ErrorBody {
                error: "no".into(),
                description: String::new(),
                user_error: true,
                code: "c".into(),
                hint: None,
                dependents: Vec::new(),
                request_id: "r".into(),
            };
            CliError::from(ClientError::Api { status, body: Box::new(body) })
        };
        let table = [(400, 1), (401, 3), (403, 3), (404, 4), (409, 5), (413, 1), (500, 1), (503, 6)];
        for (status, code) in table {
            assert_eq!(api(status).exit.code(), code, "{status}");
        }
        assert!(api(401).hint.is_some_and(|h| h.contains("ferry auth login")));
        assert_eq!((api(404).request_id, api(500).request_id), (None, Some("r".to_owned())));
        let gone = ClientError::Transport { url: "u".into(), reason: "r".into(), hint: "h".into() };
        assert_eq!(CliError::from(gone).exit, Exit::Unreachable);
        assert_eq!(CliError::from(io::Error::from(io::ErrorKind::BrokenPipe)).exit, Exit::Done);
    }
}
