//! What configures a component: posted by clients of the dialect, type by type, and shown to them.

use api::control as wire;
use axum::Json;
use axum::extract::{DefaultBodyLimit, Path, State};
use conductor::apps::drafts::{PostedSection, SectionSubject, element};
use conductor::apps::manage::names;
use config::{ComponentCommon, ComponentKind};
use http::StatusCode;
use store::{Config, Section, StoreError};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::AppState;
use crate::auth::{InOrg, Operator};
use crate::config::Limits;
use crate::control_api::apps::components::{KIND, wire_type};
use crate::control_api::apps::configs::sections::{
    self, git, operation_map, operation_roles, repo, some, text, var_files,
};
use crate::control_api::apps::configs::{self, Known};
use crate::error::{ApiError, ApiResult};
use crate::request::Create;

pub(crate) fn routes(limits: &Limits) -> OpenApiRouter<AppState> {
    OpenApiRouter::new()
        .routes(routes!(post_terraform))
        .routes(routes!(post_helm))
        .routes(routes!(post_manifest))
        .routes(routes!(post_docker))
        .routes(routes!(post_image))
        .routes(routes!(post_job))
        .routes(routes!(post_pulumi))
        .layer(DefaultBodyLimit::max(limits.large_body_bytes))
}

/// What a section says about its component, as the dialect has it.
pub(crate) fn connection(
    known: &Known,
    config: &Config,
    section: &Section,
) -> ApiResult<wire::ComponentConfigConnection> {
    let alone = sections::alone(section)?;
    let component = alone.components.into_iter().next().ok_or(StoreError::NotFound("component"))?;
    let entity_id = section.entity_id.clone().unwrap_or_default();
    let common = &component.common;
    let stamp = known.stamp(section);
    let (retries, noops, approve, drift) = tuning(&component.kind);
    let mut shown = wire::ComponentConfigConnection {
        component_name: common.name.clone(),
        component_type: wire_type(component.kind.name()).into(),
        version: config.version.unwrap_or_default(),
        component_id: entity_id,
        app_config_version: config.version.unwrap_or_default(),
        checksum: section.checksum.clone(),
        component_dependency_ids: common.dependencies.iter().filter_map(|name| known.id_of(name)).collect(),
        references: Vec::new(),
        build_timeout: text(common.build_timeout.as_ref()),
        deploy_timeout: text(common.deploy_timeout.as_ref()),
        drift_schedule: text(drift),
        kubernetes_context_name: text(common.kubernetes_context.as_ref()),
        max_auto_retries: retries,
        skip_noops: noops,
        auto_approve_on_policies_passing: approve,
        toggleable: common.toggleable,
        default_enabled: common.default_enabled,
        operation_roles: operation_map(&common.operation_roles),
        terraform_module: None,
        helm: None,
        kubernetes_manifest: None,
        docker_build: None,
        external_image: None,
        job: None,
        pulumi: None,
        stamp: stamp.clone(),
    };
    show_kind(&component.kind, stamp, &mut shown);
    Ok(shown)
}

/// `NAME=value`, as clients of the dialect send arguments of a build.
fn pairs(texts: &[String]) -> wire::Labels {
    texts.iter().map(|text| text.split_once('=').unwrap_or((text, ""))).map(|(k, v)| (k.into(), v.into())).collect()
}

/// Retries, skipping of plans without changes, approval by policies, and the schedule of drift runs.
fn tuning(kind: &ComponentKind) -> (i64, bool, bool, Option<&String>) {
    macro_rules! of {
        ($k:expr, $drift:expr) => {
            ($k.max_auto_retries, $k.skip_noops, $k.auto_approve_on_policies_passing, $drift)
        };
    }
    match kind {
        ComponentKind::TerraformModule(k) => of!(k, k.drift_schedule.as_ref()),
        ComponentKind::HelmChart(k) => of!(k, k.drift_schedule.as_ref()),
        ComponentKind::KubernetesManifest(k) => of!(k, k.drift_schedule.as_ref()),
        ComponentKind::Pulumi(k) => of!(k, k.drift_schedule.as_ref()),
        ComponentKind::DockerBuild(k) => of!(k, None),
        ComponentKind::ContainerImage(_) | ComponentKind::Job(_) | ComponentKind::Unknown => (0, false, false, None),
    }
}

