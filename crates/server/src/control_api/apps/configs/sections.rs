//! The sections of a config in the dialect: what clients post, as keys of a config, and back.

use api::control as wire;
use conductor::apps::drafts::{PostedSection, SectionSubject};
use config::{AppConfig, Input, InputGroup, OperationRole, Repo, Role, RolePolicy, VarFile};
use model::{Digest, id};
use serde_json::{Value, json};
use store::Section;

use crate::error::ApiResult;

/// A part of a config that a request makes, which is not about one component or action.
fn posted(kind: &'static str, body: Value) -> PostedSection {
    PostedSection { kind, body, subject: SectionSubject::default() }
}

/// Only what says something.
pub(in crate::control_api) fn some(text: &str) -> Option<String> {
    (!text.is_empty()).then(|| text.to_owned())
}

pub(in crate::control_api) fn text(value: Option<&String>) -> String {
    value.cloned().unwrap_or_default()
}

/// An id for something inside a section: the same each time.
pub(in crate::control_api) fn inner_id(prefix: &'static str, section: &Section, name: &str) -> String {
    let digest = Digest::of(format!("{}|{name}", section.id).as_bytes());
    let random = u128::from_str_radix(&digest.hex()[..32], 16).unwrap_or_default();
    id::make(prefix, section.created_at, random)
}

pub(in crate::control_api) fn stamp(org: &str, app: &str, section: &Section) -> wire::Stamp {
    wire::Stamp {
        id: section.id.to_string(),
        created_by_id: section.created_by.to_string(),
        created_at: section.created_at,
        updated_at: section.created_at,
        org_id: org.to_owned(),
        app_id: app.to_owned(),
        app_config_id: section.config_id.to_string(),
    }
}

pub(in crate::control_api) fn repo(source: &wire::GitSource) -> Repo {
    let branch = if source.branch.is_empty() { &source.git_ref } else { &source.branch };
    let branch = if branch.is_empty() { "main" } else { branch };
    Repo { repo: source.repo.clone(), directory: source.directory.clone(), branch: branch.to_owned() }
}

pub(in crate::control_api) fn git(repo: &Repo) -> wire::GitSource {
    wire::GitSource {
        repo: repo.repo.clone(),
        directory: repo.directory.clone(),
        branch: repo.branch.clone(),
        git_ref: String::new(),
        path_filter: String::new(),
    }
}

pub(in crate::control_api) fn operation_roles(map: &wire::Labels) -> Vec<OperationRole> {
    map.iter().map(|(operation, role)| OperationRole { operation: operation.clone(), role: role.clone() }).collect()
}

pub(in crate::control_api) fn operation_map(roles: &[OperationRole]) -> wire::Labels {
    roles.iter().map(|r| (r.operation.clone(), r.role.clone())).collect()
}

pub(in crate::control_api) fn var_files(files: &[String]) -> Vec<VarFile> {
    files.iter().map(|contents| VarFile { contents: contents.clone() }).collect()
}

pub(super) fn input(request: wire::CreateAppInputConfig) -> PostedSection {
    let mut groups: Vec<_> = request.groups.into_iter().collect();
    groups.sort_by_key(|(_, g)| g.index);
    let mut inputs: Vec<_> = request.inputs.into_iter().collect();
    inputs.sort_by_key(|(_, i)| i.index);
    let groups: Vec<InputGroup> = groups
        .into_iter()
        .map(|(name, g)| InputGroup { name, description: g.description, display_name: some(&g.display_name) })
        .collect();
    let inputs: Vec<Input> = inputs
        .into_iter()
        .map(|(name, i)| Input {
            name,
            display_name: i.display_name,
            description: i.description,
            group: i.group,
            default: some(&i.default),
            required: i.required,
            sensitive: i.sensitive,
            r#type: some(&i.input_type),
            user_configurable: i.source == "customer",
            ..Input::default()
        })
        .collect();
    posted("input", json!({ "input_groups": groups, "inputs": inputs }))
}

