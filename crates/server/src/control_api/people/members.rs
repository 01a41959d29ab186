//! Members of an org and invites.

use api::control::{CreateOrgInvite, MemberRemoved, OrgInvite, OrgMember, UpdateMember};
use axum::Json;
use axum::extract::{Path, State};
use http::StatusCode;
use model::{AccountId, InviteId, Role};
use store::StoreError;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::AppState;
use crate::auth::{Admin, Reader};
use crate::error::{ApiError, ApiResult};
use crate::request::{Create, List, Page, Params};

pub(crate) fn routes() -> OpenApiRouter<AppState> {
    OpenApiRouter::new()
        .routes(routes!(list))
        .routes(routes!(update, remove))
        .routes(routes!(invites, invite))
        .routes(routes!(revoke_invite))
}

fn member(found: store::OrgMember) -> OrgMember {
    OrgMember {
        account_id: found.account_id,
        email: found.email,
        role: found.role,
        groups_of: found.sources.into_iter().filter(|source| !source.is_empty()).collect(),
        created_at: found.created_at,
        seen_at: found.seen_at,
    }
}

fn account(text: &str) -> Result<AccountId, StoreError> {
    AccountId::parse(text).map_err(|_| StoreError::NotFound("member"))
}

/// Everybody who belongs to the org.
#[utoipa::path(get, path = "/v1/members", tag = "people", security(("token" = ["read-only"])), responses((status = 200, body = [OrgMember])))]
async fn list(State(state): State<AppState>, Reader(at): Reader) -> ApiResult<Json<Vec<OrgMember>>> {
    Ok(Json(state.store().members(&at.org).await?.into_iter().map(member).collect()))
}

/// Gives a member another role. The last admin stays one.
#[utoipa::path(patch, path = "/v1/members/{account_id}", tag = "people", security(("token" = ["admin"])), params(("account_id" = String, Path)), request_body = UpdateMember, responses((status = 200, body = OrgMember), (status = 404, body = api::ErrorBody), (status = 409, body = api::ErrorBody)))]
async fn update(
    State(state): State<AppState>,
    Admin(at): Admin,
    Path(id): Path<String>,
    request: Create<UpdateMember>,
) -> ApiResult<Json<OrgMember>> {
    let id = account(&id)?;
    state.conductor.set_member_role(&at.by(), &id, request.value.role).await?;
    let all = state.store().members(&at.org).await?;
    let found = all.into_iter().find(|it| it.account_id == id).ok_or(StoreError::NotFound("member"))?;
    Ok(Json(member(found)))
}

/// Removes a member, with the person's sessions and tokens for this org. The last admin stays.
#[utoipa::path(delete, path = "/v1/members/{account_id}", tag = "people", security(("token" = ["admin"])), params(("account_id" = String, Path)), responses((status = 200, body = MemberRemoved), (status = 404, body = api::ErrorBody), (status = 409, body = api::ErrorBody)))]
async fn remove(
    State(state): State<AppState>,
    Admin(at): Admin,
    Path(id): Path<String>,
) -> ApiResult<Json<MemberRemoved>> {
    let account_id = account(&id)?;
    let groups_of = state.conductor.remove_member(&at.by(), &account_id).await?;
    Ok(Json(MemberRemoved { account_id, groups_of }))
}

/// The role in the words of existing clients.
fn role_type(role: Role) -> &'static str {
    match role {
        Role::Admin => "org_admin",
        Role::ReadOnly | Role::Approver | Role::Operator => role.as_str(),
    }
}

fn shown(state: &AppState, invite: store::Invite) -> OrgInvite {
    let status = match () {
        () if invite.accepted_at.is_some() => "accepted",
        () if invite.is_open(state.conductor.now()) => "pending",
        () => "revoked",
    };
    OrgInvite {
        id: invite.id,
        org_id: invite.org_id,
        email: invite.email,
        role_type: role_type(invite.role).to_owned(),
        role: invite.role,
        status: status.to_owned(),
        created_by_id: invite.created_by,
        created_at: invite.created_at,
        updated_at: invite.accepted_at.or(invite.revoked_at).unwrap_or(invite.created_at),
        expires_at: invite.expires_at,
        url: None,
        mailed: None,
    }
}

/// Invites of the org, the newest first.
#[utoipa::path(get, path = "/v1/orgs/current/invites", tag = "people", security(("token" = ["admin"])), params(("offset" = Option<u64>, Query), ("limit" = Option<u64>, Query), ("page" = Option<u64>, Query)), responses((status = 200, body = [OrgInvite])))]
async fn invites(
    State(state): State<AppState>,
    Admin(at): Admin,
    Params(page): Params<Page>,
) -> ApiResult<List<OrgInvite>> {
    let found = state.store().invites(&at.org, page.offset(), page.fetch()).await?;
    Ok(List::new(found.into_iter().map(|invite| shown(&state, invite)).collect(), page))
}

/// Invites somebody by e-mail address. The answer has the link, which is good for seven days, and is nowhere else.
#[utoipa::path(post, path = "/v1/orgs/current/invites", tag = "people", security(("token" = ["admin"])), request_body = CreateOrgInvite, responses((status = 201, body = OrgInvite), (status = 400, body = api::ErrorBody)))]
async fn invite(
    State(state): State<AppState>,
    Admin(at): Admin,
    request: Create<CreateOrgInvite>,
) -> ApiResult<(StatusCode, Json<OrgInvite>)> {
    let idem = request.idempotency(&at.owner.account.id);
    let CreateOrgInvite { email, role_type, role } = request.value;
    let role = match (role, role_type.as_deref()) {
        (Some(role), _) => role,
        (None, None | Some("org_admin" | "")) => Role::Admin,
        (None, Some(text)) => Role::parse(text).ok_or_else(|| {
            let known = Role::ALL.map(Role::as_str).join(", ");
            ApiError::invalid(format!("there is no role `{text}`; use org_admin, {known}"))
        })?,
    };
    let invited = state.conductor.invite(&at.by(), at.role, conductor::WantedInvite { email, role }, idem).await?;
    let url = format!("{}/invite?t={}", state.web.base_url, invited.secret);
    let mailed = match &state.mailer {
        // Whoever asks again gets no second mail; whether the first one went nobody knows.
        _ if invited.replayed => None,
        Some(mailer) => {
            let (invite, org) = (&invited.invite, state.store().org(&at.org).await?.name);
            Some(mailer.invite(&invite.email, &org, invite.role.as_str(), &url).await)
        }
        None => Some(false),
    };
    let answer = OrgInvite { url: Some(url), mailed, ..shown(&state, invited.invite) };
    Ok((StatusCode::CREATED, Json(answer)))
}

/// Revokes an invite; who has accepted it stays.
#[utoipa::path(delete, path = "/v1/orgs/current/invites/{invite_id}", tag = "people", security(("token" = ["admin"])), params(("invite_id" = String, Path)), responses((status = 200, body = OrgInvite), (status = 404, body = api::ErrorBody)))]
async fn revoke_invite(
    State(state): State<AppState>,
    Admin(at): Admin,
    Path(id): Path<String>,
) -> ApiResult<Json<OrgInvite>> {
    let id = InviteId::parse(&id).map_err(|_| StoreError::NotFound("invite"))?;
    let invite = state.conductor.revoke_invite(&at.by(), &id).await?;
    Ok(Json(shown(&state, invite)))
}
