//! Values that people give: variables of an app, inputs of an install. Sealed at rest.

use std::collections::BTreeMap;

use model::{AccountId, AppId, InputsId, InstallId, OrgId, Timestamp, VariableId};

use crate::db::{Tx, params};
use crate::events::{Note, record};
use crate::pages::summaries;
use crate::{Install, Reader, Refused, Result, Store, StoreError};

/// A value that every install of an app sees.
#[derive(Debug, Clone)]
pub struct Variable {
    pub id: VariableId,
    pub name: String,
    pub value: String,
    pub created_by: AccountId,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
}

/// One version of the inputs of an install: only what was given, without the defaults of the app.
#[derive(Debug, Clone)]
pub struct InstallInputs {
    pub id: InputsId,
    pub install_id: InstallId,
    pub version: u64,
    pub values: BTreeMap<String, String>,
    pub created_by: AccountId,
    pub created_at: Timestamp,
}

impl InstallInputs {
    /// Those that an install is made with.
    pub fn first(id: InputsId, install: &Install, values: BTreeMap<String, String>) -> Self {
        let (created_by, created_at) = (install.created_by.clone(), install.created_at);
        Self { id, install_id: install.id.clone(), version: 1, values, created_by, created_at }
    }
}

fn variable_place(app: &AppId, name: &str) -> String {
    format!("variables|{app}|{name}|value")
}

fn inputs_place(id: &InputsId) -> String {
    format!("install_inputs|{id}|value")
}

/// Sealed inputs of an install that is being made.
#[derive(Debug, Clone)]
pub(crate) struct SealedInputs {
    pub(crate) inputs: InstallInputs,
    pub(crate) sealed: Vec<u8>,
}

pub(crate) async fn insert_inputs(tx: &mut Tx<'_>, org: &OrgId, new: &SealedInputs) -> Result<()> {
    let SealedInputs { inputs, sealed } = new;
    tx.exec(
        "INSERT INTO install_inputs (id, org_id, install_id, version, value, created_by, created_at) VALUES ($1, $2, $3, $4, $5, $6, $7)",
        params![&inputs.id, org, &inputs.install_id, inputs.version, sealed.clone(), &inputs.created_by, inputs.created_at],
    )
    .await?;
    let data = serde_json::json!({ "version": inputs.version, "names": inputs.values.keys().collect::<Vec<_>>() });
    let subject = ("install", inputs.install_id.as_str());
    let actor = inputs.created_by.as_str();
    record(tx, Note { org, now: inputs.created_at, kind: "install.inputs", subject, actor, data }).await
}

/// Writes the next version of an install's inputs, unless somebody else was faster.
pub(crate) async fn insert_next_inputs(tx: &mut Tx<'_>, org: &OrgId, sealed: &SealedInputs) -> Result<()> {
    let last = "SELECT COALESCE(MAX(version), 0) AS last_version FROM install_inputs WHERE install_id = $1";
    let row = tx.get(last, params![&sealed.inputs.install_id]).await?;
    let last: u64 = row.ok_or_else(|| StoreError::corrupt("count"))?.get("last_version")?;
    if sealed.inputs.version != last + 1 {
        return Err(Refused::InputsChanged.into());
    }
    summaries::outdate(tx, &sealed.inputs.install_id).await?;
    insert_inputs(tx, org, sealed).await
}

impl Reader {
    pub(crate) async fn seal_inputs(&self, org: &OrgId, inputs: InstallInputs) -> Result<SealedInputs> {
        let text = serde_json::to_vec(&inputs.values).map_err(StoreError::db)?;
        let sealed = self.org_keys(org).await?.seal(&inputs_place(&inputs.id), &text);
        Ok(SealedInputs { inputs, sealed })
    }

    /// The versions of an install's inputs, newest first.
    pub async fn inputs(
        &self,
        org: &OrgId,
        install: &InstallId,
        offset: u64,
        limit: u64,
    ) -> Result<Vec<InstallInputs>> {
        let (org_id, install_id) = (org.clone(), install.clone());
        let rows = self
            .main()
            .read((org.clone(), install.clone(), offset, limit, org_id, install_id), |tx, (org, install, offset, limit, _org_id, _install_id)| { Box::pin(async move {
                    let sql = "SELECT id, version, created_by, created_at, value FROM install_inputs WHERE org_id = $1 AND install_id = $2 ORDER BY version DESC LIMIT $3 OFFSET $4";
                    tx.query(sql, params![&org, &install, limit, offset]).await
                }) })
            .await?;
        let mut found = Vec::with_capacity(rows.len());
        for row in rows {
            let id: InputsId = row.get("id")?;
            let text = self.open_sealed(org, &inputs_place(&id), &row.get::<Vec<u8>>("value")?).await?;
            let values = serde_json::from_slice(&text).map_err(|_| StoreError::corrupt("input"))?;
            let (version, created_by, created_at) =
                (row.get("version")?, row.get("created_by")?, row.get("created_at")?);
            found.push(InstallInputs { id, install_id: install.clone(), version, values, created_by, created_at });
        }
        Ok(found)
    }