pub(in crate::control_api) fn show_input(
    stamp: wire::Stamp,
    section: &Section,
    config: &AppConfig,
) -> wire::AppInputConfig {
    let groups: Vec<wire::AppInputGroup> = config
        .input_groups
        .iter()
        .enumerate()
        .map(|(index, group)| wire::AppInputGroup {
            id: inner_id("ing", section, &group.name),
            name: group.name.clone(),
            index: index as i64,
            display_name: text(group.display_name.as_ref()),
            description: group.description.clone(),
        })
        .collect();
    let of_group = |name: &str| groups.iter().find(|group| group.name == name).cloned();
    let inputs = config.inputs.iter().enumerate().map(|(index, input)| {
        let group = of_group(&input.group);
        wire::AppInput {
            id: inner_id("inp", section, &input.name),
            name: input.name.clone(),
            index: index as i64,
            required: input.required,
            sensitive: input.sensitive,
            display_name: input.display_name.clone(),
            description: input.description.clone(),
            group_id: group.as_ref().map(|g| g.id.clone()).unwrap_or_default(),
            group,
            default: if input.sensitive { String::new() } else { text(input.default.as_ref()) },
            input_type: input.r#type.clone().unwrap_or_else(|| "string".into()),
            internal: input.internal,
            source: if input.user_configurable { "customer" } else { "vendor" }.into(),
            options: input.options.clone(),
            min: text(input.min.as_ref()),
            max: text(input.max.as_ref()),
            pattern: text(input.pattern.as_ref()),
        }
    });
    wire::AppInputConfig { inputs: inputs.collect(), input_groups: groups, stamp }
}

pub(super) fn sandbox(request: wire::CreateAppSandboxConfig) -> PostedSection {
    let sandbox = config::Sandbox {
        r#type: some(&request.sandbox_type),
        terraform_version: some(&request.terraform_version),
        runtime: some(&request.runtime),
        pulumi_version: some(&request.pulumi_version),
        pulumi_config: request.pulumi_config,
        public_repo: request.public_git_vcs_config.as_ref().map(repo),
        connected_repo: request.connected_github_vcs_config.as_ref().map(repo),
        local: None,
        vars: request.variables,
        var_file: var_files(&request.variables_files),
        env_vars: request.env_vars,
        drift_schedule: some(&request.drift_schedule),
        operation_roles: operation_roles(&request.operation_roles),
        max_auto_retries: request.max_auto_retries,
        skip_noops: request.skip_noops,
        auto_approve_on_policies_passing: request.auto_approve_on_policies_passing,
        source: None,
    };
    posted("sandbox", json!({ "sandbox": sandbox }))
}

pub(in crate::control_api) fn show_sandbox(stamp: wire::Stamp, config: &AppConfig) -> Option<wire::AppSandboxConfig> {
    let sandbox = config.sandbox.as_ref()?;
    Some(wire::AppSandboxConfig {
        stamp,
        cloud_platform: cloud(config),
        sandbox_type: sandbox.r#type.clone().unwrap_or_else(|| "terraform".into()),
        terraform_version: text(sandbox.terraform_version.as_ref()),
        runtime: text(sandbox.runtime.as_ref()),
        pulumi_version: text(sandbox.pulumi_version.as_ref()),
        pulumi_config: sandbox.pulumi_config.clone(),
        public_git_vcs_config: sandbox.public_repo.as_ref().map(git),
        connected_github_vcs_config: sandbox.connected_repo.as_ref().map(git),
        variables: sandbox.vars.clone(),
        variables_files: sandbox.var_file.iter().map(|f| f.contents.clone()).collect(),
        env_vars: sandbox.env_vars.clone(),
        drift_schedule: text(sandbox.drift_schedule.as_ref()),
        operation_roles: operation_map(&sandbox.operation_roles),
        max_auto_retries: sandbox.max_auto_retries,
        skip_noops: sandbox.skip_noops,
        auto_approve_on_policies_passing: sandbox.auto_approve_on_policies_passing,
    })
}

