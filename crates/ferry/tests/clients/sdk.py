"""An SDK that we did not write makes an app, posts its config in pieces, and reads all of it back.

usage: sdk.py URL TOKEN
"""

import sys

import nuon

URL, TOKEN = sys.argv[1:3]


def client(org=None):
    configuration = nuon.Configuration(host=URL)
    configuration.api_key["APIKey"] = TOKEN
    configuration.api_key_prefix["APIKey"] = "Bearer"
    api = nuon.ApiClient(configuration)
    if org:
        configuration.api_key["OrgID"] = org
        api.set_default_header("X-Nuon-Org-ID", org)
    return api


def same(what, found, wanted):
    if found != wanted:
        sys.exit(f"{what}: {found!r} instead of {wanted!r}")


user = nuon.GeneralApi(client()).get_current_user()
same("the account", bool(user.email), True)
org = nuon.OrgsApi(client()).create_org(nuon.ServiceCreateOrgRequest(name="sdk-org", use_custom_cert=False))
same("the org's status", org.status, "active")
api = client(org.id)
apps, components = nuon.AppsApi(api), nuon.ComponentsApi(api)
same("the org", nuon.OrgsApi(api).get_org().name, "sdk-org")

app = apps.create_app(nuon.ServiceCreateAppRequest(name="sdk-app", description="made by an SDK"))
same("the app", apps.get_app("sdk-app").id, app.id)
same("the apps", [a.name for a in apps.get_apps()], ["sdk-app"])
apps.update_app(app.id, nuon.ServiceUpdateAppRequest(name="sdk-app", description="changed"))
same("its description", apps.get_app(app.id).description, "changed")

draft = apps.create_app_config(app.id, {"readme": "hello"})
same("the draft", apps.get_app_config(app.id, draft.id).status, "pending")
repo = nuon.ServicePublicGitVCSConfigRequest(repo="acme/infra", directory=".", branch="main")
apps.create_app_input_config(
    app.id,
    nuon.ServiceCreateAppInputConfigRequest(
        groups={"main": nuon.ServiceAppGroupRequest(description="d", display_name="Main", index=0)},
        inputs={
            "size": nuon.ServiceAppInputRequest(
                description="d", display_name="Size", group="main", index=0, default="3", required=True
            ),
            "password": nuon.ServiceAppInputRequest(
                description="d", display_name="Password", group="main", index=1, default="hunter2", sensitive=True
            ),
        },
    ),
)
apps.create_app_sandbox_config(
    app.id,
    nuon.ServiceCreateAppSandboxConfigRequest(
        sandbox_inputs={"region": "{{.nuon.install_stack.outputs.region}}"},
        terraform_version="1.11.4",
        public_git_vcs_config=nuon.ServicePublicGitVCSSandboxConfigRequest(repo="acme/infra", directory=".", branch="main"),
    ),
)
apps.create_app_runner_config(
    app.id, nuon.ServiceCreateAppRunnerConfigRequest(type=nuon.AppAppRunnerType.AWS_MINUS_EKS, env_vars={"A": "1"})
)
inputs = apps.get_app_input_latest_config(app.id)
found = sorted((i.name, i.required, i.default or "") for i in inputs.inputs)
same("the inputs", found, [("password", False, ""), ("size", True, "3")])
same("the sandbox", apps.get_app_sandbox_latest_config(app.id).public_git_vcs_config.repo, "acme/infra")
same("the runner", apps.get_app_runner_latest_config(app.id).env_vars, {"A": "1"})
same("all inputs", len(apps.get_app_input_configs(app.id)), 1)
same("all sandboxes", len(apps.get_app_sandbox_configs(app.id)), 1)
same("all runners", len(apps.get_app_runner_configs(app.id)), 1)

network = components.create_component(app.id, nuon.ServiceCreateComponentRequest(name="network"))
web = components.create_component(app.id, nuon.ServiceCreateComponentRequest(name="web", dependencies=[network.id]))
image = components.create_component(app.id, nuon.ServiceCreateComponentRequest(name="image"))
same("the dependencies", components.get_app_component(app.id, "web").dependencies, ["network"])
made = components.create_terraform_module_component_config(
    network.id,
    nuon.ServiceCreateTerraformModuleComponentConfigRequest(
        version="1.11.4", variables={"cidr": "10.0.0.0/16"}, env_vars={}, public_git_vcs_config=repo
    ),
)
same("the module", made.variables, {"cidr": "10.0.0.0/16"})
components.create_helm_component_config(
    web.id,
    nuon.ServiceCreateHelmComponentConfigRequest(
        chart_name="web-chart", values={"replicas": "{{.nuon.inputs.inputs.size}}"}, public_git_vcs_config=repo
    ),
)
components.create_external_image_component_config(
    image.id, nuon.ServiceCreateExternalImageComponentConfigRequest(image_url="library/nginx", tag="1.27")
)
committed = apps.update_app_config(
    app.id, draft.id, nuon.ServiceUpdateAppConfigRequest(status=nuon.AppAppConfigStatus.ACTIVE, state="{}")
)
same("the version", (committed.status, committed.version), ("active", 1))
latest = apps.get_app_latest_config(app.id)
same("the latest config", (latest.id, latest.state), (draft.id, "{}"))
found = components.get_app_components(app.id)
same("the components", sorted((c.name, c.type) for c in found), [("image", "external_image"), ("network", "terraform_module"), ("web", "helm_chart")])
config = components.get_component_latest_config(web.id)
same("the chart", config.helm.chart_name, "web-chart")
same("the versions", [c.version for c in apps.get_app_configs(app.id)], [1])
build = components.get_component_latest_build(web.id)
same("the build", (build.status, build.component_name, build.component_config_version), ("planning", "web", 1))
again = components.get_component_build(web.id, build.id)
same("the same build", (again.id, again.git_ref, again.runner_job.type), (build.id, build.git_ref, "helm-chart-build"))
apps.create_app_secret(app.id, nuon.ServiceCreateAppSecretRequest(name="api_key", value="hunter2"))
same("the variables", [s.name for s in apps.get_app_secrets(app.id)], ["api_key"])
try:
    apps.get_app("nothing")
    sys.exit("there is an app `nothing`")
except nuon.exceptions.NotFoundException as refused:
    same("a 404", '"user_error":true' in refused.body.replace(" ", ""), True)
print("ok")