    /// The inputs of an install as they are now.
    pub async fn current_inputs(&self, org: &OrgId, install: &InstallId) -> Result<Option<InstallInputs>> {
        Ok(self.inputs(org, install, 0, 1).await?.pop())
    }

    /// The variables of an app, by name, opened.
    pub async fn variables(&self, org: &OrgId, app: &AppId) -> Result<Vec<Variable>> {
        let sql = "SELECT id, name, created_by, created_at, updated_at, value FROM variables WHERE org_id = $1 AND app_id = $2 ORDER BY name";
        let rows = self.main().query(sql, params![org, app]).await?;
        let mut found = Vec::with_capacity(rows.len());
        for row in rows {
            let id: VariableId = row.get("id")?;
            let name: String = row.get("name")?;
            let value = self.open_sealed(org, &variable_place(app, &name), &row.get::<Vec<u8>>("value")?).await?;
            let value = String::from_utf8(value).map_err(|_| StoreError::corrupt("variable"))?;
            let (created_by, created_at, updated_at) =
                (row.get("created_by")?, row.get("created_at")?, row.get("updated_at")?);
            found.push(Variable { id, name, value, created_by, created_at, updated_at });
        }
        Ok(found)
    }
}

impl Store {
    /// Writes the next version; `inputs.version` must be one more than the last one, or somebody else was faster.
    pub async fn put_inputs(&self, org: &OrgId, inputs: InstallInputs) -> Result<()> {
        self.main()
            .write((org.clone(), self.seal_inputs(org, inputs).await?), |tx, (org, sealed)| {
                Box::pin(async move { insert_next_inputs(tx, org, sealed).await })
            })
            .await
    }

    /// Sets a variable of an app.
    pub async fn set_variable(&self, org: &OrgId, app: &AppId, variable: Variable) -> Result<Variable> {
        let place = variable_place(app, &variable.name);
        let sealed = self.org_keys(org).await?.seal(&place, variable.value.as_bytes());
        self.main()
            .write((org.clone(), app.clone(), variable, sealed), |tx, (org, app, v, sealed)| { Box::pin(async move {
                    let row = tx
                        .get(
                            "INSERT INTO variables (id, org_id, app_id, name, value, created_by, created_at, updated_at) VALUES ($1, $2, $3, $4, $5, $6, $7, $7) ON CONFLICT (app_id, name) DO UPDATE SET value = excluded.value, updated_at = excluded.updated_at RETURNING id, created_by, created_at",
                            params![&v.id, &org, &app, &v.name, sealed, &v.created_by, v.updated_at],
                        )
                        .await?
                        .ok_or_else(|| StoreError::corrupt("variable"))?;
                    summaries::outdate_app(tx, app).await?;
                    note(tx, org, app, "app.variable", &v.name, v.created_by.as_str(), v.updated_at).await?;
                    Ok(Variable { id: row.get("id")?, created_by: row.get("created_by")?, created_at: row.get("created_at")?, ..v.clone() })
                }) })
            .await
    }

    /// Deletes a variable, by name or id.
    pub async fn delete_variable(
        &self,
        org: &OrgId,
        app: &AppId,
        name_or_id: &str,
        actor: &str,
        now: Timestamp,
    ) -> Result<()> {
        self.main()
            .write(
                (org.clone(), app.clone(), name_or_id.to_owned(), actor.to_owned(), now),
                |tx, (org, app, name, actor, now)| {
                    Box::pin(async move {
                        let sql = "DELETE FROM variables WHERE org_id = $1 AND app_id = $2 AND (id = $3 OR name = $3)";
                        if tx.exec(sql, params![&org, &app, &name]).await? == 0 {
                            return Err(StoreError::NotFound("variable"));
                        }
                        summaries::outdate_app(tx, app).await?;
                        note(tx, org, app, "app.variable-deleted", name, actor, *now).await
                    })
                },
            )
            .await
    }
}

/// Notes what happened to a variable, without its value.
async fn note(
    tx: &mut Tx<'_>,
    org: &OrgId,
    app: &AppId,
    kind: &'static str,
    name: &str,
    actor: &str,
    now: Timestamp,
) -> Result<()> {
    let (subject, data) = (("app", app.as_str()), serde_json::json!({ "name": name }));
    record(tx, Note { org, now, kind, subject, actor, data }).await
}
