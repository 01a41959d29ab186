//! One small app per rule: what is said, and where.

use config::{Code, Options, starter};

use crate::kit::{MODULE, app, check, module, said};

#[test]
fn the_starter_is_valid() {
    check(&[(&[], &[])]);
    assert!(config::load(&starter("hello"), Options { strict: true, complete: true }).config.is_some());
}

#[test]
fn keys() {
    let step = "name = \"x\"\n[[triggers]]\ntype = \"manual\"\n[[steps]]\nname = \"s\"\ncommand = \"true\"\n";
    check(&[
        (
            &[("runner.toml", "runner_typ = \"local\"\n")],
            &[
                "runner.toml:1:1 error missing_key `runner_type` is missing | it is misspelt here: write `runner_type`",
                "runner.toml:1:1 warning unknown_key `runner_typ` is not a key of this file; it has no effect | did you mean `runner_type`?",
            ],
        ),
        (
            &[("actions/x.toml", &format!("{step}enable_kube_config = false\n"))],
            &[
                "actions/x.toml:7:1 warning misplaced_key `enable_kube_config` is not a key of `[[steps]]`; it has no effect there | this key belongs above `[[steps]]`",
            ],
        ),
        (
            &[("runner.toml", "[env_vars]\nrunner_type = \"aws\"\n")],
            &["runner.toml:1:1 error missing_key `runner_type` is missing | `runner_type` is below `[env_vars]`"],
        ),
        (
            &[("runner.toml", "runner_type = \"local\"\n[[env_var]]\nname = \"A\"\n")],
            &["runner.toml:2:3 error removed_key `env_var`"],
        ),
        (&[("runner.toml", "Runner_Type = \"local\"\n")], &[]),
        (&[("runner.toml", "\u{feff}runner_type = \"local\"\n")], &[]),
        (&[("runner.toml", "# é\r\nrunner_type = \"locl\"\r\n")], &["runner.toml:2:15 error bad_value"]),
        (
            &[("components/a.toml", &(module("a", "") + "[vars]\nx = 1\nmax_auto_retries = 5\n"))],
            &[
                "components/a.toml:9:1 warning misplaced_key `max_auto_retries` is part of `[vars]`; it has no other effect | this key belongs above `[vars]`",
            ],
        ),
        (
            &[("runner.toml", "runner_type = \"locl\"\n")],
            &["runner.toml:1:15 error bad_value `locl` is not a value of `runner_type` | did you mean `local`?"],
        ),
        (
            &[("components/a.toml", &module("a", "timeout = \"5m\""))],
            &["components/a.toml:2:1 warning unknown_key `timeout`"],
        ),
        (
            &[("components/a.toml", "name = \"a\"\ntype = \"helm_chrt\"\n")],
            &[
                "components/a.toml:2:8 error bad_value `helm_chrt` is not a value of `type` | did you mean `helm_chart`?",
            ],
        ),
        (&[("components/a.toml", "name = \"a\"\n")], &["components/a.toml:1:1 error missing_key `type` is missing"]),
    ]);
}

#[test]
fn types() {
    check(&[
        (
            &[("components/a.toml", &module("a", "toggleable = \"true\""))],
            &[
                "components/a.toml:2:14 error wrong_type `toggleable` must be `true` or `false`, not text | write `true` without quotes",
            ],
        ),
        (
            &[("components/a.toml", &module("a", "dependencies = \"greeting\""))],
            &[
                "components/a.toml:2:16 error wrong_type `dependencies` must be a list, not text | write `[\"greeting\"]`",
            ],
        ),
        (
            &[("components/a.toml", &module("a", "max_auto_retries = 21"))],
            &["components/a.toml:2:20 error out_of_range `max_auto_retries` must be from 0 to 20, not 21"],
        ),
        (
            &[("components/a.toml", &module("a", "deploy_timeout = \"2h\""))],
            &["components/a.toml:2:18 error bad_duration `deploy_timeout` must be from 1s to 3600s, not `2h`"],
        ),
        (
            &[("components/a.toml", &module("a", "drift_schedule = \"0 0 * *\""))],
            &["components/a.toml:2:18 error bad_cron `drift_schedule` is not a schedule"],
        ),
        (
            &[("components/a.toml", &module("a", "drift_schedule = \"0 0 0 * * *\""))],
            &["components/a.toml:2:18 error bad_cron"],
        ),
        (
            &[("actions/x.toml", "name = \"x\"\nsteps = 3\ntriggers = [\"manual\"]\n")],
            &[
                "actions/x.toml:2:9 error wrong_type `steps` must be tables, not a number",
                "actions/x.toml:3:13 error wrong_type `triggers` must be tables, not text",
            ],
        ),
        (
            &[("components/a.toml", &module("a", "name = 3"))],
            &["components/a.toml:2:1 error toml_syntax duplicate key"],
        ),
    ]);
}

