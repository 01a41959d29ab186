//! Variables of a module. An app writes all of them as texts: one whose type is a list, a map or an object is written as JSON.

use std::collections::BTreeMap;
use std::path::Path;

use fs_err as fs;
use hcl_edit::expr::Expression;
use hcl_edit::parser::{parse_body, parse_expr};
use hcl_edit::structure::Block;
use model::terraform::TerraformSpec;
use serde_json::{Map, Value};

/// What is known of a variable's type.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// A list, a set, a map, an object or a tuple.
    Structured,
    /// Anything: a text that is a list or an object in JSON is taken for one.
    Any,
}

/// The files that are given to Terraform, in their order: later ones win.
pub(super) fn files(module: &Path, job: &TerraformSpec) -> std::io::Result<Vec<String>> {
    let kinds = kinds(module)?;
    let value = |(name, text): (&String, &String)| {
        let json = || serde_json::from_str::<Value>(text).ok();
        let json = match kinds.get(name) {
            Some(Kind::Structured) => json(),
            Some(Kind::Any) => json().filter(|json| json.is_array() || json.is_object()),
            None => None,
        };
        (name.clone(), json.unwrap_or_else(|| Value::String(text.clone())))
    };
    let vars: Map<String, Value> = job.vars.iter().map(value).collect();
    Ok(std::iter::once(Value::Object(vars).to_string()).chain(job.var_files.iter().cloned()).collect())
}

/// The variables of a module that may be more than a text. A file that can't be read says nothing: Terraform will name what is wrong.
fn kinds(module: &Path) -> std::io::Result<BTreeMap<String, Kind>> {
    let mut found = BTreeMap::new();
    for entry in fs::read_dir(module)? {
        let path = entry?.path();
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        let read = || fs::read_to_string(&path).unwrap_or_default();
        if name.ends_with(".tf") || name.ends_with(".tofu") {
            found.extend(declared(&read()));
        } else if name.ends_with(".tf.json") || name.ends_with(".tofu.json") {
            found.extend(declared_in_json(&read()));
        }
    }
    Ok(found)
}

fn declared(text: &str) -> Vec<(String, Kind)> {
    let Ok(body) = parse_body(text) else { return Vec::new() };
    let of = |block: &Block| {
        let kind = kind_of(&block.body.get_attribute("type")?.value)?;
        Some((block.labels.first()?.as_str().to_owned(), kind))
    };
    body.get_blocks("variable").filter_map(of).collect()
}

fn declared_in_json(text: &str) -> Vec<(String, Kind)> {
    let json: Value = serde_json::from_str(text).unwrap_or_default();
    // One object, or a list of them.
    let all = json["variable"].as_array().cloned().unwrap_or_else(|| vec![json["variable"].clone()]);
    let of = |(name, variable): (&String, &Value)| {
        let kind = kind_of(&parse_expr(variable["type"].as_str()?).ok()?)?;
        Some((name.clone(), kind))
    };
    all.iter().filter_map(Value::as_object).flatten().filter_map(of).collect()
}

/// None: a text, a number or a truth value. A variable without a type takes texts as they are, as on Terraform's own command line.
fn kind_of(given: &Expression) -> Option<Kind> {
    let name = match given {
        Expression::FuncCall(call) => call.name.name.as_str(),
        Expression::Variable(name) => name.as_str(),
        // As modules were written long ago.
        Expression::String(name) => name.as_str(),
        _ => return None,
    };
    match name {
        "list" | "set" | "map" | "object" | "tuple" => Some(Kind::Structured),
        "any" => Some(Kind::Any),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_types_with_a_structure_are_read_as_json() {
        let text = r#"
            variable "name" { type = string }
            variable "zones" {
              description = "where { it } runs # and \"type\" is said"
              type        = list(string)
            }
            # variable "gone" { type = list(string) }
            /* variable "gone_too" {
              type = list(string)
            } */
            variable "tags" { type = map(string) }
            variable "untyped" {}
            variable "any" {
              default = { type = "list" }
              type    = any // list(string)
            }
            variable "policy" {
              default = <<-END
                type = list(string)
              END
              type = string # list(string)
            }
            variable "spec" {
              type = object({
                size = optional(number, 1)
              })
              default = { size = 1 }
            }
            variable "old" { type = "list" }
            resource "x" "type" { type = list }
        "#;
        let json =
            r#"{ "variable": { "sizes": { "type": "map(number)" }, "word": { "type": "string" }, "bare": {} } }"#;
        let found = declared(text).into_iter().chain(declared_in_json(json));
        let found: Vec<String> = found.map(|(name, kind)| format!("{name} {kind:?}")).collect();
        let expected = ["zones Structured", "tags Structured", "any Any", "spec Structured", "old Structured"];
        assert_eq!(found[..5], expected);
        assert_eq!(found[5..], ["sizes Structured"]);
        assert_eq!(declared("variable \"x\" {"), [], "Terraform says what is wrong with it");
    }
}