fn show_kind(kind: &ComponentKind, stamp: wire::Stamp, shown: &mut wire::ComponentConfigConnection) {
    let component_config_connection_id = stamp.id.clone();
    match kind {
        ComponentKind::TerraformModule(k) => {
            shown.terraform_module = Some(wire::TerraformModule {
                stamp,
                component_config_connection_id,
                version: k.terraform_version.clone(),
                variables: k.vars.clone(),
                variables_files: k.var_file.iter().map(|f| f.contents.clone()).collect(),
                env_vars: k.env_vars.clone(),
                public_git_vcs_config: k.public_repo.as_ref().map(git),
                connected_github_vcs_config: k.connected_repo.as_ref().map(git),
            });
        }
        ComponentKind::HelmChart(k) => {
            shown.helm = Some(show_helm(k, stamp, component_config_connection_id));
        }
        ComponentKind::KubernetesManifest(k) => {
            shown.kubernetes_manifest = Some(wire::KubernetesManifest {
                stamp,
                component_config_connection_id,
                manifest: text(k.manifest.as_ref()),
                kustomize: k.kustomize.as_ref().map(|k| wire::Kustomize {
                    path: k.path.clone(),
                    patches: k.patches.clone(),
                    enable_helm: k.enable_helm,
                    load_restrictor: text(k.load_restrictor.as_ref()),
                }),
                namespace: k.namespace.clone(),
                public_git_vcs_config: k.public_repo.as_ref().map(git),
                connected_github_vcs_config: k.connected_repo.as_ref().map(git),
            });
        }
        ComponentKind::DockerBuild(k) => {
            shown.docker_build = Some(wire::DockerBuild {
                stamp,
                component_config_connection_id,
                dockerfile: k.dockerfile.clone(),
                target: text(k.target.as_ref()),
                build_args: k.build_args.iter().map(|(name, value)| format!("{name}={value}")).collect(),
                env_vars: k.env_vars.clone(),
                public_git_vcs_config: k.public_repo.as_ref().map(git),
                connected_github_vcs_config: k.connected_repo.as_ref().map(git),
            });
        }
        ComponentKind::ContainerImage(k) => {
            shown.external_image = Some(show_image(k, stamp, component_config_connection_id));
        }
        ComponentKind::Job(k) => {
            shown.job = Some(wire::JobConfig {
                stamp,
                component_config_connection_id,
                image_url: k.image_url.clone(),
                tag: k.tag.clone(),
                cmd: k.cmd.clone(),
                args: k.args.clone(),
                env_vars: k.env_vars.clone(),
            });
        }
        ComponentKind::Pulumi(k) => {
            shown.pulumi = Some(wire::Pulumi {
                stamp,
                component_config_connection_id,
                runtime: k.runtime.clone(),
                version: text(k.pulumi_version.as_ref()),
                config: k.config.clone(),
                env_vars: k.env_vars.clone(),
                public_git_vcs_config: k.public_repo.as_ref().map(git),
                connected_github_vcs_config: k.connected_repo.as_ref().map(git),
            });
        }
        ComponentKind::Unknown => {}
    }
}

