//! API tokens of an org: shown once, stored as a hash.

use api::control::{CreateToken, Token};
use axum::Json;
use axum::extract::{Path, State};
use http::StatusCode;
use model::{Role, TokenId};
use store::StoreError;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::AppState;
use crate::auth::Reader;
use crate::error::ApiResult;
use crate::request::{Create, List, Page, Params};

pub(crate) fn routes() -> OpenApiRouter<AppState> {
    OpenApiRouter::new().routes(routes!(list, create)).routes(routes!(revoke))
}

fn wire(token: store::Token) -> Token {
    Token {
        id: token.id,
        name: token.name,
        role: token.role,
        hint: token.hint,
        created_by_id: token.account_id,
        created_at: token.created_at,
        expires_at: token.expires_at,
        revoked_at: token.revoked_at,
        last_used_at: token.last_used_at,
        runner_id: token.runner_id,
        otlp_endpoint: None,
        token: None,
    }
}

/// The tokens that are good for this org alone, and your own; who is no admin sees only their own.
#[utoipa::path(get, path = "/v1/tokens", tag = "tokens", security(("token" = ["read-only"])), params(("offset" = Option<u64>, Query), ("limit" = Option<u64>, Query)), responses((status = 200, body = [Token])))]
async fn list(State(state): State<AppState>, Reader(at): Reader, Params(page): Params<Page>) -> ApiResult<List<Token>> {
    let tokens =
        state.store().tokens(&at.org, &at.owner.account.id, at.role < Role::Admin, page.offset(), page.fetch()).await?;
    Ok(List::new(tokens.into_iter().map(wire).collect(), page))
}

/// Makes a token of yours for this org, with your role at most. The answer is the only place where it can be read.
#[utoipa::path(post, path = "/v1/tokens", tag = "tokens", security(("token" = ["read-only"])), request_body = CreateToken, responses((status = 201, body = Token)))]
async fn create(
    State(state): State<AppState>,
    Reader(at): Reader,
    request: Create<CreateToken>,
) -> ApiResult<(StatusCode, Json<Token>)> {
    let idem = request.idempotency(&at.owner.account.id);
    let wanted = conductor::WantedToken {
        name: request.value.name,
        role: request.value.role,
        expires_in_s: request.value.expires_in_s,
        runner_id: request.value.runner_id,
    };
    let (new, now) = state.conductor.create_token(&at.by(), &at.owner, wanted, idem).await?;
    let answer = Token {
        id: new.id.clone(),
        name: new.name.clone(),
        role: new.role,
        hint: new.token.chars().take(8).collect(),
        created_by_id: new.account_id.clone(),
        created_at: now,
        expires_at: new.expires_at,
        revoked_at: None,
        last_used_at: None,
        runner_id: new.runner_id.clone(),
        otlp_endpoint: new.runner_id.as_ref().map(|_| state.runner_url.to_string()),
        token: Some(new.token),
    };
    Ok((StatusCode::CREATED, Json(answer)))
}

/// Revokes a token; at once, and for good. Who is no admin revokes only their own.
#[utoipa::path(delete, path = "/v1/tokens/{token_id}", tag = "tokens", security(("token" = ["read-only"])), params(("token_id" = String, Path)), responses((status = 200, body = Token), (status = 404, body = api::ErrorBody)))]
async fn revoke(State(state): State<AppState>, Reader(at): Reader, Path(id): Path<String>) -> ApiResult<Json<Token>> {
    let id = TokenId::parse(&id).map_err(|_| StoreError::NotFound("token"))?;
    Ok(Json(wire(state.conductor.revoke_token(&at.by(), &at.owner, &id).await?)))
}
