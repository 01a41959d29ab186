//! Templates of a config, rendered for one install.

use model::PartStatus;
use serde_json::{Map, Value};
use template::{Bounds, Data, Segment, Template, TemplateError};

/// A rendered value, and what could not be rendered: there the template stands as it was.
#[derive(Debug, Clone, PartialEq)]
pub struct Rendering {
    pub value: Value,
    pub problems: Vec<Problem>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// A JSON pointer.
    pub path: String,
    pub message: String,
}

/// Renders every text in `value` that speaks of the install. `root` is what templates see.
pub fn render(value: &Value, root: &Value) -> Rendering {
    let mut problems = Vec::new();
    match Data::new(root) {
        Ok(data) => {
            let value = walk(value, root, &data, "", &mut problems);
            Rendering { value, problems }
        }
        Err(error) => {
            problems.push(Problem { path: String::new(), message: error.to_string() });
            Rendering { value: value.clone(), problems }
        }
    }
}

fn walk(value: &Value, root: &Value, data: &Data, path: &str, problems: &mut Vec<Problem>) -> Value {
    match value {
        Value::String(text) if config::is_template(text) => {
            let parsed = Template::parse(text);
            let rendered = parsed.as_ref().map_err(Clone::clone);
            match rendered.and_then(|template| template.render_data(data, &Bounds::default())) {
                Ok(text) => Value::String(text),
                Err(error) => {
                    let message = explain(&error, parsed.ok().as_ref(), root);
                    problems.push(Problem { path: path.to_owned(), message });
                    value.clone()
                }
            }
        }
        Value::Array(items) => {
            items.iter().enumerate().map(|(n, item)| walk(item, root, data, &format!("{path}/{n}"), problems)).collect()
        }
        Value::Object(fields) => {
            let field = |(key, field): (&String, &Value)| {
                let path = format!("{path}/{}", key.replace('~', "~0").replace('/', "~1"));
                (key.clone(), walk(field, root, data, &path, problems))
            };
            Value::Object(fields.iter().map(field).collect::<Map<_, _>>())
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => value.clone(),
    }
}

/// What is missing now may come: with the first deploy, or with the first run of an action.
fn explain(error: &TemplateError, template: Option<&Template>, root: &Value) -> String {
    let missing = error.message.contains("map has no entry for key");
    if missing && let Some((component, failed)) = template.and_then(|template| without_outputs(template, root)) {
        let why = if failed { "its last deploy did not succeed" } else { "it is not deployed" };
        return format!("{error}: component `{component}` has no outputs, because {why}; deploy it first");
    }
    let dig = missing.then(|| "to use a default until it exists, use `dig`".to_owned());
    let hint = error.hint.clone().or(dig).map(|hint| format!("; {hint}")).unwrap_or_default();
    format!("{error}{hint}")
}

/// The first component whose outputs a template needs, and which has none since it is not deployed, or since its deploy failed.
fn without_outputs(template: &Template, root: &Value) -> Option<(String, bool)> {
    let components = &root["nuon"]["components"];
    template.references().iter().filter(|reference| !reference.optional).find_map(|reference| {
        let keys = reference.path.iter().map_while(|segment| match segment {
            Segment::Key(key) => Some(key.as_str()),
            Segment::Any => None,
        });
        let keys: Vec<&str> = keys.collect();
        let ["nuon", "components", name, "outputs", ..] = keys[..] else { return None };
        let component = &components[name];
        let gone = component["populated"] == false || component["status"] == PartStatus::Inactive.as_str();
        let failed =
            [PartStatus::Error, PartStatus::Unknown].iter().any(|status| component["status"] == status.as_str())
                && component["outputs"].as_object().is_none_or(Map::is_empty);
        (gone || failed).then(|| (name.to_owned(), !gone))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn texts_are_rendered_where_they_speak_of_the_install() {
        let root = json!({ "nuon": { "install": { "id": "ins1" }, "list": [1, 2] } });
        let value = json!({
            "env": { "A": "{{ .nuon.install.id }}", "a/b": "{{ .nuon.nothing }}" },
            "foreign": "{{ element.name }}",
            "steps": ["x", "{{ .nuon.list }}"],
            "n": 3,
        });
        let rendering = render(&value, &root);
        assert_eq!(
            rendering.value,
            json!({
                "env": { "A": "ins1", "a/b": "{{ .nuon.nothing }}" },
                "foreign": "{{ element.name }}",
                "steps": ["x", "[1,2]"],
                "n": 3,
            })
        );
        let paths: Vec<&str> = rendering.problems.iter().map(|p| p.path.as_str()).collect();
        assert_eq!(paths, ["/env/a~1b"]);
        assert!(rendering.problems[0].message.contains("nothing"), "{}", rendering.problems[0].message);
    }

    #[test]
    fn outputs_of_what_is_not_deployed_are_told_as_such() {
        let at = |populated: bool, status: &str| {
            let db = json!({ "populated": populated, "status": status, "outputs": {} });
            let root = json!({ "nuon": { "components": { "db": db } } });
            render(&json!("{{ .nuon.components.db.outputs.url }}"), &root).problems.remove(0).message
        };
        for told in [at(false, ""), at(true, "inactive")] {
            assert!(told.contains("component `db` has no outputs, because it is not deployed"), "{told}");
        }
        for told in [at(true, "error"), at(true, "unknown")] {
            assert!(told.contains("has no outputs, because its last deploy did not succeed"), "{told}");
        }
        assert!(at(true, "active").contains("map has no entry for key"));
    }
}
