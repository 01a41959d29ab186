//! Reads a state file, format version 4.

use std::collections::BTreeMap;
use std::fmt;
use std::io::Read;

use serde::de::{IgnoredAny, MapAccess};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::address;
use crate::secrets::{Collector, Secrets};
use crate::stream::{Each, EachEntry, Fields, ReadError, read_document};

const VERSION: u64 = 4;
const RESOURCES_MAX: usize = 50_000;
const OUTPUT_BYTES_MAX: usize = 16 << 20;

/// Why a state can't be read.
#[derive(Debug, thiserror::Error)]
pub enum StateError {
    #[error("the state can't be read")]
    Malformed(#[source] ReadError),
    #[error("this is not a terraform state: it has no {0}")]
    NotAState(&'static str),
    #[error("the state is encrypted")]
    Encrypted,
    #[error("the state has the format version {0}; only version 4 is read")]
    Version(u64),
    #[error("the outputs take more than {} MiB", .0 >> 20)]
    OutputsTooLarge(usize),
}

/// What a state says of itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StateHead {
    pub terraform_version: String,
    pub serial: u64,
    pub lineage: String,
}

/// A state without the attributes of its resources. It holds secrets: it is for the program, not for people.
#[derive(Clone, PartialEq)]
pub struct State {
    pub head: StateHead,
    /// The outputs that are not sensitive, as they are.
    pub outputs: BTreeMap<String, Output>,
    pub sensitive_outputs: BTreeMap<String, Output>,
    pub resources: Vec<StateResource>,
    /// How many resource instances are beyond the limit, and not in `resources`.
    pub resources_omitted: u64,
    /// The texts of sensitive outputs and sensitive attributes.
    pub secrets: Secrets,
}

#[derive(Clone, PartialEq, Serialize, Deserialize)]
pub struct Output {
    pub sensitive: bool,
    pub value: Value,
    /// The type as terraform writes it: `"string"`, `["list", "string"]`.
    pub kind: Value,
}

/// Secrets do not get into logs by accident.
impl fmt::Debug for State {
    fn fmt(&self, formatter: &mut fmt::Formatter) -> fmt::Result {
        let mut state = formatter.debug_struct("State");
        state.field("head", &self.head).field("resources", &self.resources.len()).finish_non_exhaustive()
    }
}

impl fmt::Debug for Output {
    fn fmt(&self, formatter: &mut fmt::Formatter) -> fmt::Result {
        formatter.debug_struct("Output").field("sensitive", &self.sensitive).finish_non_exhaustive()
    }
}

/// One instance of a resource.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StateResource {
    pub address: String,
    pub kind: String,
    pub provider: String,
    pub mode: Mode,
    pub status: InstanceStatus,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Mode {
    #[default]
    Managed,
    Data,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum InstanceStatus {
    Ready,
    /// To be replaced by the next apply.
    Tainted,
    /// Left behind by a replacement that did not end; to be destroyed by the next apply.
    Deposed,
}

/// Reads the whole state. Addresses pass `mask`, for their index keys may hold anything; outputs do not.
pub fn read_state(reader: impl Read, mask: &dyn Fn(&str) -> String) -> Result<State, StateError> {
    let mut reading = Reading {
        head: HeadFields::default(),
        mask,
        outputs: BTreeMap::new(),
        sensitive_outputs: BTreeMap::new(),
        output_bytes: 0,
        resources: Vec::new(),
        resources_omitted: 0,
        secrets: Collector::default(),
    };
    read_document(reader, &mut reading).map_err(StateError::Malformed)?;
    if reading.output_bytes > OUTPUT_BYTES_MAX {
        return Err(StateError::OutputsTooLarge(OUTPUT_BYTES_MAX));
    }
    Ok(State {
        head: reading.head.finish()?,
        outputs: reading.outputs,
        sensitive_outputs: reading.sensitive_outputs,
        resources: reading.resources,
        resources_omitted: reading.resources_omitted,
        secrets: reading.secrets.finish(),
    })
}

/// Reads only what the state says of itself.
pub fn read_state_head(reader: impl Read) -> Result<StateHead, StateError> {
    let mut head = HeadFields::default();
    read_document(reader, &mut head).map_err(StateError::Malformed)?;
    head.finish()
}

#[derive(Default)]
struct HeadFields {
    version: Option<u64>,
    terraform_version: Option<String>,
    serial: Option<u64>,
    lineage: Option<String>,
    is_encrypted: bool,
}

impl HeadFields {
    fn finish(self) -> Result<StateHead, StateError> {
        if self.is_encrypted {
            return Err(StateError::Encrypted);
        }
        let version = self.version.ok_or(StateError::NotAState("version"))?;
        if version != VERSION {
            return Err(StateError::Version(version));
        }
        Ok(StateHead {
            terraform_version: self.terraform_version.unwrap_or_default(),
            serial: self.serial.ok_or(StateError::NotAState("serial"))?,
            lineage: self.lineage.ok_or(StateError::NotAState("lineage"))?,
        })
    }
}

impl<'de> Fields<'de> for HeadFields {
    fn field<A: MapAccess<'de>>(&mut self, name: &str, values: &mut A) -> Result<(), A::Error> {
        match name {
            "version" => self.version = values.next_value()?,
            "terraform_version" => self.terraform_version = values.next_value()?,
            "serial" => self.serial = values.next_value()?,
            "lineage" => self.lineage = values.next_value()?,
            "encrypted_data" => {
                self.is_encrypted = true;
                values.next_value::<IgnoredAny>()?;
            }
            _ => drop(values.next_value::<IgnoredAny>()?),
        }
        Ok(())
    }
}

struct Reading<'a> {
    head: HeadFields,
    mask: &'a dyn Fn(&str) -> String,
    outputs: BTreeMap<String, Output>,
    sensitive_outputs: BTreeMap<String, Output>,
    output_bytes: usize,
    resources: Vec<StateResource>,
    resources_omitted: u64,
    secrets: Collector,
}

