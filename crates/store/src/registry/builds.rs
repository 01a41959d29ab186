//! Builds: which component of which config became which artifact, and the credentials that sources ask for.

use model::build::{Artifact, BuiltFrom, Credentials};
use model::{AccountId, AppId, BuildId, ConfigId, JobId, JobState, OrgId, SectionId, Timestamp};

use crate::db::{Table, Tx, made_once, params, select, table, text_values};
use crate::events::notify::topic;
use crate::events::{Note, record};
use crate::{Reader, Refused, Result, Store, StoreError};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BuildStatus {
    /// Its job says how it stands.
    Open,
    /// The artifact is there.
    Active,
    Error,
    Cancelled,
}

impl BuildStatus {
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Open => "open",
            Self::Active => "active",
            Self::Error => "error",
            Self::Cancelled => "cancelled",
        }
    }

    fn parse(text: &str) -> Option<Self> {
        [Self::Open, Self::Active, Self::Error, Self::Cancelled].into_iter().find(|s| s.as_str() == text)
    }
}

text_values!(BuildStatus);

table! {
    #[derive(Debug, Clone)]
    pub struct Build from "builds" {
        pub id: BuildId,
        pub org_id: OrgId,
        pub app_id: AppId,
        pub component_id: String,
        pub component: String,
        /// The component's section in the config that it was built from.
        pub section_id: SectionId,
        pub config_version: u64,
        /// Digest of the recipe.
        pub recipe: String,
        pub status: BuildStatus,
        pub description: String,
        /// None where there is nothing to run.
        pub job_id: Option<JobId>,
        pub git_ref: String,
        pub same_as: Option<BuildId>,
        pub source: BuiltFrom,
        pub artifact: Option<Artifact>,
        pub cache_hits: u64,
        pub cache_steps: u64,
        pub created_by: String,
        pub created_at: Timestamp,
        pub updated_at: Timestamp,
    }
}

/// How a build ended.
#[derive(Debug, Clone)]
pub struct BuildEnd {
    pub status: BuildStatus,
    pub description: String,
    pub same_as: Option<BuildId>,
    pub source: BuiltFrom,
    pub artifact: Option<Artifact>,
    pub cache_hits: u64,
    pub cache_steps: u64,
}

fn json<T: serde::Serialize>(value: &T) -> Result<String> {
    serde_json::to_string(value).map_err(StoreError::db)
}

pub(crate) async fn insert(tx: &mut Tx<'_>, build: &Build) -> Result<()> {
    let artifact = build.artifact.as_ref().map(json).transpose()?;
    tx.exec(
        "INSERT INTO builds (id, org_id, app_id, component_id, component, section_id, config_version, recipe, status, description, job_id, git_ref, same_as, source, artifact, cache_hits, cache_steps, created_by, created_at, updated_at) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $19)",
        params![&build.id, &build.org_id, &build.app_id, &build.component_id, &build.component, &build.section_id, build.config_version, &build.recipe, build.status.as_str(), &build.description, build.job_id.as_ref(), &build.git_ref, build.same_as.as_ref(), json(&build.source)?, artifact, build.cache_hits, build.cache_steps, &build.created_by, build.created_at],
    )
    .await?;
    note(tx, build, build.created_at, &build.created_by).await
}

async fn note(tx: &mut Tx<'_>, build: &Build, now: Timestamp, actor: &str) -> Result<()> {
    let data = serde_json::json!({
        "app_id": build.app_id, "component_id": build.component_id, "component": build.component,
        "status": build.status.as_str(), "description": build.description, "job_id": build.job_id,
        "digest": build.artifact.as_ref().map(|a| &a.digest),
    });
    let subject = ("build", build.id.as_str());
    record(tx, Note { org: &build.org_id, now, kind: "build.status", subject, actor, data }).await
}

/// The job of the open build of the same component and recipe: a second one would make the same.
pub(crate) async fn open_job(tx: &mut Tx<'_>, build: &Build) -> Result<Option<JobId>> {
    let sql =
        "SELECT job_id FROM builds WHERE component_id = $1 AND recipe = $2 AND status = 'open' AND job_id IS NOT NULL";
    tx.get(sql, params![&build.component_id, &build.recipe]).await?.map(|row| row.get("job_id")).transpose()
}

/// Which builds of an org are asked for.
#[derive(Debug, Clone, Default)]
pub struct BuildFilter {
    pub app: Option<AppId>,
    pub component: Option<String>,
}

impl Reader {
    pub async fn build(&self, org: &OrgId, id: &BuildId) -> Result<Build> {
        self.main()
            .glance((org.clone(), id.clone()), |tx, (org, id)| {
                Box::pin(async move {
                    let sql = select!(Build, "WHERE org_id = $1 AND id = $2");
                    Build::from_row(&tx.get(sql, params![&org, &id]).await?.ok_or(StoreError::NotFound("build"))?)
                })
            })
            .await
    }

