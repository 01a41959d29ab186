//! Outputs that only the customer's side can read. In what templates see they are placeholders; the executor fills them in.

use std::collections::BTreeSet;

use model::Digest;
use model::deploy::{SealedFile, SealedValue};
use model::kubernetes::ClusterSpec;
use serde_json::{Map, Value, json};

use crate::apps::InstallTree;
use crate::apps::render::{Problem, Rendering, render};

/// What a part of the install's state keeps of sensitive outputs: the sealed file, and the names in it.
pub(crate) const SEALED: &str = "sealed";

/// Lays the sensitive outputs of a part over those that anybody may see: placeholders, or the mask.
pub(crate) fn lay(part: &Value, outputs: &mut Value, mask: Option<&str>, sealed: &mut Vec<SealedValue>) {
    let Ok(file) = serde_json::from_value::<SealedFile>(part[SEALED]["file"].clone()) else { return };
    let Some(shapes) = part[SEALED]["shapes"].as_object() else { return };
    if !outputs.is_object() {
        *outputs = json!({});
    }
    for (name, shape) in shapes {
        outputs[name] = leaves(shape, &mut vec![name.clone()], &mut |path| match mask {
            Some(mask) => json!(mask),
            None => {
                let placeholder = placeholder(&file, path);
                sealed.push(SealedValue { placeholder: placeholder.clone(), file: file.clone(), path: path.to_vec() });
                json!(placeholder)
            }
        });
    }
}

/// Values that were filled in when a part was applied: no placeholder stands for them, they are only not to be seen.
pub(crate) fn remembered(part: &Value) -> Option<SealedValue> {
    let file = serde_json::from_value(part[SEALED]["known"].clone()).ok()?;
    Some(SealedValue { placeholder: String::new(), file, path: Vec::new() })
}

fn leaves(shape: &Value, path: &mut Vec<String>, leaf: &mut dyn FnMut(&[String]) -> Value) -> Value {
    let Some(fields) = shape.as_object() else { return leaf(path) };
    let mut all = Map::new();
    for (name, shape) in fields {
        path.push(name.clone());
        all.insert(name.clone(), leaves(shape, path, leaf));
        path.pop();
    }
    Value::Object(all)
}

/// Stands for one value of one sealed file. Nobody can guess it into a template: it is made of the file's digest.
fn placeholder(file: &SealedFile, path: &[String]) -> String {
    let named = Digest::of(json!([file.digest, file.upload_id, path]).to_string().as_bytes());
    format!("<ferry-sealed-{}>", &named.hex()[..32])
}

impl InstallTree {
    /// The cluster that jobs work on: the output `cluster` of a component or of the sandbox, or the runner's own. With what is
    /// sealed in it.
    pub(crate) fn cluster(&self, component: Option<&str>) -> (ClusterSpec, Vec<SealedValue>) {
        let (origin, put_out) = match component {
            Some(name) => (format!("component `{name}`"), &self.root["nuon"]["components"][name]["outputs"]["cluster"]),
            None => ("the sandbox".to_owned(), &self.root["nuon"]["sandbox"]["outputs"]["cluster"]),
        };
        let text = |key: &str| put_out[key].as_str().filter(|text| !text.is_empty()).map(str::to_owned);
        let (kubeconfig, endpoint) = (text("kubeconfig"), text("endpoint"));
        if kubeconfig.is_none() && endpoint.is_none() && component.is_none() {
            return (ClusterSpec::Runner {}, Vec::new());
        }
        let shown = put_out.to_string();
        let sealed = self.sealed.iter().filter(|sealed| shown.contains(&sealed.placeholder)).cloned().collect();
        let cluster = ClusterSpec::Output {
            origin,
            kubeconfig,
            endpoint: endpoint.unwrap_or_default(),
            certificate_authority_data: text("certificate_authority_data").unwrap_or_default(),
            token: text("token"),
        };
        (cluster, sealed)
    }

    /// The component that has put a cluster out.
    pub(crate) fn component_of(cluster: &ClusterSpec) -> Option<&str> {
        let ClusterSpec::Output { origin, .. } = cluster else { return None };
        origin.strip_prefix("component `")?.strip_suffix('`')
    }

    /// Renders a value for the executor, with the sealed values that it needs. A function of a template can't work on what
    /// nobody here can read: that is an error which names the output.
    pub(crate) fn render(&self, value: &Value) -> (Rendering, Vec<SealedValue>) {
        let mut rendering = render(value, &self.root);
        if self.sealed.is_empty() {
            return (rendering, Vec::new());
        }
        let text = rendering.value.to_string();
        // Whatever the values are, the same must come out, up to the values themselves.
        let stays = probes(value).iter().all(|probe| {
            let put = |text: String| {
                self.sealed.iter().fold(text, |text, sealed| {
                    let quoted = json!(probe.of(&sealed.placeholder)).to_string();
                    text.replace(&sealed.placeholder, &quoted[1..quoted.len() - 1])
                })
            };
            let root = serde_json::from_str(&put(self.root.to_string())).unwrap_or(Value::Null);
            let expected: Value = serde_json::from_str(&put(text.clone())).unwrap_or(Value::Null);
            render(value, &root).value == expected
        });
        if !stays {
            let names: Vec<String> = self.sealed.iter().map(|sealed| sealed.path.join(".")).collect();
            let message = format!(
                "a template applies a function to a sensitive output ({}): only the runner can read the value, so a template can only pass it on unchanged",
                names.join(", ")
            );
            rendering.problems.push(Problem { path: String::new(), message });
        }
        let used = self.sealed.iter().filter(|sealed| text.contains(&sealed.placeholder)).cloned().collect();
        (rendering, used)
    }
}

