//! Accounts, orgs and tokens.

use super::*;

impl Client {
    pub async fn current_user(&self) -> Result<Account> {
        self.json(self.get("/v1/general/current-user")).await
    }

    // --- orgs and tokens ---

    pub async fn orgs(&self) -> Result<Vec<Org>> {
        self.pages(self.get("/v1/orgs"), usize::MAX).await
    }

    pub async fn create_org(&self, body: &CreateOrg) -> Result<Org> {
        self.json(self.post("/v1/orgs", body)?).await
    }

    pub async fn current_org(&self) -> Result<Org> {
        self.json(self.get("/v1/orgs/current")).await
    }

    pub async fn tokens(&self) -> Result<Vec<Token>> {
        self.pages(self.get("/v1/tokens"), usize::MAX).await
    }

    pub async fn create_token(&self, body: &CreateToken) -> Result<Token> {
        self.json(self.post("/v1/tokens", body)?).await
    }

    pub async fn revoke_token(&self, id: &TokenId) -> Result<Token> {
        self.json(self.call(Method::DELETE, format!("/v1/tokens/{id}"))).await
    }

    // --- members, invites, sessions ---

    pub async fn members(&self) -> Result<Vec<OrgMember>> {
        self.json(self.get("/v1/members")).await
    }

    pub async fn set_member_role(&self, account: &str, body: &UpdateMember) -> Result<OrgMember> {
        self.json(self.patch(format!("/v1/members/{account}"), body)?).await
    }

    pub async fn remove_member(&self, account: &str) -> Result<MemberRemoved> {
        self.json(self.call(Method::DELETE, format!("/v1/members/{account}"))).await
    }

    pub async fn invites(&self) -> Result<Vec<OrgInvite>> {
        self.pages(self.get("/v1/orgs/current/invites"), usize::MAX).await
    }

    pub async fn invite(&self, body: &CreateOrgInvite) -> Result<OrgInvite> {
        self.json(self.post("/v1/orgs/current/invites", body)?).await
    }

    pub async fn revoke_invite(&self, id: &str) -> Result<OrgInvite> {
        self.json(self.call(Method::DELETE, format!("/v1/orgs/current/invites/{id}"))).await
    }

    pub async fn session(&self) -> Result<CurrentSession> {
        self.json(self.get("/v1/session")).await
    }

    pub async fn sessions(&self) -> Result<Vec<AccountSession>> {
        self.json(self.get("/v1/account/sessions")).await
    }

    pub async fn end_session(&self, id: &str) -> Result<SessionsEnded> {
        self.json(self.call(Method::DELETE, format!("/v1/account/sessions/{id}"))).await
    }

    pub async fn end_all_sessions(&self) -> Result<SessionsEnded> {
        self.json(self.call(Method::DELETE, "/v1/account/sessions".to_owned())).await
    }

    pub async fn create_sign_in_link(&self) -> Result<SignInLink> {
        self.json(self.call(Method::POST, "/v1/sign-in-links".to_owned())).await
    }

    // --- signing a CLI in ---

    fn unsigned(&self, path: &str, body: &impl Serialize) -> Result<Call> {
        let mut call = self.call(Method::POST, path);
        call.body = Some(("application/json", encode(body)?));
        Ok(call)
    }

    /// Asks for a code that a person types.
    pub async fn begin_device_login(&self, host: &str) -> Result<DeviceStarted> {
        self.json(self.unsigned("/auth/device", &serde_json::json!({ "host": host }))?).await
    }

    /// Asks whether the person has answered. Until then the error's text is `authorization_pending` or `slow_down`.
    pub async fn poll_device_login(&self, device_code: &str) -> Result<CliTokens> {
        self.json(self.unsigned("/auth/device/token", &serde_json::json!({ "device_code": device_code }))?).await
    }

    /// Trades the code that a browser has brought.
    pub async fn take_cli_login(&self, code: &str, verifier: &str) -> Result<CliTokens> {
        let body = serde_json::json!({ "code": code, "verifier": verifier });
        self.json(self.unsigned("/auth/cli/token", &body)?).await
    }

    pub async fn refresh_cli_login(&self, refresh_token: &str) -> Result<CliTokens> {
        self.json(self.unsigned("/auth/refresh", &serde_json::json!({ "refresh_token": refresh_token }))?).await
    }

    /// Ends the session whose token this client has.
    pub async fn sign_out(&self) -> Result<()> {
        self.answer(&self.call(Method::POST, "/auth/logout")).await.map(drop)
    }
}
