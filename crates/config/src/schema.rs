//! JSON Schemas of every kind of file, for editors. They are draft 07, which the TOML language servers read.

use serde_json::{Map, Value, json};

use crate::kinds::*;
use crate::table::{Field, Get, OneOf, Shape, Table};
use crate::walk::fields;

/// The kinds of files that have a schema.
pub const SCHEMAS: &[&str] = &[
    "action",
    "branch",
    "break-glass",
    "component",
    "container-image",
    "customer-managed",
    "docker-build",
    "full",
    "helm",
    "input",
    "input-group",
    "inputs",
    "install",
    "installer",
    "installs-config",
    "job",
    "kubernetes-context",
    "kubernetes-contexts",
    "kubernetes-manifest",
    "metadata",
    "operation-roles",
    "permission",
    "permissions",
    "policies",
    "policy",
    "pulumi",
    "runbook",
    "runner",
    "sandbox",
    "secret",
    "secrets",
    "stack",
    "terraform",
    "triggers",
];

/// The schema of a kind of file; `_` and `-` are the same, and components may be called by their type.
pub fn schema(kind: &str) -> Option<Value> {
    let kind = kind.replace('_', "-");
    let table: &'static Table = match kind.as_str() {
        "action" => &Action::TABLE,
        "branch" => &Branch::TABLE,
        "break-glass" => &BREAK_GLASS_FILE,
        "component" => return Some(document(&kind, any_component())),
        "container-image" | "external-image" => &ContainerImage::TABLE,
        "customer-managed" => &CustomerManaged::TABLE,
        "docker-build" => &DockerBuild::TABLE,
        "full" => &AppConfig::TABLE,
        "helm" | "helm-chart" => &HelmChart::TABLE,
        "input" => &Input::TABLE,
        "input-group" => &InputGroup::TABLE,
        "inputs" => &INPUTS_FILE,
        "install" => &Install::TABLE,
        "installer" => &Installer::TABLE,
        "installs-config" | "installs" => &InstallsSource::TABLE,
        "job" => &Job::TABLE,
        "kubernetes-context" => &KubernetesContext::TABLE,
        "kubernetes-contexts" => &KUBERNETES_CONTEXTS_FILE,
        "kubernetes-manifest" => &KubernetesManifest::TABLE,
        "metadata" => &Metadata::TABLE,
        "operation-roles" => &OperationRoles::TABLE,
        "permission" | "role" => &Role::TABLE,
        "permissions" => &PERMISSIONS_FILE,
        "policies" => &POLICIES_FILE,
        "policy" => &Policy::TABLE,
        "pulumi" => &Pulumi::TABLE,
        "runbook" => &Runbook::TABLE,
        "runner" => &Runner::TABLE,
        "sandbox" => &Sandbox::TABLE,
        "secret" => &Secret::TABLE,
        "secrets" => &SECRETS_FILE,
        "stack" => &Stack::TABLE,
        "terraform" | "terraform-module" => &TerraformModule::TABLE,
        "triggers" => &TRIGGERS_FILE,
        _ => return None,
    };
    Some(document(&kind, of(table)))
}

fn document(kind: &str, (mut schema, used): (Value, Definitions)) -> Value {
    schema["$schema"] = "http://json-schema.org/draft-07/schema#".into();
    schema["title"] = kind.into();
    if !used.is_empty() {
        schema["definitions"] = Value::Object(used);
    }
    schema
}

/// Tables that a schema refers to.
type Definitions = Map<String, Value>;

fn of(table: &'static Table) -> (Value, Definitions) {
    let mut used = Definitions::new();
    (object(table, &mut used), used)
}

fn any_component() -> (Value, Definitions) {
    let mut used = Definitions::new();
    (component(&mut used), used)
}

fn component(used: &mut Definitions) -> Value {
    let kinds = COMPONENT_TYPES.iter().filter_map(|kind| {
        let mut schema = object(component_table(kind)?, used);
        let names: Vec<&str> = if *kind == "container_image" { vec![kind, "external_image"] } else { vec![kind] };
        schema["properties"]["type"]["enum"] = json!(names);
        Some(schema)
    });
    json!({ "description": "What is deployed to an install.", "oneOf": kinds.collect::<Vec<_>>() })
}