/// A value that stands for a sensitive one, to see what a template makes of it.
enum Probe {
    /// Another one for each, with all that functions may change: both cases, blanks around it, another length.
    Own,
    /// The same for all: something that the template itself names.
    Named(String),
}

impl Probe {
    fn of(&self, placeholder: &str) -> String {
        match self {
            Self::Own => format!("  [Other-{}-OTHER] ", placeholder.chars().rev().collect::<String>()),
            Self::Named(text) => text.clone(),
        }
    }
}

/// Literals that a template is tried with.
const LITERALS_MAX: usize = 32;

/// What a template could compare a value with, or look for in it, stands in it as a literal.
fn probes(value: &Value) -> Vec<Probe> {
    let mut texts = Vec::new();
    strings(value, &mut texts);
    let actions = texts.iter().flat_map(|text| text.split("{{").skip(1).filter_map(|rest| rest.split("}}").next()));
    let literals: BTreeSet<&str> = actions
        .flat_map(|action| action.split(['"', '`']).skip(1).step_by(2))
        .filter(|text| !text.is_empty())
        .collect();
    let named = literals.into_iter().take(LITERALS_MAX);
    let both = named.flat_map(|text| [Probe::Named(text.to_owned()), Probe::Named(format!("{text}zZ{text}"))]);
    std::iter::once(Probe::Own).chain(both).collect()
}

fn strings<'v>(value: &'v Value, out: &mut Vec<&'v str>) {
    match value {
        Value::String(text) => out.push(text),
        Value::Array(items) => items.iter().for_each(|item| strings(item, out)),
        Value::Object(fields) => fields.values().for_each(|field| strings(field, out)),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

#[cfg(test)]
mod tests {
    use model::{Timestamp, UploadId};

    use super::*;

    fn tree() -> InstallTree {
        let file = SealedFile {
            upload_id: UploadId::new(Timestamp::from_micros(1), 1),
            pieces: 1,
            bytes: 1,
            digest: Digest::of(b"file"),
        };
        let part = json!({ "sealed": { "file": file, "shapes": { "password": null, "db": { "user": null } } } });
        let (mut outputs, mut sealed) = (json!({ "url": "u" }), Vec::new());
        lay(&part, &mut outputs, None, &mut sealed);
        InstallTree { root: json!({ "nuon": { "outputs": outputs } }), sensitive: BTreeSet::new(), sealed }
    }

    #[test]
    fn a_sensitive_output_stands_as_a_placeholder() {
        let tree = tree();
        assert_eq!(tree.sealed.len(), 2);
        let (rendering, used) =
            tree.render(&json!({ "a": "x-{{ .nuon.outputs.password }}-y", "b": "{{ .nuon.outputs.url }}" }));
        assert_eq!(rendering.problems, []);
        assert_eq!(used.len(), 1);
        assert_eq!(used[0].path, ["password"]);
        assert_eq!(rendering.value["a"], json!(format!("x-{}-y", used[0].placeholder)));
        let (_, used) = tree.render(&json!("{{ .nuon.outputs.db.user }}"));
        assert_eq!(used[0].path, ["db", "user"]);
    }

    #[test]
    fn no_function_works_on_one() {
        for text in [
            "{{ .nuon.outputs.password | upper }}",
            "{{ .nuon.outputs.password | b64enc }}",
            "{{ len .nuon.outputs.password }}",
            "{{ if eq .nuon.outputs.password \"x\" }}a{{ else }}{{ .nuon.outputs.password | quote | len }}{{ end }}",
            "{{ trunc 5 .nuon.outputs.password }}",
            "{{ .nuon.outputs.password | lower }}",
            "{{ .nuon.outputs.password | trim }}",
            "{{ if eq .nuon.outputs.password \"S3cret\" }}match{{ else }}nomatch{{ end }}",
            "{{ if eq .nuon.outputs.password .nuon.outputs.db.user }}same{{ end }} {{ \"x\" }}",
            "{{ .nuon.outputs.password | replace \"Tops\" \"Flop\" }}",
            "{{ hasPrefix \" Tops\" .nuon.outputs.password }}",
            "{{ contains `mid` .nuon.outputs.password }}",
        ] {
            let (rendering, _) = tree().render(&json!(text));
            assert!(rendering.problems.iter().any(|p| p.message.contains("password")), "{text}: {rendering:?}");
        }
    }

    #[test]
    fn other_eyes_see_the_mask() {
        let part = json!({ "sealed": { "file": tree().sealed[0].file, "shapes": { "password": null } } });
        let (mut outputs, mut sealed) = (Value::Null, Vec::new());
        lay(&part, &mut outputs, Some("***"), &mut sealed);
        assert_eq!((outputs, sealed.len()), (json!({ "password": "***" }), 0));
    }
}
