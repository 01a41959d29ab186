//! What the format allows and few apps use: it must load, and mean what it says.

use config::{ComponentKind, Graph, Options, Severity, Tree};

const ROLE: &str =
    "description = \"d\"\ndisplay_name = \"d\"\n[[policies]]\nmanaged_policy_name = \"AdministratorAccess\"\n";

/// An app that uses everything.
fn everything() -> Tree {
    let mut tree = Tree::new("everything");
    let repo = "[public_repo]\nrepo = \"acme/app\"\ndirectory = \".\"\nbranch = \"main\"\n";
    tree.add("metadata.toml", "version = \"v2\"\nreadme = \"./README.md\"\n[label_colors]\nteam = \"red\"\n[default_labels]\nteam = \"{{ .nuon.org.name }}\"\n")
        .add("README.md", "{{ with dig \"outputs\" \"x\" \"\" (default dict (index (default dict .nuon.components) \"none\")) }}{{ . }}{{ end }} {{ .nuon.install_stack.quick_link_url }}")
        .add("sandbox.toml", format!("type = \"pulumi\"\nruntime = \"go\"\nskip_noops = true\nmax_auto_retries = 3\nauto_approve_on_policies_passing = true\ndrift_schedule = \"@daily\"\n[[operation_roles]]\noperation = \"provision\"\nrole = \"{{{{ .nuon.install.id }}}}-provision\"\n[pulumi_config]\n\"nuon:region\" = \"{{{{ .nuon.install_stack.outputs.region }}}}\"\n{repo}"))
        .add("runner.toml", "runner_type = \"aws\"\nhelm_driver = \"secret\"\ninstance_type = \"t3a.large\"\ninit_script_url = \"https://example.com/init.sh\"\n[env_vars]\nRAW = \"{{ .nuon.nothing }}\"\n")
        .add("stack.toml", "type = \"aws-cloudformation\"\nname = \"s-{{.nuon.install.id}}\"\ndescription = \"d\"\nvpc_nested_template_url = \"https://b.s3.us-west-2.amazonaws.com/vpc.yaml\"\nrunner_nested_template_url = \"https://s3.amazonaws.com/b/runner.yaml\"\n[[custom_nested_stacks]]\nname = \"storage\"\ntemplate_url = \"./cloudformation/storage.yaml\"\nindex = 0\n[custom_nested_stacks.parameters]\nSize = \"{{.nuon.install.inputs.size}}\"\n")
        .add("cloudformation/storage.yaml", "Resources: {}\n")
        .add("input_groups/0-main.toml", "name = \"main\"\ndescription = \"d\"\n")
        .add("inputs/sub/size.toml", "name = \"size\"\ndisplay_name = \"d\"\ndescription = \"{{ not rendered }}\"\ngroup = \"main\"\ndefault = 3\ntype = \"number\"\nrequired = true\nuser_configurable = true\n")
        .add("secrets/token.toml", "name = \"token\"\ndisplay_name = \"d\"\ndescription = \"d\"\nformat = \"base64\"\n[[kubernetes_sync_targets]]\nnamespaces = [\"a\", \"{{ .nuon.install.id }}\"]\nname = \"token\"\nkey = \"API_KEY\"\n")
        .add("break_glass/root.toml", format!("type = \"ignored\"\nname = \"{{{{.nuon.install.id}}}}-root\"\npermissions_boundary = \"./boundary.json\"\nenabled_in_stack = false\n{ROLE}"))
        .add("permissions/boundary.json", "{\"Version\": \"2012-10-17\"}\n")
        .add("policies/no-root.toml", "type = \"terraform_module\"\nengine = \"opa\"\ncontents = \"./no-root.rego\"\ncomponents = [\"*\"]\n")
        .add("policies/no-root.rego", "package nuon\n")
        .add("operation_roles.toml", "type = \"matrix\"\n[[rules]]\nprincipal = \"nuon::component:*\"\noperation = \"deploy\"\nrole = \"{{.nuon.install.id}}-provision\"\n[[rules]]\nprincipal = \"nuon::action:check\"\noperation = \"trigger\"\nrole = \"{{.nuon.install.id}}-root\"\n")
        .add("kubernetes_contexts.toml", "[[kubernetes_context]]\nname = \"compute\"\ncomponent = \"cluster\"\n")
        .add("components/cluster.toml", format!("name = \"cluster\"\ntype = \"terraform_module\"\nterraform_version = \"latest\"\ntoggleable = true\ndefault_enabled = true\nbuild_timeout = \"90s\"\n{repo}[labels]\na = \"b\"\n[[operation_roles]]\noperation = \"deploy\"\nrole = \"{{{{.nuon.install.id}}}}-provision\"\n"))
        .add("components/chart/nuon.toml", "name = \"chart\"\ntype = \"helm_chart\"\nchart_name = \"my-chart\"\nkubernetes_context = \"compute\"\nskip_crds = true\ntake_ownership = true\nvar_name = \"c\"\n[helm_repo]\nrepo_url = \"https://charts.example.com\"\nchart = \"chart\"\n[[values_file]]\npath = \"chart/values.yaml\"\n[health]\nstabilization_window = \"3m\"\n[[health.probes]]\ntype = \"http\"\nurl = \"http://x\"\n")
        .add("components/chart/values.yaml", "image: {{ .nuon.components.image.outputs.image.repository }}\n")
        .add("components/kustomize.toml", format!("name = \"kust\"\ntype = \"kubernetes_manifest\"\nnamespace = \"n\"\n[kustomize]\npath = \"./k\"\npatches = [\"a.yaml\"]\nenable_helm = false\nload_restrictor = \"none\"\n{repo}"))
        .add("components/image.toml", "name = \"image\"\ntype = \"external_image\"\n[aws_ecr]\nimage_url = \"1.dkr.ecr.us-west-2.amazonaws.com/x\"\niam_role_arn = \"arn\"\nregion = \"us-west-2\"\nupdate_policy = \">=1\"\n")
        .add("components/pulumi.toml", format!("name = \"program\"\ntype = \"pulumi\"\nruntime = \"nodejs\"\n[config]\n\"aws:region\" = \"{{{{ .nuon.install_stack.outputs.custom_nested_stacks.storage.outputs.bucket }}}}\"\n{repo}"))
        .add("components/build.toml", format!("name = \"build\"\ntype = \"docker_build\"\ndockerfile = \"Dockerfile\"\n{}", repo.replace("public", "connected")))
        .add("components/job.toml", "name = \"old_job\"\ntype = \"job\"\nimage_url = \"x\"\ntag = \"1\"\ncmd = [\"run\"]\n")
        .add("actions/group/check/check.toml", "name = \"check-it\"\nenable_kube_config = false\nlabels = { a = \"b\" }\n[[triggers]]\ntype = \"cron\"\ncron_schedule = \"0,30 */1 * * 1-5\"\n[[triggers]]\ntype = \"pre-component-deploy\"\ncomponent_name = \"chart\"\nindex = 2\n[[steps]]\nname = \"a step\"\ninline_contents = \"./group/check/run.sh\"\n")
        .add("actions/group/check/run.sh", "echo '{{ .nuon.install.id }}'\n")
        .add("actions/named.toml", "name = \"check\"\nimage = \"alpine\"\n[[triggers]]\ntype = \"role-enabled\"\n[[steps]]\nname = \"s\"\ninline_contents = \"docker ps --format '{{.Names}}'\"\n")
        .add("runbooks/fix.toml", "name = \"fix\"\nreadme = \"./runbooks/fix.md\"\n[[input]]\nname = \"id\"\ndisplay_name = \"d\"\ndescription = \"d\"\n[[steps]]\nname = \"deploy\"\ntype = \"deploy\"\ncomponent_name = \"chart\"\ndeploy_dependencies = true\n[[steps]]\nname = \"run\"\ntype = \"action\"\naction_name = \"check-it\"\n[steps.env_vars]\nID = \"{{ .runbook_inputs.id }} {{ .nuon.install.id }}\"\n[[steps]]\nname = \"wait\"\ntype = \"wait_for_event\"\ntrigger = \"t\"\nevent_types = [\"push\"]\n[[steps.filters]]\nfrom = \"payload\"\npath = \"$.a\"\nop = \"in\"\nvalue = [\"a\", 1]\n")
        .add("runbooks/fix.md", "# Fix\n")
        .add("installs/one.toml", "name = \"one\"\napproval_option = \"auto\"\n[aws_account]\nregion = \"eu-west-1\"\n[[inputs]]\ngroup = \"ignored\"\nsize = 1\n[[inputs]]\nsize = 2\n[component_toggles]\ncluster = false\n[components.chart]\nhelm_values = \"a: b\"\n")
        .add("branches/main.toml", format!("name = \"main\"\npost_deploy_runbooks = [\"fix\"]\n{repo}[[install_groups]]\nname = \"prod\"\norder = 1\nuse_for_previews = true\n[install_groups.label_selector]\nenv = \"prod\"\n[preview]\nmode = \"plan-only\"\n"))
        .add("installs.toml", repo.replace("public", "connected"))
        .add("triggers.toml", "[[rules]]\nname = \"push\"\ntrigger = \"github\"\nevent_types = [\"push\"]\n[rules.target]\ntype = \"runbook\"\nrunbook = \"fix\"\n[rules.target.inputs]\nid = \"$.id\"\n")
        .add("customer_managed.toml", "runner_image_url = \"x\"\n[[platforms]]\ntarget = \"linux\"\n")
        .add("installer.toml", "name = \"i\"\napps = [\"everything\"]\n")
        .add("lint.toml", "[settings]\nmin_severity = \"info\"\n")
        .add("src/app/Cargo.toml", "[package]\nname = \"x\"\n");
    for kind in ["provision", "maintenance", "deprovision"] {
        tree.add(
            format!("permissions/{kind}.toml"),
            format!("type = \"{kind}\"\nname = \"{{{{.nuon.install.id}}}}-{kind}\"\ncloud_platform = \"aws\"\n{ROLE}"),
        );
    }
    tree
}

