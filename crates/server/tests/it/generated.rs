//! What is generated from the code.

/// The committed documents are what the code says. `make generate` writes them anew.
#[test]
fn the_openapi_documents_are_current() {
    let documents = [("control", server::control_openapi()), ("runner", server::runner_openapi())];
    for (name, document) in documents {
        let text = format!("{}\n", serde_json::to_string_pretty(&document).expect("plain data"));
        let path = format!("{}/../../api/openapi/{name}.json", env!("CARGO_MANIFEST_DIR"));
        if std::env::var_os("UPDATE").is_some() {
            fs_err::write(&path, text).expect("written");
        } else {
            let committed = fs_err::read_to_string(&path).unwrap_or_default();
            assert!(committed == text, "api/openapi/{name}.json is old: run `make generate`");
        }
    }
}
