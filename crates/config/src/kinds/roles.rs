//! Roles in the customer's account, who uses them, and the policies on what is deployed.

use crate::table::{NameRule::*, *};

tables! {
    /// A role in the customer's account.
    Role {
        /// What the role is for; break-glass roles have none.
        r#type: String = choice(&["provision", "maintenance", "deprovision", "custom"]);
        /// Name in the customer's account, as `{{.nuon.install.id}}-provision`.
        name: String = name(Free).rendered();
        /// What the role may do.
        description: String = text().required().rendered();
        /// Name that people see.
        display_name: String = text().rendered();
        /// What the role may do.
        policies: Vec<RolePolicy> = list(&RolePolicy::TABLE);
        /// JSON document that bounds the role; empty or `{}`: none.
        permissions_boundary: Option<String> = json().get().rendered();
        /// The cloud that the role is made in: that of the runner.
        cloud_platform: Option<String> = choice(&["aws", "gcp", "azure"]);
        /// Whether the role is on when the stack is first applied.
        enabled_in_stack: Option<bool> = boolean();
        /// Policies of `named_policies`.
        named_policies: Vec<PolicyName> = list(&PolicyName::TABLE);
    }

    /// The name of a shared policy.
    PolicyName {
        /// Name in `named_policies`.
        name: String = text().required();
    }

    /// A policy that several roles share.
    NamedPolicy {
        /// Name that roles use.
        name: String = name(Free);
        /// What it allows.
        description: Option<String> = text();
        /// The document.
        contents: String = json().required().get().rendered();
    }

    /// One thing that a role may do.
    RolePolicy {
        /// Name of the policy.
        name: Option<String> = text().rendered();
        /// Name of a policy that AWS manages.
        managed_policy_name: Option<String> = text();
        /// IAM policy document.
        contents: Option<String> = json().get().rendered();
        /// A role of GCP, as `roles/editor`.
        gcp_predefined_role: Option<String> = text();
        /// Permissions of a role of GCP that is made for this.
        gcp_permissions: Vec<String> = texts();
        /// Names of roles of Azure.
        azure_built_in_roles: Vec<String> = texts();
        /// Actions of a role of Azure that is made for this.
        azure_actions: Vec<String> = texts();
    }
    one of
        OneOf::at_most(&["managed_policy_name", "contents"]),
        OneOf::at_most(&["gcp_predefined_role", "gcp_permissions"]),
        OneOf::at_most(&["azure_built_in_roles", "azure_actions"]);

    /// Which role carries out which operation.
    OperationRoles {
        /// Always `matrix`.
        r#type: String = choice(&["matrix"]).required();
        /// The rules; one that names a thing goes before one with `*`.
        rules: Vec<OperationRule> = list(&OperationRule::TABLE);
    }

    /// The role of an operation on a thing.
    OperationRule {
        /// `nuon::sandbox`, `nuon::component:NAME` or `nuon::action:NAME`; `*` stands for all.
        principal: String = text().required();
        /// What is done.
        operation: String = choice(OPERATIONS).required();
        /// Name of the role that does it.
        role: String = text().required().rendered();
    }

    /// The role of an operation.
    OperationRole {
        /// What is done.
        operation: String = choice(OPERATIONS).required();
        /// Name of the role that does it.
        role: String = text().required().rendered();
    }

    /// A rule about what may be deployed.
    Policy {
        /// Name; that of the file where nothing is said.
        name: String = text();
        /// What the rule looks at.
        r#type: String = choice(&[
            "kubernetes_cluster", "terraform_module", "helm_chart", "kubernetes_manifest", "docker_build",
            "container_image", "pulumi", "sandbox", "runner_job_terraform_deploy", "runner_job_helm_deploy",
            "runner_job_action_workflow",
        ]).required();
        /// Language of the rule: Kyverno for clusters, OPA for the rest.
        engine: Option<String> = choice(&["kyverno", "opa"]);
        /// Kyverno YAML or Rego.
        contents: String = text().required().get().rendered();
        /// Names of the components it is about, or `["*"]`.
        components: Vec<String> = texts();
    }
}

impl Policy {
    /// Whether the rule is about a component: it is of the component's type, and names it.
    pub fn is_about(&self, component: &super::Component) -> bool {
        let named = |name: &String| name == "*" || *name == component.common.name;
        self.r#type == component.kind.name() && self.components.iter().any(named)
    }
}

const OPERATIONS: &[&str] = &["provision", "reprovision", "deprovision", "deploy", "teardown", "trigger"];

/// `permissions.toml`
pub(crate) const PERMISSIONS_FILE: Table = Table::of(
    "Permissions",
    "Roles in the customer's account.",
    &[
        Field::new("provision_role", "The role that makes an install.", table(&Role::TABLE)),
        Field::new("maintenance_role", "The role that keeps an install going.", table(&Role::TABLE)),
        Field::new("deprovision_role", "The role that removes an install.", table(&Role::TABLE)),
        Field::new("custom_roles", "Roles that operations name.", list(&Role::TABLE)),
        Field::new("roles", "Roles, each with its `type`.", list(&Role::TABLE)),
        Field::new("named_policies", "Policies that several roles share.", list(&NamedPolicy::TABLE)),
    ],
);

/// `break_glass.toml`
pub(crate) const BREAK_GLASS_FILE: Table = Table::of(
    "BreakGlass",
    "Roles that are off until the customer turns them on.",
    &[Field::new("role", "A role.", list(&Role::TABLE))],
);

/// `policies.toml`
pub(crate) const POLICIES_FILE: Table = Table::of(
    "Policies",
    "Rules about what may be deployed.",
    &[Field::new("policy", "A rule.", list(&Policy::TABLE))],
);