pub(super) fn runner(request: wire::CreateAppRunnerConfig) -> PostedSection {
    let runner = config::Runner {
        runner_type: request.runner_type,
        env_vars: request.env_vars,
        helm_driver: some(&request.helm_driver),
        init_script_url: some(&request.init_script_url),
        instance_type: some(&request.instance_type),
        source: None,
    };
    posted("runner", json!({ "runner": runner }))
}

/// `aws`, `gcp` or `azure`, as the runner has it.
pub(in crate::control_api) fn cloud(config: &AppConfig) -> String {
    let kind = config.runner.as_ref().map(|r| r.runner_type.as_str()).unwrap_or_default();
    let known = ["aws", "gcp", "azure"].into_iter().find(|cloud| kind.starts_with(cloud));
    known.unwrap_or("unknown").to_owned()
}

pub(in crate::control_api) fn show_runner(stamp: wire::Stamp, config: &AppConfig) -> Option<wire::AppRunnerConfig> {
    let runner = config.runner.as_ref()?;
    Some(wire::AppRunnerConfig {
        stamp,
        app_runner_type: runner.runner_type.clone(),
        cloud_platform: cloud(config),
        env_vars: runner.env_vars.clone(),
        helm_driver: text(runner.helm_driver.as_ref()),
        init_script: text(runner.init_script_url.as_ref()),
        instance_type: text(runner.instance_type.as_ref()),
    })
}

pub(super) fn stack(request: wire::CreateAppStackConfig) -> PostedSection {
    let nested = request.custom_nested_stacks.into_iter().map(|s| config::NestedStack {
        name: s.name,
        template_url: s.template_url,
        index: Some(s.index),
        parameters: s.parameters,
    });
    let stack = config::Stack {
        r#type: request.stack_type,
        name: request.name,
        description: request.description,
        vpc_nested_template_url: some(&request.vpc_nested_template_url),
        runner_nested_template_url: some(&request.runner_nested_template_url),
        custom_nested_stacks: nested.collect(),
        deployment_scope: None,
    };
    posted("stack", json!({ "stack": stack }))
}

pub(in crate::control_api) fn show_stack(stamp: wire::Stamp, config: &AppConfig) -> Option<wire::AppStackConfig> {
    let stack = config.stack.as_ref()?;
    let nested = stack.custom_nested_stacks.iter().map(|s| wire::CustomNestedStack {
        name: s.name.clone(),
        template_url: s.template_url.clone(),
        index: s.index.unwrap_or_default(),
        parameters: s.parameters.clone(),
    });
    Some(wire::AppStackConfig {
        stamp,
        name: stack.name.clone(),
        description: stack.description.clone(),
        stack_type: stack.r#type.clone(),
        vpc_nested_template_url: text(stack.vpc_nested_template_url.as_ref()),
        runner_nested_template_url: text(stack.runner_nested_template_url.as_ref()),
        custom_nested_stacks: nested.collect(),
    })
}

fn role(kind: &str, request: wire::RoleRequest) -> Role {
    let policies = request.policies.into_iter().map(|p| RolePolicy {
        name: some(&p.name),
        managed_policy_name: some(&p.managed_policy_name),
        contents: some(&p.contents),
        gcp_predefined_role: some(&p.gcp_predefined_role),
        gcp_permissions: p.gcp_permissions,
        azure_built_in_roles: p.azure_built_in_roles,
        azure_actions: p.azure_actions,
    });
    Role {
        r#type: kind.to_owned(),
        name: request.name,
        description: request.description,
        display_name: request.display_name,
        policies: policies.collect(),
        permissions_boundary: some(&request.permissions_boundary),
        cloud_platform: some(&request.cloud_platform),
        enabled_in_stack: request.enabled_in_stack,
        named_policies: Vec::new(),
    }
}

/// The dialect's word for what a role is for.
fn role_type(kind: &str) -> &'static str {
    match kind {
        "provision" => "runner_provision",
        "maintenance" => "runner_maintenance",
        "deprovision" => "runner_deprovision",
        "custom" => "custom",
        _ => "breakglass",
    }
}

