//! Files that are made from the tables: compared, or with `UPDATE=1` written anew.

use config::{Code, SCHEMAS, schema};

const DOCS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs");

fn compare(path: &str, text: &str) {
    let path = format!("{DOCS}/{path}");
    if std::env::var_os("UPDATE").is_some() {
        fs_err::create_dir_all(std::path::Path::new(&path).parent().unwrap()).unwrap();
        fs_err::write(&path, text).unwrap();
    }
    let found = fs_err::read_to_string(&path).unwrap_or_default();
    assert!(found == text, "{path} is not as it should be; `make generate` writes it anew");
}

#[test]
fn generated_schemas_are_committed() {
    for kind in SCHEMAS {
        let schema = schema(kind).unwrap_or_else(|| panic!("{kind} has no schema"));
        compare(&format!("schemas/{kind}.json"), &(serde_json::to_string_pretty(&schema).unwrap() + "\n"));
    }
    for (alias, kind) in
        [("terraform_module", "terraform"), ("helm_chart", "helm"), ("kubernetes_manifest", "kubernetes-manifest")]
    {
        assert_eq!(
            schema(alias).map(|schema| schema["properties"].clone()),
            schema(kind).map(|schema| schema["properties"].clone())
        );
    }
    assert_eq!(schema("nothing"), None);
}

#[test]
fn generated_pages_of_codes_are_committed() {
    for code in Code::ALL {
        compare(&format!("errors/{}.md", code.as_str()), &code.page());
    }
    // The list of all pages holds those of other parts, too.
    let list = fs_err::read_to_string(format!("{DOCS}/errors/README.md")).unwrap();
    let (entries, mut rest): (Vec<&str>, Vec<&str>) = list.lines().partition(|line| line.starts_with("- "));
    let own = Code::ALL.iter().map(|code| format!("- [`{0}`]({0}.md): {1}", code.as_str(), code.what()));
    let is_own = |line: &&&str| Code::ALL.iter().any(|code| line.starts_with(&format!("- [`{}`]", code.as_str())));
    let mut all: Vec<String> =
        entries.iter().filter(|line| !is_own(line)).map(|line| line.to_string()).chain(own).collect();
    all.sort();
    while rest.last() == Some(&"") {
        rest.pop();
    }
    compare("errors/README.md", &format!("{}\n\n{}\n", rest.join("\n"), all.join("\n")));
}
