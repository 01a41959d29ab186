//! Components: what is deployed to an install.

use serde::{Deserialize, Serialize};

use super::*;
use crate::table::{NameRule::*, *};

/// What is deployed to an install: what all components have, and what its type has.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Component {
    #[serde(flatten)]
    pub common: ComponentCommon,
    #[serde(flatten)]
    pub kind: ComponentKind,
}

/// The types of components.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum ComponentKind {
    TerraformModule(TerraformModule),
    HelmChart(HelmChart),
    KubernetesManifest(KubernetesManifest),
    DockerBuild(DockerBuild),
    ContainerImage(ContainerImage),
    Pulumi(Pulumi),
    Job(Job),
    /// No type that is known: never in a config without errors.
    #[default]
    #[serde(other)]
    Unknown,
}

pub(crate) const COMPONENT_TYPES: &[&str] =
    &["terraform_module", "helm_chart", "kubernetes_manifest", "docker_build", "container_image", "pulumi", "job"];

/// The table of a type of component.
pub(crate) fn component_table(kind: &str) -> Option<&'static Table> {
    Some(match kind {
        "terraform_module" => &TerraformModule::TABLE,
        "helm_chart" => &HelmChart::TABLE,
        "kubernetes_manifest" => &KubernetesManifest::TABLE,
        "docker_build" => &DockerBuild::TABLE,
        "container_image" => &ContainerImage::TABLE,
        "pulumi" => &Pulumi::TABLE,
        "job" => &Job::TABLE,
        _ => return None,
    })
}

impl ComponentKind {
    pub fn name(&self) -> &'static str {
        match self {
            ComponentKind::TerraformModule(_) => "terraform_module",
            ComponentKind::HelmChart(_) => "helm_chart",
            ComponentKind::KubernetesManifest(_) => "kubernetes_manifest",
            ComponentKind::DockerBuild(_) => "docker_build",
            ComponentKind::ContainerImage(_) => "container_image",
            ComponentKind::Pulumi(_) => "pulumi",
            ComponentKind::Job(_) => "job",
            ComponentKind::Unknown => "unknown",
        }
    }

    /// When it counts as healthy, where the app says so.
    pub fn health(&self) -> Option<&Health> {
        match self {
            Self::HelmChart(kind) => kind.health.as_ref(),
            Self::KubernetesManifest(kind) => kind.health.as_ref(),
            _ => None,
        }
    }

    /// An image is brought to the install; there is nothing to plan.
    pub fn is_image(&self) -> bool {
        matches!(self, ComponentKind::DockerBuild(_) | ComponentKind::ContainerImage(_))
    }

    /// How often a failed plan or apply is tried again, and whether a plan that all policies let pass needs no approval.
    pub fn retries_and_approval(&self) -> (i64, bool) {
        match self {
            ComponentKind::TerraformModule(kind) => (kind.max_auto_retries, kind.auto_approve_on_policies_passing),
            ComponentKind::HelmChart(kind) => (kind.max_auto_retries, kind.auto_approve_on_policies_passing),
            ComponentKind::KubernetesManifest(kind) => (kind.max_auto_retries, kind.auto_approve_on_policies_passing),
            ComponentKind::Pulumi(kind) => (kind.max_auto_retries, kind.auto_approve_on_policies_passing),
            ComponentKind::DockerBuild(kind) => (kind.max_auto_retries, kind.auto_approve_on_policies_passing),
            ComponentKind::Job(_) | ComponentKind::ContainerImage(_) | ComponentKind::Unknown => (0, false),
        }
    }

    /// When to look for drift.
    pub fn drift_schedule(&self) -> Option<&str> {
        match self {
            ComponentKind::TerraformModule(kind) => kind.drift_schedule.as_deref(),
            ComponentKind::HelmChart(kind) => kind.drift_schedule.as_deref(),
            ComponentKind::KubernetesManifest(kind) => kind.drift_schedule.as_deref(),
            ComponentKind::Pulumi(kind) => kind.drift_schedule.as_deref(),
            ComponentKind::DockerBuild(_)
            | ComponentKind::ContainerImage(_)
            | ComponentKind::Job(_)
            | ComponentKind::Unknown => None,
        }
    }

    /// The directory of the app that holds the files, where they come from there.
    pub fn local(&self) -> Option<&Local> {
        match self {
            ComponentKind::TerraformModule(kind) => kind.local.as_ref(),
            ComponentKind::HelmChart(kind) => kind.local.as_ref(),
            ComponentKind::KubernetesManifest(kind) => kind.local.as_ref(),
            ComponentKind::DockerBuild(kind) => kind.local.as_ref(),
            ComponentKind::Pulumi(kind) => kind.local.as_ref(),
            ComponentKind::ContainerImage(_) | ComponentKind::Job(_) | ComponentKind::Unknown => None,
        }
    }
}

