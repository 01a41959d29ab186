//! Builds and components.

use std::collections::BTreeMap;
use std::time::Duration;

use api::client::{Client, ClientError};
use api::control::{Build, Component, CreateBuild};
use model::JobId;

use crate::args::{self, Builds, Components};
use crate::commands::{Kind, explain, ids, logs, suggestion};
use crate::error::{CliError, Exit, Result};
use crate::output::{Cell, Output, bytes, cell, dim, id, short, status, strong};
use crate::progress::Progress;
use crate::watch::{Log, Watched, watch};

/// How often builds are looked at that are waited for.
const LOOK: Duration = Duration::from_millis(250);

pub(crate) async fn run(client: &Client, out: &Output, command: Builds) -> Result<u8> {
    match command {
        Builds::List { of, limit } => {
            let mut found = list(client, &of, limit.fetch()).await?;
            let more = limit.cut(&mut found);
            let headers = ["ID", "COMPONENT", "STATUS", "?CREATED", "?FROM", "?TOOK", "?ARTIFACT", "WHY"];
            out.list(&found, "no builds yet; run `ferry apps sync DIR` to build an app", &headers, |build| {
                row(out, build)
            })?;
            out.more(more);
        }
        Builds::Get { id } => show(client, out, &one(client, &id).await?)?,
        Builds::Create(args) => return create(client, out, &args).await,
        Builds::Logs { id, options } => {
            let build = one(client, &id).await?;
            return logs::of_job(client, out, &job(&build)?, options).await;
        }
        Builds::Cancel { id } => {
            let id = ids::whole(client, &id).await?;
            let build = named(&id, client.cancel_build(&id).await)?;
            if !out.json {
                out.success(&format!("build {} is being cancelled", build.stamp.id));
            }
            show(client, out, &build)?;
        }
    }
    Ok(0)
}

pub(crate) async fn components(client: &Client, out: &Output, command: Components) -> Result<u8> {
    match command {
        Components::List { app } => {
            let found = match &app {
                Some(app) => named_app(client, app, client.components(app).await).await?,
                None => client.all_components().await?,
            };
            let headers = ["NAME", "TYPE", "?AFTER", "?VERSIONS", "?ID"];
            out.list(&found, "no components yet; run `ferry apps sync DIR` to sync an app", &headers, |component| {
                vec![
                    strong(&component.name),
                    cell(&component.component_type),
                    cell(component.dependencies.join(", ")),
                    cell(component.config_versions),
                    id(&component.stamp.id),
                ]
            })?;
        }
        Components::Get { component, app } => {
            let found = find(client, app.as_deref(), &component).await?;
            let build = match client.latest_build(&found.stamp.id).await {
                Ok(build) => Some(build),
                Err(error) if error.is_not_found() => None,
                Err(error) => return Err(error.into()),
            };
            if out.json {
                out.json(&serde_json::json!({ "component": found, "build": build }))?;
                return Ok(0);
            }
            out.pairs(vec![
                ("name", strong(&found.name)),
                ("id", cell(&found.stamp.id)),
                ("type", cell(&found.component_type)),
                ("after", cell(found.dependencies.join(", "))),
                ("versions", cell(found.config_versions)),
            ])?;
            match build {
                Some(build) => {
                    out.heading("Newest build")?;
                    show(client, out, &build)?;
                }
                None => out.note("not built yet"),
            }
        }
        Components::Build(args) => return create(client, out, &args).await,
    }
    Ok(0)
}

/// The builds that are asked for.
pub(crate) async fn list(client: &Client, of: &args::Of, limit: usize) -> Result<Vec<Build>> {
    let component = match &of.component {
        Some(component) => Some(find(client, of.app.as_deref(), component).await?.stamp.id),
        None => None,
    };
    match client.builds(of.app.as_deref(), component.as_deref(), limit).await {
        Ok(found) => Ok(found),
        Err(error) => Err(explain(client, Kind::App, of.app.as_deref().unwrap_or_default(), error).await),
    }
}

/// A component by name or id; a name that does not exist gets a guess.
pub(crate) async fn find(client: &Client, app: Option<&str>, wanted: &str) -> Result<Component> {
    let error = match client.component(app, wanted).await {
        Ok(found) => return Ok(found),
        Err(error) if error.is_not_found() => error,
        Err(error) => return Err(error.into()),
    };
    let known = match app {
        Some(app) => named_app(client, app, client.components(app).await).await?,
        None => client.all_components().await?,
    };
    let names: Vec<String> = known.into_iter().map(|component| component.name).collect();
    let error = CliError::from(error);
    Err(match suggestion(wanted, &names) {
        Some(hint) => error.hint(hint),
        None => error,
    })
}