/// Native values are taken where text is wanted, and mean what their text means.
#[test]
fn native_values_are_text() {
    let native = module("a", "")
        + "[vars]\nreplicas = 3\nratio = 0.5\nflag = true\nday = 2026-01-02\nhex = 0x10\nzones = [\"a\", \"b\"]\nnested = { k = 1 }\n";
    let text = module("a", "")
        + "[vars]\nreplicas = \"3\"\nratio = \"0.5\"\nflag = \"true\"\nday = \"2026-01-02\"\nhex = \"16\"\nzones = '[\"a\",\"b\"]'\nnested = '{\"k\":1}'\n";
    let load = |contents: &str| {
        config::load(&app(&[("components/a.toml", contents)]), Options::default()).config.expect("valid")
    };
    assert_eq!(load(&native), load(&text));
    let helm = "name = \"a\"\ntype = \"helm_chart\"\nchart_name = \"chart\"\n[local]\ndirectory = \"src/greeting\"\n[values]\n";
    assert_eq!(
        load(&format!("{helm}image.tag = 1\n\"a.b\" = true\nlist = [1, {{ \"x.y\" = 2 }}]\nnone = []\n")),
        load(&format!(
            "{helm}\"image.tag\" = \"1\"\n\"a.b\" = \"true\"\n\"list[0]\" = \"1\"\n'list[1].x\\.y' = \"2\"\nnone = \"{{}}\"\n"
        ))
    );
}

#[test]
fn durations_and_schedules_of_real_apps() {
    for timeout in ["0m30s", "2m0s", "120s", "1m30s", "60m", "1h", "1h0m0s", "1.5m", "90"] {
        check(&[(&[("components/a.toml", &module("a", &format!("deploy_timeout = \"{timeout}\"")))], &[])]);
    }
    for schedule in ["0,30 * * * *", "*/20 */1 * * *", "*/45 * * * *", "0 0 * * MON-FRI", "0 0 1 JAN ?", "@hourly"] {
        check(&[(&[("components/a.toml", &module("a", &format!("drift_schedule = \"{schedule}\"")))], &[])]);
    }
}