    /// The build that a job makes, where it makes one.
    pub async fn build_of_job(&self, org: &OrgId, job: &JobId) -> Result<Option<Build>> {
        self.main()
            .glance((org.clone(), job.clone()), |tx, (org, job)| {
                Box::pin(async move {
                    let sql = select!(Build, "WHERE org_id = $1 AND job_id = $2");
                    tx.get(sql, params![&org, &job]).await?.as_ref().map(Build::from_row).transpose()
                })
            })
            .await
    }

    /// Newest first.
    pub async fn builds(&self, org: &OrgId, filter: BuildFilter, offset: u64, limit: u64) -> Result<Vec<Build>> {
        self.main()
            .read((org.clone(), filter, offset, limit), |tx, (org, filter, offset, limit)| { Box::pin(async move {
                    // The narrowest column first, so that its index is used.
                    let sql = match &filter {
                        BuildFilter { component: Some(_), .. } => select!(Build,
                            "WHERE (org_id || '') = $1 AND (CAST($2 AS TEXT) IS NULL OR app_id = $2) AND component_id = $3 ORDER BY id DESC LIMIT $4 OFFSET $5"
                        ),
                        BuildFilter { app: Some(_), .. } => select!(Build,
                            "WHERE (org_id || '') = $1 AND app_id = $2 AND (CAST($3 AS TEXT) IS NULL OR component_id = $3) ORDER BY id DESC LIMIT $4 OFFSET $5"
                        ),
                        BuildFilter { .. } => select!(Build,
                            "WHERE org_id = $1 AND (CAST($2 AS TEXT) IS NULL OR app_id = $2) AND (CAST($3 AS TEXT) IS NULL OR component_id = $3) ORDER BY id DESC LIMIT $4 OFFSET $5"
                        ),
                    };
                    let given = params![&org, filter.app.as_ref(), filter.component.as_ref(), limit, offset];
                    tx.query(sql, given).await?.iter().map(Build::from_row).collect()
                }) })
            .await
    }

    /// The newest build of a component that is open or good, of one recipe.
    pub async fn build_of_recipe(
        &self,
        org: &OrgId,
        component: &str,
        recipe: &str,
        open: bool,
    ) -> Result<Option<Build>> {
        let status = if open { BuildStatus::Open } else { BuildStatus::Active };
        self.main()
            .glance((org.clone(), component.to_owned(), recipe.to_owned(), status), |tx, (org, component, recipe, status)| { Box::pin(async move {
                    let sql = select!(Build,
                        "WHERE org_id = $1 AND component_id = $2 AND recipe = $3 AND status = $4 ORDER BY id DESC LIMIT 1"
                    );
                    let given = params![&org, component, recipe, status.as_str()];
                    tx.get(sql, given).await?.as_ref().map(Build::from_row).transpose()
                }) })
            .await
    }

    /// Open builds whose job has ended, oldest first.
    pub async fn ended_builds(&self, limit: u64) -> Result<Vec<Build>> {
        self.main()
            .read(limit, |tx, limit| { Box::pin(async move {
                    let sql = select!(Build,
                        "WHERE status = 'open' AND job_id IN (SELECT b.job_id FROM builds b JOIN jobs j ON j.id = b.job_id WHERE b.status = 'open' AND j.state IN ('finished', 'failed', 'timed-out', 'cancelled', 'not-attempted')) ORDER BY id LIMIT $1"
                    );
                    tx.query(sql, params![limit]).await?.iter().map(Build::from_row).collect()
                }) })
            .await
    }

    /// Orgs that wait for a build.
    pub async fn orgs_with_open_builds(&self) -> Result<Vec<OrgId>> {
        self.main()
            .read((), |tx, ()| {
                Box::pin(async move {
                    let rows = tx.query("SELECT DISTINCT org_id FROM builds WHERE status = 'open'", vec![]).await?;
                    rows.iter().map(|row| row.get("org_id")).collect()
                })
            })
            .await
    }

    /// Active configs whose builds nobody has planned: org, app, config.
    pub async fn unplanned_configs(&self, limit: u64) -> Result<Vec<(OrgId, AppId, ConfigId)>> {
        self.main()
            .read(limit, |tx, limit| { Box::pin(async move {
                    let sql = "SELECT org_id, app_id, id FROM configs WHERE status = 'active' AND builds_at IS NULL ORDER BY id LIMIT $1";
                    let rows = tx.query(sql, params![limit]).await?;
                    rows.iter().map(|row| Ok((row.get("org_id")?, row.get("app_id")?, row.get("id")?))).collect()
                }) })
            .await
    }
}

