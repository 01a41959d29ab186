//! Roles, which of them does what, and policies.

use super::{Checker, without_blanks};
use crate::diagnostic::{Said, did_you_mean, error, warning};
use crate::kinds::*;
use crate::{Code, Severity};

const STANDARD: [&str; 3] = ["provision", "maintenance", "deprovision"];

pub(super) fn check(checker: &mut Checker) {
    let config = checker.config;
    roles(checker, &config.roles, "roles");
    roles(checker, &config.break_glass, "break_glass");
    // Without a cloud there are no roles.
    let kinds = if super::parts::cloud(config).is_some() { &STANDARD[..] } else { &[] };
    for &kind in kinds {
        let mut found = config.roles.iter().enumerate().filter(|(_, role)| role.r#type == kind);
        match (found.next(), found.next()) {
            (None, _) => checker.say(
                error(Code::MissingRole, format!("there is no role of type `{kind}`"))
                    .hint(format!("add `permissions/{kind}.toml` with `type = \"{kind}\"`")),
                "/roles",
            ),
            (Some((first, _)), Some((second, _))) => checker.say_also(
                warning(Code::DuplicateValue, format!("there are two roles of type `{kind}`")),
                format!("/roles/{second}/type"),
                format!("/roles/{first}/type"),
            ),
            (Some(_), None) => {}
        }
    }
    for (i, role) in config.roles.iter().enumerate().filter(|(_, role)| role.r#type.is_empty()) {
        let said = error(Code::MissingKey, format!("`type` of the role `{}` is missing", role.name));
        checker.say(said.hint("one of `provision`, `maintenance`, `deprovision`, `custom`"), format!("/roles/{i}"));
    }
    operation_roles(checker);
    policies(checker);
}

fn roles(checker: &mut Checker, roles: &[Role], list: &str) {
    checker.unique("the role", &format!("/{list}"), roles.iter().map(|role| role.name.as_str()));
    let config = checker.config;
    for (i, role) in roles.iter().enumerate() {
        if role.policies.is_empty() && role.named_policies.is_empty() {
            let said = error(Code::MissingKey, format!("`policies` of the role `{}` is missing", role.name));
            checker
                .say(said.hint("a role without a policy may do nothing; write `[[policies]]`"), format!("/{list}/{i}"));
        }
        if let (Some(own), Some(cloud)) = (&role.cloud_platform, super::parts::cloud(config))
            && own != cloud
        {
            checker.say(
                error(Code::CloudMismatch, format!("the role is for `{own}`, and the runner is in `{cloud}`")),
                format!("/{list}/{i}/cloud_platform"),
            );
        }
        for (j, policy) in role.policies.iter().enumerate().filter(|(_, policy)| allows_nothing(policy)) {
            let name = policy.name.as_deref().unwrap_or_default();
            checker.say(
                warning(Code::NoEffect, format!("the policy `{name}` allows nothing")),
                format!("/{list}/{i}/policies/{j}"),
            );
        }
        for (j, policy) in role.named_policies.iter().enumerate() {
            let names = config.named_policies.iter().map(|policy| policy.name.as_str());
            checker.known(
                Code::UnknownName,
                "policy",
                &policy.name,
                names,
                format!("/{list}/{i}/named_policies/{j}/name"),
            );
        }
    }
}

fn allows_nothing(policy: &RolePolicy) -> bool {
    let texts = [&policy.managed_policy_name, &policy.contents, &policy.gcp_predefined_role];
    let lists = [&policy.gcp_permissions, &policy.azure_built_in_roles, &policy.azure_actions];
    texts.iter().all(|text| text.as_deref().unwrap_or_default().is_empty()) && lists.iter().all(|list| list.is_empty())
}

/// A role that an operation names must be there: otherwise another one would be used, maybe a stronger one.
fn role(checker: &mut Checker, name: &str, path: String) {
    if let Some(said) = no_role(checker, name) {
        checker.say(said, path);
    }
}

/// The role of an action or a step. Real apps name roles that are written otherwise where they are defined; they stop when they run.
pub(super) fn own_role(checker: &mut Checker, name: Option<&str>, path: String) {
    if let Some(said) = no_role(checker, name.unwrap_or_default()) {
        checker.say(Said { severity: Severity::Warning, ..said }, path);
    }
}

fn no_role(checker: &Checker, name: &str) -> Option<Said> {
    let config = checker.config;
    let names = || config.roles.iter().chain(&config.break_glass).map(|role| role.name.as_str());
    if name.is_empty() || names().any(|known| without_blanks(known) == without_blanks(name)) {
        return None;
    }
    let said = error(Code::UnknownRole, format!("there is no role `{name}` in permissions or break_glass"));
    Some(said.maybe_hint(did_you_mean(name, names())))
}

pub(super) fn entity_roles(checker: &mut Checker, roles: &[OperationRole], operations: &[&str], path: &str) {
    for (i, rule) in roles.iter().enumerate() {
        role(checker, &rule.role, format!("{path}/{i}/role"));
        if !rule.operation.is_empty() && !operations.contains(&rule.operation.as_str()) {
            let said = error(Code::BadValue, format!("`{}` is not an operation of this", rule.operation));
            let known = operations.iter().map(|operation| format!("`{operation}`")).collect::<Vec<_>>().join(", ");
            checker.say(said.hint(format!("one of {known}")), format!("{path}/{i}/operation"));
        }
    }
    checker.once(
        Code::DuplicateValue,
        "the operation",
        roles.iter().enumerate().map(|(i, rule)| (rule.operation.as_str(), format!("{path}/{i}/operation"))),
    );
}

pub(super) const SANDBOX_OPERATIONS: &[&str] = &["provision", "reprovision", "deprovision"];
pub(super) const COMPONENT_OPERATIONS: &[&str] = &["deploy", "teardown"];

fn operation_roles(checker: &mut Checker) {
    let config = checker.config;
    if let Some(sandbox) = &config.sandbox {
        entity_roles(checker, &sandbox.operation_roles, SANDBOX_OPERATIONS, "/sandbox/operation_roles");
    }
    let Some(matrix) = &config.operation_roles else { return };
    let mut rules = Vec::new();
    for (i, rule) in matrix.rules.iter().enumerate() {
        let path = format!("/operation_roles/rules/{i}");
        role(checker, &rule.role, format!("{path}/role"));
        rules.push((format!("{} of {}", rule.operation, rule.principal), format!("{path}/operation")));
        let operations =
            match rule.principal.strip_prefix("nuon::").map(|rest| rest.split_once(':').unwrap_or((rest, ""))) {
                Some(("sandbox", "")) => SANDBOX_OPERATIONS,
                Some(("component", name)) if !name.is_empty() => {
                    if name != "*" {
                        checker.component(name, format!("{path}/principal"));
                    }
                    COMPONENT_OPERATIONS
                }
                Some(("action", name)) if !name.is_empty() => {
                    if name != "*" {
                        checker.action(name, format!("{path}/principal"));
                    }
                    &["trigger"]
                }
                _ => {
                    let said = error(Code::BadPrincipal, format!("`{}` is not a principal", rule.principal));
                    checker.say(
                        said.hint("write `nuon::sandbox`, `nuon::component:NAME` or `nuon::action:NAME`"),
                        format!("{path}/principal"),
                    );
                    continue;
                }
            };
        if !rule.operation.is_empty() && !operations.contains(&rule.operation.as_str()) {
            let known = operations.iter().map(|operation| format!("`{operation}`")).collect::<Vec<_>>().join(", ");
            let said =
                error(Code::BadPrincipal, format!("`{}` is not an operation of `{}`", rule.operation, rule.principal));
            checker.say(said.hint(format!("one of {known}")), format!("{path}/operation"));
        }
    }
    checker.once(Code::DuplicateValue, "the rule for", rules.iter().map(|(rule, path)| (rule.as_str(), path.clone())));
}

fn policies(checker: &mut Checker) {
    let config = checker.config;
    for (i, policy) in config.policies.iter().enumerate() {
        let path = format!("/policies/{i}");
        let cluster = policy.r#type == "kubernetes_cluster" || policy.r#type.starts_with("runner_job_");
        let wanted = if cluster { "kyverno" } else { "opa" };
        if let Some(engine) =
            policy.engine.as_deref().filter(|engine| ["kyverno", "opa"].contains(engine) && *engine != wanted)
        {
            let said =
                error(Code::BadValue, format!("policies of type `{}` are not written for `{engine}`", policy.r#type));
            checker.say(said.hint(format!("write `engine = \"{wanted}\"`")), format!("{path}/engine"));
        }
        if !cluster && !policy.contents.is_empty() && !policy.contents.lines().any(is_own_package) {
            let said = error(Code::BadPolicy, "Ferry reads only rules of `package nuon`");
            checker.say(said.hint("write `package nuon` at the top"), format!("{path}/contents"));
        }
        let all = policy.components.iter().any(|name| name == "*");
        if all && policy.components.len() > 1 {
            checker.say(
                error(Code::ExclusiveKeys, "`*` means all components; it can't be combined with others"),
                format!("{path}/components"),
            );
        }
        let of_components = !cluster && policy.r#type != "sandbox" && !policy.r#type.is_empty();
        if of_components && policy.components.is_empty() {
            let said = warning(
                Code::MissingKey,
                format!("the policy `{}` does not say which components it is about", policy.name),
            );
            checker.say(said.hint("write `components = [\"*\"]` for all"), path.clone());
        }
        for (j, name) in policy.components.iter().enumerate().filter(|(_, name)| *name != "*" && of_components) {
            checker.component(name, format!("{path}/components/{j}"));
        }
    }
}

fn is_own_package(line: &str) -> bool {
    let name = line.trim_start().strip_prefix("package").and_then(|rest| rest.split('#').next()).unwrap_or_default();
    ["nuon", "ferry"].contains(&name.trim())
}