#[test]
fn names_and_references() {
    let a = module("a", "");
    check(&[
        (
            &[("components/b.toml", &a), ("components/c.toml", &a)],
            &[
                "components/c.toml:1:8 error duplicate_name the component `a` is there twice | the first is in components/b.toml:1",
            ],
        ),
        (
            &[("components/a.toml", &module("my-app", ""))],
            &["components/a.toml:1:8 error bad_name the name `my-app` contains '-'"],
        ),
        (
            &[("components/a.toml", &module("a", "dependencies = [\"greting\"]"))],
            &[
                "components/a.toml:2:17 error unknown_component there is no component `greting` | did you mean `greeting`?",
            ],
        ),
        (
            &[("components/a.toml", &module("a", "dependencies = [\"a\"]"))],
            &["components/a.toml:2:17 error dependency_cycle `a` depends on itself"],
        ),
        (
            &[("components/a.toml", &module("a", "kubernetes_context = \"x\""))],
            &["components/a.toml:2:22 error unknown_name"],
        ),
        (
            &[
                ("components/a.toml", &module("a", "dependencies = [\"b\"]")),
                ("components/b.toml", &(module("b", "") + "[vars]\nx = \"{{ .nuon.components.a.outputs.x }}\"\n")),
            ],
            &[
                "components/a.toml:2:17 error dependency_cycle components wait for each other: a → b → a | `a` needs `b` (explicit), `b` needs `a` (.nuon.components.a.outputs.x)",
            ],
        ),
        (
            &[(
                "policies.toml",
                "[[policy]]\ntype = \"terraform_module\"\nengine = \"opa\"\ncontents = \"package nuon\"\ncomponents = [\"nope\"]\n",
            )],
            &["policies.toml:5:15 error unknown_component"],
        ),
        (
            &[(
                "actions/x.toml",
                "name = \"x\"\nrole = \"nobody\"\n[[triggers]]\ntype = \"pre-deploy-component\"\ncomponent_name = \"nope\"\n[[triggers]]\ntype = \"cron\"\n[[steps]]\nname = \"s\"\n",
            )],
            &[
                "actions/x.toml:2:8 warning unknown_role",
                "actions/x.toml:5:18 error unknown_component",
                "actions/x.toml:6:1 error missing_key `cron_schedule`",
                "actions/x.toml:8:1 error missing_key one of `inline_contents`, `command` is missing",
            ],
        ),
        (
            &[(
                "runbooks/r.toml",
                "name = \"r\"\n[[steps]]\nname = \"s\"\ntype = \"action\"\naction_name = \"gret\"\n[[steps]]\nname = \"t\"\ntype = \"component_deploy\"\n",
            )],
            &[
                "runbooks/r.toml:5:15 error unknown_action there is no action `gret` | did you mean `greet`?",
                "runbooks/r.toml:6:1 error missing_key `component_name`",
            ],
        ),
        (
            &[(
                "operation_roles.toml",
                "type = \"matrix\"\n[[rules]]\nprincipal = \"nuon::component:nope\"\noperation = \"trigger\"\nrole = \"r\"\n",
            )],
            &[
                "operation_roles.toml:3:13 error unknown_component",
                "operation_roles.toml:4:13 error bad_principal",
                "operation_roles.toml:5:8 error unknown_role",
            ],
        ),
        (
            &[("inputs.toml", "[[input]]\nname = \"who\"\ndisplay_name = \"d\"\ndescription = \"d\"\ngroup = \"g\"\n")],
            &["inputs.toml:5:9 error unknown_name there is no group of inputs `g`"],
        ),
        (
            &[
                (
                    "components/chart.toml",
                    "name = \"chart\"\ntype = \"helm_chart\"\nchart_name = \"chart-it\"\n[local]\ndirectory = \"src\"\n",
                ),
                (
                    "installs/i.toml",
                    "name = \"i\"\n[components.chart]\nhelm_values = \"- a\"\ntf_vars = \"a = 1\"\n[components.chrt]\nhelm_values = \"a: b\"\n",
                ),
            ],
            &[
                "installs/i.toml:3:15 error bad_value `chart`: `helm_values` is not a map of values",
                "installs/i.toml:4:11 error bad_value `chart`: `tf_vars` is for Terraform modules, and the component is a helm_chart",
                "installs/i.toml:5:1 error unknown_component there is no component `chrt` | did you mean `chart`?",
            ],
        ),
        (
            &[("installs/i.toml", "name = \"i\"\n[aws_account]\nregion = \"useast1\"\n[inputs]\nwhoo = \"x\"\n")],
            &[
                "installs/i.toml:3:10 error bad_region",
                "installs/i.toml:5:8 error unknown_input there is no input `whoo` | did you mean `who`?",
            ],
        ),
    ]);
}

