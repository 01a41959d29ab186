//! What templates can read: the tree below `.nuon`, with the names that the app declares.

use super::Checker;
use super::parts::cloud;
use crate::Code;
use crate::kinds::*;

/// A place in the tree.
#[derive(Clone, Copy)]
pub(super) enum Node {
    /// Nothing lies below.
    Leaf,
    /// Anything may lie below.
    Open,
    Fixed(&'static [(&'static str, Node)]),
    Inputs,
    Secrets,
    Components,
    Actions,
    /// The action with this index.
    OneAction(usize),
    /// Its outputs.
    Outputs(usize),
    /// Outputs of its steps.
    Steps(usize),
    StackOutputs,
    NestedStacks,
    /// Many write it, and it never existed.
    Never,
}

/// How a step through the tree went.
pub(super) enum Step {
    To(Node),
    /// There is no such name.
    Unknown {
        code: Code,
        what: &'static str,
        known: Vec<String>,
        sure: Sure,
    },
}

/// How sure it is that a name that is not known is not there.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Sure {
    Yes,
    /// Where it looks like a misspelt one.
    IfNear,
    /// Others may add more.
    No,
}

use Node::*;

const POPULATED: (&str, Node) = ("populated", Leaf);
const SANDBOX: Node =
    Fixed(&[POPULATED, ("status", Leaf), ("type", Leaf), ("version", Leaf), ("outputs", Open), ("recent_runs", Open)]);
const COMPONENT: Node = Fixed(&[
    POPULATED,
    ("status", Leaf),
    ("build_id", Leaf),
    ("component_id", Leaf),
    ("install_component_id", Leaf),
    ("name", Leaf),
    ("outputs", Open),
]);
const SECRET: Node = Fixed(&[
    ("name", Leaf),
    ("arn", Leaf),
    ("gcp_secret_name", Leaf),
    ("azure_key_vault_secret_id", Leaf),
    ("kubernetes_namespace", Leaf),
    ("kubernetes_name", Leaf),
    ("kubernetes_key", Leaf),
    ("timestamp", Leaf),
    ("length", Leaf),
    ("exists", Leaf),
]);

/// `.nuon`
pub(super) const NUON: Node = Fixed(&[
    ("id", Leaf),
    ("name", Leaf),
    ("labels", Open),
    ("org", Fixed(&[POPULATED, ("id", Leaf), ("name", Leaf), ("status", Leaf)])),
    ("app", Fixed(&[POPULATED, ("id", Leaf), ("name", Leaf), ("status", Leaf), ("variables", Open)])),
    (
        "install",
        Fixed(&[
            POPULATED,
            ("id", Leaf),
            ("name", Leaf),
            ("public_domain", Leaf),
            ("internal_domain", Leaf),
            ("sandbox", SANDBOX),
            ("inputs", Inputs),
            ("secrets", Never),
        ]),
    ),
    ("inputs", Fixed(&[POPULATED, ("inputs", Inputs)])),
    ("sandbox", SANDBOX),
    (
        "install_stack",
        Fixed(&[
            POPULATED,
            ("quick_link_url", Leaf),
            ("template_url", Leaf),
            ("template_json", Leaf),
            ("checksum", Leaf),
            ("status", Leaf),
            ("outputs", StackOutputs),
        ]),
    ),
    ("components", Components),
    ("actions", Fixed(&[POPULATED, ("workflows", Actions)])),
    ("runner", Fixed(&[POPULATED, ("id", Leaf), ("runner_group_id", Leaf), ("status", Leaf)])),
    ("domain", Fixed(&[("public_domain", Leaf), ("internal_domain", Leaf)])),
    (
        "cloud_account",
        Fixed(&[
            ("aws", Fixed(&[("region", Leaf)])),
            ("azure", Fixed(&[("location", Leaf)])),
            ("gcp", Fixed(&[("project_id", Leaf), ("region", Leaf)])),
        ]),
    ),
    ("secrets", Secrets),
    ("stale_at", Leaf),
]);

/// Outputs that the stacks of each cloud report.
const STACK_OUTPUTS: &[(&str, &[&str])] = &[
    (
        "aws",
        &[
            "account_id",
            "region",
            "vpc_id",
            "runner_subnet",
            "public_subnets",
            "private_subnets",
            "provision_iam_role_arn",
            "maintenance_iam_role_arn",
            "deprovision_iam_role_arn",
            "runner_iam_role_arn",
            "break_glass_role_arns",
            "custom_role_arns",
            "install_inputs",
            "custom_nested_stacks",
        ],
    ),
    (
        "gcp",
        &[
            "project_id",
            "region",
            "network_name",
            "network_id",
            "public_subnet_name",
            "private_subnet_name",
            "runner_subnet_name",
            "runner_service_account_email",
            "provision_sa_email",
            "maintenance_sa_email",
            "deprovision_sa_email",
            "break_glass_sa_emails",
            "custom_sa_emails",
            "install_inputs",
            "gke_node_pool_sa_email",
            "custom_nested_stacks",
        ],
    ),
    (
        "azure",
        &[
            "resource_group_id",
            "resource_group_name",
            "resource_group_location",
            "subscription_id",
            "subscription_tenant_id",
            "network_id",
            "network_name",
            "public_subnet_ids",
            "public_subnet_names",
            "private_subnet_ids",
            "private_subnet_names",
            "key_vault_id",
            "key_vault_name",
            "install_inputs",
            "custom_nested_stacks",
        ],
    ),
];

