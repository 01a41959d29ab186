//! Components, actions, runbooks and triggers.

use super::Checker;
use super::access::{COMPONENT_OPERATIONS, entity_roles, own_role};
use crate::Code;
use crate::diagnostic::{error, warning};
use crate::kinds::*;

const MAX_RULES: usize = 100;
const MAX_FILTERS: usize = 20;
const MAX_TARGET_INPUTS: usize = 50;

pub(super) fn check(checker: &mut Checker) {
    components(checker);
    contexts(checker);
    actions(checker);
    runbooks(checker);
    triggers(checker);
}

fn components(checker: &mut Checker) {
    let config = checker.config;
    if config.components.is_empty() {
        checker.say(warning(Code::MissingFile, "there is no component: nothing is deployed"), "/components");
    }
    checker.unique(
        "the component",
        "/components",
        config.components.iter().map(|component| component.common.name.as_str()),
    );
    for (i, component) in config.components.iter().enumerate() {
        let path = format!("/components/{i}");
        let common = &component.common;
        if common.name == "populated" {
            checker.say(error(Code::BadName, "the name `populated` is kept for the platform"), format!("{path}/name"));
        }
        dependencies(checker, &common.dependencies, Some(&common.name), &path);
        context(checker, common.kubernetes_context.as_deref(), &path);
        entity_roles(checker, &common.operation_roles, COMPONENT_OPERATIONS, &format!("{path}/operation_roles"));
        if common.default_enabled && !common.toggleable {
            checker.say(
                warning(Code::NoEffect, "`default_enabled` has no effect without `toggleable = true`"),
                format!("{path}/default_enabled"),
            );
        }
        match &component.kind {
            ComponentKind::HelmChart(chart) => helm(checker, chart, &path),
            ComponentKind::KubernetesManifest(manifest) => kustomize(checker, manifest, &path),
            _ => {}
        }
    }
}

fn dependencies(checker: &mut Checker, names: &[String], own: Option<&str>, path: &str) {
    for (j, name) in names.iter().enumerate() {
        let at = format!("{path}/dependencies/{j}");
        checker.component(name, at.clone());
        if own == Some(name.as_str()) {
            checker.say(error(Code::DependencyCycle, format!("`{name}` depends on itself")), at);
        } else if let Some(first) = names[..j].iter().position(|known| known == name) {
            checker.say_also(
                warning(Code::DuplicateValue, format!("`{name}` is listed twice")),
                at,
                format!("{path}/dependencies/{first}"),
            );
        }
    }
}

fn helm(checker: &mut Checker, chart: &HelmChart, path: &str) {
    let name = chart.chart_name.as_str();
    let label = (5..=62).contains(&name.len()) && super::parts::is_dns_name(name) && !name.contains('.');
    if !name.is_empty() && !name.contains("{{") && !label {
        let said = error(
            Code::BadName,
            format!("`{name}` can't be the name of a release: 5 to 62 lower-case letters, digits and `-`"),
        );
        checker.say(said, format!("{path}/chart_name"));
    }
    if let Some(repo) =
        chart.helm_repo.as_ref().filter(|repo| !repo.repo_url.is_empty() && !repo.repo_url.contains("://"))
    {
        checker.say(
            error(Code::BadAddress, format!("`{}` is not an address", repo.repo_url)).hint("write it with `https://`"),
            format!("{path}/helm_repo/repo_url"),
        );
    }
    let driver = chart.storage_driver.as_deref().unwrap_or_default();
    if !driver.is_empty() && !driver.contains("{{") && !["configmap", "secret", "nuon"].contains(&driver) {
        checker.say(
            error(Code::BadValue, format!("`{driver}` is not a storage driver")).hint("one of `configmap`, `secret`"),
            format!("{path}/storage_driver"),
        );
    }
}