fn show_helm(k: &config::HelmChart, stamp: wire::Stamp, component_config_connection_id: String) -> wire::HelmChart {
    let helm_repo = k.helm_repo.as_ref().map(|r| wire::HelmRepo {
        chart: r.chart.clone(),
        repo_url: r.repo_url.clone(),
        version: text(r.version.as_ref()),
    });
    let values_files: Vec<String> = k.values_file.iter().map(|f| f.contents.clone()).collect();
    let (namespace, storage_driver) = (text(k.namespace.as_ref()), text(k.storage_driver.as_ref()));
    wire::HelmChart {
        stamp,
        component_config_connection_id,
        chart_name: k.chart_name.clone(),
        namespace: namespace.clone(),
        storage_driver: storage_driver.clone(),
        values: k.values.clone(),
        values_files: values_files.clone(),
        take_ownership: k.take_ownership,
        skip_crds: k.skip_crds,
        helm_config_json: Some(wire::HelmConfig {
            chart_name: k.chart_name.clone(),
            helm_repo_config: helm_repo,
            namespace,
            storage_driver,
            values: k.values.clone(),
            values_files,
            take_ownership: k.take_ownership,
            skip_crds: k.skip_crds,
        }),
        public_git_vcs_config: k.public_repo.as_ref().map(git),
        connected_github_vcs_config: k.connected_repo.as_ref().map(git),
    }
}

fn show_image(
    k: &config::ContainerImage,
    stamp: wire::Stamp,
    component_config_connection_id: String,
) -> wire::ExternalImage {
    let mut shown = wire::ExternalImage {
        stamp,
        component_config_connection_id,
        image_url: String::new(),
        tag: String::new(),
        update_policy: String::new(),
        aws_ecr_image_config: None,
        gcp_gar_image_config: None,
        azure_acr_image_config: None,
    };
    macro_rules! image {
        ($image:expr) => {
            shown.image_url = $image.image_url.clone();
            shown.tag = text($image.tag.as_ref());
            shown.update_policy = text($image.update_policy.as_ref());
        };
    }
    if let Some(i) = &k.public {
        image!(i);
    }
    if let Some(i) = &k.aws_ecr {
        image!(i);
        let image = wire::EcrImage { aws_region: i.region.clone(), iam_role_arn: i.iam_role_arn.clone() };
        shown.aws_ecr_image_config = Some(image);
    }
    if let Some(i) = &k.gcp_gar {
        image!(i);
        shown.gcp_gar_image_config = Some(wire::GarImage {
            gcp_project_id: i.gcp_project_id.clone(),
            gcp_region: i.region.clone(),
            service_account_email: text(i.service_account_email.as_ref()),
            workload_identity_provider: text(i.workload_identity_provider.as_ref()),
        });
    }
    if let Some(i) = &k.azure_acr {
        image!(i);
        shown.azure_acr_image_config = Some(wire::AcrImage {
            registry_url: i.registry_url.clone(),
            tenant_id: text(i.tenant_id.as_ref()),
            client_id: text(i.client_id.as_ref()),
        });
    }
    shown
}

/// Puts the config of a component into a draft, and answers with the whole of it.
async fn put(
    state: &AppState,
    at: &InOrg,
    component: &str,
    base: wire::ComponentConfigBase,
    kind: ComponentKind,
) -> ApiResult<wire::ComponentConfigConnection> {
    let entity = state.store().entity(&at.org, None, KIND, component).await?;
    if let Some(known) = entity.entity_type.as_deref().filter(|known| *known != kind.name()) {
        let text = format!("component `{}` is a {known} and can't become a {}", entity.name, kind.name());
        return Err(ApiError::new(api::ErrorCode::Conflict, text).hint("make a component with another name"));
    }
    let app = state.store().app(&at.org, entity.app_id.as_str()).await?;
    let known = state.store().all_entities(&at.org, &app.id, KIND).await?;
    let common = ComponentCommon {
        name: entity.name.clone(),
        var_name: some(&entity.var_name),
        dependencies: names(&known, &base.dependencies),
        labels: entity.labels.clone(),
        operation_roles: operation_roles(&base.operation_roles),
        toggleable: base.toggleable,
        default_enabled: base.default_enabled,
        kubernetes_context: some(&base.kubernetes_context),
        build_timeout: some(&base.build_timeout),
        deploy_timeout: some(&base.deploy_timeout),
        source: None,
    };
    let body = element(KIND, &config::Component { common, kind });
    let subject = SectionSubject { name: entity.name, entity_id: Some(entity.id), checksum: base.checksum };
    let posted = PostedSection { kind: KIND.section(), body, subject };
    let section = configs::put(state, at, &app, &base.app_config_id, posted).await?;
    let config = state.store().config(&at.org, &app.id, &section.config_id).await?;
    connection(&Known::of(state, &at.org, &app.id).await?, &config, &section)
}