/// What a key leads to.
pub(super) fn step(checker: &Checker, node: Node, key: &str) -> Step {
    let Checker { config, names, .. } = checker;
    let named = |code, what, sure, found: Option<Node>, known: &mut dyn Iterator<Item = &str>| match found {
        Some(node) => Step::To(node),
        None => Step::Unknown { code, what, known: known.map(str::to_owned).collect(), sure },
    };
    match node {
        Open | Never => Step::To(node),
        Leaf => named(Code::TemplatePath, "nothing below it called", Sure::IfNear, None, &mut std::iter::empty()),
        Fixed(keys) => {
            let found = keys.iter().find(|(known, _)| *known == key).map(|(_, node)| *node);
            named(Code::TemplatePath, "key", Sure::IfNear, found, &mut keys.iter().map(|(known, _)| *known))
        }
        Inputs => {
            let found = names.inputs.contains(key).then_some(Leaf);
            named(Code::UnknownInput, "input", Sure::Yes, found, &mut names.inputs.iter().copied())
        }
        Secrets => {
            let is = |secret: &&Secret| {
                key.split('/').next() == Some(&secret.name) || secret.kubernetes_secret_name.as_deref() == Some(key)
            };
            let found = config.secrets.iter().find(is).map(|_| SECRET);
            named(
                Code::UnknownSecret,
                "secret",
                Sure::Yes,
                found,
                &mut config.secrets.iter().map(|secret| secret.name.as_str()),
            )
        }
        Components => {
            let found =
                if key == "populated" { Some(Leaf) } else { names.components.contains(key).then_some(COMPONENT) };
            named(Code::UnknownComponent, "component", Sure::Yes, found, &mut names.components.iter().copied())
        }
        Actions => {
            let found = names.actions.get(key).copied().map(OneAction);
            named(Code::UnknownAction, "action", Sure::Yes, found, &mut names.actions.keys().copied())
        }
        OneAction(index) => match key {
            "populated" | "status" | "id" => Step::To(Leaf),
            "outputs" => Step::To(Outputs(index)),
            _ => named(
                Code::TemplatePath,
                "key",
                Sure::IfNear,
                None,
                &mut ["populated", "status", "id", "outputs"].into_iter(),
            ),
        },
        // Outputs have any name; those of each step lie below `steps`.
        Outputs(index) => Step::To(if key == "steps" { Steps(index) } else { Open }),
        Steps(index) => {
            let steps = || {
                config.actions.get(index).into_iter().flat_map(|action| &action.steps).map(|step| step.name.as_str())
            };
            named(
                Code::UnknownName,
                "step",
                Sure::IfNear,
                steps().find(|name| *name == key).map(|_| Open),
                &mut steps(),
            )
        }
        StackOutputs => stack_output(config, key),
        NestedStacks => {
            let known =
                || config.stack.iter().flat_map(|stack| &stack.custom_nested_stacks).map(|stack| stack.name.as_str());
            named(
                Code::UnknownName,
                "nested stack",
                Sure::No,
                known().find(|name| *name == key).map(|_| Open),
                &mut known(),
            )
        }
    }
}

/// Stacks may report more than is known here, so only what looks misspelt, or is of another cloud, is doubted.
fn stack_output(config: &AppConfig, key: &str) -> Step {
    let own =
        STACK_OUTPUTS.iter().find(|(name, _)| cloud(config) == Some(name)).map_or(&[][..], |(_, outputs)| outputs);
    let of_secrets = || {
        config.secrets.iter().flat_map(|secret| [format!("{}_arn", secret.name), format!("{}_secret_id", secret.name)])
    };
    if key == "custom_nested_stacks" {
        return Step::To(NestedStacks);
    }
    if own.is_empty() || own.contains(&key) || of_secrets().any(|output| output == key) {
        return Step::To(Open);
    }
    let known: Vec<String> = own.iter().map(|output| output.to_string()).chain(of_secrets()).collect();
    let foreign = STACK_OUTPUTS.iter().any(|(_, outputs)| outputs.contains(&key));
    let near = template::nearest(key, known.iter().map(String::as_str)).is_some();
    if foreign || near {
        Step::Unknown { code: Code::TemplatePath, what: "output of the stack", known, sure: Sure::No }
    } else {
        Step::To(Open)
    }
}
