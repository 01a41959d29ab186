//! Inputs, secrets, sandbox, stack, installs and branches.

use std::collections::BTreeMap;

use super::Checker;
use crate::Code;
use crate::diagnostic::{error, warning};
use crate::kinds::*;
use crate::overrides::{wrong_override, wrong_override_of};

/// Names that the platform uses itself.
const RESERVED_INPUTS: &str = model::overrides::PREFIX;
const RESERVED_GROUP: &str = "nuon_component_overrides";

pub(super) fn check(checker: &mut Checker) {
    inputs(checker);
    secrets(checker);
    sandbox(checker);
    stack(checker);
    installs(checker);
    branches(checker);
}

/// The cloud that the runner is in; `None` where it does not say, or is on a machine of ours.
pub(super) fn cloud(config: &AppConfig) -> Option<&str> {
    let kind = config.runner.as_ref()?.runner_type.split('-').next()?;
    ["aws", "gcp", "azure"].contains(&kind).then_some(kind)
}

fn inputs(checker: &mut Checker) {
    let config = checker.config;
    checker.unique("the group", "/input_groups", config.input_groups.iter().map(|group| group.name.as_str()));
    checker.unique("the input", "/inputs", config.inputs.iter().map(|input| input.name.as_str()));
    for (i, group) in config.input_groups.iter().enumerate().filter(|(_, group)| group.name == RESERVED_GROUP) {
        checker.say(
            error(Code::BadName, format!("the name `{}` is kept for the platform", group.name)),
            format!("/input_groups/{i}/name"),
        );
    }
    for (i, input) in config.inputs.iter().enumerate() {
        let path = |key: &str| format!("/inputs/{i}/{key}");
        if input.name.starts_with(RESERVED_INPUTS) {
            checker.say(
                error(Code::BadName, format!("names that start with `{RESERVED_INPUTS}` are kept for the platform")),
                path("name"),
            );
        }
        checker.known(
            Code::UnknownName,
            "group of inputs",
            &input.group,
            config.input_groups.iter().map(|group| group.name.as_str()),
            path("group"),
        );
        for (key, wrong) in input.wrong_constraints() {
            checker.say(error(Code::BadValue, wrong), path(key));
        }
        if let Err(wrong) = input.accepts(input.default.as_deref().unwrap_or_default()) {
            let said = format!("the default of `{}` {wrong}", input.name);
            let json = input.r#type.as_deref() == Some("json");
            checker.say(if json { error(Code::BadJson, said) } else { warning(Code::BadValue, said) }, path("default"));
        }
    }
}

impl Input {
    /// Whether a value may be given for the input; the error completes "the value …". Nothing is a value of every type.
    pub fn accepts(&self, value: &str) -> Result<(), String> {
        if value.is_empty() {
            return Ok(());
        }
        let number = value.trim().parse::<f64>().ok().filter(|n| n.is_finite());
        match self.r#type.as_deref() {
            Some("json") => {
                serde_json::from_str::<serde::de::IgnoredAny>(value)
                    .map_err(|wrong| format!("is not JSON: {wrong}"))?;
            }
            Some("number") if number.is_none() => return Err("is not a number".into()),
            Some("bool") if !["true", "false"].contains(&value) => return Err("is neither `true` nor `false`".into()),
            // As JSON, or with commas, which is what a stack's parameter gives.
            Some("list") if value.trim_start().starts_with('[') => {
                serde_json::from_str::<Vec<serde_json::Value>>(value)
                    .map_err(|wrong| format!("is not a list: {wrong}"))?;
            }
            _ => {}
        }
        if !self.options.is_empty() && !self.options.iter().any(|option| option == value) {
            return Err(format!("is not one of `{}`", self.options.join("`, `")));
        }
        for (bound, is_min, word) in [(&self.min, true, "less"), (&self.max, false, "more")] {
            let Some(limit) = bound.as_deref().and_then(|bound| bound.trim().parse::<f64>().ok()) else { continue };
            let Some(number) = number else { return Err("is not a number".into()) };
            if (is_min && number < limit) || (!is_min && number > limit) {
                return Err(format!("is {word} than {limit}"));
            }
        }
        match &self.pattern {
            Some(pattern) if !whole(pattern)?.is_match(value) => Err(format!("does not match `{pattern}`")),
            _ => Ok(()),
        }
    }

    /// What is wrong with the constraints themselves: the key, and why.
    fn wrong_constraints(&self) -> Vec<(&'static str, String)> {
        let mut wrong = Vec::new();
        for (key, bound) in [("min", &self.min), ("max", &self.max)] {
            if bound.as_deref().is_some_and(|bound| bound.trim().parse::<f64>().is_err()) {
                wrong.push((key, format!("`{key}` must be a number")));
            }
        }
        wrong.extend(self.pattern.as_deref().and_then(|pattern| Some(("pattern", whole(pattern).err()?))));
        wrong
    }
}

