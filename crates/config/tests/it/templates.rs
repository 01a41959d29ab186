//! Templates: what is wrong with them, and where.

use crate::kit::{app, check, module, said};

#[test]
fn templates() {
    let module = |vars: &str| module("a", "") + "[vars]\n" + vars;
    let with = |value: &str| module(&format!("x = \"{value}\"\n"));
    let case = |value: &str, wanted: &str| {
        let found = said(&app(&[("components/a.toml", &with(value))]));
        assert!(
            if wanted.is_empty() { found.is_empty() } else { found.starts_with(wanted) && found.lines().count() == 1 },
            "{value}: {found}"
        );
    };
    case("{{ .nuon.install.id }}", "");
    case("{{ .nuon.inputs.inputs.who }}", "");
    case(
        "{{ .nuon.inputs.inputs.whoo }}",
        "components/a.toml:8:9 error unknown_input there is no input `whoo` (in `.nuon.inputs.inputs`) | did you mean `who`?",
    );
    case(
        "{{ .nuon.inputs.who }}",
        "components/a.toml:8:9 error template_path there is no key `who` (in `.nuon.inputs`) | write `.nuon.inputs.inputs.who`",
    );
    case(
        "{{ .nuon.instal.id }}",
        "components/a.toml:8:9 error template_path there is no key `instal` (in `.nuon`) | did you mean `install`?",
    );
    case("{{ .nuon.components.greeting.outputs.anything.at.all }}", "");
    case("{{ .nuon.components.greting.outputs.x }}", "components/a.toml:8:9 error unknown_component");
    case(
        "{{ .nuon.components.greeting.image.tag }}",
        "components/a.toml:8:9 error template_path there is no key `image` (in `.nuon.components.greeting`) | write `.nuon.components.greeting.outputs.image`",
    );
    case("{{ .nuon.actions.workflows.greet.outputs.steps.greet.x }}", "");
    case(
        "{{ .nuon.actions.workflows.greet.outputs.steps.gret.x }}",
        "components/a.toml:8:9 error unknown_name there is no step `gret`",
    );
    case("{{ .nuon.secrets.nope.arn }}", "components/a.toml:8:9 error unknown_secret");
    case("{{ .nuon.install.secrets.nope }}", "components/a.toml:8:9 warning template_path");
    case("{{ index .nuon.components `greting` }}", "components/a.toml:8:15 warning unknown_component");
    case("{{ dig `inputs` `other` `` .nuon.inputs }}", "");
    case("{{ with .nuon.inputs }}{{ .inputs.whoo }}{{ end }}", "components/a.toml:8:32 error unknown_input");
    case("{{ .nuon.install.id ", "components/a.toml:8:");
    case("{{ nope .nuon.install.id }}", "components/a.toml:8:9 error template_syntax");
    case("{{nuon.install.id}}", "components/a.toml:8:6 warning template_dot");
    case("{{ element.name }}", "");
    case("docker ps --format '{{.Names}}' registry.nuon.co", "");
    case(
        "{{ .Names }} {{ .nuon.install.id }}",
        "components/a.toml:8:9 error template_path templates know `.nuon`, not `.Names`",
    );
    check(&[
        (
            &[("components/a.toml", &module("x = '''\nfirst\n  {{ .nuon.inputs.inputs.whoo }}\n'''\n"))],
            &["components/a.toml:10:6 error unknown_input"],
        ),
        (
            &[
                ("components/a.toml", &(module("") + "\n[[var_file]]\ncontents = \"./a.tfvars\"\n")),
                ("components/a.tfvars", "a = 1\nb = \"{{ .nuon.something.x }}\"\n"),
            ],
            &["components/a.tfvars:2:9 warning template_path"],
        ),
        (&[("README.md", "# {{ .nuon.inputs.inputs.whoo }}\n")], &["README.md:1:6 warning unknown_input"]),
        (
            &[(
                "sandbox.toml",
                "terraform_version = \"1\"\n[local]\ndirectory = \"src/sandbox\"\n[vars]\nx = \"{{ .nuon.components.greeting.outputs.x }}\"\n",
            )],
            &["sandbox.toml:5:9 error template_scope"],
        ),
        (
            &[(
                "runbooks/r.toml",
                "name = \"r\"\n[[input]]\nname = \"id\"\ndisplay_name = \"d\"\ndescription = \"d\"\n[[steps]]\nname = \"s\"\ntype = \"action\"\ncommand = \"run {{ .runbook_inputs.id }} {{ .runbook_inputs.ids }} {{ .nuon.install.id }}\"\n",
            )],
            &["runbooks/r.toml:9:44 error unknown_input the runbook has no input `ids` | did you mean `id`?"],
        ),
    ]);
}
