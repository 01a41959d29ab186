//! What was deployed, kept as a state of the shape that Terraform writes: lineage, serial, outputs, and one resource for each object.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use crate::ObjectRef;

/// Why a state can't be used.
#[derive(Debug, thiserror::Error)]
pub enum InventoryError {
    #[error("the state can't be read: {0}")]
    Malformed(#[from] serde_json::Error),
    #[error("the state was written by another type of component")]
    Foreign,
}

/// The cluster that objects are in, by what stays the same as long as it lives.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cluster {
    /// Of the namespace `kube-system`.
    pub uid: String,
    pub server: String,
}

/// An object that was deployed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Entry {
    #[serde(flatten)]
    pub of: ObjectRef,
    /// Empty until it is known.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub uid: String,
}

/// An output of a component.
#[derive(Debug, Clone, PartialEq)]
pub struct Output {
    pub value: Value,
    pub sensitive: bool,
}

/// What only the deployer that wrote it reads.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Deployed {
    /// The release of a chart.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub release: Option<String>,
    pub namespace: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub storage: Option<String>,
    /// The last run of a Job, if it succeeded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ran: Option<Value>,
    /// The last run of a Job that was begun, whatever became of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub begun: Option<u64>,
}

/// A state of a component of Kubernetes.
#[derive(Debug, Clone, PartialEq)]
pub struct Inventory {
    pub lineage: String,
    pub serial: u64,
    pub cluster: Cluster,
    pub deployed: Deployed,
    pub objects: Vec<Entry>,
    pub outputs: Vec<(String, Output)>,
}

const FORMAT: &str = "ferry";

impl Inventory {
    pub fn read(text: &[u8]) -> Result<Self, InventoryError> {
        let document: Value = serde_json::from_slice(text)?;
        let own = &document[FORMAT];
        if !own.is_object() {
            return Err(InventoryError::Foreign);
        }
        let resources = document["resources"].as_array().cloned().unwrap_or_default();
        let objects = resources
            .into_iter()
            .map(|resource| serde_json::from_value(resource["instances"][0]["attributes"].clone()));
        Ok(Self {
            lineage: document["lineage"].as_str().unwrap_or_default().to_owned(),
            serial: document["serial"].as_u64().unwrap_or_default(),
            cluster: serde_json::from_value(own["cluster"].clone())?,
            deployed: serde_json::from_value(own["deployed"].clone())?,
            objects: objects.collect::<Result<_, _>>()?,
            // Outputs are written only.
            outputs: Vec::new(),
        })
    }

    /// The document. `terraform::read_state` reads it too.
    pub fn text(&self) -> String {
        let outputs = self.outputs.iter().map(|(name, output)| {
            let kind = match &output.value {
                Value::String(_) => json!("string"),
                Value::Number(_) => json!("number"),
                Value::Bool(_) => json!("bool"),
                Value::Null | Value::Array(_) | Value::Object(_) => json!("dynamic"),
            };
            (name.clone(), json!({ "value": output.value, "type": kind, "sensitive": output.sensitive }))
        });
        let resources: Vec<Value> = self.objects.iter().map(resource).collect();
        let document = Document {
            version: 4,
            terraform_version: FORMAT,
            serial: self.serial,
            lineage: &self.lineage,
            outputs: outputs.collect(),
            resources,
            ferry: json!({ "cluster": self.cluster, "deployed": self.deployed }),
        };
        serde_json::to_string(&document).unwrap_or_default()
    }
}

/// Its serial stands near its beginning, where it is looked for.
#[derive(Serialize)]
struct Document<'a> {
    version: u32,
    terraform_version: &'a str,
    serial: u64,
    lineage: &'a str,
    outputs: Map<String, Value>,
    resources: Vec<Value>,
    ferry: Value,
}

/// What was begun and is not known to be there is marked, as Terraform marks what it did not finish.
fn resource(entry: &Entry) -> Value {
    let mut instance = json!({ "attributes": entry });
    if entry.uid.is_empty() {
        instance["status"] = json!("tainted");
    }
    json!({
        "mode": "managed", "type": entry.of.kind, "name": entry.of.name, "address": entry.of.address(),
        "provider": "provider[\"kubernetes\"]", "instances": [instance],
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read() {
        let of = ObjectRef {
            group: "apps".into(),
            version: "v1".into(),
            kind: "Deployment".into(),
            namespace: Some("shop".into()),
            name: "web".into(),
        };
        let inventory = Inventory {
            lineage: "l".into(),
            serial: 3,
            cluster: Cluster { uid: "u".into(), server: "https://127.0.0.1".into() },
            deployed: Deployed { namespace: "shop".into(), ..Deployed::default() },
            objects: vec![Entry { of, uid: "x".into() }],
            outputs: Vec::new(),
        };
        assert_eq!(Inventory::read(inventory.text().as_bytes()).expect("state"), inventory);
        assert!(matches!(Inventory::read(b"{\"version\":4}"), Err(InventoryError::Foreign)));
    }
}
