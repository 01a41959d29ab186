//! Real and written documents, read and drawn. The files in `fixtures` were made with terraform 1.11.4 and its built-in
//! provider.

#![allow(clippy::unwrap_used, reason = "tests")]

mod draw;
mod fuzz;
mod plan;
mod progress;
mod secrets;
mod state;

use serde_json::{Value, json};
use terraform::{Limits, Plan};

fn fixture(name: &str) -> String {
    fs_err::read_to_string(format!("{}/tests/fixtures/{name}", env!("CARGO_MANIFEST_DIR"))).unwrap()
}

fn unmasked(text: &str) -> String {
    text.to_owned()
}

fn read(document: &str) -> Plan {
    terraform::read_plan(document.as_bytes(), &unmasked, &Limits::default()).unwrap()
}

/// A plan with one changed resource.
fn plan_of(kind: &str, change: Value) -> Plan {
    read(&document(json!([resource(kind, change)])))
}

fn resource(kind: &str, change: Value) -> Value {
    json!({
        "address": format!("{kind}.it"), "mode": "managed", "type": kind, "name": "it",
        "provider_name": "registry.terraform.io/hashicorp/aws", "change": change,
    })
}

fn document(resource_changes: Value) -> String {
    json!({"format_version": "1.2", "resource_changes": resource_changes}).to_string()
}
