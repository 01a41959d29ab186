//! Templates of a config, rendered for one install.

use serde_json::{Map, Value};
use template::{Bounds, Data, Template};

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
            let value = walk(value, &data, "", &mut problems);
            Rendering { value, problems }
        }
        Err(error) => {
            problems.push(Problem { path: String::new(), message: error.to_string() });
            Rendering { value: value.clone(), problems }
        }
    }
}

fn walk(value: &Value, data: &Data, path: &str, problems: &mut Vec<Problem>) -> Value {
    match value {
        Value::String(text) if config::is_template(text) => {
            let rendered = Template::parse(text).and_then(|template| template.render_data(data, &Bounds::default()));
            match rendered {
                Ok(text) => Value::String(text),
                Err(error) => {
                    // What is missing now may come: with the first deploy, or with the first run of an action.
                    let missing = error.message.contains("map has no entry for key");
                    let dig = missing.then(|| "it may come later; `dig` gives a default until then".to_owned());
                    let hint = error.hint.clone().or(dig).map(|hint| format!("; {hint}")).unwrap_or_default();
                    problems.push(Problem { path: path.to_owned(), message: format!("{error}{hint}") });
                    value.clone()
                }
            }
        }
        Value::Array(items) => {
            items.iter().enumerate().map(|(n, item)| walk(item, data, &format!("{path}/{n}"), problems)).collect()
        }
        Value::Object(fields) => {
            let field = |(key, field): (&String, &Value)| {
                let path = format!("{path}/{}", key.replace('~', "~0").replace('/', "~1"));
                (key.clone(), walk(field, data, &path, problems))
            };
            Value::Object(fields.iter().map(field).collect::<Map<_, _>>())
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => value.clone(),
    }
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
}
