//! `validate` finds what is wrong with the Terraform modules of an app before anything is uploaded.

use serde_json::{Value, json};

use crate::ferry::ferry;

#[tokio::test(flavor = "multi_thread")]
async fn modules_that_do_not_fit_are_told_before_a_sync() {
    let home = tempfile::tempdir().expect("dir");
    let dir = home.path().join("shop");
    let put = |path: &str, text: &str| {
        let path = dir.join(path);
        fs_err::create_dir_all(path.parent().expect("a parent")).expect("dir");
        fs_err::write(path, text).expect("file");
    };
    put("metadata.toml", "version = \"v2\"\n");
    put("runner.toml", "runner_type = \"local\"\n");
    put("sandbox.toml", "terraform_version = \"1.11.3\"\n[local]\ndirectory = \"src/sandbox\"\n");
    put("src/sandbox/main.tf", "output \"network\" {\n  value = \"n\"\n}\n");
    let vars = "[vars]\nsize = \"1\"\nextra = \"2\"\nnet = \"{{ .nuon.sandbox.outputs.network }}\"\n";
    let component =
        "name = \"db\"\ntype = \"terraform_module\"\nterraform_version = \"1.11.3\"\n[local]\ndirectory = \"src/db\"\n";
    put("components/db.toml", &format!("{component}{vars}"));
    put("src/db/main.tf", "variable \"size\" {}\nvariable \"net\" {}\n");
    let text = dir.to_string_lossy().into_owned();
    let validate = async || {
        let ran = ferry(home.path(), &[], &["apps", "validate", &text, "--json"]).await;
        let told: Value = serde_json::from_str(&ran.stdout).expect("a document");
        let found = told["diagnostics"].as_array().cloned().unwrap_or_default();
        let of = |d: &Value| d["code"] == "bad_module";
        let all: Vec<(String, String)> = found
            .iter()
            .filter(|d| of(d))
            .map(|d| {
                (
                    d["severity"].as_str().unwrap_or_default().to_owned(),
                    format!(
                        "{}:{}: {}",
                        d["file"].as_str().unwrap_or_default(),
                        d["line"],
                        d["message"].as_str().unwrap_or_default()
                    ),
                )
            })
            .collect();
        (told["ok"] == json!(true), all)
    };
    let (good, found) = validate().await;
    assert!(good, "a value without a variable is only a warning: {found:?}");
    assert!(found.len() == 1 && found[0].0 == "warning" && found[0].1.contains("`extra`"), "{found:?}");

    put("src/db/main.tf", "variable \"size\" {}\nvariable \"net\" {}\nvariable \"zone\" {}\nresource \"x\" {\n");
    let (good, found) = validate().await;
    assert!(!good && found[0].1.contains("src/db/main.tf, line"), "{found:?}");

    put("src/db/main.tf", "variable \"size\" {}\nvariable \"net\" {}\nvariable \"zone\" {}\n");
    put("src/sandbox/main.tf", "output \"other\" {\n  value = \"n\"\n}\n");
    let (good, found) = validate().await;
    assert!(!good);
    let told: Vec<&str> = found.iter().map(|(_, message)| message.as_str()).collect();
    assert!(told.iter().any(|m| m.contains("needs a value for the variable `zone`")), "{told:?}");
    assert!(
        told.iter()
            .any(|m| m.contains("components/db.toml:9: ")
                && m.contains("the module of the sandbox has no output `network`")),
        "at the template that reads it: {told:?}"
    );

    std::os::unix::fs::symlink("/etc/passwd", dir.join("src/db/passwd")).expect("a link");
    let (good, found) = validate().await;
    assert!(!good && found.iter().any(|(_, m)| m.contains("passwd")), "{found:?}");
}
