//! Builds: what a component is made of, where its artifact goes, and how an artifact is named.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::spec::Source;
use crate::{BuildId, ComponentId, Digest, JobType};

/// A repository of an OCI registry.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Repository {
    /// `host` or `host:port`. None: Ferry's own registry, which the runner reaches through its control plane, with a token
    /// for this execution.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub registry: Option<String>,
    /// The path in the registry.
    pub name: String,
    /// The registry speaks HTTP without TLS.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub plain_http: bool,
}

/// Makes the artifact of a component.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BuildSpec {
    pub build_id: BuildId,
    pub component_id: ComponentId,
    /// Name of the component.
    pub component: String,
    pub to: Repository,
    /// The tag that the artifact gets: the build's id.
    pub tag: String,
    pub recipe: Recipe,
    /// The last good build of the same recipe: where its source has not moved, there is nothing to do.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub known: Option<KnownBuild>,
    /// What must let an image pass before it is pushed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub policies: Vec<PolicySpec>,
}

/// A Rego policy.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PolicySpec {
    pub name: String,
    /// The `type` of the app's files.
    pub kind: String,
    pub contents: String,
}

/// A build that was made before.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct KnownBuild {
    pub build_id: BuildId,
    /// The commit, or the digest of the image, that it was made of.
    pub revision: String,
}

/// What a build is made of.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Recipe {
    /// A directory with a Terraform module.
    TerraformModule {
        source: Source,
        /// As the app has it: part of what tells two recipes apart.
        terraform_version: String,
        /// Providers are part of the artifact, for installs that reach no provider registry.
        #[serde(default)]
        vendor_providers: bool,
    },
    /// A directory with a chart, or a chart of a repository of charts.
    HelmChart { chart: ChartSource },
    /// Kubernetes objects as YAML, templates and all.
    Manifest { contents: String },
    Kustomization {
        source: Source,
        /// Directory of the kustomization in the source.
        path: String,
        /// Files with patches, from the root of the source.
        #[serde(default)]
        patches: Vec<String>,
        #[serde(default)]
        enable_helm: bool,
        /// Files outside of the kustomization's directory may be used: whatever a build may see at all.
        #[serde(default)]
        unrestricted: bool,
    },
    DockerImage {
        source: Source,
        /// Path in the source.
        dockerfile: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        target: Option<String>,
        #[serde(default)]
        args: BTreeMap<String, String>,
        /// For `RUN --mount=type=secret,id=NAME`; in no layer and no log. The values stand in the spec's `secrets` too.
        #[serde(default)]
        secrets: Secrets,
    },
    /// An image of another registry, copied with all its platforms.
    ContainerImage {
        /// `host[:port]/path`, without a tag; names of Docker Hub may be short.
        image: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        tag: Option<String>,
        /// The newest tag that these versions allow, as `>=1.2, <2`; stands in for the tag.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        update_policy: Option<String>,
        /// Where the host's own credentials (docker's `config.json`) are not the ones to use.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        credentials: Option<Credentials>,
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        plain_http: bool,
    },
}

impl Recipe {
    pub const fn job_type(&self) -> JobType {
        match self {
            Self::TerraformModule { .. } => JobType::TerraformModuleBuild,
            Self::HelmChart { .. } => JobType::HelmChartBuild,
            Self::Manifest { .. } | Self::Kustomization { .. } => JobType::KubernetesManifestBuild,
            Self::DockerImage { .. } => JobType::DockerBuild,
            Self::ContainerImage { .. } => JobType::ContainerImageBuild,
        }
    }

    pub const fn source(&self) -> Option<&Source> {
        match self {
            Self::TerraformModule { source, .. }
            | Self::HelmChart { chart: ChartSource::Directory { source } }
            | Self::Kustomization { source, .. }
            | Self::DockerImage { source, .. } => Some(source),
            Self::HelmChart { chart: ChartSource::Repository { .. } }
            | Self::Manifest { .. }
            | Self::ContainerImage { .. } => None,
        }
    }

    /// Whether the same recipe may make something else tomorrow: a branch moves, a tag is set anew.
    pub const fn may_move(&self) -> bool {
        match self {
            Self::HelmChart { chart: ChartSource::Repository { .. } } | Self::ContainerImage { .. } => true,
            _ => matches!(self.source(), Some(Source::Git { .. })),
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "from", rename_all = "kebab-case")]
pub enum ChartSource {
    Directory {
        source: Source,
    },
    /// `https://…` (a repository of charts) or `oci://…`.
    Repository {
        url: String,
        chart: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        version: Option<String>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        credentials: Option<Credentials>,
    },
}

/// Who we are to a registry or a git host. The password stands in the spec's `secrets` too.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Credentials {
    pub username: String,
    pub password: String,
}

