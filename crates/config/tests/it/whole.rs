//! Graphs, differences and digests.

use config::{AppConfig, ChangeKind, Graph, MASK, Options, Tree, starter};

fn load(tree: &Tree) -> AppConfig {
    let loaded = config::load(tree, Options::default());
    loaded.config.unwrap_or_else(|| panic!("{:#?}", loaded.diagnostics))
}

fn module(name: &str, dependencies: &str, vars: &str) -> String {
    format!(
        "name = \"{name}\"\ntype = \"terraform_module\"\nterraform_version = \"1\"\ndependencies = [{dependencies}]\n[local]\ndirectory = \"src/greeting\"\n[vars]\n{vars}\n"
    )
}

fn diamond() -> Tree {
    let mut tree = starter("hello");
    tree.add("components/z.toml", module("base", "", ""));
    tree.add("components/left.toml", module("left", "\"base\"", ""));
    tree.add(
        "components/right.toml",
        module("right", "", "x = \"{{ (index .nuon.components \\\"base\\\").outputs.x }}\""),
    );
    tree.add(
        "components/a.toml",
        module("top", "\"left\"", "x = \"{{ with .nuon.components.right }}{{ .outputs.y }}{{ end }}\""),
    );
    tree
}

#[test]
fn the_graph_knows_why_and_when() {
    let graph = Graph::new(&load(&diamond())).unwrap();
    let levels: Vec<(usize, &str)> = graph.components.iter().map(|node| (node.level, node.name.as_str())).collect();
    assert_eq!(levels, [(0, "base"), (0, "greeting"), (1, "left"), (1, "right"), (2, "top")]);
    let text = "1.\n  base (terraform_module)\n  greeting (terraform_module)\n2.\n  left (terraform_module)\n    after base: explicit\n  right (terraform_module)\n    after base: .nuon.components.base.outputs.x\n3.\n  top (terraform_module)\n    after left: explicit\n    after right: .nuon.components.right.outputs.y\n";
    assert_eq!(graph.text(), text);
    assert!(
        graph.dot().contains("  \"base\" -> \"right\" [style = dashed];\n")
            && graph.dot().contains("  \"base\" -> \"left\";\n")
    );
    assert!(graph.mermaid().contains("  c0 -.-> c3\n") && graph.mermaid().contains("  c2 --> c4\n"));
    let json = serde_json::to_value(&graph).unwrap();
    assert_eq!(json["dependencies"][0]["reasons"][0]["path"], "/components/2/dependencies/0");
}

#[test]
fn circles_are_found_without_a_config() {
    let mut config = load(&diamond());
    config.components[0].common.dependencies.push("top".into());
    assert_eq!(Graph::new(&config).unwrap_err(), ["base", "top", "left"]);
    let problems = config::check(&config);
    let cycles: Vec<&str> = problems.iter().map(|problem| problem.message.as_str()).collect();
    assert_eq!(cycles, ["components wait for each other: base → top → left → base"]);
}

#[test]
fn a_config_is_the_same_however_its_files_are_called() {
    let tree = diamond();
    let mut other = tree.clone();
    for (from, to) in [("components/a.toml", "components/x/9.toml"), ("components/z.toml", "components/0.toml")] {
        let contents = other.files.remove(from).unwrap();
        other.files.insert(to.into(), contents);
    }
    let inputs = String::from_utf8(other.files.remove("inputs.toml").unwrap().to_vec()).unwrap();
    let (group, input) = inputs.split_once("[[input]]").unwrap();
    other.add("input_groups/g.toml", group.replace("[[group]]", "")).add("inputs/i.toml", input);
    let (one, two) = (load(&tree), load(&other));
    assert_eq!(one.digest(), two.digest());
    let back: AppConfig = serde_json::from_slice(&one.canonical_json()).unwrap();
    assert_eq!(back, one);
    assert_eq!(back.canonical_json(), one.canonical_json());
    assert_eq!(config::check(&back), []);
}

#[test]
fn differences_name_what_changed_and_hide_what_is_sensitive() {
    let old = load(&starter("hello"));
    assert_eq!(config::diff(&old, &old), []);
    let mut tree = diamond();
    tree.files.remove("actions/greet.toml");
    tree.add("inputs.toml", "[[group]]\nname = \"greeting\"\ndescription = \"d\"\n[[input]]\nname = \"who\"\ndisplay_name = \"Who\"\ndescription = \"Who is greeted.\"\ngroup = \"greeting\"\ndefault = \"hush\"\nsensitive = true\n");
    let changes = config::diff(&old, &load(&tree));
    let of = |part: &str, name: &str| changes.iter().find(|change| change.part == part && change.name == name).unwrap();
    assert_eq!(of("components", "base").kind, ChangeKind::Added);
    assert_eq!(of("actions", "greet").kind, ChangeKind::Removed);
    let input = of("inputs", "who");
    assert_eq!(input.kind, ChangeKind::Changed);
    let default = input.fields.iter().find(|field| field.path == "default").unwrap();
    assert_eq!((default.old.as_deref(), default.new.as_deref()), (Some(MASK), Some(MASK)));
    assert!(!format!("{changes:?}").contains("hush"));

    // Also where a whole table is new.
    let install = |rest: &str| {
        let mut tree = tree.clone();
        tree.add("installs/i.toml", format!("name = \"i\"\n{rest}"));
        load(&tree)
    };
    let changes = config::diff(&install(""), &install("[inputs]\nwho = \"hush again\"\n"));
    assert!(!format!("{changes:?}").contains("hush"), "{changes:?}");
    assert_eq!(changes[0].fields[0].path, "inputs.who");
}

#[test]
fn local_directories_are_listed() {
    let found: Vec<String> = config::local_sources(&load(&starter("hello")))
        .into_iter()
        .map(|source| source.path + " " + &source.directory)
        .collect();
    assert_eq!(found, ["/sandbox/local/directory src/sandbox", "/components/0/local/directory src/greeting"]);
}