#[test]
fn values_of_inputs() {
    let input = |kind: &str, default: &str| {
        format!(
            "[[group]]\nname = \"g\"\ndescription = \"d\"\n[[input]]\nname = \"who\"\ndisplay_name = \"d\"\ndescription = \"d\"\ngroup = \"g\"\ntype = \"{kind}\"\ndefault = {default}\n"
        )
    };
    check(&[
        (&[("inputs.toml", &input("number", "3"))], &[]),
        (&[("inputs.toml", &input("list", "[\"a\", \"b\"]"))], &[]),
        (
            &[("inputs.toml", &input("number", "\"three\""))],
            &["inputs.toml:10:11 warning bad_value the default of `who` is not a number"],
        ),
        (
            &[("inputs.toml", &input("json", "'{'"))],
            &["inputs.toml:10:11 error bad_json the default of `who` is not JSON"],
        ),
        (
            &[("inputs.toml", &input("bool", "true")), ("installs/i.toml", "name = \"i\"\n[inputs]\nwho = \"yes\"\n")],
            &["installs/i.toml:3:7 warning bad_value the value of `who` is neither `true` nor `false`"],
        ),
        (
            &[("inputs.toml", &input("string", "\"huge\"\noptions = [\"small\", \"large\"]"))],
            &["inputs.toml:10:11 warning bad_value the default of `who` is not one of `small`, `large`"],
        ),
        (
            &[("inputs.toml", &input("number", "0\nmin = 1\nmax = 5"))],
            &["inputs.toml:10:11 warning bad_value the default of `who` is less than 1"],
        ),
        (
            &[("inputs.toml", &input("string", "\"x1\"\npattern = \"[a-z]+\""))],
            &["inputs.toml:10:11 warning bad_value the default of `who` does not match `[a-z]+`"],
        ),
        (
            &[("inputs.toml", &input("string", "\"\"\npattern = \"(\"\nmin = \"few\""))],
            &[
                "inputs.toml:11:11 error bad_value `(` is not a pattern",
                "inputs.toml:12:7 error bad_value `min` must be a number",
            ],
        ),
    ]);
}

#[test]
fn secrets_and_roles() {
    let secret = |rest: &str| format!("[[secret]]\nname = \"s\"\ndisplay_name = \"d\"\ndescription = \"d\"\n{rest}");
    let role = "name = \"r\"\ndescription = \"d\"\ntype = \"custom\"\n";
    check(&[
        (
            &[("secrets.toml", &secret("required = true\nauto_generate = true\n"))],
            &["secrets.toml:5:12 error exclusive_keys `auto_generate` and `required`"],
        ),
        (
            &[(
                "secrets.toml",
                &secret(
                    "kubernetes_sync = true\nkubernetes_secret_name = \"A_B\"\nkubernetes_secret_namespace = \"n\"\n",
                ),
            )],
            &["secrets.toml:6:26 error bad_name"],
        ),
        (
            &[("secrets.toml", &secret("kubernetes_sync = true\n"))],
            &[
                "secrets.toml:1:1 error missing_key `kubernetes_secret_n",
                "secrets.toml:1:1 error missing_key `kubernetes_secret_n",
            ],
        ),
        (
            &[("permissions/r.toml", &format!("{role}[[policies]]\nname = \"p\"\n"))],
            &["permissions/r.toml:4:1 warning no_effect the policy `p` allows nothing"],
        ),
        (
            &[("policies.toml", "[[policy]]\ntype = \"sandbox\"\ncontents = \"package other\"\n")],
            &["policies.toml:3:12 error bad_policy Ferry reads only rules of `package nuon`"],
        ),
        (&[("permissions/r.toml", role)], &["permissions/r.toml:1:1 error missing_key `policies`"]),
        (
            &[("permissions/r.toml", &format!("{role}[[policies]]\ncontents = \"{{\"\n"))],
            &["permissions/r.toml:5:13 error bad_json `contents` must be JSON"],
        ),
        (
            &[
                ("runner.toml", "runner_type = \"gcp\"\n"),
                (
                    "permissions/r.toml",
                    &format!(
                        "{role}cloud_platform = \"aws\"\n[[policies]]\ngcp_predefined_role = \"roles/owner\"\ngcp_permissions = [\"x\"]\n"
                    ),
                ),
            ],
            &[
                "permissions/r.toml:1:1 error missing_role",
                "permissions/r.toml:1:1 error missing_role",
                "permissions/r.toml:1:1 error missing_role",
                "permissions/r.toml:4:18 error cloud_mismatch",
                "permissions/r.toml:7:19 error exclusive_keys",
            ],
        ),
    ]);
}

