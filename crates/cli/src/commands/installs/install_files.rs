//! Installs that are kept in files: reads the files, shows what they would change (`compare`), and makes it so.
//!
//! A file says all of an install's own labels and of the vendor's inputs that are not sensitive: what it does not name goes back
//! to the app's default. Switches of components that it does not name stay as they are.

mod compare;

use std::collections::BTreeMap;
use std::path::{Component, Path, PathBuf};

use api::client::Client;
use api::control::{
    CreateInstall, InstallMetadata, Location, Project, Region, ToggleInstallComponent, UpdateInstall,
    UpdateInstallConfig, UpdateInstallInputs,
};
use compare::{Action, App, Change, MANAGED_BY, Plan, There, approval_option, compare};
use config::{Options, Severity, Tree};
use serde_json::json;

use crate::args::SyncInstalls;
use crate::commands::{Kind, confirm, explain, workflows};
use crate::error::{CliError, Exit, Result};
use crate::output::{Output, count};

/// Most files of one sync.
const FILES_MAX: usize = 1_000;

pub(crate) async fn sync(client: &Client, out: &Output, args: SyncInstalls) -> Result<u8> {
    let tree = read(&args)?;
    let wanted = match load(out, &tree)? {
        Ok(wanted) => wanted,
        Err(code) => return Ok(code),
    };
    let installs = match client.installs(Some(&args.app)).await {
        Ok(installs) => installs,
        Err(error) => return Err(explain(client, Kind::App, &args.app, error).await),
    };
    let mut app = App::default();
    match client.declared_inputs(&args.app).await {
        Ok(declared) => app.inputs = declared.inputs,
        Err(error) if error.status() == Some(404) => {}
        Err(error) => return Err(error.into()),
    }
    if wanted.iter().any(|install| !install.components.is_empty()) {
        let components = client.components(&args.app).await?;
        app.components = components.into_iter().map(|component| (component.name, component.component_type)).collect();
    }
    let (mut plans, mut problems) = (Vec::new(), Vec::new());
    for wanted in wanted {
        let install = installs.iter().find(|install| install.name == wanted.name);
        let inputs = match install {
            Some(install) => Some(client.install_inputs(install.id.as_str()).await?),
            None => None,
        };
        let there = install.map(|install| There { install, inputs: inputs.as_ref() });
        plans.push(compare(wanted, there, &app, &args, &mut problems));
    }
    if !problems.is_empty() {
        let hint = "nothing was changed; fix the files and sync again";
        return Err(CliError::usage(problems.join("\n")).hint(hint));
    }
    if !out.json {
        show(out, &plans)?;
    }
    let changed = plans.iter().filter(|plan| plan.action != Action::None).count();
    if args.plan {
        return finish(out, &args, &plans, changed);
    }
    if changed == 0 {
        // What an earlier sync has started may wait still.
        for plan in &mut plans {
            let open = client.workflows(Some(&plan.name), 20).await?;
            plan.workflow_ids = open.into_iter().filter(|workflow| !workflow.finished).map(|w| w.id).collect();
        }
        finish(out, &args, &plans, changed)?;
        return follow(client, out, &args, &plans).await;
    }
    let installs = count(changed, "install", "installs");
    confirm(out, args.yes, &format!("changing {installs}"), &format!("change {installs}?"))?;
    let mut done: Vec<String> = Vec::new();
    for plan in &mut plans {
        if let Err(error) = apply(client, &args, plan).await {
            let told = if done.is_empty() {
                "no other install was changed".to_owned()
            } else {
                format!("already changed: {}", done.join(", "))
            };
            return Err(error.hint(format!("{told}; fix the problem and sync again")));
        }
        if plan.action != Action::None {
            done.push(plan.name.clone());
        }
    }
    finish(out, &args, &plans, changed)?;
    follow(client, out, &args, &plans).await
}

