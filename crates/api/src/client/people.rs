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
}