/// A table as a definition, which is written once.
fn reference(table: &'static Table, used: &mut Definitions) -> Value {
    if !used.contains_key(table.name) {
        used.insert(table.name.into(), Value::Null);
        let schema = object(table, used);
        used.insert(table.name.into(), schema);
    }
    json!({ "$ref": format!("#/definitions/{}", table.name) })
}

fn object(table: &'static Table, used: &mut Definitions) -> Value {
    let mut properties = Map::new();
    for field in fields(table) {
        for name in field.names() {
            properties.insert(name.into(), described(field, used));
        }
    }
    let required = fields(table).filter(|field| field.required && field.file_aliases.is_empty());
    let required: Vec<&str> = required.map(|field| field.key).collect();
    let mut schema = json!({
        "type": "object",
        "description": table.doc.trim(),
        "properties": properties,
        "additionalProperties": false,
    });
    if !required.is_empty() {
        schema["required"] = json!(required);
    }
    if !table.choices.is_empty() {
        schema["allOf"] = table.choices.iter().map(one_of).collect();
    }
    schema
}

fn one_of(choice: &OneOf) -> Value {
    let each: Vec<Value> = choice.keys.iter().map(|key| json!({ "required": [key] })).collect();
    match (choice.required, choice.exclusive) {
        (true, true) => json!({ "oneOf": each }),
        (true, false) => json!({ "anyOf": each }),
        (false, _) => {
            let none = json!({ "not": { "anyOf": each } });
            json!({ "oneOf": each.into_iter().chain([none]).collect::<Vec<_>>() })
        }
    }
}

fn described(field: &'static Field, used: &mut Definitions) -> Value {
    let mut schema = shape(&field.shape, used);
    if field.get != Get::No {
        let file = json!({ "type": "object", "properties": { "file": { "type": "string" } }, "required": ["file"], "additionalProperties": false });
        schema = json!({ "anyOf": [schema, file] });
    } else if schema.get("$ref").is_some() {
        // What stands beside a reference is ignored.
        schema = json!({ "allOf": [schema] });
    }
    schema["description"] = field.doc.trim().into();
    if let Some(instead) = field.deprecated {
        schema["deprecated"] = true.into();
        schema["description"] = format!("{} Deprecated: {instead}.", field.doc.trim()).into();
    }
    schema
}

fn shape(found: &'static Shape, used: &mut Definitions) -> Value {
    match found {
        Shape::Text | Shape::Name(_) | Shape::Json | Shape::Region(_) | Shape::Cron => {
            json!({ "type": ["string", "number", "boolean"] })
        }
        Shape::Bool => json!({ "type": "boolean" }),
        Shape::Int { min: i64::MIN, .. } => json!({ "type": "integer" }),
        Shape::Int { min, max: i64::MAX } => json!({ "type": "integer", "minimum": min }),
        Shape::Int { min, max } => json!({ "type": "integer", "minimum": min, "maximum": max }),
        Shape::Choice(values) => json!({ "enum": values }),
        Shape::Renamed(values, old) => {
            json!({ "enum": values.iter().copied().chain(old.iter().map(|(old, _)| *old)).collect::<Vec<_>>() })
        }
        Shape::Duration { .. } => json!({ "type": ["string", "integer"], "examples": ["30s", "5m", "1h30m"] }),
        Shape::List(inner) => json!({ "type": "array", "items": shape(inner, used) }),
        Shape::Table(table) => reference(table, used),
        Shape::Tables(table) => json!({ "type": "array", "items": reference(table, used) }),
        Shape::Map(inner) => json!({ "type": "object", "additionalProperties": shape(inner, used) }),
        Shape::Vars | Shape::HelmValues => json!({ "type": "object" }),
        Shape::InputValues => {
            json!({ "anyOf": [{ "type": "object" }, { "type": "array", "items": { "type": "object" } }] })
        }
        Shape::Any => json!({}),
        Shape::Component => component(used),
    }
}