impl Store {
    /// A build that needs no job.
    pub async fn add_build(&self, build: Build) -> Result<()> {
        let org = build.org_id.clone();
        self.main().write(build, |tx, build| Box::pin(async move { insert(tx, build).await })).await?;
        self.notifier().wake(topic::org(&org));
        Ok(())
    }

    /// Writes how an open build ended; the first to say so wins.
    pub async fn end_build(&self, build: &Build, end: BuildEnd, now: Timestamp) -> Result<Build> {
        let org = build.org_id.clone();
        let ended = self
            .main()
            .write((build.clone(), end, now), |tx, (build, end, now)| { Box::pin(async move {
                    let artifact = end.artifact.as_ref().map(json).transpose()?;
                    let changed = tx
                        .exec(
                            "UPDATE builds SET status = $2, description = $3, same_as = $4, source = $5, artifact = $6, cache_hits = $7, cache_steps = $8, updated_at = $9 WHERE id = $1 AND status = 'open'",
                            params![&build.id, end.status.as_str(), &end.description, end.same_as.as_ref(), json(&end.source)?, artifact, end.cache_hits, end.cache_steps, now],
                        )
                        .await?;
                    if changed == 0 {
                        let sql = select!(Build, "WHERE id = $1");
                        let row = tx.get(sql, params![&build.id]).await?;
                        return Build::from_row(&row.ok_or(StoreError::NotFound("build"))?);
                    }
                    let BuildEnd { status, description, same_as, source, artifact, cache_hits, cache_steps } = end.clone();
                    let build = Build {
                        status,
                        description,
                        same_as,
                        source,
                        artifact,
                        cache_hits,
                        cache_steps,
                        updated_at: *now,
                        ..build.clone()
                    };
                    note(tx, &build, *now, "ferry").await?;
                    Ok(build)
                }) })
            .await?;
        self.notifier().wake(topic::org(&org));
        Ok(ended)
    }

    pub async fn mark_planned(&self, config: &ConfigId, now: Timestamp) -> Result<()> {
        self.set_planned(config, Some(now)).await
    }

    /// Has the reconciler plan the builds of a config.
    pub async fn unplan(&self, config: &ConfigId) -> Result<()> {
        self.set_planned(config, None).await
    }

    async fn set_planned(&self, config: &ConfigId, at: Option<Timestamp>) -> Result<()> {
        self.main()
            .write((config.clone(), at), |tx, (config, at)| {
                Box::pin(async move {
                    tx.exec("UPDATE configs SET builds_at = $2 WHERE id = $1", params![&config, at]).await?;
                    Ok(())
                })
            })
            .await
    }
}

table! {
    /// A login at a git host or a registry, without its password.
    #[derive(Debug, Clone)]
    pub struct SourceLogin from "source_credentials" {
        pub prefix: String,
        pub username: String,
        pub expires_at: Option<Timestamp>,
        pub created_by: AccountId,
        pub created_at: Timestamp,
    }
}

fn password_place(org: &OrgId, prefix: &str) -> String {
    format!("source_credentials|{org}|{prefix}")
}

impl Reader {
    pub async fn source_logins(&self, org: &OrgId) -> Result<Vec<SourceLogin>> {
        self.main()
            .read(org.clone(), |tx, org| {
                Box::pin(async move {
                    let sql = select!(SourceLogin, "WHERE org_id = $1 ORDER BY prefix");
                    tx.query(sql, params![&org]).await?.iter().map(SourceLogin::from_row).collect()
                })
            })
            .await
    }

    /// The login for an address: that of the longest prefix. One that has expired is an error that says so.
    pub async fn source_credentials(&self, org: &OrgId, address: &str, now: Timestamp) -> Result<Option<Credentials>> {
        let sql = made_once!(format!(
            "SELECT {}, password FROM source_credentials WHERE org_id = $1",
            SourceLogin::columns()
        ));
        let rows = self.main().query(sql, params![org]).await?;
        let logins: Result<Vec<(SourceLogin, Vec<u8>)>> =
            rows.iter().map(|row| Ok((SourceLogin::from_row(row)?, row.get("password")?))).collect();
        let fitting = logins?.into_iter().filter(|(login, _)| covers(&login.prefix, address));
        let Some((login, sealed)) = fitting.max_by_key(|(login, _)| login.prefix.len()) else { return Ok(None) };
        if let Some(at) = login.expires_at.filter(|at| *at <= now) {
            return Err(Refused::LoginExpired { prefix: login.prefix, at }.into());
        }
        let password = self.open_sealed(org, &password_place(org, &login.prefix), &sealed).await?;
        let password = String::from_utf8(password).map_err(|_| StoreError::corrupt("login"))?;
        Ok(Some(Credentials { username: login.username, password }))
    }
}

