//! Errors on their way out: what the client may see, and what only the log sees.

use api::{ErrorBody, ErrorCode};
use axum::response::{IntoResponse, Response};
use http::StatusCode;
use store::StoreError;

/// An answer that is an error. The body is written by the outermost layer, which knows the request's id.
#[derive(Debug, Clone)]
pub(crate) struct ApiError {
    pub(crate) code: ErrorCode,
    pub(crate) message: String,
    pub(crate) hint: Option<String>,
    /// For the log alone.
    pub(crate) internal: Option<String>,
    /// Components that need what was to be torn down.
    pub(crate) dependents: Vec<String>,
}

pub(crate) type ApiResult<T> = Result<T, ApiError>;

impl ApiError {
    pub(crate) fn new(code: ErrorCode, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), hint: None, internal: None, dependents: Vec::new() }
    }

    pub(crate) fn invalid(message: impl Into<String>) -> Self {
        Self::new(ErrorCode::InvalidRequest, message)
    }

    pub(crate) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    pub(crate) fn body(&self, request_id: &str) -> ErrorBody {
        ErrorBody {
            error: self.message.clone(),
            description: self.message.clone(),
            user_error: self.code.status() < 500,
            code: self.code.as_str().to_owned(),
            hint: self.hint.clone(),
            dependents: self.dependents.clone(),
            request_id: request_id.to_owned(),
        }
    }
}

impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        let status = StatusCode::from_u16(self.code.status()).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let mut response = status.into_response();
        response.extensions_mut().insert(self);
        response
    }
}

impl From<conductor::Error> for ApiError {
    fn from(error: conductor::Error) -> Self {
        use conductor::{Class, Error, InstallError};
        let (message, hint) = (error.to_string(), error.hint());
        let code = match error.class() {
            Class::Invalid => ErrorCode::InvalidRequest,
            Class::NotFound => ErrorCode::NotFound,
            Class::Forbidden => ErrorCode::Forbidden,
            Class::TooLarge => ErrorCode::TooLarge,
            Class::InvalidConfig => ErrorCode::InvalidConfig,
            Class::HasDependents => ErrorCode::HasDependents,
            Class::Conflict => ErrorCode::Conflict,
        };
        match error {
            Error::Store(error) => error.into(),
            Error::Install(InstallError::SwitchOffFirst { dependents, .. }) => {
                Self { dependents, hint, ..Self::new(code, message) }
            }
            _ => Self { hint, ..Self::new(code, message) },
        }
    }
}

impl From<StoreError> for ApiError {
    fn from(error: StoreError) -> Self {
        use ErrorCode as C;
        let message = error.to_string();
        match error {
            StoreError::NotFound(_) => Self::new(C::NotFound, message),
            StoreError::NameTaken(_) => Self::new(C::NameTaken, message).hint("choose another name"),
            StoreError::Ambiguous { .. }
            | StoreError::Refused(_)
            | StoreError::ContentMissing(_)
            | StoreError::SizeMismatch { .. }
            | StoreError::Transition(_) => Self::new(C::Conflict, message),
            StoreError::HasDependents { component: _, dependents } => {
                let hint = "`with_dependents` tears them down first, `force` tears this one down alone";
                Self { dependents, ..Self::new(C::HasDependents, message).hint(hint) }
            }
            StoreError::Stale(_) => Self::new(C::Conflict, message).hint("try again"),
            StoreError::IdempotencyMismatch => Self::new(C::IdempotencyMismatch, message),
            StoreError::LeaseLost => Self::new(C::LeaseLost, message),
            StoreError::Fenced => Self::new(C::SessionFenced, message),
            StoreError::Revoked => Self::new(C::RunnerRevoked, message),
            StoreError::CredentialRefused => Self::new(C::CredentialRefused, message)
                .hint("make a new join command with `ferry runners join-command`"),
            StoreError::LogOutOfOrder { .. } => Self::new(C::LogOutOfOrder, message),
            StoreError::Full => {
                let text = "the control plane's disk is full; it takes nothing until there is room";
                Self { internal: Some(message), ..Self::new(C::Unavailable, text) }
            }
            StoreError::NewerSchema { .. }
            | StoreError::Sealed(_)
            | StoreError::Config(_)
            | StoreError::Db { .. }
            | StoreError::Blob(_) => {
                let (code, text) = if error.is_transient() {
                    (C::Unavailable, "the control plane can't reach its storage right now; try again")
                } else {
                    (C::Internal, "something broke in the control plane")
                };
                Self { internal: Some(message), ..Self::new(code, text) }
            }
        }
    }
}