#[test]
fn files() {
    let role = "description = \"d\"\n[[policies]]\nmanaged_policy_name = \"x\"\n";
    let manifest = |contents: &str| {
        format!("name = \"m\"\ntype = \"kubernetes_manifest\"\nnamespace = \"n\"\nmanifest = \"{contents}\"\n")
    };
    check(&[
        (
            &[("components/m.toml", &manifest("./nope.yaml"))],
            &[
                "components/m.toml:4:12 error file_not_found there is no file `./nope.yaml`; looked for `components/nope.yaml`",
            ],
        ),
        (
            &[("components/x/m.toml", &manifest("./nope.yaml"))],
            &[
                "components/x/m.toml:4:12 error file_not_found there is no file `./nope.yaml`; looked for `components/nope.yaml` and `components/x/nope.yaml`",
            ],
        ),
        (
            &[("components/m.toml", &manifest("./manifst.yaml")), ("components/manifest.yaml", "x")],
            &[
                "components/m.toml:4:12 error file_not_found there is no file `./manifst.yaml`; looked for `components/manifst.yaml` | did you mean `components/manifest.yaml`?",
            ],
        ),
        (&[("components/m.toml", &manifest("../../etc/passwd"))], &["components/m.toml:4:12 error path_escape"]),
        (&[("components/m.toml", &manifest("file:///etc/passwd"))], &["components/m.toml:4:12 error path_escape"]),
        (&[("components/m.toml", &manifest("../shared.yaml")), ("shared.yaml", "x")], &[]),
        (&[("components/x/m.toml", &manifest("./own.yaml")), ("components/x/own.yaml", "x")], &[]),
        (
            &[("components/m.toml", &manifest("https://example.com/x.yaml"))],
            &["components/m.toml:4:12 warning not_fetched"],
        ),
        (&[("components/m.toml", &manifest("git is a tool"))], &[]),
        (&[("components/m.toml", &manifest("./run.sh --all"))], &[]),
        (
            &[("components/m.toml", &manifest("./my file.yaml")), ("components/my file.yaml", "{{ .nuon.instal.id }}")],
            &["components/my file.yaml:1:4 error template_path"],
        ),
        (
            &[
                (
                    "components/m.toml",
                    "name = \"m\"\ntype = \"kubernetes_manifest\"\nnamespace = \"n\"\nmanifest = { file = \"m.yaml\" }\n",
                ),
                ("components/m.yaml", "x"),
            ],
            &[],
        ),
        (
            &[(
                "components/a.toml",
                &MODULE.replace("src/greeting", "src/greting").replace("type", "name = \"a\"\ntype"),
            )],
            &[
                "components/a.toml:5:13 error file_not_found there is no directory `src/greting` with files in it | did you mean `src/greeting`?",
            ],
        ),
        (
            &[("components/a.toml", &MODULE.replace("src/greeting", "../x").replace("type", "name = \"a\"\ntype"))],
            &["components/a.toml:5:13 error path_escape"],
        ),
        (
            &[("component/a.toml", "name = \"a\"\n")],
            &[
                "component/a.toml:1:1 warning stray_file `component/a.toml` is not part of an app, and is not read | did you mean `components`?",
            ],
        ),
        (
            &[("components/a/Cargo.toml", "[package]\nname = \"a\"\n[dependencies]\nserde = \"1\"\n")],
            &["components/a/Cargo.toml:1:1 warning stray_file"],
        ),
        (
            &[
                ("secrets.toml", "[[secret]]\nname = \"a\"\ndisplay_name = \"d\"\ndescription = \"d\"\n"),
                ("secrets/b.toml", "name = \"b\"\ndisplay_name = \"d\"\ndescription = \"d\"\n"),
            ],
            &["secrets/b.toml:1:1 error both_forms"],
        ),
        (
            &[
                ("secrets.toml", "# nothing\n"),
                ("secrets/b.toml", "name = \"b\"\ndisplay_name = \"d\"\ndescription = \"d\"\n"),
            ],
            &[],
        ),
        (
            &[(
                "permissions.toml",
                &format!(
                    "[provision_role]\nname = \"p\"\n{}",
                    role.replace("[[policies]]", "[[provision_role.policies]]")
                ),
            )],
            &[],
        ),
        (
            &[("break_glass.toml", "[[role]]\nname = \"p\"\ndescription = \"d\"\n")],
            &["break_glass.toml:1:1 error missing_key `policies`"],
        ),
        (
            &[
                ("components/a.toml", "source = \"parts/a.toml\"\nname = \"a\"\ntype = \"terraform_module\"\n"),
                ("parts/a.toml", MODULE),
            ],
            &[],
        ),
        (
            &[("components/a.toml", "source = \"components/a.toml\"\nname = \"a\"\ntype = \"terraform_module\"\n")],
            &[
                "components/a.toml:1:1 error missing_key",
                "components/a.toml:1:1 error missing_key",
                "components/a.toml:1:10 error include_loop",
            ],
        ),
        (&[("runner.toml", "runner_type = ")], &["runner.toml:1:15 error toml_syntax"]),
        (&[("runner.toml", "\u{1}")], &["runner.toml:1:2 error toml_syntax"]),
    ]);
    let mut tree = starter("hello");
    tree.files.remove("sandbox.toml");
    tree.add("runner.toml", [0xff, 0xfe]);
    assert_eq!(said(&tree), "runner.toml:1:1 error not_text `runner.toml` is not UTF-8 text\n");
    tree.add("runner.toml", "runner_type = \"local\"\n");
    assert_eq!(
        said(&tree),
        "sandbox.toml:1:1 error missing_file `sandbox.toml` is missing | `ferry apps init` writes one with comments\n"
    );
}