#[test]
fn an_app_that_uses_everything_loads() {
    let loaded = config::load(&everything(), Options { strict: true, complete: true });
    assert_eq!(loaded.diagnostics, []);
    let config = loaded.config.unwrap();
    assert_eq!(config.installs[0].inputs["size"], "2");
    assert_eq!(config.inputs[0].default.as_deref(), Some("3"));
    assert_eq!(config.policies[0].name, "no-root");
    assert_eq!(config.runbooks[0].steps[0].r#type, "component_deploy");
    assert!(config.runbooks[0].steps[0].deploy_dependents);
    assert_eq!(config.actions[1].triggers[1].r#type, "pre-deploy-component");
    assert!(config.actions[1].steps[0].inline_contents.as_ref().unwrap().starts_with("echo"));
    assert_eq!(config.stack.as_ref().unwrap().custom_nested_stacks[0].template_url, "Resources: {}\n");
    let graph = Graph::new(&config).unwrap();
    let chart: Vec<&str> =
        graph.dependencies.iter().filter(|edge| edge.component == "chart").map(|edge| edge.on.as_str()).collect();
    assert_eq!(chart, ["cluster", "image"]);
    let image = config.components.iter().find(|component| component.common.name == "image").unwrap();
    assert!(matches!(image.kind, ComponentKind::ContainerImage(_)));
    let back: config::AppConfig = serde_json::from_slice(&config.canonical_json()).unwrap();
    assert_eq!(back, config);
    assert_eq!(config::check(&config), []);
}

/// The server checks configs that came without files; what is wrong there is said with a path.
#[test]
fn a_config_without_files_is_checked_by_the_same_rules() {
    let config = config::AppConfig::from_json(&serde_json::json!({
        "metadata": { "version": "v3" },
        "runner": { "runner_type": "local" },
        "components": [
            { "type": "nothing", "name": "a-b", "dependencies": ["c"] },
            { "type": "external_image", "name": "a", "public": { "image_url": "x", "tag": "1" } },
        ],
        "actions": [{ "name": "x" }],
    }))
    .unwrap();
    let mut found: Vec<String> = config::check(&config)
        .iter()
        .filter(|found| found.severity == Severity::Error)
        .map(|found| format!("{} {}", found.path, found.code.as_str()))
        .collect();
    found.sort();
    assert_eq!(
        found,
        [
            "/actions/0 missing_key",
            "/actions/0 missing_key",
            "/components/1/dependencies/0 unknown_component",
            "/components/1/name bad_name",
            "/components/1/type bad_value",
            "/metadata/version bad_value",
            "/sandbox missing_file",
        ]
    );
}

#[test]
fn files_of_installs_are_read_without_their_app() {
    let mut tree = config::Tree::new("shop");
    tree.add(
        "installs/a.toml",
        "name = \"a\"\n[labels]\nenv = \"{{ .nuon.inputs.inputs.host }}\"\n[inputs]\nhost = \"x\"\n[component_toggles]\napi = true\n",
    );
    tree.add("installs/deep/b.toml", "name = \"b\"\n[[inputs]]\nhost = \"x\"\n[[inputs]]\nhost = \"y\"\n");
    let loaded = config::load_installs(&tree, Options::default());
    assert_eq!(loaded.diagnostics, []);
    let installs = loaded.config.unwrap().installs;
    assert_eq!((installs.len(), installs[1].inputs["host"].as_str()), (2, "y"));

    tree.add("installs/c.toml", "name = \"a\"\n[aws_account]\n");
    let loaded = config::load_installs(&tree, Options::default());
    let codes: Vec<_> = loaded.diagnostics.iter().map(|found| (found.file.as_str(), found.code.as_str())).collect();
    assert!(loaded.config.is_none(), "{codes:?}");
    assert!(
        codes.contains(&("installs/c.toml", "missing_key")) && codes.iter().any(|(_, code)| *code == "duplicate_name")
    );
}