/// The files, each under `installs/`.
fn read(args: &SyncInstalls) -> Result<Tree> {
    let mut files = args.files.clone();
    if let Some(dir) = &args.dir {
        // An app's directory has them at their place.
        let (inside, app) = (dir.join("installs"), dir.join("metadata.toml"));
        let dir = if inside.is_dir() && app.is_file() { inside } else { dir.clone() };
        walk(&dir, &mut files)?;
        files.sort();
        if files.is_empty() {
            return Err(CliError::usage(format!("no TOML files in {}", dir.display())));
        }
    }
    let mut tree = Tree::new(args.app.clone());
    for file in files {
        let contents = fs_err::read(&file).map_err(|e| CliError::usage(e.to_string()))?;
        let shown: Vec<String> = file
            .components()
            .filter_map(|part| match part {
                Component::Normal(part) => Some(part.to_string_lossy().into_owned()),
                _ => None,
            })
            .collect();
        tree.add(format!("installs/{}", shown.join("/")), contents);
    }
    Ok(tree)
}

fn walk(dir: &Path, files: &mut Vec<PathBuf>) -> Result<()> {
    for entry in fs_err::read_dir(dir).map_err(|e| CliError::usage(e.to_string()))? {
        let path = entry?.path();
        if path.is_dir() && !path.is_symlink() {
            walk(&path, files)?;
        } else if path.extension().is_some_and(|extension| extension == "toml") {
            files.push(path);
        }
        if files.len() > FILES_MAX {
            return Err(CliError::usage(format!("there are more than {FILES_MAX} files; sync them in parts")));
        }
    }
    Ok(())
}

/// The installs that the files say; or an exit code, where something is wrong with them, which is told then.
fn load(out: &Output, tree: &Tree) -> Result<std::result::Result<Vec<config::Install>, u8>> {
    let loaded = config::load_installs(tree, Options { strict: false, complete: true });
    let failed = loaded.config.is_none();
    if out.json && failed {
        out.json(&json!({ "ok": false, "diagnostics": loaded.diagnostics }))?;
    } else if !out.json {
        for found in &loaded.diagnostics {
            out.stderr_bytes(format!("{}\n\n", config::draw(found, tree, out.color_stderr)).as_bytes());
        }
    }
    let Some(config) = loaded.config else {
        if !out.json {
            let errors = loaded.diagnostics.iter().filter(|d| d.severity == Severity::Error).count();
            out.failure(&count(errors, "error", "errors"));
        }
        return Ok(Err(Exit::Failed.code()));
    };
    if config.installs.is_empty() {
        return Err(CliError::usage("no installs found in these files").hint("an install file needs at least a `name`"));
    }
    Ok(Ok(config.installs))
}

fn show(out: &Output, plans: &[Plan]) -> Result<()> {
    for plan in plans.iter().filter(|plan| plan.action != Action::None) {
        let sign = if plan.action == Action::Create { '+' } else { '~' };
        out.change(sign, &format!("install {}", plan.name))?;
        for Change { path, old, new } in &plan.changes {
            match (old, new) {
                (Some(old), Some(new)) => out.change('~', &format!("  {path}: {old:?} → {new:?}"))?,
                (Some(old), None) => out.change('-', &format!("  {path}: {old:?}"))?,
                (None, Some(new)) => out.change('+', &format!("  {path}: {new:?}"))?,
                (None, None) => {}
            }
        }
    }
    Ok(())
}