impl<'de> Fields<'de> for Reading<'_> {
    fn field<A: MapAccess<'de>>(&mut self, name: &str, values: &mut A) -> Result<(), A::Error> {
        match name {
            "outputs" => values.next_value_seed(EachEntry::new(|name, output| self.output(name, output))),
            "resources" => values.next_value_seed(Each::new(|resource| self.resource(resource))),
            _ => self.head.field(name, values),
        }
    }
}

#[derive(Deserialize)]
struct RawOutput {
    #[serde(default)]
    value: Value,
    #[serde(default, rename = "type")]
    kind: Value,
    #[serde(default)]
    sensitive: bool,
}

#[derive(Deserialize)]
struct RawResource {
    #[serde(default)]
    module: String,
    #[serde(default)]
    mode: Mode,
    #[serde(default, rename = "type")]
    kind: String,
    #[serde(default)]
    name: String,
    /// Written by Ferry's own deployers, whose names have another form.
    address: Option<String>,
    #[serde(default)]
    provider: String,
    instances: Option<Vec<Instance>>,
}

/// What is kept of an instance once it is read: its attributes are not.
#[derive(Deserialize)]
#[serde(from = "RawInstance")]
struct Instance {
    index_key: Option<Value>,
    status: InstanceStatus,
    secrets: Collector,
}

#[derive(Deserialize)]
struct RawInstance {
    index_key: Option<Value>,
    status: Option<String>,
    deposed: Option<String>,
    #[serde(default)]
    attributes: Value,
    sensitive_attributes: Option<Vec<Vec<Step>>>,
}

#[derive(Deserialize)]
struct Step {
    #[serde(default)]
    value: Value,
}

impl From<RawInstance> for Instance {
    fn from(raw: RawInstance) -> Self {
        let mut secrets = Collector::default();
        for path in raw.sensitive_attributes.iter().flatten() {
            secrets.at(&raw.attributes, &mut path.iter().map(|step| &step.value));
        }
        let status = match (&raw.deposed, raw.status.as_deref()) {
            (Some(key), _) if !key.is_empty() => InstanceStatus::Deposed,
            (_, Some("tainted")) => InstanceStatus::Tainted,
            _ => InstanceStatus::Ready,
        };
        Self { index_key: raw.index_key, status, secrets }
    }
}

impl Reading<'_> {
    fn output(&mut self, name: String, raw: RawOutput) {
        self.output_bytes += name.len() + raw.value.to_string().len();
        if self.output_bytes > OUTPUT_BYTES_MAX {
            return;
        }
        let output = Output { sensitive: raw.sensitive, value: raw.value, kind: raw.kind };
        if output.sensitive {
            self.secrets.all_of(&output.value);
            self.sensitive_outputs.insert(name, output);
        } else {
            self.outputs.insert(name, output);
        }
    }

    fn resource(&mut self, resource: RawResource) {
        let module = if resource.module.is_empty() { String::new() } else { format!("{}.", resource.module) };
        let data = if resource.mode == Mode::Data { "data." } else { "" };
        let base = match resource.address {
            Some(address) => address,
            None => format!("{module}{data}{}.{}", resource.kind, resource.name),
        };
        for instance in resource.instances.into_iter().flatten() {
            self.secrets.merge(instance.secrets);
            if self.resources.len() == RESOURCES_MAX {
                self.resources_omitted += 1;
                continue;
            }
            let key = instance.index_key.as_ref();
            self.resources.push(StateResource {
                address: address::masked(&format!("{base}{}", address::index(key)), key, self.mask),
                kind: resource.kind.clone(),
                provider: address::provider_name(&resource.provider).to_owned(),
                mode: resource.mode,
                status: instance.status,
            });
        }
    }
}