impl Store {
    /// Keeps a login, in place of the one before.
    pub async fn put_source_login(&self, org: &OrgId, login: SourceLogin, password: &str) -> Result<()> {
        let sealed = self.org_keys(org).await?.seal(&password_place(org, &login.prefix), password.as_bytes());
        self.main()
            .write((org.clone(), login, sealed), |tx, (org, login, sealed)| { Box::pin(async move {
                    let gone = "DELETE FROM source_credentials WHERE org_id = $1 AND prefix = $2";
                    tx.exec(gone, params![&org, &login.prefix]).await?;
                    tx.exec(
                        "INSERT INTO source_credentials (org_id, prefix, username, password, expires_at, created_by, created_at) VALUES ($1, $2, $3, $4, $5, $6, $7)",
                        params![&org, &login.prefix, &login.username, sealed, login.expires_at, &login.created_by, login.created_at],
                    )
                    .await?;
                    let data = serde_json::json!({ "username": login.username, "expires_at": login.expires_at });
                    let subject = ("source", login.prefix.as_str());
                    let (now, actor) = (login.created_at, login.created_by.as_str());
                    record(tx, Note { org, now, kind: "source.login", subject, actor, data }).await
                }) })
            .await
    }

    pub async fn delete_source_login(
        &self,
        org: &OrgId,
        prefix: &str,
        actor: &AccountId,
        now: Timestamp,
    ) -> Result<()> {
        self.main()
            .write((org.clone(), prefix.to_owned(), actor.clone(), now), |tx, (org, prefix, actor, now)| {
                Box::pin(async move {
                    let gone = "DELETE FROM source_credentials WHERE org_id = $1 AND prefix = $2";
                    if tx.exec(gone, params![&org, &prefix]).await? == 0 {
                        return Err(StoreError::NotFound("login"));
                    }
                    let subject = ("source", prefix.as_str());
                    let data = serde_json::json!({});
                    record(tx, Note { org, now: *now, kind: "source.logout", subject, actor: actor.as_str(), data })
                        .await
                })
            })
            .await
    }
}

/// Whether a prefix, as `github.com/acme`, is one of an address: the same host, and the whole of its first parts. An address
/// with a user in it, or without TLS beyond this machine, gets no login.
fn covers(prefix: &str, address: &str) -> bool {
    let (scheme, rest) = address.split_once("://").unwrap_or(("https", address));
    let (host, path) = rest.split_once('/').unwrap_or((rest, ""));
    let bare = host.rsplit_once(':').map_or(host, |(bare, _)| bare);
    let is_loopback = bare == "localhost" || bare.parse::<std::net::IpAddr>().is_ok_and(|ip| ip.is_loopback());
    let (wanted_host, wanted) = prefix.split_once('/').unwrap_or((prefix, ""));
    let wanted = wanted.trim_end_matches('/');
    let below = |path: &str| path == wanted || path.strip_prefix(wanted).is_some_and(|rest| rest.starts_with('/'));
    let fits = wanted.is_empty() || below(path) || path.strip_suffix(".git").is_some_and(below);
    !host.contains('@') && (scheme != "http" || is_loopback) && host.eq_ignore_ascii_case(wanted_host) && fits
}

/// The state that a build shows, beside that of its job.
pub fn shown_status(build: &Build, job: Option<JobState>) -> &'static str {
    match (build.status, job) {
        (BuildStatus::Active, _) => "active",
        (BuildStatus::Error, _) => "error",
        (BuildStatus::Cancelled, _) => "cancelled",
        (BuildStatus::Open, Some(JobState::Queued | JobState::Claimed) | None) => "planning",
        (BuildStatus::Open, Some(_)) => "building",
    }
}

#[cfg(test)]
mod tests {
    use super::covers;

    #[test]
    fn a_prefix_ends_where_a_part_of_the_path_ends() {
        assert!(covers("github.com", "https://github.com/acme/x.git"));
        assert!(covers("github.com/acme", "https://github.com/acme/x.git"));
        assert!(covers("github.com/acme/x", "https://github.com/acme/x.git"));
        assert!(covers("host:5000", "host:5000/image"));
        assert!(covers("127.0.0.1:5000", "http://127.0.0.1:5000/x"));
        assert!(!covers("github.com", "https://github.com.evil.io/x"), "another host");
        assert!(!covers("github.com", "https://github.com:x@evil.io/x"), "a user, not the host");
        assert!(!covers("github.com", "http://github.com/acme/x"), "in clear");
        assert!(!covers("ghcr.io", "ghcr.io.evil.io/a"));
        assert!(!covers("github.com/ac", "https://github.com/acme/x.git"));
        assert!(!covers("github.co", "https://github.com/acme/x.git"));
    }
}
