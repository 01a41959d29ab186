//! What each component is made of: its recipe, and what names it.

use std::collections::BTreeMap;

use crate::error::{BuildError, Result};
use config::{Component, ComponentKind, ContainerImage};
use model::build::{ChartSource, Credentials, PolicySpec, Recipe, Secrets};
use model::spec::Source;
use model::{AppId, Digest, SectionId};

use crate::jobs::{git, local_archive};

/// What a component needs at a sync.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Need {
    Build(Box<Recipe>),
    /// There is nothing to make.
    Nothing,
    Unsupported(String),
}

/// One component of a config, to be built.
#[derive(Debug, Clone)]
pub(crate) struct Subject {
    pub app_id: AppId,
    pub component_id: String,
    pub section_id: SectionId,
    pub config_version: u64,
    pub component: Component,
    /// Digests of the app's local sources, by directory.
    pub local_sources: BTreeMap<String, String>,
    /// Those that judge an image.
    pub policies: Vec<PolicySpec>,
}

impl Subject {
    fn source(
        &self,
        public: Option<&config::Repo>,
        connected: Option<&config::Repo>,
        reference: Option<&str>,
    ) -> Result<Source> {
        if let Some(local) = self.component.kind.local() {
            return local_archive(local, &self.local_sources);
        }
        let repo = public.or(connected).ok_or(BuildError::NoSource)?;
        let mut source = git(repo, true);
        if let (Source::Git { reference: known, .. }, Some(asked)) = (&mut source, reference) {
            *known = Some(asked.to_owned());
        }
        Ok(source)
    }

    /// Names a recipe: everything it says, what its local source holds, and the policies that have let it pass.
    pub(crate) fn key(&self, recipe: &Recipe) -> String {
        let mut text = serde_json::to_string(recipe).unwrap_or_default();
        if !self.policies.is_empty() {
            text.push_str(&serde_json::to_string(&self.policies).unwrap_or_default());
        }
        Digest::of(text.as_bytes()).as_str().to_owned()
    }

    pub(crate) fn need(&self, reference: Option<&str>) -> Result<Need> {
        let recipe = match &self.component.kind {
            ComponentKind::TerraformModule(k) => Recipe::TerraformModule {
                source: self.source(k.public_repo.as_ref(), k.connected_repo.as_ref(), reference)?,
                terraform_version: k.terraform_version.clone(),
                vendor_providers: k.vendor_providers,
            },
            ComponentKind::HelmChart(k) => Recipe::HelmChart {
                chart: match &k.helm_repo {
                    Some(repo) => ChartSource::Repository {
                        url: repo.repo_url.clone(),
                        chart: repo.chart.clone(),
                        version: reference.map(str::to_owned).or_else(|| repo.version.clone()),
                        credentials: None,
                    },
                    None => ChartSource::Directory {
                        source: self.source(k.public_repo.as_ref(), k.connected_repo.as_ref(), reference)?,
                    },
                },
            },
            ComponentKind::KubernetesManifest(k) => match &k.kustomize {
                Some(kustomize) => Recipe::Kustomization {
                    source: self.source(k.public_repo.as_ref(), k.connected_repo.as_ref(), reference)?,
                    path: kustomize.path.clone(),
                    patches: kustomize.patches.clone(),
                    enable_helm: kustomize.enable_helm,
                    unrestricted: kustomize.load_restrictor.as_deref() == Some("none"),
                },
                None => Recipe::Manifest { contents: k.manifest.clone().unwrap_or_default() },
            },
            ComponentKind::DockerBuild(k) => Recipe::DockerImage {
                source: self.source(k.public_repo.as_ref(), k.connected_repo.as_ref(), reference)?,
                dockerfile: k.dockerfile.clone(),
                target: k.target.clone(),
                args: k.env_vars.clone().into_iter().chain(k.build_args.clone()).collect(),
                // The values are looked up when the spec is made.
                secrets: Secrets(k.secrets.iter().map(|name| (name.clone(), String::new())).collect()),
            },
            ComponentKind::ContainerImage(k) => image(k, reference)?,
            ComponentKind::Job(_) => return Ok(Need::Nothing),
            ComponentKind::Pulumi(_) => {
                return Ok(Need::Unsupported("components of type pulumi are not supported yet".into()));
            }
            ComponentKind::Unknown => return Ok(Need::Unsupported("the type of the component is not known".into())),
        };
        Ok(Need::Build(Box::new(recipe)))
    }
}