/// `type` as a field of every component; it is not in `ComponentCommon` because it says which type the rest is.
pub(crate) const TYPE: Field = Field::new(
    "type",
    "What the component is.",
    renamed(COMPONENT_TYPES, &[("external_image", "container_image")]).required(),
);

tables! {
    /// What all components have.
    ComponentCommon {
        /// Name, unique in the app; in templates: `.nuon.components.NAME`.
        name: String = name(Dotted);
        /// Another name; it has no effect in templates.
        var_name: Option<String> = text();
        /// Components that are deployed before this one. Those which templates name are added by themselves.
        dependencies: Vec<String> = texts();
        /// Labels of the component.
        labels: Texts = map();
        /// Roles of the operations `deploy` and `teardown`.
        operation_roles: Vec<OperationRole> = list(&OperationRole::TABLE);
        /// An install may leave the component out.
        toggleable: bool = boolean();
        /// Whether a component that may be left out is in where an install says nothing.
        default_enabled: bool = boolean();
        /// The cluster it is deployed to, of `kubernetes_contexts.toml`.
        kubernetes_context: Option<String> = text();
        /// How long a build may take.
        build_timeout: Option<String> = timeout();
        /// How long a deploy may take.
        deploy_timeout: Option<String> = timeout();
        /// Another TOML file with keys of this table.
        source: Option<String> = text();
    }

    /// A Terraform module.
    TerraformModule with ComponentCommon {
        /// Version of Terraform, as `1.13.5`, or `latest`.
        terraform_version: String = text().required();
        /// Variables of the module.
        vars: Texts = shaped(Shape::Vars).rendered();
        /// Files of variables, the last one wins.
        var_file: Vec<VarFile> = list(&VarFile::TABLE);
        /// Environment of Terraform.
        env_vars: Texts = map().rendered();
        /// A repository that everyone can read.
        public_repo: Option<Repo> = table(&Repo::TABLE);
        /// A repository that is connected to the organization.
        connected_repo: Option<Repo> = table(&Repo::TABLE);
        /// A directory of the app itself.
        local: Option<Local> = table(&Local::TABLE);
        /// When to look for drift, as cron.
        drift_schedule: Option<String> = cron();
        /// How often a failed plan or apply is tried again.
        max_auto_retries: i64 = retries();
        /// A plan without changes needs no approval.
        skip_noops: bool = boolean();
        /// A plan that all policies let pass needs no approval.
        auto_approve_on_policies_passing: bool = boolean();
        /// The artifact brings the providers along, for installs that reach no provider registry.
        vendor_providers: bool = boolean();
    }
    one of OneOf::exactly(SOURCES);
    removed "var" => "write a table `[vars]` with `name = \"value\"`",
        "env_var" => "write a table `[env_vars]` with `KEY = \"value\"`";

    /// A Helm chart.
    HelmChart with ComponentCommon {
        /// Name of the release: 5 to 62 lower-case letters, digits and `-`.
        chart_name: String = text().required().rendered();
        /// Namespace of the release; it is made where it is missing.
        namespace: Option<String> = text().rendered();
        /// Where Helm keeps the release.
        storage_driver: Option<String> = text().rendered();
        /// Values, as for `helm --set`.
        values: Texts = shaped(Shape::HelmValues).rendered();
        /// Files of values.
        values_file: Vec<ValuesFile> = list(&ValuesFile::TABLE);
        /// A repository that everyone can read.
        public_repo: Option<Repo> = table(&Repo::TABLE);
        /// A repository that is connected to the organization.
        connected_repo: Option<Repo> = table(&Repo::TABLE);
        /// A directory of the app itself.
        local: Option<Local> = table(&Local::TABLE);
        /// A repository of charts.
        helm_repo: Option<HelmRepo> = table(&HelmRepo::TABLE);
        /// Take over objects that are there already.
        take_ownership: bool = boolean();
        /// Leave the chart's custom resource definitions out.
        skip_crds: bool = boolean();
        /// Whether a deploy ends only when everything is ready; it does by default.
        wait: Option<bool> = boolean();
        /// Go back to the release before where an upgrade fails.
        rollback_on_failure: bool = boolean();
        /// Fields that others may change: `spec.replicas`, or `Deployment/web: spec.template.spec.containers[*].image`.
        ignore_changes: Vec<String> = texts();
        /// When to look for drift, as cron.
        drift_schedule: Option<String> = cron();
        /// When the release counts as healthy.
        health: Option<Health> = table(&Health::TABLE);
        /// How often a failed plan or apply is tried again.
        max_auto_retries: i64 = retries();
        /// A plan without changes needs no approval.
        skip_noops: bool = boolean();
        /// A plan that all policies let pass needs no approval.
        auto_approve_on_policies_passing: bool = boolean();
    }
    one of OneOf::exactly(&["public_repo", "connected_repo", "local", "helm_repo"]);
    removed "value" => "write a table `[values]` with `key = \"value\"`";

    /// A file of values.
    ValuesFile {
        /// The YAML text, or the address of a file: `./values/app.yaml`.
        contents: String = text().required().get().or_file_in(&["path", "source"]).rendered();
    }

    /// A chart in a repository of charts.
    HelmRepo {
        /// Address of the repository.
        repo_url: String = text().required();
        /// Name of the chart.
        chart: String = text().required();
        /// Version of the chart; the newest where nothing is said.
        version: Option<String> = text();
    }

    /// Kubernetes objects.
    KubernetesManifest with ComponentCommon {
        /// The YAML text, or the address of a file: `./manifests/app.yaml`.
        manifest: Option<String> = text().get().rendered();
        /// A kustomization of a repository.
        kustomize: Option<Kustomize> = table(&Kustomize::TABLE);
        /// Whether a deploy ends only when everything is ready; it does by default.
        wait: Option<bool> = boolean();
        /// Fields that others may change: `spec.replicas`, or `Deployment/web: spec.template.spec.containers[*].image`.
        ignore_changes: Vec<String> = texts();
        /// Namespace of objects that name none.
        namespace: String = text().required().rendered();
        /// A repository that everyone can read.
        public_repo: Option<Repo> = table(&Repo::TABLE);
        /// A repository that is connected to the organization.
        connected_repo: Option<Repo> = table(&Repo::TABLE);
        /// A directory of the app itself.
        local: Option<Local> = table(&Local::TABLE);
        /// When to look for drift, as cron.
        drift_schedule: Option<String> = cron();
        /// When the objects count as healthy.
        health: Option<Health> = table(&Health::TABLE);
        /// How often a failed plan or apply is tried again.
        max_auto_retries: i64 = retries();
        /// A plan without changes needs no approval.
        skip_noops: bool = boolean();
        /// A plan that all policies let pass needs no approval.
        auto_approve_on_policies_passing: bool = boolean();
    }
    one of OneOf::exactly(&["manifest", "kustomize"]), OneOf::at_most(SOURCES);

    /// A kustomization.
    Kustomize {
        /// Its directory in the repository.
        path: String = text().required();
        /// Files with patches.
        patches: Vec<String> = texts();
        /// Charts may be used.
        enable_helm: bool = boolean();
        /// Whether files outside of the directory may be used.
        load_restrictor: Option<String> = choice(&["rootOnly", "none"]);
    }

    /// When something counts as healthy.
    Health {
        /// Whether health is looked at.
        enabled: Option<bool> = boolean();
        /// How long it must stay healthy.
        stabilization_window: Option<String> = duration(0, 3600);
        /// A deploy fails where it does not become healthy.
        block_deploy: bool = boolean();
        /// Names of checks that must pass.
        required_checks: Vec<String> = texts();
        /// Checks of our own.
        probes: Vec<Probe> = list(&Probe::TABLE);
    }

    /// A check of health.
    Probe {
        /// How it is checked.
        r#type: String = choice(&["http", "tcp", "exec"]).required();
        /// Name of the check.
        name: Option<String> = text();
        /// Address that must answer.
        url: Option<String> = text();
        /// Command that must succeed.
        command: Vec<String> = texts();
    }

    /// An image that is built from a Dockerfile.
    DockerBuild with ComponentCommon {
        /// The Dockerfile, in the directory of the repository.
        dockerfile: String = text().required();
        /// A repository that everyone can read.
        public_repo: Option<Repo> = table(&Repo::TABLE);
        /// A repository that is connected to the organization.
        connected_repo: Option<Repo> = table(&Repo::TABLE);
        /// A directory of the app itself.
        local: Option<Local> = table(&Local::TABLE);
        /// Stage of the Dockerfile to build; the last one where nothing is said.
        target: Option<String> = text();
        /// Arguments of the build, for `ARG`.
        build_args: Texts = map();
        /// Arguments of the build, as older files have them.
        env_vars: Texts = map();
        /// Names of app variables that `RUN --mount=type=secret,id=NAME` may read; they land in no layer.
        secrets: Vec<String> = texts();
        /// How often a failed build is tried again.
        max_auto_retries: i64 = retries();
        /// A plan without changes needs no approval.
        skip_noops: bool = boolean();
        /// A plan that all policies let pass needs no approval.
        auto_approve_on_policies_passing: bool = boolean();
    }
    one of OneOf::exactly(SOURCES);

    /// An image that exists, copied to the install.
    ContainerImage with ComponentCommon {
        /// A registry that everyone can read.
        public: Option<PublicImage> = table(&PublicImage::TABLE);
        /// A registry of AWS.
        aws_ecr: Option<EcrImage> = table(&EcrImage::TABLE);
        /// A registry of GCP.
        gcp_gar: Option<GarImage> = table(&GarImage::TABLE);
        /// A registry of Azure.
        azure_acr: Option<AcrImage> = table(&AcrImage::TABLE);
    }
    one of OneOf::exactly(&["public", "aws_ecr", "gcp_gar", "azure_acr"]);

    /// An image in a registry that everyone can read.
    PublicImage {
        /// The image without its tag.
        image_url: String = text().required();
        /// The tag.
        tag: Option<String> = text();
        /// Versions to choose the newest of, as `>=1.2, <2`.
        update_policy: Option<String> = text();
    }
    one of OneOf::at_least(TAGS);

    /// An image in a registry of AWS.
    EcrImage {
        /// The role that may read it.
        iam_role_arn: String = text().required();
        /// Region of the registry.
        region: String = region(Cloud::Aws).required();
        /// The image without its tag.
        image_url: String = text().required();
        /// The tag.
        tag: Option<String> = text();
        /// Versions to choose the newest of, as `>=1.2, <2`.
        update_policy: Option<String> = text();
    }
    one of OneOf::at_least(TAGS);

    /// An image in a registry of GCP.
    GarImage {
        /// The project of the registry.
        gcp_project_id: String = text().required();
        /// Region of the registry.
        region: String = region(Cloud::Gcp).required();
        /// The image without its tag.
        image_url: String = text().required();
        /// The tag.
        tag: Option<String> = text();
        /// The account that may read it.
        service_account_email: Option<String> = text();
        /// Where the account's identity comes from.
        workload_identity_provider: Option<String> = text();
        /// Versions to choose the newest of, as `>=1.2, <2`.
        update_policy: Option<String> = text();
    }
    one of OneOf::at_least(TAGS);

    /// An image in a registry of Azure.
    AcrImage {
        /// The image without its tag.
        image_url: String = text().required();
        /// The registry.
        registry_url: String = text().required();
        /// The tag.
        tag: Option<String> = text();
        /// The tenant that may read it.
        tenant_id: Option<String> = text();
        /// The client that may read it.
        client_id: Option<String> = text();
        /// Versions to choose the newest of, as `>=1.2, <2`.
        update_policy: Option<String> = text();
    }
    one of OneOf::at_least(TAGS);

    /// A Pulumi program.
    Pulumi with ComponentCommon {
        /// Language of the program.
        runtime: String = choice(RUNTIMES).required();
        /// Version of Pulumi.
        pulumi_version: Option<String> = text();
        /// Settings of the stack, as `aws:region`.
        config: Texts = map().rendered();
        /// Environment of Pulumi.
        env_vars: Texts = map().rendered();
        /// A repository that everyone can read.
        public_repo: Option<Repo> = table(&Repo::TABLE);
        /// A repository that is connected to the organization.
        connected_repo: Option<Repo> = table(&Repo::TABLE);
        /// A directory of the app itself.
        local: Option<Local> = table(&Local::TABLE);
        /// When to look for drift, as cron.
        drift_schedule: Option<String> = cron();
        /// How often a failed plan or apply is tried again.
        max_auto_retries: i64 = retries();
        /// A plan without changes needs no approval.
        skip_noops: bool = boolean();
        /// A plan that all policies let pass needs no approval.
        auto_approve_on_policies_passing: bool = boolean();
    }
    one of OneOf::exactly(SOURCES);

    /// An image that runs as a Kubernetes Job until it ends: once for each version of its image, command, arguments and environment.
    Job with ComponentCommon {
        /// The image without its tag.
        image_url: String = text().required().rendered();
        /// The tag.
        tag: String = text().required().rendered();
        /// Command of the container.
        cmd: Vec<String> = texts().rendered();
        /// Arguments of the command.
        args: Vec<String> = texts().rendered();
        /// Environment of the container.
        env_vars: Texts = map().rendered();
        /// Namespace of the Job; it is made where it is missing. The install's id where nothing is said.
        namespace: Option<String> = text().rendered();
        /// Service account of its pods.
        service_account: Option<String> = text().rendered();
        /// How often a pod that fails is followed by another one; 3 where nothing is said.
        retries: Option<i64> = retries();
    }

    /// A directory of a git repository.
    Repo {
        /// `owner/name` on GitHub, or the whole address.
        repo: String = text().required();
        /// Directory in the repository; `.` is its root.
        directory: String = text().required();
        /// Branch, tag or commit.
        branch: String = text().required();
    }

    /// A directory of the app itself, sent along with it.
    Local {
        /// Path from the root of the app.
        directory: String = text().required();
    }
}

const TAGS: &[&str] = &["tag", "update_policy"];