/// Makes it so. What was done stays if the next install fails: another sync goes on there.
async fn apply(client: &Client, args: &SyncInstalls, plan: &mut Plan) -> Result<()> {
    let name = plan.name.clone();
    let failed = |error: api::client::ClientError| {
        let mut error = CliError::from(error);
        error.message = format!("install `{name}`: {}", error.message);
        error
    };
    let mut workflow_ids = Vec::new();
    match plan.action {
        Action::None => return Ok(()),
        Action::Create => {
            let install = client.create_install(&args.app, &new_install(plan)).await.map_err(failed)?;
            plan.id = Some(install.id);
            workflow_ids.push(install.workflow_id);
        }
        Action::Update => {
            let Some(id) = plan.id.clone() else { return Ok(()) };
            let is_of = |part: &str| plan.changes.iter().any(|change| change.path.starts_with(part));
            let body = UpdateInstall {
                name: String::new(),
                approval_option: if is_of("approval_option") { approval_option(&plan.wanted) } else { String::new() },
                component_toggles: BTreeMap::new(),
                labels: is_of("labels.").then(|| plan.wanted.labels.clone()),
                metadata: Some(InstallMetadata { managed_by: MANAGED_BY.into() }),
                install_config: None,
            };
            // Approvals first: what is started now goes by them.
            client.update_install(id.as_str(), &body).await.map_err(failed)?;
            let changes = |component: &&String| {
                plan.changes.iter().any(|change| change.path == format!("component_toggles.{component}"))
            };
            let mut left: Vec<&String> = plan.wanted.component_toggles.keys().filter(changes).collect();
            while !left.is_empty() {
                // One that others need is switched off after them.
                let (before, mut needed) = (left.len(), Vec::new());
                let mut refused = None;
                for component in left {
                    let body =
                        ToggleInstallComponent { enabled: plan.wanted.component_toggles[component], plan_only: false };
                    match client.toggle_component(id.as_str(), component, &body).await {
                        Ok(started) => workflow_ids.push(started.workflow_id),
                        Err(error) if error.code() == Some(api::ErrorCode::HasDependents) => {
                            needed.push(component);
                            refused = Some(error);
                        }
                        Err(error) => return Err(failed(error)),
                    }
                }
                if let Some(error) = refused.filter(|_| needed.len() == before) {
                    return Err(failed(error));
                }
                left = needed;
            }
            if !plan.inputs.is_empty() || !plan.overrides.is_empty() {
                let body = UpdateInstallInputs {
                    inputs: plan.inputs.clone(),
                    component_overrides: plan.overrides.clone(),
                    deploy_dependents: true,
                    no_deploy: false,
                    role: String::new(),
                };
                let changed = client.update_install_inputs(id.as_str(), &body).await.map_err(failed)?;
                workflow_ids.push(changed.workflow_id);
            }
        }
    }
    workflow_ids.retain(|id| !id.is_empty());
    plan.workflow_ids = workflow_ids;
    Ok(())
}

fn new_install(plan: &Plan) -> CreateInstall {
    let wanted = &plan.wanted;
    let text = |value: &Option<String>| value.clone().unwrap_or_default();
    CreateInstall {
        aws_account: wanted.aws_account.as_ref().map(|aws| Region { region: aws.region.clone() }),
        azure_account: wanted.azure_account.as_ref().map(|azure| Location { location: azure.location.clone() }),
        gcp_account: wanted
            .gcp_account
            .as_ref()
            .map(|gcp| Project { project_id: text(&gcp.project_id), region: text(&gcp.region) }),
        inputs: plan.inputs.clone(),
        component_overrides: plan.overrides.clone(),
        labels: wanted.labels.clone(),
        metadata: Some(InstallMetadata { managed_by: MANAGED_BY.into() }),
        install_config: Some(UpdateInstallConfig {
            approval_option: approval_option(wanted),
            component_toggles: wanted.component_toggles.clone(),
            labels: None,
            vpc_nested_template_url: String::new(),
            runner_nested_template_url: String::new(),
            custom_nested_stacks: Vec::new(),
        }),
        ..CreateInstall::local(wanted.name.clone())
    }
}

fn finish(out: &Output, args: &SyncInstalls, plans: &[Plan], changed: usize) -> Result<u8> {
    if out.json {
        let document = json!({ "installs": plans, "applied": !args.plan && changed > 0 });
        if args.wait {
            out.json_line(&document)?;
        } else {
            out.json(&document)?;
        }
        return Ok(0);
    }
    let of = |action: Action| plans.iter().filter(|plan| plan.action == action).count();
    let (made, updated) = (of(Action::Create), of(Action::Update));
    let as_it_was = count(of(Action::None), "is", "are");
    if changed == 0 {
        out.success(&format!("nothing changed: {}", count(plans.len(), "install", "installs")));
    } else if args.plan {
        out.note(&format!("{made} to create, {updated} to change, {as_it_was} unchanged"));
    } else {
        out.success(&format!("{made} created, {updated} changed, {as_it_was} unchanged"));
    }
    Ok(0)
}

/// Waits for what was started, one after the other; the first bad end is that of the command.
async fn follow(client: &Client, out: &Output, args: &SyncInstalls, plans: &[Plan]) -> Result<u8> {
    let mut first = 0;
    for plan in plans {
        for id in &plan.workflow_ids {
            if args.wait {
                if !out.json {
                    out.note(&format!("{}: workflow {id}", plan.name));
                }
                let code = workflows::watch(client, out, id).await?;
                first = if first == 0 { code } else { first };
            } else if !out.json {
                out.hint(&format!("{}: run `ferry workflows watch {id}` to follow the workflow", plan.name));
            }
        }
    }
    Ok(first)
}
