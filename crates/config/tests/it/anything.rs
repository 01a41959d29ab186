//! Anything at all: no panic, no endless work, and an answer.

use config::{Code, MAX_FILE_BYTES, MAX_TOML_BYTES, MAX_TOML_FILES, Options, Tree, starter};
use proptest::prelude::*;

fn codes(tree: &Tree) -> Vec<Code> {
    let loaded = config::load(tree, Options::default());
    for found in &loaded.diagnostics {
        assert!(found.line >= 1 && found.column >= 1);
        config::draw(found, tree, false);
        assert!(!found.message.contains("invalid type"), "the tables and the types differ: {found:?}");
    }
    if let Some(config) = &loaded.config {
        let back: config::AppConfig = serde_json::from_slice(&config.canonical_json()).unwrap();
        assert_eq!(&back, config);
        assert!(config::Graph::new(config).is_ok());
    }
    loaded.diagnostics.iter().map(|found| found.code).collect()
}

const FILES: &[&str] = &[
    "metadata.toml",
    "sandbox.toml",
    "runner.toml",
    "stack.toml",
    "inputs.toml",
    "permissions.toml",
    "policies.toml",
    "components/a.toml",
    "actions/a.toml",
    "runbooks/a.toml",
    "installs/a.toml",
];

/// Pieces that the format is made of, in any order.
fn piece() -> impl Strategy<Value = String> {
    let keys = prop::sample::select(vec![
        "name",
        "type",
        "steps",
        "triggers",
        "vars",
        "values",
        "values_file",
        "contents",
        "dependencies",
        "public_repo",
        "source",
        "input",
        "group",
        "policies",
        "inputs",
        "provision_role",
        "role",
        "manifest",
        "inline_contents",
        "labels",
        "x.y",
        "\"\"",
        "'a/b~c'",
    ]);
    let values = prop::sample::select(vec![
        "\"a\"",
        "1",
        "true",
        "[]",
        "[1, \"a\", {}]",
        "{}",
        "{ file = \"x\" }",
        "1979-05-27",
        "inf",
        "\"./a.toml\"",
        "\"../..\"",
        "\"a.toml\"",
        "\"helm_chart\"",
        "\"terraform_module\"",
        "\"{{ .nuon.components.a.outputs.b }}\"",
        "\"{{ .nuon\"",
        "'''\né {{ .nuon.x }}\n'''",
        "\"\\u00e9{{ .nuon.x }}\"",
        "[[\"a\"]]",
        "0xFFFFFFFFFFFFFFFF",
    ]);
    let headers = prop::sample::select(vec![
        "[vars]",
        "[[steps]]",
        "[[triggers]]",
        "[steps.env_vars]",
        "[[input]]",
        "[[policies]]",
        "[provision_role]",
        "[public_repo]",
        "[values.a.b]",
    ]);
    prop_oneof![
        4 => (keys, values).prop_map(|(key, value)| format!("{key} = {value}")),
        1 => headers.prop_map(str::to_owned),
        1 => "[ -~\\n]{0,12}",
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn pieces(files in prop::collection::vec((prop::sample::select(FILES), prop::collection::vec(piece(), 0..12)), 1..5)) {
        let mut tree = starter("hello");
        for (file, lines) in files {
            tree.add(file, lines.join("\n"));
        }
        codes(&tree);
        config::wanted(&tree);
    }

    #[test]
    fn bytes(file in prop::sample::select(FILES), contents in prop::collection::vec(any::<u8>(), 0..200)) {
        codes(starter("hello").add(file, contents));
    }

    #[test]
    fn text_in_place_of_values(text in "\\PC{0,40}", file in prop::sample::select(FILES)) {
        let quoted = toml::Value::String(text).to_string();
        let all: String = ["name", "type", "contents", "manifest", "readme", "role", "timeout", "drift_schedule"].iter().map(|key| format!("{key} = {quoted}\n")).collect();
        codes(starter("hello").add(file, all));
    }
}

#[test]
fn sizes_are_bounded() {
    let large = |bytes: usize| "#".repeat(bytes);
    assert_eq!(codes(starter("a").add("runner.toml", large(100 << 20))), [Code::FileTooLarge]);
    assert_eq!(codes(starter("a").add("runner.toml", large(MAX_TOML_BYTES + 1))), [Code::FileTooLarge]);
    assert_eq!(codes(starter("a").add("README.md", large(MAX_FILE_BYTES + 1))), [Code::FileTooLarge]);
    let deep = format!("runner_type = \"local\"\nx = {}{}", "[".repeat(100_000), "]".repeat(100_000));
    assert_eq!(codes(starter("a").add("runner.toml", deep)), [Code::TomlSyntax]);
    let dotted = format!("runner_type = \"local\"\n{} = 1", vec!["a"; 10_000].join("."));
    assert_eq!(codes(starter("a").add("runner.toml", dotted)), [Code::TomlSyntax]);
    let wide = format!("runner_type = \"local\"\nx = [{}]", "1,".repeat(400_000));
    assert_eq!(codes(starter("a").add("runner.toml", wide)), [Code::UnknownKey]);
    let mut many = starter("a");
    for at in 0..=MAX_TOML_FILES {
        many.add(format!("inputs/{at}.toml"), "#");
    }
    assert!(codes(&many).contains(&Code::TooManyFiles));
    let mut wrong = starter("a");
    wrong.add(
        "runner.toml",
        format!("runner_type = \"local\"\n{}", (0..5000).map(|at| format!("k{at} = 1\n")).collect::<String>()),
    );
    let found = codes(&wrong);
    assert_eq!((found.len(), found.last()), (1001, Some(&Code::TooManyProblems)));
    let mut heavy = starter("a");
    heavy.add("actions/heavy.sh", "x".repeat(MAX_FILE_BYTES));
    let step = |at: usize| format!("[[steps]]\nname = \"{at}\"\ninline_contents = \"./heavy.sh\"\n");
    heavy.add(
        "actions/a.toml",
        format!("name = \"a\"\n[[triggers]]\ntype = \"manual\"\n{}", (0..100).map(step).collect::<String>()),
    );
    assert!(codes(&heavy).contains(&Code::FileTooLarge));
}

/// A large app, and all of it wrong: the work stays in proportion.
#[test]
fn large_and_wrong() {
    let mut tree = starter("a");
    for at in 0..1000 {
        let others: String = (0..20).map(|other| format!("v{other} = \"{{{{ .nuon.components.c{} }}}} {{{{ index .nuon.inputs.inputs \\\"x{other}\\\" }}}} {{{{ .nuon.inputs.inputs.y{other} }}}}\"\n", (at + other) % 1000)).collect();
        tree.add(
            format!("components/{at}.toml"),
            format!("name = \"c{at}\"\ntype = \"terraform_module\"\nterraform_version = \"1\"\ndependencies = [\"d{at}\"]\n[local]\ndirectory = \"src\"\n[vars]\n{others}"),
        );
    }
    let found = codes(&tree);
    assert_eq!((found.len(), found.last()), (1001, Some(&Code::TooManyProblems)));
}