impl std::fmt::Debug for Credentials {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Credentials({})", self.username)
    }
}

/// Secrets by their names, which are all that is shown of them.
#[derive(Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Secrets(pub BTreeMap<String, String>);

impl std::fmt::Debug for Secrets {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_set().entries(self.0.keys()).finish()
    }
}

/// Copies artifacts of the vendor into the install's own registry.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SyncSpec {
    pub build_id: BuildId,
    pub component: String,
    pub from: Repository,
    /// The manifest; everything it names is copied, nothing else.
    pub digest: Digest,
    /// None: the install reads the vendor's registry; only whether the artifact is there is looked at.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to: Option<Repository>,
    pub tag: String,
}

/// An artifact as it stands in a registry. `image` of a build's and of a sync's outputs.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Artifact {
    /// With the registry, where that is known: `host/path`.
    pub repository: String,
    pub tag: String,
    pub digest: String,
    /// `repository@digest`.
    #[serde(rename = "ref")]
    pub reference: String,
    pub media_type: String,
    #[serde(default)]
    pub artifact_type: String,
    /// Of the manifest and all that it names.
    pub size: u64,
    #[serde(default)]
    pub annotations: BTreeMap<String, String>,
    #[serde(default)]
    pub platform: Platform,
    #[serde(default)]
    pub urls: Vec<String>,
}

/// Empty: nobody fills it in yet.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Platform {
    #[serde(default)]
    pub architecture: String,
    #[serde(default)]
    pub os: String,
    #[serde(default)]
    pub variant: String,
}

/// What a build has put out.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct BuildOutputs {
    /// Absent when the source has not moved.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub image: Option<Artifact>,
    /// The known build, whose source has not moved: its artifact stands for this one's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub same_as: Option<BuildId>,
    pub source: BuiltFrom,
    /// Steps of the build that an earlier one had done, of how many.
    #[serde(default)]
    pub cache_hits: u64,
    #[serde(default)]
    pub cache_steps: u64,
}

/// What a build was made of, as it was found.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct BuiltFrom {
    /// The commit, the digest of the image or archive, or of the text.
    pub revision: String,
    /// The branch or tag that led there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reference: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub author_name: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub author_email: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
}

/// What an execution may do at Ferry's own registry, for a short while.
#[derive(Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct RegistryAccess {
    /// Sent as `Authorization: Bearer` to `/v2/` beside the Runner API.
    pub token: String,
    /// Ask again before.
    pub expires_in_s: u64,
}

/// What pods of an install pull with from Ferry's own registry.
#[derive(Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct PullLogin {
    pub login: Credentials,
    /// Another one must be there before.
    pub expires_in_s: u64,
}

/// Media types of our own artifacts.
pub mod media {
    /// `artifactType` of packed directories: Terraform modules, kustomized and plain manifests.
    pub const ARTIFACT: &str = "application/vnd.ferry.artifact.v1";
    /// Its one layer: a deterministic tar, compressed with gzip.
    pub const LAYER: &str = "application/vnd.ferry.artifact.layer.v1.tar+gzip";
    /// As helm pushes charts.
    pub const CHART_CONFIG: &str = "application/vnd.cncf.helm.config.v1+json";
    pub const CHART_LAYER: &str = "application/vnd.cncf.helm.chart.content.v1.tar+gzip";
    pub const MANIFEST: &str = "application/vnd.oci.image.manifest.v1+json";
    pub const EMPTY: &str = "application/vnd.oci.empty.v1+json";
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_shown_by_name_alone() {
        let credentials = Credentials { username: "ada".into(), password: "hunter22".into() };
        let secrets = Secrets([("NPM_TOKEN".to_owned(), "hunter22".to_owned())].into());
        let shown = format!("{credentials:?} {secrets:?}");
        assert_eq!(shown, r#"Credentials(ada) {"NPM_TOKEN"}"#);
        assert_eq!(serde_json::to_string(&secrets).unwrap(), r#"{"NPM_TOKEN":"hunter22"}"#);
    }
}