fn kustomize(checker: &mut Checker, manifest: &KubernetesManifest, path: &str) {
    let sources = [
        ("public_repo", manifest.public_repo.is_some()),
        ("connected_repo", manifest.connected_repo.is_some()),
        ("local", manifest.local.is_some()),
    ];
    let source = sources.iter().find(|(_, given)| *given);
    match (&manifest.kustomize, &manifest.manifest, source) {
        (Some(_), _, None) => {
            let said = error(Code::MissingKey, "a kustomization needs one of `public_repo`, `connected_repo`, `local`");
            checker.say(said, format!("{path}/kustomize"));
        }
        (None, Some(_), Some((key, _))) => {
            let said = error(Code::ExclusiveKeys, format!("`{key}` is for `kustomize`, and `manifest` is given"))
                .hint("delete one of them");
            checker.say(said, format!("{path}/{key}"));
        }
        _ => {}
    }
}

fn context(checker: &mut Checker, name: Option<&str>, path: &str) {
    let names = checker.config.kubernetes_contexts.iter().map(|context| context.name.as_str());
    let names: Vec<&str> = names.collect();
    checker.known(
        Code::UnknownName,
        "context in `kubernetes_contexts.toml` called",
        name.unwrap_or_default(),
        names.into_iter(),
        format!("{path}/kubernetes_context"),
    );
}

fn contexts(checker: &mut Checker) {
    let config = checker.config;
    checker.unique(
        "the context",
        "/kubernetes_contexts",
        config.kubernetes_contexts.iter().map(|context| context.name.as_str()),
    );
    for (i, context) in config.kubernetes_contexts.iter().enumerate() {
        let path = format!("/kubernetes_contexts/{i}/component");
        checker.component(&context.component, path.clone());
        let component = config.components.iter().find(|component| component.common.name == context.component);
        let makes = |kind: &ComponentKind| {
            matches!(kind, ComponentKind::TerraformModule(_) | ComponentKind::Pulumi(_) | ComponentKind::Unknown)
        };
        if let Some(component) = component.filter(|component| !makes(&component.kind)) {
            let message = format!(
                "`{}` is a `{}`; only a `terraform_module` or `pulumi` can make a cluster",
                context.component,
                component.kind.name()
            );
            checker.say(error(Code::BadValue, message), path);
        }
    }
}

