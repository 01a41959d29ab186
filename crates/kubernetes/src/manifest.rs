//! Manifests: YAML with any number of documents, read into objects.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::ObjectRef;

/// Lists inside lists are opened this deep.
const LISTS_DEPTH_MAX: usize = 8;

/// Why a manifest can't be used.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum ManifestError {
    #[error("the manifest is not valid YAML: {0}")]
    Yaml(String),
    #[error("document {at} of the manifest is not an object: it needs `apiVersion`, `kind` and `metadata.name`")]
    NotAnObject { at: usize },
    #[error(
        "document {at} of the manifest ({kind}) has `generateName`: each apply would create another object. Give it a `name`"
    )]
    GenerateName { at: usize, kind: String },
    #[error("document {at} is not a Kubernetes object: it has no `kind`")]
    NoKind { at: usize },
    #[error("the manifest names {0} twice")]
    Twice(String),
    #[error("the manifest holds no objects")]
    Empty,
}

/// The documents of a text, as they are.
fn documents(text: &str) -> Result<Vec<Value>, ManifestError> {
    let options = serde_saphyr::options! {
        // As Helm and kubectl have it: charts render such things.
        duplicate_keys: serde_saphyr::options::DuplicateKeyPolicy::LastWins,
        budget: serde_saphyr::budget! {
            max_documents: 20_000,
            max_nodes: 8_000_000,
            max_events: 16_000_000,
            max_total_scalar_bytes: 256 << 20,
        },
    };
    serde_saphyr::from_multiple_with_options(text, options).map_err(|e| ManifestError::Yaml(one_line(&e.to_string())))
}

/// Reads objects that somebody has read from a cluster, lists opened. They may lack what a manifest must have.
pub fn read_objects(text: &str) -> Result<Vec<Value>, ManifestError> {
    let mut objects = Vec::new();
    for (at, document) in documents(text)?.into_iter().enumerate() {
        open(document, LISTS_DEPTH_MAX, &mut |object| match object["kind"].is_string() {
            true => {
                objects.push(object);
                Ok(())
            }
            false => Err(ManifestError::NoKind { at: at + 1 }),
        })?;
    }
    Ok(objects)
}

/// Reads the objects of a manifest, lists opened, in their order.
pub fn parse(text: &str) -> Result<Vec<Value>, ManifestError> {
    let mut objects = Vec::new();
    for (at, document) in documents(text)?.into_iter().enumerate() {
        open(document, LISTS_DEPTH_MAX, &mut |object| {
            objects.push(checked(object, at + 1)?);
            Ok(())
        })?;
    }
    let mut seen = BTreeMap::new();
    for object in &objects {
        let Some(of) = ObjectRef::of(object) else { continue };
        let address = of.address();
        if seen.insert((of.group, of.kind, of.namespace, of.name), ()).is_some() {
            return Err(ManifestError::Twice(address));
        }
    }
    if objects.is_empty() { Err(ManifestError::Empty) } else { Ok(objects) }
}

/// Reads one document of YAML. An error tells the place, and repeats nothing of the text, which may hold secrets.
pub fn read_yaml(text: &str) -> Result<Value, String> {
    serde_saphyr::from_str(text).map_err(|e| one_line(&e.to_string()))
}

/// Parsers point at the place below their message; what they say stands in the first line.
fn one_line(text: &str) -> String {
    text.lines().next().unwrap_or_default().to_owned()
}

/// Hands out a document, or what is in it where it is a list.
fn open(
    document: Value,
    depth: usize,
    take: &mut impl FnMut(Value) -> Result<(), ManifestError>,
) -> Result<(), ManifestError> {
    if document.is_null() {
        return Ok(());
    }
    let kind = document["kind"].as_str().unwrap_or_default();
    if depth > 0 && kind.ends_with("List") && document["items"].is_array() {
        let Value::Object(mut list) = document else { return Ok(()) };
        let Some(Value::Array(items)) = list.remove("items") else { return Ok(()) };
        for item in items {
            open(item, depth - 1, take)?;
        }
        return Ok(());
    }
    take(document)
}

/// An object that can be applied.
fn checked(object: Value, at: usize) -> Result<Value, ManifestError> {
    if ObjectRef::of(&object).is_some() {
        return Ok(object);
    }
    let kind = object["kind"].as_str().unwrap_or_default();
    match object["metadata"]["generateName"].is_string() && !kind.is_empty() {
        true => Err(ManifestError::GenerateName { at, kind: kind.to_owned() }),
        false => Err(ManifestError::NotAnObject { at }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn documents_and_lists_become_objects() {
        let text = "---\n# nothing\n---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n---\napiVersion: v1\nkind: List\nitems:\n- {apiVersion: v1, kind: Secret, metadata: {name: b}}\n";
        let objects = parse(text).expect("objects");
        let names: Vec<String> = objects.iter().filter_map(ObjectRef::of).map(|of| of.address()).collect();
        assert_eq!(names, ["ConfigMap/a", "Secret/b"]);
    }

    #[test]
    fn what_can_not_be_applied_is_said_with_its_place() {
        let map = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n";
        for (text, error) in [
            ("", ManifestError::Empty),
            ("a: [", ManifestError::Yaml(String::new())),
            ("kind: Pod\n", ManifestError::NotAnObject { at: 1 }),
            (&format!("{map}---\n{map}"), ManifestError::Twice("ConfigMap/a".into())),
            (
                "apiVersion: batch/v1\nkind: Job\nmetadata: {generateName: a-}\n",
                ManifestError::GenerateName { at: 1, kind: "Job".into() },
            ),
        ] {
            match (parse(text).expect_err(text), error) {
                (ManifestError::Yaml(said), ManifestError::Yaml(_)) => assert!(!said.is_empty()),
                (found, error) => assert_eq!(found, error),
            }
        }
    }
}
