//! Variables of a module. An app writes all of them as texts: one whose type is a list, a map or an object is written as JSON.

use std::collections::BTreeSet;
use std::path::Path;

use fs_err as fs;
use model::terraform::TerraformSpec;
use serde_json::{Map, Value};

/// The files that are given to Terraform, in their order: later ones win.
pub(super) fn files(module: &Path, job: &TerraformSpec) -> std::io::Result<Vec<String>> {
    let structured = structured(module)?;
    let value = |(name, text): (&String, &String)| {
        let json = structured.contains(name).then(|| serde_json::from_str::<Value>(text).ok()).flatten();
        (name.clone(), json.unwrap_or_else(|| Value::String(text.clone())))
    };
    let vars: Map<String, Value> = job.vars.iter().map(value).collect();
    Ok(std::iter::once(Value::Object(vars).to_string()).chain(job.var_files.iter().cloned()).collect())
}

/// Names of the variables whose type has a structure.
fn structured(module: &Path) -> std::io::Result<BTreeSet<String>> {
    let mut found = BTreeSet::new();
    for entry in fs::read_dir(module)? {
        let path = entry?.path();
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        if !name.ends_with(".tf") && !name.ends_with(".tofu") {
            continue;
        }
        found.extend(declared(&fs::read_to_string(&path).unwrap_or_default()));
    }
    Ok(found)
}

/// Those that a file declares. Comments are left out, and the block ends where its brace does.
fn declared(text: &str) -> Vec<String> {
    let lines: Vec<&str> = text.lines().map(|line| line.split(['#']).next().unwrap_or_default()).collect();
    let mut found = Vec::new();
    let mut at = 0;
    while at < lines.len() {
        let line = lines[at].trim();
        at += 1;
        let Some(rest) = line.strip_prefix("variable").filter(|rest| rest.starts_with([' ', '\t', '"'])) else {
            continue;
        };
        let name = rest.trim().trim_start_matches('"').split('"').next().unwrap_or_default().to_owned();
        let mut depth = depth_of(line);
        let mut block = vec![rest.split_once('{').map_or("", |(_, rest)| rest)];
        while depth > 0 && at < lines.len() {
            block.push(lines[at]);
            depth += depth_of(lines[at]);
            at += 1;
        }
        let kind = block.iter().find_map(|line| line.trim().strip_prefix("type")?.trim().strip_prefix('='));
        let kind = kind.unwrap_or_default().trim();
        if ["list", "set", "map", "object", "tuple"].iter().any(|prefix| kind.starts_with(prefix)) {
            found.push(name);
        }
    }
    found
}

fn depth_of(line: &str) -> i32 {
    line.chars().map(|c| i32::from(c == '{') - i32::from(c == '}')).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_types_with_a_structure_are_read_as_json() {
        let text = r#"
            variable "name" { type = string }
            variable "zones" {
              description = "where { it } runs"
              type        = list(string)
            }
            # variable "gone" { type = list(string) }
            variable "tags" { type = map(string) }
            variable "any" {}
            variable "policy" {
              type = string # list(string)
            }
            variable "spec" {
              type = object({
                size = number
              })
              default = { size = 1 }
            }
            resource "x" "type" { type = list }
        "#;
        assert_eq!(declared(text), ["zones", "tags", "spec"]);
    }
}
