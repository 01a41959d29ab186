//! The app as a whole, and the files of which there is one.

use super::*;
use crate::table::{NameRule::*, *};

tables! {
    /// An app: everything that its files say, free of how they are laid out. This is what is stored and compared.
    AppConfig {
        /// Facts about the app that people see.
        metadata: Option<Metadata> = table(&Metadata::TABLE).required();
        /// Groups of inputs, in the order of their display.
        input_groups: Vec<InputGroup> = list(&InputGroup::TABLE);
        /// What may differ between installs, in the order of their display.
        inputs: Vec<Input> = list(&Input::TABLE);
        /// Secrets that live in the customer's account.
        secrets: Vec<Secret> = list(&Secret::TABLE);
        /// The base infrastructure of an install.
        sandbox: Option<Sandbox> = table(&Sandbox::TABLE).required();
        /// The runner of an install.
        runner: Option<Runner> = table(&Runner::TABLE).required();
        /// The stack that the customer applies.
        stack: Option<Stack> = table(&Stack::TABLE);
        /// Roles which the stack makes in the customer's account.
        roles: Vec<Role> = list(&Role::TABLE);
        /// Policies that several roles share.
        named_policies: Vec<NamedPolicy> = list(&NamedPolicy::TABLE);
        /// Roles that are off until the customer turns them on.
        break_glass: Vec<Role> = list(&Role::TABLE);
        /// Rules about what may be deployed.
        policies: Vec<Policy> = list(&Policy::TABLE);
        /// Which role carries out which operation.
        operation_roles: Option<OperationRoles> = table(&OperationRoles::TABLE);
        /// What is deployed, by name.
        components: Vec<Component> = shaped(Shape::List(&Shape::Component));
        /// Scripts that run in an install, by name.
        actions: Vec<Action> = list(&Action::TABLE);
        /// Sequences of steps that people start, by name.
        runbooks: Vec<Runbook> = list(&Runbook::TABLE);
        /// Installs that are kept in files, by name.
        installs: Vec<Install> = list(&Install::TABLE);
        /// Branches that the app is rolled out from, by name.
        branches: Vec<Branch> = list(&Branch::TABLE);
        /// Clusters beside the one of the sandbox.
        kubernetes_contexts: Vec<KubernetesContext> = list(&KubernetesContext::TABLE);
        /// The repository that holds install configs.
        installs_source: Option<InstallsSource> = table(&InstallsSource::TABLE);
        /// What happens upon events from outside.
        triggers: Vec<TriggerRule> = list(&TriggerRule::TABLE);
        /// Artefacts of runners that customers host themselves.
        customer_managed: Option<CustomerManaged> = table(&CustomerManaged::TABLE);
        /// The page that offers the app.
        installer: Option<Installer> = table(&Installer::TABLE);
    }

    /// Facts about the app that people see.
    Metadata {
        /// Version of the format.
        version: String = choice(&["v1", "v2"]).required();
        /// Name that people see.
        display_name: Option<String> = text();
        /// What the app is.
        description: Option<String> = text();
        /// Markdown page of an install.
        readme: Option<String> = text().get().page();
        /// Old way of sending notices.
        slack_webhook_url: Option<String> = text();
        /// Colour of each label.
        label_colors: Texts = map();
        /// Labels that every install gets.
        default_labels: Texts = map().rendered();
    }

    /// A group of inputs.
    InputGroup {
        /// Name that inputs use in `group`.
        name: String = name(Free);
        /// What the inputs of the group are about.
        description: String = text().required();
        /// Name that people see.
        display_name: Option<String> = text();
    }

    /// Something that may differ between installs.
    Input {
        /// Name in templates: `.nuon.inputs.inputs.NAME`.
        name: String = name(Dotted);
        /// Name that people see.
        display_name: String = text().required();
        /// What the value is for.
        description: String = text().required();
        /// Name of the group it belongs to.
        group: String = text().required();
        /// Value where an install gives none; a list or table becomes JSON.
        default: Option<String> = shaped(Shape::Any);
        /// An install must have a value.
        required: bool = boolean();
        /// The value is never shown.
        sensitive: bool = boolean();
        /// What the value must be.
        r#type: Option<String> = choice(&["string", "number", "list", "json", "bool", "yaml", "hcl"]);
        /// The values that it may have.
        options: Vec<String> = texts();
        /// A regular expression that the whole value must match.
        pattern: Option<String> = text();
        /// The least number that it may be.
        min: Option<String> = text();
        /// The greatest number that it may be.
        max: Option<String> = text();
        /// Has no effect.
        internal: bool = boolean().deprecated("it has no effect; leave it out");
        /// The customer gives the value in the stack.
        user_configurable: bool = boolean();
    }

    /// A secret that lives in the customer's account.
    Secret {
        /// Name of the secret.
        name: String = name(Dotted).rendered();
        /// Name that people see.
        display_name: String = text().required().rendered();
        /// What the secret is for.
        description: String = text().required().rendered();
        /// The customer must give a value.
        required: bool = boolean();
        /// The stack makes a random value.
        auto_generate: bool = boolean();
        /// `base64`: the value is decoded when it is copied to Kubernetes.
        format: Option<String> = choice(&["", "base64"]);
        /// Value where the customer gives none.
        default: Option<String> = text();
        /// Copy the value into a Kubernetes Secret.
        kubernetes_sync: Option<bool> = boolean();
        /// Namespace of the Kubernetes Secret.
        kubernetes_secret_namespace: Option<String> = text().rendered();
        /// Name of the Kubernetes Secret; the key in it is `value`.
        kubernetes_secret_name: Option<String> = text().rendered();
        /// Kubernetes Secrets that get the value.
        kubernetes_sync_targets: Vec<SyncTarget> = list(&SyncTarget::TABLE);
    }

    /// A Kubernetes Secret that gets a value.
    SyncTarget {
        /// Namespaces in which the Secret is made.
        namespaces: Vec<String> = texts().required().rendered();
        /// Name of the Secret.
        name: String = text().required().rendered();
        /// Key in the Secret.
        key: String = text().required().rendered();
    }

    /// The base infrastructure of an install: a Terraform module or a Pulumi program.
    Sandbox {
        /// What it is written in; `terraform` where nothing is said.
        r#type: Option<String> = choice(&["terraform", "pulumi"]);
        /// Version of Terraform, as `1.13.5`.
        terraform_version: Option<String> = text();
        /// Language of the Pulumi program.
        runtime: Option<String> = choice(RUNTIMES);
        /// Version of Pulumi.
        pulumi_version: Option<String> = text();
        /// Settings of the Pulumi stack, as `namespace:key`.
        pulumi_config: Texts = map().rendered();
        /// A repository that everyone can read.
        public_repo: Option<Repo> = table(&Repo::TABLE);
        /// A repository that is connected to the organization.
        connected_repo: Option<Repo> = table(&Repo::TABLE);
        /// A directory of the app itself.
        local: Option<Local> = table(&Local::TABLE);
        /// Variables of the module.
        vars: Texts = shaped(Shape::Vars).rendered();
        /// Files of variables, the last one wins.
        var_file: Vec<VarFile> = list(&VarFile::TABLE);
        /// Environment of the process.
        env_vars: Texts = map().rendered();
        /// When to look for drift, as cron.
        drift_schedule: Option<String> = cron();
        /// Roles of the operations `provision`, `reprovision` and `deprovision`.
        operation_roles: Vec<OperationRole> = list(&OperationRole::TABLE);
        /// How often a failed plan or apply is tried again.
        max_auto_retries: i64 = retries();
        /// A plan without changes needs no approval.
        skip_noops: bool = boolean();
        /// A plan that all policies let pass needs no approval.
        auto_approve_on_policies_passing: bool = boolean();
        /// Another TOML file with keys of this table.
        source: Option<String> = text();
    }
    one of OneOf::exactly(SOURCES);

    /// A file of variables.
    VarFile {
        /// The text, or the address of a file: `./sandbox.tfvars`.
        contents: String = text().get().rendered().required();
    }

    /// The runner of an install.
    Runner {
        /// The cloud it runs in.
        runner_type: String = choice(&[
            "aws", "azure", "gcp", "aws-eks", "aws-ecs", "azure-aks", "azure-acs", "gcp-gke", "local",
        ]).required();
        /// Environment of the runner; templates stay as they are.
        env_vars: Texts = map();
        /// Where Helm keeps its releases.
        helm_driver: Option<String> = choice(DRIVERS);
        /// A script that the machine runs when it starts.
        init_script_url: Option<String> = text();
        /// Size of the machine.
        instance_type: Option<String> = text();
        /// Another TOML file with keys of this table.
        source: Option<String> = text();
    }
    removed "env_var" => "write a table `[env_vars]` with `KEY = \"value\"`";

    /// The stack that the customer applies: network, runner, roles, secrets.
    Stack {
        /// What the customer applies it with.
        r#type: String = choice(&["aws-cloudformation", "gcp-terraform", "azure-bicep"]).required();
        /// Name of the stack in the customer's account.
        name: String = text().required().rendered();
        /// What the stack does.
        description: String = text().required().rendered();
        /// Template of the network.
        vpc_nested_template_url: Option<String> = text().rendered();
        /// Template of the runner.
        runner_nested_template_url: Option<String> = text().rendered();
        /// More templates, applied in the order of `index`.
        custom_nested_stacks: Vec<NestedStack> = list(&NestedStack::TABLE);
        /// What an Azure stack is applied to.
        deployment_scope: Option<String> = choice(&["resource_group", "subscription"]);
    }

    /// A template that the stack contains.
    NestedStack {
        /// Name of the template in the stack.
        name: String = name(Free);
        /// Address of the template, or the template itself: `./template.yaml`.
        template_url: String = text().required().get_local().rendered();
        /// Place in the order.
        index: Option<i64> = int(0, i64::MAX).required();
        /// Values of its parameters.
        parameters: Texts = map().rendered();
    }

    /// A page that offers the app. It is read, and has no effect.
    Installer {
        /// Another TOML file with keys of this table.
        source: Option<String> = text();
        /// Name of the page.
        name: Option<String> = text();
        /// What the page is about.
        description: Option<String> = text();
        /// Last part of its address.
        slug: Option<String> = text();
        /// Apps on the page.
        apps: Vec<String> = texts();
        /// Where the documentation is.
        documentation_url: Option<String> = text();
        /// Where the community is.
        community_url: Option<String> = text();
        /// Where the home page is.
        homepage_url: Option<String> = text();
        /// Where the source is.
        github_url: Option<String> = text();
        /// Logo of the page.
        logo_url: Option<String> = text();
        /// Icon of the page.
        favicon_url: Option<String> = text();
        /// Picture for links to the page.
        og_image_url: Option<String> = text();
        /// Where a demonstration is.
        demo_url: Option<String> = text();
        /// Text after the installation.
        post_install_markdown: Option<String> = text();
        /// Text about rights.
        copyright_markdown: Option<String> = text();
        /// Text at the end.
        footer_markdown: Option<String> = text();
    }
}

pub(super) const RUNTIMES: &[&str] = &["go", "nodejs", "python"];
pub(super) const DRIVERS: &[&str] = &["configmap", "secret", "nuon"];
pub(super) const REPOS: &[&str] = &["public_repo", "connected_repo"];
/// Where the files of a component or a step come from.
pub(super) const SOURCES: &[&str] = &["public_repo", "connected_repo", "local"];

/// `inputs.toml`
pub(crate) const INPUTS_FILE: Table = Table::of(
    "Inputs",
    "Inputs and their groups.",
    &[
        Field::new("group", "Groups of inputs, in the order of their display.", list(&InputGroup::TABLE)),
        Field::new("input", "Inputs, in the order of their display.", list(&Input::TABLE)),
        Field::new("source", "Another TOML file with keys of this table.", text()),
        Field::new("sources", "More TOML files with keys of this table.", texts()),
    ],
);

/// `secrets.toml`
pub(crate) const SECRETS_FILE: Table = Table::of(
    "Secrets",
    "Secrets that live in the customer's account.",
    &[Field::new("secret", "A secret.", list(&Secret::TABLE))],
);
