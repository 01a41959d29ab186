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
    if missing && let Some(component) = template.and_then(|template| not_deployed(template, root)) {
        return format!("{error}: component `{component}` is not deployed, so it has no outputs; deploy it first");
    }
    let dig = missing.then(|| "it may come later; `dig` gives a default until then".to_owned());
    let hint = error.hint.clone().or(dig).map(|hint| format!("; {hint}")).unwrap_or_default();
    format!("{error}{hint}")
}

/// The first component whose outputs a template needs, and which has none since it is not deployed.
fn not_deployed(template: &Template, root: &Value) -> Option<String> {
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
        gone.then(|| name.to_owned())
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
            assert!(told.contains("component `db` is not deployed"), "{told}");
        }
        assert!(at(true, "active").contains("map has no entry for key"));
    }
}