async fn named_app<T>(client: &Client, app: &str, answer: std::result::Result<T, ClientError>) -> Result<T> {
    match answer {
        Ok(value) => Ok(value),
        Err(error) => Err(explain(client, Kind::App, app, error).await),
    }
}

/// A build by its id.
pub(crate) async fn one(client: &Client, id: &str) -> Result<Build> {
    let id = ids::whole(client, id).await?;
    named(&id, client.build(&id).await)
}

fn named<T>(id: &str, answer: std::result::Result<T, ClientError>) -> Result<T> {
    answer.map_err(|error| {
        let missing = error.is_not_found();
        let error = CliError::from(error);
        if missing {
            error.hint(format!("`{id}` is not the id of a build; run `ferry builds list` to see the ids"))
        } else {
            error
        }
    })
}

pub(crate) fn job(build: &Build) -> Result<JobId> {
    Client::job_of(build).ok_or_else(|| {
        CliError::new(Exit::NotFound, format!("build {} has no log: {}", build.stamp.id, build.status_description))
    })
}

/// What a build was made of, short.
fn from(build: &Build) -> String {
    let short = |text: &str| text.trim_start_matches("sha256:").chars().take(12).collect::<String>();
    match &build.vcs_connection_commit {
        Some(commit) => format!("{} {}", build.git_ref, short(&commit.sha)).trim().to_owned(),
        None if !build.source_digest.is_empty() => {
            format!("{} {}", build.git_ref, short(&build.source_digest)).trim().to_owned()
        }
        None => build.git_ref.clone(),
    }
}

/// How a build stands: the dialect's own word for one that was cancelled is `error`.
fn state(build: &Build) -> &str {
    build.status_v2.as_ref().map_or(&build.status, |status| &status.status)
}

fn took(build: &Build) -> String {
    if build.duration > 0 { short(Duration::from_nanos(build.duration.unsigned_abs())) } else { String::new() }
}

fn row(out: &Output, build: &Build) -> Vec<Cell> {
    let digest = build.artifact.as_ref().map(|a| a.digest.as_str());
    vec![
        id(&build.stamp.id).strong(),
        cell(&build.component_name),
        status(state(build)),
        dim(out.time(build.stamp.created_at)),
        cell(from(build)),
        dim(took(build)),
        id(digest.unwrap_or_default()),
        cell(&build.status_description),
    ]
}

/// An artifact's name as other tools take it: with the host of our own registry.
pub(crate) fn whole(client: &Client, build: &Build, reference: &str) -> String {
    if !reference.starts_with(&build.stamp.org_id) {
        return reference.to_owned();
    }
    let host = client.url().split_once("://").map_or_else(|| client.url(), |(_, host)| host);
    format!("{}/{reference}", host.trim_end_matches('/'))
}

fn show(client: &Client, out: &Output, build: &Build) -> Result<()> {
    if out.json {
        return Ok(out.json(build)?);
    }
    let mut pairs = vec![
        ("id", strong(&build.stamp.id)),
        ("component", cell(&build.component_name)),
        ("status", status(state(build))),
        ("why", cell(&build.status_description)),
        ("version", cell(build.component_config_version)),
        ("ref", cell(&build.git_ref)),
    ];
    if let Some(commit) = &build.vcs_connection_commit {
        pairs.push(("commit", cell(&commit.sha)));
        pairs.push(("author", cell(format!("{} <{}>", commit.author_name, commit.author_email))));
        pairs.push(("message", cell(commit.message.lines().next().unwrap_or_default())));
    } else {
        pairs.push(("source", cell(&build.source_digest)));
    }
    if let Some(artifact) = &build.artifact {
        pairs.push(("artifact", cell(whole(client, build, &artifact.reference))));
        pairs.push((
            "type",
            cell(if artifact.artifact_type.is_empty() { &artifact.media_type } else { &artifact.artifact_type }),
        ));
        pairs.push(("size", cell(bytes(artifact.size))));
    }
    if build.cache_steps > 0 {
        pairs.push(("cached", cell(format!("{} of {} steps", build.cache_hits, build.cache_steps))));
    }
    pairs.push(("took", cell(took(build))));
    pairs.push(("same as", cell(&build.same_as)));
    pairs.push(("created", dim(out.moment(build.stamp.created_at))));
    Ok(out.pairs(pairs)?)
}