fn show_role(stamp: &wire::Stamp, section: &Section, role: &Role) -> wire::RoleConfig {
    let policies = role.policies.iter().map(|p| wire::RolePolicyConfig {
        name: text(p.name.as_ref()),
        managed_policy_name: text(p.managed_policy_name.as_ref()),
        contents: text(p.contents.as_ref()),
        gcp_predefined_role: text(p.gcp_predefined_role.as_ref()),
        gcp_permissions: p.gcp_permissions.clone(),
        azure_built_in_roles: p.azure_built_in_roles.clone(),
        azure_actions: p.azure_actions.clone(),
    });
    wire::RoleConfig {
        stamp: wire::Stamp { id: inner_id("rol", section, &role.name), ..stamp.clone() },
        name: role.name.clone(),
        role_type: role_type(&role.r#type).to_owned(),
        description: role.description.clone(),
        display_name: role.display_name.clone(),
        cloud_platform: text(role.cloud_platform.as_ref()),
        permissions_boundary: text(role.permissions_boundary.as_ref()),
        policies: policies.collect(),
    }
}

/// The roles, and the break-glass roles among them, where there are some.
pub(super) fn permissions(request: wire::CreateAppPermissionsConfig) -> (PostedSection, Option<PostedSection>) {
    let mut roles = vec![
        role("provision", request.provision_role),
        role("maintenance", request.maintenance_role),
        role("deprovision", request.deprovision_role),
    ];
    roles.extend(request.custom_roles.into_iter().map(|r| role("custom", r)));
    let some = Some(request.break_glass_roles).filter(|roles| !roles.is_empty());
    let break_glass = some.map(break_glass_roles);
    (posted("permissions", json!({ "roles": roles })), break_glass)
}

fn break_glass_roles(roles: Vec<wire::RoleRequest>) -> PostedSection {
    let roles: Vec<Role> = roles.into_iter().map(|r| role("", r)).collect();
    posted("break_glass", json!({ "break_glass": roles }))
}

pub(in crate::control_api) fn show_permissions(
    stamp: wire::Stamp,
    section: &Section,
    config: &AppConfig,
) -> wire::AppPermissionsConfig {
    let roles: Vec<wire::RoleConfig> = config.roles.iter().map(|role| show_role(&stamp, section, role)).collect();
    let of = |kind: &str| roles.iter().find(|role| role.role_type == kind).cloned();
    wire::AppPermissionsConfig {
        provision_aws_iam_role: of("runner_provision"),
        maintenance_aws_iam_role: of("runner_maintenance"),
        deprovision_aws_iam_role: of("runner_deprovision"),
        custom_aws_iam_roles: roles.iter().filter(|role| role.role_type == "custom").cloned().collect(),
        aws_iam_roles: roles,
        stamp,
    }
}

pub(super) fn break_glass(request: wire::CreateAppBreakGlassConfig) -> PostedSection {
    break_glass_roles(request.roles)
}

pub(in crate::control_api) fn show_break_glass(
    stamp: wire::Stamp,
    section: &Section,
    config: &AppConfig,
) -> wire::AppBreakGlassConfig {
    let roles = config.break_glass.iter().map(|role| show_role(&stamp, section, role)).collect();
    wire::AppBreakGlassConfig { aws_iam_roles: roles, stamp }
}

pub(super) fn policies(request: wire::CreateAppPoliciesConfig) -> PostedSection {
    let policies: Vec<config::Policy> = request
        .policies
        .into_iter()
        .map(|p| config::Policy {
            name: p.name,
            r#type: p.policy_type,
            engine: some(&p.engine),
            contents: p.contents,
            components: p.components,
        })
        .collect();
    posted("policies", json!({ "policies": policies }))
}

pub(in crate::control_api) fn show_policies(
    stamp: wire::Stamp,
    section: &Section,
    config: &AppConfig,
) -> wire::AppPoliciesConfig {
    let policies = config.policies.iter().enumerate().map(|(n, p)| wire::PolicyConfig {
        id: inner_id("pol", section, &n.to_string()),
        contents: p.contents.clone(),
        policy_type: p.r#type.clone(),
        name: p.name.clone(),
        engine: text(p.engine.as_ref()),
        components: p.components.clone(),
    });
    wire::AppPoliciesConfig { policies: policies.collect(), stamp }
}

pub(super) fn secrets(request: wire::CreateAppSecretsConfig) -> PostedSection {
    let target = |t: wire::SyncTarget| config::SyncTarget { namespaces: t.namespaces, name: t.name, key: t.key };
    let secrets: Vec<config::Secret> = request
        .secrets
        .into_iter()
        .map(|s| config::Secret {
            name: s.name,
            display_name: s.display_name,
            description: s.description,
            required: s.required,
            auto_generate: s.auto_generate,
            format: some(&s.format),
            default: some(&s.default),
            kubernetes_sync: s.kubernetes_sync,
            kubernetes_secret_namespace: some(&s.kubernetes_secret_namespace),
            kubernetes_secret_name: some(&s.kubernetes_secret_name),
            kubernetes_sync_targets: s.kubernetes_sync_targets.into_iter().map(target).collect(),
        })
        .collect();
    posted("secrets", json!({ "secrets": secrets }))
}

pub(in crate::control_api) fn show_secrets(
    stamp: wire::Stamp,
    section: &Section,
    config: &AppConfig,
) -> wire::AppSecretsConfig {
    let target = |t: &config::SyncTarget| wire::SyncTarget {
        namespaces: t.namespaces.clone(),
        name: t.name.clone(),
        key: t.key.clone(),
    };
    let secrets = config.secrets.iter().map(|s| wire::SecretConfig {
        id: inner_id("sec", section, &s.name),
        name: s.name.clone(),
        display_name: s.display_name.clone(),
        description: s.description.clone(),
        required: s.required,
        auto_generate: s.auto_generate,
        format: text(s.format.as_ref()),
        kubernetes_sync: s.kubernetes_sync.unwrap_or(!s.kubernetes_sync_targets.is_empty()),
        kubernetes_secret_namespace: text(s.kubernetes_secret_namespace.as_ref()),
        kubernetes_secret_name: text(s.kubernetes_secret_name.as_ref()),
        kubernetes_sync_targets: s.kubernetes_sync_targets.iter().map(target).collect(),
    });
    wire::AppSecretsConfig { secrets: secrets.collect(), stamp }
}

pub(super) fn operation_role_rules(request: wire::CreateAppOperationRoleConfig) -> PostedSection {
    let rules: Vec<config::OperationRule> = request
        .rules
        .into_iter()
        .map(|r| config::OperationRule { principal: r.principal, operation: r.operation, role: r.role })
        .collect();
    // Clients post this section always; without rules it says nothing.
    let body = match rules.as_slice() {
        [] => json!({}),
        _ => json!({ "operation_roles": config::OperationRoles { r#type: "matrix".into(), rules } }),
    };
    posted("operation_roles", body)
}

pub(in crate::control_api) fn show_operation_roles(
    stamp: wire::Stamp,
    config: &AppConfig,
) -> wire::AppOperationRoleConfig {
    let rules = config.operation_roles.iter().flat_map(|roles| &roles.rules).map(|rule| {
        // `nuon::component:NAME`: type and name.
        let principal = rule.principal.trim_start_matches("nuon::");
        let (principal_type, principal_name) = principal.split_once(':').unwrap_or((principal, ""));
        wire::OperationRoleRule {
            principal_type: principal_type.to_owned(),
            principal_name: principal_name.to_owned(),
            operation: rule.operation.clone(),
            role: rule.role.clone(),
        }
    });
    wire::AppOperationRoleConfig { rules: rules.collect(), stamp }
}

/// The config that a section alone makes.
pub(in crate::control_api) fn alone(section: &Section) -> ApiResult<AppConfig> {
    Ok(conductor::apps::assemble([&section.body]).map(|(config, _)| config)?)
}
