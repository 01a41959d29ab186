//! What a module declares: its variables, and what it puts out. Enough to see before anything is built whether a component fits its
//! module; everything else Terraform itself judges.

use std::collections::{BTreeMap, BTreeSet};

use hcl_edit::parser::parse_body;
use serde_json::Value;

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Module {
    /// Each variable, and whether a value must be given.
    pub variables: BTreeMap<String, bool>,
    pub outputs: BTreeSet<String>,
}

/// A file of a module that is not HCL.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {message}")]
pub struct InvalidModule {
    /// From 1.
    pub line: usize,
    pub column: usize,
    pub message: String,
}

/// Whether a file belongs to a module, by its name.
pub fn is_module_file(name: &str) -> bool {
    [".tf", ".tofu", ".tf.json", ".tofu.json"].iter().any(|ending| name.ends_with(ending))
}

impl Module {
    /// Adds what a file declares.
    pub fn read(&mut self, name: &str, text: &str) -> Result<(), InvalidModule> {
        if name.ends_with(".json") { self.read_json(text) } else { self.read_hcl(text) }
    }

    fn read_hcl(&mut self, text: &str) -> Result<(), InvalidModule> {
        let body = parse_body(text).map_err(|error| {
            let at = error.location();
            InvalidModule { line: at.line(), column: at.column(), message: error.message().to_owned() }
        })?;
        for block in body.get_blocks("variable") {
            if let Some(name) = block.labels.first() {
                self.variable(name.as_str(), !block.body.has_attribute("default"));
            }
        }
        let outputs = body.get_blocks("output").filter_map(|block| block.labels.first());
        self.outputs.extend(outputs.map(|name| name.as_str().to_owned()));
        Ok(())
    }

    /// An `override.tf` may give the default.
    fn variable(&mut self, name: &str, needed: bool) {
        self.variables.entry(name.to_owned()).and_modify(|known| *known &= needed).or_insert(needed);
    }

    fn read_json(&mut self, text: &str) -> Result<(), InvalidModule> {
        let json: Value = serde_json::from_str(text).map_err(|error| InvalidModule {
            line: error.line(),
            column: error.column(),
            message: "this is not JSON".to_owned(),
        })?;
        // One object, or a list of them.
        let all = |key: &str| json[key].as_array().cloned().unwrap_or_else(|| vec![json[key].clone()]);
        for (name, variable) in all("variable").iter().filter_map(Value::as_object).flatten() {
            self.variable(name, variable.get("default").is_none());
        }
        self.outputs.extend(all("output").iter().filter_map(Value::as_object).flatten().map(|(name, _)| name.clone()));
        Ok(())
    }
}

/// A file of values that Terraform reads by itself.
pub fn is_values_file(name: &str) -> bool {
    let name = name.strip_suffix(".json").unwrap_or(name);
    name == "terraform.tfvars" || name.ends_with(".auto.tfvars")
}

/// What is wrong with a text of values (`.tfvars`, or the same as JSON), if anything is. No error repeats a value.
pub fn wrong_values(text: &str) -> Option<String> {
    if text.trim_start().starts_with('{') {
        return match serde_json::from_str::<Value>(text) {
            Ok(_) => None,
            Err(error) => Some(format!("is not JSON (line {})", error.line())),
        };
    }
    match parse_body(text) {
        Err(error) => Some(format!("is not HCL (line {})", error.location().line())),
        Ok(body) => body
            .blocks()
            .next()
            .map(|block| format!("has the block `{}`: only `name = value` may stand here", block.ident.as_str())),
    }
}

/// The names that a file of values gives (`.tfvars`, or the same as JSON); none where it can't be read.
pub fn names_given(text: &str) -> BTreeSet<String> {
    if let Ok(Value::Object(json)) = serde_json::from_str(text) {
        return json.keys().cloned().collect();
    }
    let body = parse_body(text).unwrap_or_default();
    body.attributes().map(|attribute| attribute.key.as_str().to_owned()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_module_says_what_it_needs_and_what_it_puts_out() {
        let mut module = Module::default();
        let text = "variable \"size\" {}\nvariable \"name\" {\n  default = \"x\" # {\n}\noutput \"url\" {\n  value = <<-END\n    }\n  END\n}\n";
        module.read("main.tf", text).expect("good");
        module.read("a_override.tf", "variable \"size\" {\n  type = string\n}\n").expect("good");
        module.read("more.tf.json", r#"{"variable": {"zone": {}}, "output": [{"id": {"value": 1}}]}"#).expect("good");
        let variables: Vec<(&str, bool)> =
            module.variables.iter().map(|(name, needed)| (name.as_str(), *needed)).collect();
        assert_eq!(variables, [("name", false), ("size", true), ("zone", true)]);
        assert_eq!(module.outputs.iter().map(String::as_str).collect::<Vec<_>>(), ["id", "url"]);
    }

    #[test]
    fn what_is_no_hcl_is_named_with_its_line() {
        let wrong = Module::default().read("main.tf", "variable \"a\" {}\nresource \"x\" {\n").expect_err("wrong");
        assert!(wrong.line >= 2, "{wrong}");
        assert!(Module::default().read("main.tf.json", "{").is_err());
    }

    #[test]
    fn files_of_values_give_names() {
        assert_eq!(names_given("a = 1\nb = \"x\"\n").len(), 2);
        assert_eq!(names_given(r#"{"a": 1}"#).len(), 1);
        assert!(names_given("{{ not yet }}").is_empty());
    }
}
