//! Probes, the version, and who is signed in.

use std::collections::BTreeMap;
use std::time::Duration;

use api::ErrorCode;
use api::control::{Account, CliConfig, Version};
use axum::Json;
use axum::extract::State;
use model::Role;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::auth::Caller;
use crate::error::{ApiError, ApiResult};
use crate::request::Params;
use crate::{AppState, VERSION};

pub(super) fn routes() -> OpenApiRouter<AppState> {
    probes().routes(routes!(current_user)).routes(routes!(cli_config)).routes(routes!(config_schema))
}

/// Both listeners have these.
pub(crate) fn probes() -> OpenApiRouter<AppState> {
    OpenApiRouter::new().routes(routes!(livez)).routes(routes!(readyz)).routes(routes!(version))
}

/// The process lives. Touches nothing else.
#[utoipa::path(get, path = "/livez", tag = "general", responses((status = 200, description = "alive")))]
async fn livez() -> &'static str {
    "ok"
}

/// The process can serve: its database answers, and it is not shutting down.
#[utoipa::path(get, path = "/readyz", tag = "general", responses((status = 200, description = "ready"), (status = 503, description = "not ready")))]
async fn readyz(State(state): State<AppState>) -> ApiResult<&'static str> {
    let unready = |text: &str| ApiError::new(ErrorCode::Unavailable, text);
    if state.gate.is_cancelled() {
        return Err(unready("shutting down"));
    }
    match tokio::time::timeout(Duration::from_secs(2), state.store().ping()).await {
        Ok(Ok(())) => Ok("ok"),
        Ok(Err(_)) | Err(_) => Err(unready("the database does not answer")),
    }
}

/// What this server is, and which protocols of the Runner API it speaks.
#[utoipa::path(get, path = "/version", tag = "general", responses((status = 200, body = Version)))]
async fn version() -> Json<Version> {
    let (protocol_min, protocol_max) = crate::runner_api::protocols();
    Json(Version {
        version: VERSION.to_owned(),
        git_ref: option_env!("FERRY_GIT_REF").unwrap_or("unknown").to_owned(),
        protocol_min,
        protocol_max,
    })
}

/// The account of the token.
#[utoipa::path(get, path = "/v1/general/current-user", tag = "general", security(("token" = ["any"])), responses((status = 200, body = Account)))]
async fn current_user(Caller(owner): Caller) -> Json<Account> {
    let permissions: BTreeMap<String, String> = owner
        .orgs()
        .into_iter()
        .map(|(org, role)| (org.to_string(), if role >= Role::Operator { "all" } else { "read" }.to_owned()))
        .collect();
    Json(Account {
        id: owner.account.id,
        email: owner.account.email,
        account_type: "service".into(),
        // As far as the token goes, which may be good for one org alone.
        org_ids: permissions.keys().filter_map(|id| id.parse().ok()).collect(),
        permissions,
        created_at: owner.account.created_at,
    })
}

/// What a CLI needs to know before it signs in.
#[utoipa::path(get, path = "/v1/general/cli-config", tag = "general", responses((status = 200, body = CliConfig)))]
async fn cli_config(State(state): State<AppState>) -> Json<CliConfig> {
    let url = state.config.control.public_url.clone();
    Json(CliConfig { root_domain: url.clone(), dashboard_url: url, nuon_auth_enabled: false })
}

#[derive(Debug, serde::Deserialize)]
struct SchemaKind {
    #[serde(rename = "type", alias = "source")]
    kind: Option<String>,
}

/// The JSON Schema of a file of the app format, for editors: `#:schema URL/v1/general/config-schema?type=helm`.
#[utoipa::path(get, path = "/v1/general/config-schema", tag = "general", params(("type" = Option<String>, Query, description = "kind of file; `full` is the whole app")), responses((status = 200, body = Object), (status = 404, body = api::ErrorBody)))]
async fn config_schema(Params(wanted): Params<SchemaKind>) -> ApiResult<Json<serde_json::Value>> {
    let kind = wanted.kind.unwrap_or_else(|| "full".into());
    let unknown = || {
        let known = config::SCHEMAS.to_vec().join(", ");
        ApiError::new(ErrorCode::NotFound, format!("there is no schema `{kind}`")).hint(format!("use one of {known}"))
    };
    config::schema(&kind).map(Json).ok_or_else(unknown)
}
