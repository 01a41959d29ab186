//! What is judged, and how a policy sees it.

use std::collections::BTreeMap;

use regorus::Value as Rego;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Lists inside lists are looked into this deep.
const LISTS_DEPTH_MAX: usize = 8;

/// What is to be deployed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Subject {
    /// What `terraform show -json` says about a plan; a policy sees it as `input.plan`.
    Plan(Value),
    /// Kubernetes objects; a policy sees one at a time, as `input.review.object`, and its group, version and kind as
    /// `input.review.kind`.
    Objects(Vec<Value>),
    /// An image; a policy sees `input.image`, `input.tag` and `input.metadata`.
    Image { image: String, tag: String, metadata: Value },
}

/// One evaluation's worth of it.
pub(crate) struct Input {
    /// What the verdicts are about, where that is known.
    pub(crate) object: Option<String>,
    pub(crate) value: Rego,
}

type Result<T> = std::result::Result<T, serde_json::Error>;

impl Subject {
    pub(crate) const fn what(&self) -> &'static str {
        match self {
            Self::Plan(_) => "a plan",
            Self::Objects(_) => "Kubernetes objects",
            Self::Image { .. } => "an image",
        }
    }

    pub(crate) fn inputs(&self) -> Result<Vec<Input>> {
        match self {
            Self::Plan(plan) => Ok(vec![Input { object: None, value: object([("plan", rego(plan)?)]) }]),
            Self::Image { image, tag, metadata } => Ok(vec![Input {
                object: Some(if tag.is_empty() { image.clone() } else { format!("{image}:{tag}") }),
                value: object([
                    ("image", image.as_str().into()),
                    ("tag", tag.as_str().into()),
                    ("metadata", rego(metadata)?),
                ]),
            }]),
            Self::Objects(objects) => {
                let mut inputs = Vec::new();
                for object in objects {
                    spread(object, None, LISTS_DEPTH_MAX, &mut inputs)?;
                }
                Ok(inputs)
            }
        }
    }
}

/// Without a copy in between: plans are large.
fn rego(value: &Value) -> Result<Rego> {
    Rego::deserialize(value)
}

fn object<const N: usize>(fields: [(&str, Rego); N]) -> Rego {
    fields.into_iter().map(|(key, value)| (key.into(), value)).collect::<BTreeMap<Rego, Rego>>().into()
}

fn text<'v>(value: &'v Value, key: &str) -> &'v str {
    value.get(key).and_then(Value::as_str).unwrap_or_default()
}

/// An object, or those of a list: what is applied as one document must not hide another.
fn spread(whole: &Value, of_list: Option<(&str, &str)>, depth: usize, inputs: &mut Vec<Input>) -> Result<()> {
    if whole.is_null() {
        return Ok(());
    }
    let (mut version, mut kind) = (text(whole, "apiVersion"), text(whole, "kind"));
    if kind.is_empty() {
        (version, kind) = of_list.unwrap_or((version, kind));
    }
    let items = whole.get("items").and_then(Value::as_array).filter(|_| depth > 0);
    if let (Some(items), Some(item_kind)) = (items, kind.strip_suffix("List")) {
        let of_list = Some((version, item_kind)).filter(|_| !item_kind.is_empty());
        for item in items {
            spread(item, of_list, depth - 1, inputs)?;
        }
        if item_kind.is_empty() {
            return Ok(());
        }
    }
    let (group, plain_version) = version.split_once('/').unwrap_or(("", version));
    let gvk = object([("group", group.into()), ("version", plain_version.into()), ("kind", kind.into())]);
    let value = object([("review", object([("kind", gvk), ("object", rego(whole)?)]))]);
    inputs.push(Input { object: label(kind, whole), value });
    Ok(())
}

/// `Deployment/shop/web`, or without the namespace.
fn label(kind: &str, object: &Value) -> Option<String> {
    let metadata = object.get("metadata").unwrap_or(&Value::Null);
    let (namespace, mut name) = (text(metadata, "namespace"), text(metadata, "name"));
    if name.is_empty() {
        name = text(metadata, "generateName");
    }
    let parts: Vec<&str> = [kind, namespace, name].into_iter().filter(|part| !part.is_empty()).collect();
    (!parts.is_empty()).then(|| parts.join("/"))
}