fn image(kind: &ContainerImage, reference: Option<&str>) -> Result<Recipe> {
    let ContainerImage { public, aws_ecr, gcp_gar, azure_acr } = kind;
    let found = public.as_ref().map(|i| (i.image_url.clone(), &i.tag, &i.update_policy));
    let found = found.or_else(|| aws_ecr.as_ref().map(|i| (i.image_url.clone(), &i.tag, &i.update_policy)));
    let found = found.or_else(|| gcp_gar.as_ref().map(|i| (i.image_url.clone(), &i.tag, &i.update_policy)));
    let found = found.or_else(|| {
        azure_acr.as_ref().map(|i| {
            let host = i.registry_url.trim_start_matches("https://").trim_end_matches('/');
            let image_url = i.image_url.trim_start_matches("https://");
            let image = if image_url.starts_with(host) { image_url.to_owned() } else { format!("{host}/{image_url}") };
            (image, &i.tag, &i.update_policy)
        })
    });
    let (image, tag, update_policy) = found.ok_or(BuildError::NoImage)?;
    let tag = reference.map(str::to_owned).or_else(|| tag.clone());
    let plain_http = image.starts_with("http://");
    let image = image.trim_start_matches("http://").trim_start_matches("https://").to_owned();
    let update_policy = if reference.is_some() { None } else { update_policy.clone() };
    Ok(Recipe::ContainerImage { image, tag, update_policy, credentials: None, plain_http })
}

/// The branch, tag or commit that a recipe asks for.
pub(crate) fn reference(recipe: &Recipe) -> String {
    let of = |text: &Option<String>| text.clone().unwrap_or_default();
    match recipe {
        Recipe::ContainerImage { tag, update_policy, .. } => of(&tag.clone().or_else(|| update_policy.clone())),
        Recipe::HelmChart { chart: ChartSource::Repository { version, .. } } => of(version),
        _ => match recipe.source() {
            Some(Source::Git { reference, .. }) => of(reference),
            Some(Source::Archive { .. }) | None => String::new(),
        },
    }
}

/// The policies of an app that judge the image of a component.
pub(crate) fn image_policies(config: &config::AppConfig, component: &Component) -> Vec<PolicySpec> {
    if !component.kind.is_image() {
        return Vec::new();
    }
    let about = |policy: &&config::Policy| {
        policy.is_about(component) && policy::is_rego(&policy.r#type, policy.engine.as_deref())
    };
    config.policies.iter().filter(about).map(policy_spec).collect()
}

/// A policy as the executor is given it.
pub(crate) fn policy_spec(policy: &config::Policy) -> PolicySpec {
    PolicySpec { name: policy.name.clone(), kind: policy.r#type.clone(), contents: policy.contents.clone() }
}

/// The address that credentials of a recipe are looked up by.
pub(crate) fn address(recipe: &Recipe) -> Option<String> {
    match recipe {
        Recipe::ContainerImage { image, plain_http, .. } => {
            let scheme = if *plain_http { "http" } else { "https" };
            let named = image.split_once('/').is_some_and(|(host, _)| host.contains(['.', ':']) || host == "localhost");
            Some(match (named, image.contains('/')) {
                (true, _) => format!("{scheme}://{image}"),
                (false, true) => format!("{scheme}://docker.io/{image}"),
                (false, false) => format!("{scheme}://docker.io/library/{image}"),
            })
        }
        Recipe::HelmChart { chart: ChartSource::Repository { url, .. } } => Some(url.clone()),
        _ => match recipe.source() {
            Some(Source::Git { url, .. }) => Some(url.clone()),
            Some(Source::Archive { .. }) | None => None,
        },
    }
}

pub(crate) fn with_credentials(recipe: &mut Recipe, found: Credentials) {
    match recipe {
        Recipe::ContainerImage { credentials, .. }
        | Recipe::HelmChart { chart: ChartSource::Repository { credentials, .. } }
        | Recipe::TerraformModule { source: Source::Git { credentials, .. }, .. }
        | Recipe::HelmChart { chart: ChartSource::Directory { source: Source::Git { credentials, .. } } }
        | Recipe::Kustomization { source: Source::Git { credentials, .. }, .. }
        | Recipe::DockerImage { source: Source::Git { credentials, .. }, .. } => *credentials = Some(found),
        Recipe::TerraformModule { .. }
        | Recipe::HelmChart { .. }
        | Recipe::Manifest { .. }
        | Recipe::Kustomization { .. }
        | Recipe::DockerImage { .. } => {}
    }
}
