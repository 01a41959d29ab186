//! What an install lays over settings of its components: shown, or changed from files.

use std::collections::BTreeMap;
use std::io::Read as _;

use api::client::Client;
use api::control::{ComponentOverride, UpdateInstallInputs};
use model::overrides::OverrideKind;

use crate::args::Overrides;
use crate::commands::{Kind, closest, explain, workflows};
use crate::error::{CliError, Result};
use crate::output::{Output, dim, strong};

pub(crate) async fn run(client: &Client, out: &Output, args: Overrides) -> Result<u8> {
    let changes = !args.set.is_empty() || !args.unset.is_empty();
    if !changes && (args.no_deploy || args.yes.given()) {
        return Err(CliError::usage("nothing is to change: use `--set` or `--unset`"));
    }
    let answer = if changes {
        let component_overrides = wanted(client, &args).await?;
        let body = UpdateInstallInputs {
            inputs: BTreeMap::new(),
            component_overrides,
            deploy_dependents: true,
            no_deploy: args.no_deploy,
            role: String::new(),
        };
        client.update_install_inputs(&args.name, &body).await
    } else {
        client.install_inputs(&args.name).await
    };
    let inputs = match answer {
        Ok(inputs) => inputs,
        Err(error) => return Err(explain(client, Kind::Install, &args.name, error).await),
    };
    if args.yes.given() && !inputs.workflow_id.is_empty() {
        client.approve_all(&inputs.workflow_id).await?;
    }
    if out.json {
        out.json(&inputs)?;
        return Ok(0);
    }
    if changes {
        let next = if inputs.workflow_id.is_empty() { "nothing is deployed" } else { "deploying them" };
        out.success(&format!("overrides are saved with version {} of the inputs; {next}", inputs.version));
    } else {
        show(out, &args, &inputs.component_overrides)?;
    }
    if !inputs.workflow_id.is_empty() {
        return workflows::watch(client, out, &inputs.workflow_id).await;
    }
    Ok(0)
}

/// The texts of the files, each as what its component takes.
async fn wanted(client: &Client, args: &Overrides) -> Result<BTreeMap<String, ComponentOverride>> {
    let install = match client.install(&args.name).await {
        Ok(install) => install,
        Err(error) => return Err(explain(client, Kind::Install, &args.name, error).await),
    };
    let components = client.components(install.app_id.as_str()).await?;
    let types: BTreeMap<String, String> =
        components.into_iter().map(|known| (known.name, known.component_type)).collect();
    let mut wanted = BTreeMap::new();
    for (component, file) in &args.set {
        let text = if file == "-" {
            let mut text = String::new();
            std::io::stdin().read_to_string(&mut text)?;
            text
        } else {
            fs_err::read_to_string(file).map_err(|e| CliError::usage(e.to_string()))?
        };
        if text.trim().is_empty() {
            let error = CliError::usage(format!("`{file}` is empty, so nothing was changed"));
            return Err(error.hint(format!("to remove the override, use `--unset {component}`")));
        }
        let Some(kind) = types.get(component) else {
            let close = closest(component, types.keys().map(String::as_str));
            let error = CliError::usage(format!("the app has no component `{component}`"));
            return Err(match close {
                Some(close) => error.hint(format!("did you mean `{close}`?")),
                None => error,
            });
        };
        let fits = OverrideKind::ALL.into_iter().find(|of| config::override_misfit(*of, kind).is_none());
        let over = match fits {
            Some(OverrideKind::HelmValues) => ComponentOverride { helm_values: Some(text), tf_vars: None },
            Some(OverrideKind::TfVars) => ComponentOverride { helm_values: None, tf_vars: Some(text) },
            None => {
                let text =
                    format!("component `{component}` is a {kind}; only charts and Terraform modules take overrides");
                return Err(CliError::usage(text));
            }
        };
        wanted.insert(component.clone(), over);
    }
    for component in &args.unset {
        let nothing = Some(String::new());
        let over = ComponentOverride { helm_values: nothing.clone(), tf_vars: nothing };
        if wanted.insert(component.clone(), over).is_some() {
            return Err(CliError::usage(format!("`{component}` is both set and removed")));
        }
    }
    Ok(wanted)
}

fn show(out: &Output, args: &Overrides, all: &BTreeMap<String, ComponentOverride>) -> Result<()> {
    let texts = |over: &ComponentOverride| -> Vec<(&'static str, String)> {
        let texts = [(OverrideKind::HelmValues, &over.helm_values), (OverrideKind::TfVars, &over.tf_vars)];
        texts.into_iter().filter_map(|(kind, text)| Some((kind.as_str(), text.clone()?))).collect()
    };
    if let Some(component) = &args.component {
        let found = all.get(component).map(texts).unwrap_or_default();
        if found.is_empty() {
            out.note(&format!("install `{}` lays nothing over `{component}`", args.name));
        }
        for (_, text) in found {
            out.line(text.trim_end())?;
        }
        return Ok(());
    }
    let rows: Vec<_> = all
        .iter()
        .flat_map(|(component, over)| texts(over).into_iter().map(move |found| (component, found)))
        .map(|(component, (kind, text))| {
            let lines = text.trim_end().lines().count();
            vec![strong(component), dim(kind), dim(crate::output::count(lines, "line", "lines"))]
        })
        .collect();
    if rows.is_empty() {
        out.note(&format!("install `{}` has no overrides", args.name));
        return Ok(());
    }
    out.table(&["COMPONENT", "KIND", "TEXT"], rows)?;
    out.hint(&format!("run `ferry installs overrides {} COMPONENT` to see the text", args.name));
    Ok(())
}