/// A pattern that must match from end to end.
fn whole(pattern: &str) -> Result<regex_lite::Regex, String> {
    regex_lite::Regex::new(&format!("^(?:{pattern})$"))
        .map_err(|wrong| format!("`{pattern}` is not a pattern: {wrong}"))
}

fn secrets(checker: &mut Checker) {
    let config = checker.config;
    checker.unique("the secret", "/secrets", config.secrets.iter().map(|secret| secret.name.as_str()));
    let mut written: BTreeMap<(String, String, String), String> = BTreeMap::new();
    for (i, secret) in config.secrets.iter().enumerate() {
        let path = format!("/secrets/{i}");
        let default = secret.default.as_deref().is_some_and(|default| !default.is_empty());
        let exclusive = [
            (secret.auto_generate && secret.required, "auto_generate", "required"),
            (default && secret.required, "default", "required"),
            (default && secret.auto_generate, "default", "auto_generate"),
        ];
        for (_, one, other) in exclusive.iter().filter(|(both, ..)| *both) {
            checker.say(
                error(Code::ExclusiveKeys, format!("`{one}` and `{other}` exclude each other")),
                format!("{path}/{other}"),
            );
        }
        if secret.kubernetes_sync == Some(false) && !secret.kubernetes_sync_targets.is_empty() {
            checker.say(
                warning(Code::NoEffect, "the targets are written to, although `kubernetes_sync` is `false`"),
                format!("{path}/kubernetes_sync"),
            );
        }
        if secret.kubernetes_sync == Some(true) && secret.kubernetes_sync_targets.is_empty() {
            for (key, value) in [
                ("kubernetes_secret_namespace", &secret.kubernetes_secret_namespace),
                ("kubernetes_secret_name", &secret.kubernetes_secret_name),
            ] {
                if value.as_deref().unwrap_or_default().is_empty() {
                    checker.say(
                        error(Code::MissingKey, format!("`{key}` is missing: `kubernetes_sync` needs it")),
                        path.clone(),
                    );
                }
            }
        }
        for (target, at) in targets(secret, &path) {
            for name in [&target.0, &target.1] {
                if !is_dns_name(name) {
                    checker.say(
                        error(
                            Code::BadName,
                            format!("`{name}` is not a name in Kubernetes: lower-case letters, digits, `-` and `.`"),
                        ),
                        at.clone(),
                    );
                }
            }
            match written.get(&target) {
                Some(first) => checker.say_also(
                    error(
                        Code::DuplicateValue,
                        format!("two secrets are written to `{}/{}`, key `{}`", target.0, target.1, target.2),
                    ),
                    at,
                    first.clone(),
                ),
                None => {
                    written.insert(target, at);
                }
            }
        }
    }
}

/// Namespace, name and key of each Kubernetes Secret that a secret is written to.
fn targets(secret: &Secret, path: &str) -> Vec<((String, String, String), String)> {
    let mut found = Vec::new();
    for (j, target) in secret.kubernetes_sync_targets.iter().enumerate() {
        for namespace in &target.namespaces {
            found.push((
                (namespace.clone(), target.name.clone(), target.key.clone()),
                format!("{path}/kubernetes_sync_targets/{j}"),
            ));
        }
    }
    if let (true, Some(true), Some(namespace), Some(name)) =
        (found.is_empty(), secret.kubernetes_sync, &secret.kubernetes_secret_namespace, &secret.kubernetes_secret_name)
    {
        found.push(((namespace.clone(), name.clone(), "value".into()), format!("{path}/kubernetes_secret_name")));
    }
    found
}