#[test]
fn remote_contents_are_wanted_and_used() {
    let mut tree = app(&[(
        "components/m.toml",
        "name = \"m\"\ntype = \"kubernetes_manifest\"\nnamespace = \"n\"\nmanifest = \"https://example.com/x.yaml\"\n",
    )]);
    assert_eq!(config::wanted(&tree), ["https://example.com/x.yaml"]);
    assert!(config::load(&tree, Options { complete: true, ..Options::default() }).config.is_none());
    tree.fetched.insert("https://example.com/x.yaml".into(), b"a: {{ .nuon.nope }}\n".as_slice().into());
    assert_eq!(config::wanted(&tree), Vec::<String>::new());
    assert!(said(&tree).starts_with("https://example.com/x.yaml:1:7 "), "{}", said(&tree));
}

#[test]
fn strict_makes_unknown_keys_errors() {
    let tree = app(&[("runner.toml", "runner_type = \"local\"\nnope = 1\n")]);
    assert!(config::load(&tree, Options::default()).config.is_some());
    assert!(config::load(&tree, Options { strict: true, ..Options::default() }).config.is_none());
}

#[test]
fn problems_are_drawn_with_their_line() {
    let tree = app(&[("runner.toml", "# the runner\nrunner_type = \"locl\"\n")]);
    let loaded = config::load(&tree, Options::default());
    let [found] = loaded.diagnostics.as_slice() else { panic!("{:?}", loaded.diagnostics) };
    assert_eq!(found.code, Code::BadValue);
    let drawn = config::draw(found, &tree, false);
    let wanted = [
        "error[bad_value]: `locl` is not a value of `runner_type`",
        " --> runner.toml:2:15",
        "  |",
        "2 | runner_type = \"locl\"",
        "  |               ^^^^^^",
        "  |",
        "  = help: did you mean `local`?",
    ];
    assert_eq!(drawn.lines().map(str::trim_end).collect::<Vec<_>>(), wanted);
    assert!(config::draw(found, &tree, true).contains("\u{1b}["));
    assert_eq!(serde_json::to_value(found).unwrap()["severity"], "error");
}