/// A handler that puts the config of a component of one type into a draft.
macro_rules! component_config {
    ($post:ident, $path:literal, $request:ident, $answer:ident, $field:ident, |$r:ident| $kind:expr) => {
        #[doc = concat!("Configures a component in a draft: `", $path, "`.")]
        #[utoipa::path(post, path = $path, tag = "components", security(("token" = ["operator"])), params(("component_id" = String, Path, description = "name or id")), request_body = wire::$request, responses((status = 201, body = wire::$answer), (status = 400, body = api::ErrorBody), (status = 404, body = api::ErrorBody), (status = 409, body = api::ErrorBody)))]
        async fn $post(
            State(state): State<AppState>,
            Operator(at): Operator,
            Path(component): Path<String>,
            request: Create<wire::$request>,
        ) -> ApiResult<(StatusCode, Json<wire::$answer>)> {
            let $r = request.value;
            let base = $r.base.clone();
            let shown = put(&state, &at, &component, base, $kind).await?;
            let answer = shown.$field.ok_or(StoreError::NotFound("config"))?;
            Ok((StatusCode::CREATED, Json(answer)))
        }
    };
}

component_config!(
    post_terraform,
    "/v1/components/{component_id}/configs/terraform-module",
    CreateTerraformModule,
    TerraformModule,
    terraform_module,
    |r| {
        ComponentKind::TerraformModule(config::TerraformModule {
            terraform_version: if r.version.is_empty() { "latest".into() } else { r.version },
            vars: r.variables,
            var_file: var_files(&r.variables_files),
            env_vars: r.env_vars,
            public_repo: r.public_git_vcs_config.as_ref().map(repo),
            connected_repo: r.connected_github_vcs_config.as_ref().map(repo),
            local: None,
            drift_schedule: some(&r.base.drift_schedule),
            max_auto_retries: r.base.max_auto_retries,
            skip_noops: r.base.skip_noops,
            vendor_providers: false,
            auto_approve_on_policies_passing: r.base.auto_approve_on_policies_passing,
        })
    }
);

component_config!(post_helm, "/v1/components/{component_id}/configs/helm", CreateHelmChart, HelmChart, helm, |r| {
    ComponentKind::HelmChart(config::HelmChart {
        chart_name: r.chart_name,
        namespace: some(&r.namespace),
        storage_driver: some(&r.storage_driver),
        values: r.values,
        values_file: r.values_files.into_iter().map(|contents| config::ValuesFile { contents }).collect(),
        public_repo: r.public_git_vcs_config.as_ref().map(repo),
        connected_repo: r.connected_github_vcs_config.as_ref().map(repo),
        local: None,
        helm_repo: r.helm_repo_config.map(|h| config::HelmRepo {
            repo_url: h.repo_url,
            chart: h.chart,
            version: some(&h.version),
        }),
        take_ownership: r.take_ownership,
        skip_crds: r.skip_crds,
        wait: None,
        rollback_on_failure: false,
        ignore_changes: Vec::new(),
        drift_schedule: some(&r.base.drift_schedule),
        health: None,
        max_auto_retries: r.base.max_auto_retries,
        skip_noops: r.base.skip_noops,
        auto_approve_on_policies_passing: r.base.auto_approve_on_policies_passing,
    })
});

