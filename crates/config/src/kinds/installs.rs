//! Installs that are kept in files, branches, and what else is about several installs.

use std::collections::BTreeMap;

use super::*;
use crate::table::{NameRule::*, *};

tables! {
    /// An install that is kept in a file.
    Install {
        /// Name, unique in the app.
        name: String = name(Free);
        /// Whether changes wait for a person.
        approval_option: Option<String> = choice(&["approve-all", "prompt", "auto"]);
        /// Labels of the install.
        labels: Texts = map().rendered();
        /// The account of AWS it lives in.
        aws_account: Option<AwsAccount> = table(&AwsAccount::TABLE);
        /// The project of GCP it lives in.
        gcp_account: Option<GcpAccount> = table(&GcpAccount::TABLE);
        /// The subscription of Azure it lives in.
        azure_account: Option<AzureAccount> = table(&AzureAccount::TABLE);
        /// Values of inputs; of several tables the last one wins.
        inputs: Texts = shaped(Shape::InputValues);
        /// Templates of the stack for this install alone.
        stack_overrides: Option<StackOverrides> = table(&StackOverrides::TABLE);
        /// Which of the components that may be left out are in.
        component_toggles: BTreeMap<String, bool> = map_of(&Shape::Bool);
        /// Settings of components for this install alone.
        components: BTreeMap<String, ComponentOverride> = map_of(&Shape::Table(&ComponentOverride::TABLE));
    }
    one of OneOf::at_most(&["aws_account", "gcp_account", "azure_account"]);

    /// An account of AWS.
    AwsAccount {
        /// The region.
        region: String = region(Cloud::Aws).required();
        /// Number of the account.
        account_id: Option<String> = text();
    }

    /// A project of GCP.
    GcpAccount {
        /// The project.
        project_id: Option<String> = text();
        /// The region.
        region: Option<String> = region(Cloud::Gcp);
    }

    /// A subscription of Azure.
    AzureAccount {
        /// The region.
        location: String = region(Cloud::Azure).required();
        /// The subscription.
        subscription_id: Option<String> = text();
    }

    /// Templates of the stack for one install.
    StackOverrides {
        /// Template of the network.
        vpc_nested_template_url: Option<String> = text().rendered();
        /// Template of the runner.
        runner_nested_template_url: Option<String> = text().rendered();
        /// More templates, applied in the order of `index`.
        custom_nested_stacks: Vec<NestedStack> = list(&NestedStack::TABLE);
    }

    /// Settings of a component for one install.
    ComponentOverride {
        /// YAML that is laid over the values of a chart.
        helm_values: Option<String> = text().rendered();
        /// HCL or JSON that is laid over the variables of a module.
        tf_vars: Option<String> = text().rendered();
    }

    /// The repository that holds install configs.
    InstallsSource {
        /// A repository that everyone can read.
        public_repo: Option<Repo> = table(&Repo::TABLE);
        /// A repository that is connected to the organization.
        connected_repo: Option<Repo> = table(&Repo::TABLE);
    }
    one of OneOf::exactly(REPOS);

    /// A branch that the app is rolled out from.
    Branch {
        /// Name, unique in the app.
        name: String = name(Free);
        /// A repository that everyone can read.
        public_repo: Option<Repo> = table(&Repo::TABLE);
        /// A repository that is connected to the organization.
        connected_repo: Option<Repo> = table(&Repo::TABLE);
        /// Which installs follow, in waves.
        install_groups: Vec<InstallGroup> = list(&InstallGroup::TABLE);
        /// What is shown for a change that is not merged yet.
        preview: Option<Preview> = table(&Preview::TABLE);
        /// Runbooks that run after a deploy.
        post_deploy_runbooks: Vec<String> = texts();
        /// Changes of these paths start nothing.
        ignore_changes_regex: Option<String> = text();
        /// Report on changes that start nothing, too.
        send_statuses_on_ignore: bool = boolean();
    }
    one of OneOf::at_most(REPOS);

    /// A wave of installs.
    InstallGroup {
        /// Name of the group.
        name: String = name(Free);
        /// Place in the order.
        order: i64 = int(i64::MIN, i64::MAX);
        /// Previews use these installs.
        use_for_previews: bool = boolean();
        /// Ids of installs.
        install_ids: Vec<String> = texts();
        /// Names of installs.
        install_names: Vec<String> = texts();
        /// Labels that installs have.
        label_selector: Texts = map();
        /// A plan that all policies let pass needs no approval.
        auto_approve_on_policies_passing: bool = boolean();
    }
    one of OneOf::at_most(&["install_ids", "label_selector"]), OneOf::at_most(&["install_names", "label_selector"]);

    /// What is shown for a change that is not merged yet.
    Preview {
        /// How far it goes.
        mode: Option<String> = choice(&["plan-only", "apply", "build-only"]);
        /// Id of the install.
        install_id: Option<String> = text();
        /// Name of the install.
        install_name: Option<String> = text();
        /// Labels that the install has.
        label_selector: Texts = map();
        /// Report to the repository.
        set_statuses: Option<bool> = boolean();
        /// Write a comment.
        comment: Option<bool> = boolean();
    }

    /// A cluster beside the one of the sandbox.
    KubernetesContext {
        /// Name that components and actions use.
        name: String = name(Free);
        /// The Terraform or Pulumi component whose output `cluster` describes it.
        component: String = text().required();
    }

    /// Artefacts of runners that customers host themselves.
    CustomerManaged {
        /// Image of the runner.
        runner_image_url: Option<String> = text();
        /// Tag of the image.
        runner_image_tag: Option<String> = text();
        /// Programs for each platform.
        platforms: Vec<Platform> = list(&Platform::TABLE);
    }

    /// Programs for a platform.
    Platform {
        /// The platform.
        target: Option<String> = text();
        /// The portal.
        portal_binary_url: Option<String> = text();
        /// The runner.
        runner_binary_url: Option<String> = text();
    }
}

/// `kubernetes_contexts.toml`
pub(crate) const KUBERNETES_CONTEXTS_FILE: Table = Table::of(
    "KubernetesContexts",
    "Clusters beside the one of the sandbox.",
    &[Field::new("kubernetes_context", "A cluster.", list(&KubernetesContext::TABLE))],
);