fn actions(checker: &mut Checker) {
    let config = checker.config;
    checker.unique("the action", "/actions", config.actions.iter().map(|action| action.name.as_str()));
    for (i, action) in config.actions.iter().enumerate() {
        let path = format!("/actions/{i}");
        dependencies(checker, &action.dependencies, None, &path);
        context(checker, action.kubernetes_context.as_deref(), &path);
        for (key, name) in [("role", &action.role), ("break_glass_role", &action.break_glass_role)] {
            own_role(checker, name.as_deref(), format!("{path}/{key}"));
        }
        for (j, trigger) in action.triggers.iter().enumerate() {
            action_trigger(checker, trigger, format!("{path}/triggers/{j}"));
        }
        let mut crons = action
            .triggers
            .iter()
            .enumerate()
            .filter(|(_, trigger)| trigger.r#type == "cron")
            .map(|(j, _)| format!("{path}/triggers/{j}"));
        if let (Some(first), Some(second)) = (crons.next(), crons.next()) {
            checker.say_also(error(Code::DuplicateValue, "an action has one schedule at most"), second, first);
        }
        checker.unique("the step", &format!("{path}/steps"), action.steps.iter().map(|step| step.name.as_str()));
        for (j, step) in action.steps.iter().enumerate() {
            if action.image.is_some() && step.inline_contents.is_none() && step.command.is_some() {
                checker.say(
                    error(Code::ExclusiveKeys, "with `image`, every step has `inline_contents`"),
                    format!("{path}/steps/{j}/command"),
                );
            }
        }
    }
}

fn action_trigger(checker: &mut Checker, trigger: &ActionTrigger, path: String) {
    let of_component = trigger.r#type.ends_with("-component");
    match trigger.component_name.as_deref() {
        None if of_component => checker.say(
            error(Code::MissingKey, format!("`component_name` is missing: `{}` needs it", trigger.r#type)),
            path.clone(),
        ),
        Some(name) if of_component => checker.component(name, format!("{path}/component_name")),
        Some(_) if !trigger.r#type.is_empty() => {
            checker.say(
                error(Code::ExclusiveKeys, format!("`{}` is not about a component", trigger.r#type))
                    .hint("delete `component_name`"),
                format!("{path}/component_name"),
            );
        }
        _ => {}
    }
    match (&trigger.cron_schedule, trigger.r#type.as_str()) {
        (None, "cron") => checker.say(error(Code::MissingKey, "`cron_schedule` is missing: `cron` needs it"), path),
        (Some(_), kind) if kind != "cron" && !kind.is_empty() => {
            checker.say(
                warning(Code::NoEffect, format!("`cron_schedule` has no effect with `{kind}`")),
                format!("{path}/cron_schedule"),
            );
        }
        _ => {}
    }
}

fn runbooks(checker: &mut Checker) {
    let config = checker.config;
    checker.unique("the runbook", "/runbooks", config.runbooks.iter().map(|runbook| runbook.name.as_str()));
    for (i, runbook) in config.runbooks.iter().enumerate() {
        let path = format!("/runbooks/{i}");
        dependencies(checker, &runbook.dependencies, None, &path);
        checker.unique("the input", &format!("{path}/input"), runbook.input.iter().map(|input| input.name.as_str()));
        for (j, step) in runbook.steps.iter().enumerate() {
            runbook_step(checker, step, &format!("{path}/steps/{j}"));
        }
    }
}

fn runbook_step(checker: &mut Checker, step: &RunbookStep, path: &str) {
    checker.component(step.component_name.as_deref().unwrap_or_default(), format!("{path}/component_name"));
    checker.action(step.action_name.as_deref().unwrap_or_default(), format!("{path}/action_name"));
    own_role(checker, step.role.as_deref(), format!("{path}/role"));
    let ways = [
        ("action_name", step.action_name.is_some()),
        ("command", step.command.is_some()),
        ("inline_contents", step.inline_contents.is_some()),
    ];
    let given: Vec<&str> = ways.iter().filter(|(_, given)| *given).map(|(key, _)| *key).collect();
    match (step.r#type.as_str(), given.as_slice()) {
        ("component_deploy" | "component_tear_down", _) if step.component_name.is_none() => {
            checker
                .say(error(Code::MissingKey, format!("`component_name` is missing: `{}` needs it", step.r#type)), path);
        }
        ("action", []) => {
            checker.say(error(Code::MissingKey, "one of `action_name`, `command`, `inline_contents` is missing"), path)
        }
        ("action", [first, second, ..]) => {
            checker.say(
                error(Code::ExclusiveKeys, format!("`{first}` and `{second}` exclude each other")),
                format!("{path}/{second}"),
            );
        }
        _ => {}
    }
}

fn triggers(checker: &mut Checker) {
    let config = checker.config;
    if config.triggers.len() > MAX_RULES {
        checker.say(
            error(
                Code::OutOfRange,
                format!("there are {} rules; at most {MAX_RULES} are allowed", config.triggers.len()),
            ),
            "/triggers",
        );
    }
    checker.unique("the rule", "/triggers", config.triggers.iter().map(|rule| rule.name.as_str()));
    for (i, rule) in config.triggers.iter().enumerate() {
        let path = format!("/triggers/{i}");
        if rule.filters.len() > MAX_FILTERS {
            checker.say(
                error(Code::OutOfRange, format!("a rule has at most {MAX_FILTERS} filters")),
                format!("{path}/filters"),
            );
        }
        let Some(target) = &rule.target else { continue };
        if target.inputs.len() > MAX_TARGET_INPUTS {
            checker.say(
                error(Code::OutOfRange, format!("a target has at most {MAX_TARGET_INPUTS} inputs")),
                format!("{path}/target/inputs"),
            );
        }
        let runbooks = config.runbooks.iter().map(|runbook| runbook.name.as_str());
        checker.known(
            Code::UnknownName,
            "runbook",
            target.runbook.as_deref().unwrap_or_default(),
            runbooks,
            format!("{path}/target/runbook"),
        );
    }
}