async fn create(client: &Client, out: &Output, args: &args::CreateBuild) -> Result<u8> {
    let component = find(client, args.app.as_deref(), &args.component).await?;
    let body = CreateBuild {
        git_ref: args.reference.clone().unwrap_or_default(),
        use_latest: args.reference.is_none(),
        anew: args.anew,
    };
    let build = client.create_build(&component.stamp.id, &body).await?;
    if args.detach || build.runner_job.is_none() || ended(&build) {
        if !out.json && build.status == "active" {
            out.note("nothing has changed since this build");
        }
        show(client, out, &build)?;
        return Ok(u8::from(build.status == "error"));
    }
    if !out.json {
        out.note(&format!("build {}", build.stamp.id));
    }
    let log = if out.json { Log::Await } else { Log::Show };
    let Some(job) = build.runner_job.clone() else { return Ok(0) };
    match watch(client, out, job, log).await? {
        Watched::Left => {
            out.hint(&format!("the build continues; run `ferry builds get {}` to see its status", build.stamp.id));
            Ok(130)
        }
        Watched::Ended(_) => {
            let build = client.build(&build.stamp.id).await?;
            show(client, out, &build)?;
            Ok(u8::from(build.status != "active"))
        }
    }
}

pub(crate) fn ended(build: &Build) -> bool {
    matches!(build.status.as_str(), "active" | "error")
}

/// Waits for the builds of a sync, and says how each of them goes. 1 where one has failed.
pub(crate) async fn wait(client: &Client, out: &Output, builds: &[Build]) -> Result<(u8, Vec<Build>)> {
    let mut known: BTreeMap<String, Build> = builds.iter().map(|b| (b.stamp.id.clone(), b.clone())).collect();
    let mut told: Vec<String> = Vec::new();
    let mut progress = Progress::new(out);
    loop {
        for build in known.values().filter(|b| ended(b)) {
            if !told.contains(&build.stamp.id) {
                progress.clear();
                tell(out, build, builds);
                told.push(build.stamp.id.clone());
            }
        }
        let open: Vec<&Build> = known.values().filter(|b| !ended(b)).collect();
        let Some(first) = open.first() else { break };
        if !out.json {
            let names: Vec<&str> = open.iter().map(|b| b.component_name.as_str()).collect();
            let why = Some(first.status_description.as_str()).filter(|why| !why.is_empty());
            let why = why.map(|why| format!(" ({why})")).unwrap_or_default();
            progress.set(&format!("building {}{why}", names.join(", ")));
        }
        tokio::select! {
            () = tokio::time::sleep(LOOK) => {}
            _ = tokio::signal::ctrl_c() => {
                progress.clear();
                out.note("the builds continue; run `ferry builds list` to see their status");
                return Ok((130, builds.to_vec()));
            }
        }
        progress.tick();
        for id in open.iter().map(|b| b.stamp.id.clone()).collect::<Vec<_>>() {
            match client.build(&id).await {
                Ok(build) => {
                    known.insert(id, build);
                }
                // A control plane that restarts is waited for.
                Err(error) if error.is_transient() => {}
                Err(error) => return Err(error.into()),
            }
        }
    }
    progress.clear();
    let code = u8::from(known.values().any(|build| build.status != "active"));
    Ok((code, builds.iter().filter_map(|b| known.remove(&b.stamp.id)).collect()))
}

/// A line about a build that has ended; nothing about one that was good before the sync began.
fn tell(out: &Output, build: &Build, before: &[Build]) {
    let was_there = before.iter().any(|b| b.stamp.id == build.stamp.id && ended(b));
    if out.json {
        return;
    }
    let name = &build.component_name;
    if build.status == "error" {
        out.failure(&format!("{name}: {}", build.status_description));
        if build.runner_job.is_some() {
            out.hint(&format!("run `ferry builds logs {}` to see why", build.stamp.id));
        }
    } else if build.no_op {
        out.note(&format!("{name}: unchanged, {} is already built", from(build)));
    } else if !was_there {
        let size = build.artifact.as_ref().map(|a| format!(", {}", bytes(a.size))).unwrap_or_default();
        let took = Some(took(build)).filter(|t| !t.is_empty()).map(|t| format!(" in {t}")).unwrap_or_default();
        let from = Some(from(build)).filter(|f| !f.is_empty()).map(|f| format!(" from {f}")).unwrap_or_default();
        out.success(&format!("{name}: built{from}{took}{size}"));
    }
}