component_config!(
    post_manifest,
    "/v1/components/{component_id}/configs/kubernetes-manifest",
    CreateKubernetesManifest,
    KubernetesManifest,
    kubernetes_manifest,
    |r| {
        ComponentKind::KubernetesManifest(config::KubernetesManifest {
            manifest: some(&r.manifest),
            kustomize: r.kustomize.map(|k| config::Kustomize {
                path: k.path,
                patches: k.patches,
                enable_helm: k.enable_helm,
                load_restrictor: some(&k.load_restrictor),
            }),
            namespace: r.namespace,
            wait: None,
            ignore_changes: Vec::new(),
            public_repo: r.public_git_vcs_config.as_ref().map(repo),
            connected_repo: r.connected_github_vcs_config.as_ref().map(repo),
            local: None,
            drift_schedule: some(&r.base.drift_schedule),
            health: None,
            max_auto_retries: r.base.max_auto_retries,
            skip_noops: r.base.skip_noops,
            auto_approve_on_policies_passing: r.base.auto_approve_on_policies_passing,
        })
    }
);

component_config!(
    post_docker,
    "/v1/components/{component_id}/configs/docker-build",
    CreateDockerBuild,
    DockerBuild,
    docker_build,
    |r| {
        ComponentKind::DockerBuild(config::DockerBuild {
            dockerfile: r.dockerfile,
            public_repo: r.public_git_vcs_config.as_ref().map(repo),
            connected_repo: r.connected_github_vcs_config.as_ref().map(repo),
            local: None,
            target: some(&r.target),
            build_args: pairs(&r.build_args),
            env_vars: r.env_vars,
            secrets: Vec::new(),
            max_auto_retries: r.base.max_auto_retries,
            skip_noops: r.base.skip_noops,
            auto_approve_on_policies_passing: r.base.auto_approve_on_policies_passing,
        })
    }
);

component_config!(
    post_image,
    "/v1/components/{component_id}/configs/external-image",
    CreateExternalImage,
    ExternalImage,
    external_image,
    |r| ComponentKind::ContainerImage(image(r))
);

component_config!(post_job, "/v1/components/{component_id}/configs/job", CreateJob, JobConfig, job, |r| {
    ComponentKind::Job(config::Job {
        image_url: r.image_url,
        tag: r.tag,
        cmd: r.cmd,
        args: r.args,
        env_vars: r.env_vars,
        namespace: None,
        service_account: None,
        retries: None,
    })
});

component_config!(post_pulumi, "/v1/components/{component_id}/configs/pulumi", CreatePulumi, Pulumi, pulumi, |r| {
    ComponentKind::Pulumi(config::Pulumi {
        runtime: r.runtime,
        pulumi_version: some(&r.version),
        config: r.config,
        env_vars: r.env_vars,
        public_repo: r.public_git_vcs_config.as_ref().map(repo),
        connected_repo: r.connected_github_vcs_config.as_ref().map(repo),
        local: None,
        drift_schedule: some(&r.base.drift_schedule),
        max_auto_retries: r.base.max_auto_retries,
        skip_noops: r.base.skip_noops,
        auto_approve_on_policies_passing: r.base.auto_approve_on_policies_passing,
    })
});

/// An image, of the registry that the request describes.
fn image(r: wire::CreateExternalImage) -> config::ContainerImage {
    let (image_url, tag, update_policy) = (r.image_url, some(&r.tag), some(&r.update_policy));
    let mut image = config::ContainerImage::default();
    if let Some(ecr) = r.aws_ecr_image_config {
        let (iam_role_arn, region) = (ecr.iam_role_arn, ecr.aws_region);
        image.aws_ecr = Some(config::EcrImage { iam_role_arn, region, image_url, tag, update_policy });
    } else if let Some(gar) = r.gcp_gar_image_config {
        image.gcp_gar = Some(config::GarImage {
            gcp_project_id: gar.gcp_project_id,
            region: gar.gcp_region,
            image_url,
            tag,
            service_account_email: some(&gar.service_account_email),
            workload_identity_provider: some(&gar.workload_identity_provider),
            update_policy,
        });
    } else if let Some(acr) = r.azure_acr_image_config {
        image.azure_acr = Some(config::AcrImage {
            image_url,
            registry_url: acr.registry_url,
            tag,
            tenant_id: some(&acr.tenant_id),
            client_id: some(&acr.client_id),
            update_policy,
        });
    } else {
        image.public = Some(config::PublicImage { image_url, tag, update_policy });
    }
    image
}
