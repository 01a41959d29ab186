//! API tokens of an org: shown once, stored as a hash.

use api::control::{CreateToken, Token};
use axum::Json;
use axum::extract::{Path, State};
use http::StatusCode;
use model::TokenId;
use store::StoreError;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::AppState;
use crate::auth::Admin;
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

/// The tokens that are good for this org alone, and your own.
#[utoipa::path(get, path = "/v1/tokens", tag = "tokens", security(("token" = ["admin"])), params(("offset" = Option<u64>, Query), ("limit" = Option<u64>, Query)), responses((status = 200, body = [Token])))]
async fn list(State(state): State<AppState>, Admin(at): Admin, Params(page): Params<Page>) -> ApiResult<List<Token>> {
    let tokens = state.store().tokens(&at.org, &at.owner.account.id, page.offset(), page.fetch()).await?;
    Ok(List::new(tokens.into_iter().map(wire).collect(), page))
}

/// Makes a token for this org. The answer is the only place where it can be read.
#[utoipa::path(post, path = "/v1/tokens", tag = "tokens", security(("token" = ["admin"])), request_body = CreateToken, responses((status = 201, body = Token)))]
async fn create(
    State(state): State<AppState>,
    Admin(at): Admin,
    request: Create<CreateToken>,
) -> ApiResult<(StatusCode, Json<Token>)> {
    let idem = request.idempotency(&at.owner.account.id);
    let wanted = conductor::WantedToken {
        name: request.value.name,
        role: request.value.role,
        expires_in_s: request.value.expires_in_s,
        runner_id: request.value.runner_id,
    };
    let (new, now) = state.conductor.create_token(&at.by(), at.role, wanted, idem).await?;
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

/// Revokes a token; at once, and for good.
#[utoipa::path(delete, path = "/v1/tokens/{token_id}", tag = "tokens", security(("token" = ["admin"])), params(("token_id" = String, Path)), responses((status = 200, body = Token), (status = 404, body = api::ErrorBody)))]
async fn revoke(State(state): State<AppState>, Admin(at): Admin, Path(id): Path<String>) -> ApiResult<Json<Token>> {
    let id = TokenId::parse(&id).map_err(|_| StoreError::NotFound("token"))?;
    Ok(Json(wire(state.conductor.revoke_token(&at.by(), &id).await?)))
}