/// RFC 1123; a template may become one.
pub(super) fn is_dns_name(name: &str) -> bool {
    let good = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-' || b == b'.';
    let edge = |b: Option<&u8>| b.is_none_or(|b| b.is_ascii_alphanumeric());
    let bytes = name.as_bytes();
    name.contains("{{")
        || bytes.len() <= 253 && bytes.iter().copied().all(good) && edge(bytes.first()) && edge(bytes.last())
}

fn sandbox(checker: &mut Checker) {
    let Some(sandbox) = &checker.config.sandbox else { return };
    let (key, value) = match sandbox.r#type.as_deref() {
        Some("pulumi") => ("runtime", &sandbox.runtime),
        _ => ("terraform_version", &sandbox.terraform_version),
    };
    if value.as_deref().unwrap_or_default().is_empty() {
        checker.say(error(Code::MissingKey, format!("`{key}` is missing")), "/sandbox");
    }
}

fn stack(checker: &mut Checker) {
    let config = checker.config;
    let Some(stack) = &config.stack else {
        if cloud(config) == Some("aws") {
            checker.say(
                warning(Code::MissingFile, "`stack.toml` is missing: an install in AWS can't be made without"),
                "/stack",
            );
        }
        return;
    };
    let own = stack.r#type.split('-').next().unwrap_or_default();
    if let Some(cloud) = cloud(config).filter(|cloud| !own.is_empty() && *cloud != own) {
        checker.say(
            warning(
                Code::CloudMismatch,
                format!("the stack is of type `{}`, and the runner is in `{cloud}`", stack.r#type),
            ),
            "/stack/type",
        );
    }
    let urls = [
        ("vpc_nested_template_url", &stack.vpc_nested_template_url),
        ("runner_nested_template_url", &stack.runner_nested_template_url),
    ];
    for (key, url) in urls {
        match url.as_deref().unwrap_or_default() {
            "" if stack.r#type == "aws-cloudformation" => {
                checker.say(error(Code::MissingKey, format!("`{key}` is missing: a stack of AWS needs it")), "/stack")
            }
            "" => {}
            url => address(checker, url, stack.r#type == "aws-cloudformation", &format!("/stack/{key}")),
        }
    }
    nested(checker, &stack.custom_nested_stacks, "/stack/custom_nested_stacks", stack.r#type == "aws-cloudformation");
}

fn nested(checker: &mut Checker, stacks: &[NestedStack], path: &str, aws: bool) {
    checker.unique("the stack", path, stacks.iter().map(|stack| stack.name.as_str()));
    let indexes: Vec<(String, String)> = stacks
        .iter()
        .enumerate()
        .filter_map(|(i, stack)| Some((stack.index?.to_string(), format!("{path}/{i}/index"))))
        .collect();
    checker.once(Code::DuplicateValue, "the index", indexes.iter().map(|(index, path)| (index.as_str(), path.clone())));
    for (i, stack) in stacks.iter().enumerate().filter(|(_, stack)| stack.template_url.starts_with("http")) {
        address(checker, &stack.template_url, aws, &format!("{path}/{i}/template_url"));
    }
}

/// CloudFormation reads templates from S3 only.
fn address(checker: &mut Checker, url: &str, s3: bool, path: &str) {
    let host = url.strip_prefix("https://").map(|rest| rest.split('/').next().unwrap_or_default());
    let good = match host {
        _ if url.contains("{{") => true,
        None => false,
        Some(host) => {
            !s3 || (host.ends_with(".amazonaws.com") || host.ends_with(".amazonaws.com.cn"))
                && host.split('.').any(|part| part == "s3" || part.starts_with("s3-"))
        }
    };
    if !good {
        let place =
            if s3 { "on S3: `https://BUCKET.s3.REGION.amazonaws.com/…`" } else { "that starts with `https://`" };
        checker.say(error(Code::BadAddress, format!("`{url}` is not an address {place}")), path);
    }
}

fn installs(checker: &mut Checker) {
    let config = checker.config;
    checker.unique("the install", "/installs", config.installs.iter().map(|install| install.name.as_str()));
    for (i, install) in config.installs.iter().enumerate() {
        let path = format!("/installs/{i}");
        for (name, value) in &install.inputs {
            let at = format!("{path}/inputs/{}", crate::source::escape(name));
            match config.inputs.iter().find(|input| input.name == *name).map(|input| input.accepts(value)) {
                Some(Ok(())) => {}
                Some(Err(wrong)) => checker.say(warning(Code::BadValue, format!("the value of `{name}` {wrong}")), at),
                None => {
                    let names = config.inputs.iter().map(|input| input.name.as_str());
                    checker.known(Code::UnknownInput, "input", name, names, at);
                }
            }
        }
        let missing = |input: &&Input| {
            input.required
                && !input.user_configurable
                && !input.sensitive
                && input.default.as_deref().unwrap_or_default().is_empty()
                && install.inputs.get(&input.name).is_none_or(String::is_empty)
        };
        for input in config.inputs.iter().filter(missing) {
            checker.say(
                warning(Code::MissingKey, format!("the input `{}` is required, and has no value here", input.name)),
                format!("{path}/inputs"),
            );
        }
        let accounts = [
            ("aws", install.aws_account.is_some()),
            ("gcp", install.gcp_account.is_some()),
            ("azure", install.azure_account.is_some()),
        ];
        for (name, _) in
            accounts.iter().filter(|(name, given)| *given && cloud(config).is_some_and(|cloud| cloud != *name))
        {
            checker.say(
                warning(Code::CloudMismatch, format!("`{name}_account` is of another cloud than the runner")),
                format!("{path}/{name}_account"),
            );
        }
        for name in install.component_toggles.keys() {
            checker.component(name, format!("{path}/component_toggles/{name}"));
            let is_it = |component: &&crate::Component| component.common.name == *name;
            if config.components.iter().find(is_it).is_some_and(|component| !component.common.toggleable) {
                let text = format!("the component `{name}` can't be left out: it is not `toggleable`");
                checker.say(warning(Code::NoEffect, text), format!("{path}/component_toggles/{name}"));
            }
        }
        for (name, laid_over) in &install.components {
            let at = format!("{path}/components/{}", crate::source::escape(name));
            checker.component(name, at.clone());
            let component = config.components.iter().find(|component| component.common.name == *name);
            for (kind, text) in laid_over.texts() {
                let wrong = match component {
                    Some(component) => wrong_override_of(kind, &component.kind, text),
                    None => wrong_override(kind, text).map(|wrong| format!("`{}` {wrong}", kind.as_str())),
                };
                if let Some(wrong) = wrong {
                    checker.say(error(Code::BadValue, format!("`{name}`: {wrong}")), format!("{at}/{}", kind.as_str()));
                }
            }
        }
        let fixed = config.metadata.as_ref().map(|metadata| &metadata.default_labels);
        for label in install.labels.keys().filter(|label| fixed.is_some_and(|fixed| fixed.contains_key(*label))) {
            checker.say(
                error(
                    Code::ExclusiveKeys,
                    format!("the label `{label}` is one of `default_labels`, which every install has"),
                ),
                format!("{path}/labels/{}", crate::source::escape(label)),
            );
        }
        if let Some(overrides) = &install.stack_overrides {
            let aws = config.stack.as_ref().is_some_and(|stack| stack.r#type == "aws-cloudformation");
            nested(
                checker,
                &overrides.custom_nested_stacks,
                &format!("{path}/stack_overrides/custom_nested_stacks"),
                aws,
            );
        }
    }
}

fn branches(checker: &mut Checker) {
    let config = checker.config;
    checker.unique("the branch", "/branches", config.branches.iter().map(|branch| branch.name.as_str()));
    for (i, branch) in config.branches.iter().enumerate() {
        for (j, name) in branch.post_deploy_runbooks.iter().enumerate() {
            let names = config.runbooks.iter().map(|runbook| runbook.name.as_str());
            checker.known(Code::UnknownName, "runbook", name, names, format!("/branches/{i}/post_deploy_runbooks/{j}"));
        }
    }
}
