//! The plan as it is kept and shown.

use serde::{Deserialize, Serialize};

/// The format of `Plan` that this crate writes.
pub const FORMAT: u32 = 1;

/// What a run would do, masked and bounded.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Plan {
    pub format: u32,
    /// The program's own version, as the document says it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub terraform_version: Option<String>,
    /// Exact, whatever was left out of the lists.
    pub changes: Changes,
    /// How many resources that usually hold data would be destroyed or replaced. Exact too.
    #[serde(default)]
    pub stateful: u64,
    #[serde(default)]
    pub resources: Vec<ResourceChange>,
    /// What was changed outside of terraform. It is shown only.
    #[serde(default)]
    pub drift: Vec<ResourceChange>,
    #[serde(default)]
    pub outputs: Vec<OutputChange>,
    #[serde(default, skip_serializing_if = "Omitted::is_empty")]
    pub omitted: Omitted,
    /// Whether applying this plan brings everything to what the configuration says. Absent in old documents.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub complete: Option<bool>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub errored: Option<bool>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub applyable: Option<bool>,
}

impl Plan {
    /// Whether applying would change nothing. A plan that ended with an error may not know, and one that can be applied
    /// though nothing was counted (a refresh only) changes the state.
    pub fn is_noop(&self) -> bool {
        let changes_more = self.applyable == Some(true) && self.changes.read == 0;
        self.changes.is_noop() && self.errored != Some(true) && !changes_more
    }

    /// The listed resources that hold data and would be destroyed or replaced.
    pub fn data_at_risk(&self) -> impl Iterator<Item = &ResourceChange> {
        self.resources.iter().filter(|resource| resource.stateful)
    }
}

/// How many things would change. A replacement is not also counted as a creation and a destruction; an import or a move
/// is counted beside the action on the same resource.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Changes {
    pub create: u64,
    pub update: u64,
    pub replace: u64,
    pub destroy: u64,
    pub read: u64,
    pub import: u64,
    pub moved: u64,
    pub forget: u64,
    pub outputs: u64,
    /// Changes that a later plan has to make.
    pub deferred: u64,
    /// Actions of providers that would be invoked.
    pub invoke: u64,
}

impl Changes {
    /// Whether nothing would change. Reading a data source is no change.
    pub fn is_noop(&self) -> bool {
        Self { read: 0, ..*self } == Self::default()
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ResourceChange {
    pub address: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub previous_address: Option<String>,
    /// The id under which an existing thing is imported. It is empty while unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub import_id: Option<String>,
    /// The resource type: `aws_s3_bucket`.
    pub kind: String,
    /// The provider's short name: `aws`.
    pub provider: String,
    pub action: Action,
    /// Why, as the end of a sentence: "because it is tainted".
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// The key of an object that an earlier replacement left behind.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deposed: Option<String>,
    /// It would be destroyed or replaced, and things of its type usually hold data.
    #[serde(default, skip_serializing_if = "is_false")]
    pub stateful: bool,
    /// The leaves that change.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub attributes: Vec<AttributeChange>,
    /// How many changed leaves are not in `attributes`.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub attributes_omitted: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Action {
    Create,
    Update,
    /// Destroyed, then created.
    ReplaceDestroyFirst,
    /// Created, then the old one destroyed.
    ReplaceCreateFirst,
    /// Created, and the old one left in place and forgotten.
    ReplaceForget,
    Destroy,
    Read,
    /// Dropped from the state and left in place.
    Forget,
    /// Only imported or moved.
    Noop,
}

impl Action {
    pub fn is_replace(self) -> bool {
        matches!(self, Self::ReplaceDestroyFirst | Self::ReplaceCreateFirst | Self::ReplaceForget)
    }

    /// Whether the existing thing ends.
    pub fn destroys(self) -> bool {
        matches!(self, Self::ReplaceDestroyFirst | Self::ReplaceCreateFirst | Self::Destroy)
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AttributeChange {
    /// Dotted, with list indexes: `tags.Name`, `ingress[0].port`.
    pub path: String,
    pub before: Shown,
    pub after: Shown,
    /// This change can't be made in place.
    #[serde(default, skip_serializing_if = "is_false")]
    pub replaces: bool,
}

/// A value as people may see it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "is", rename_all = "snake_case")]
pub enum Shown {
    Absent,
    /// As JSON writes it (a text is in quotes). `cut_chars` characters of it are left out.
    Value {
        text: String,
        #[serde(default, skip_serializing_if = "is_zero")]
        cut_chars: u64,
    },
    Sensitive,
    /// Known after apply.
    Unknown,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OutputChange {
    pub name: String,
    pub action: OutputAction,
    /// The leaves that change; each path begins with the output's name.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub values: Vec<AttributeChange>,
    #[serde(default, skip_serializing_if = "is_zero")]
    pub values_omitted: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OutputAction {
    Create,
    Update,
    Destroy,
}

/// What the limits left out.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Omitted {
    /// Resource changes that are not listed.
    pub resources: u64,
    /// Drifted resources that are not listed.
    pub drift: u64,
    pub outputs: u64,
    /// Changed leaves that are not listed, of the resources and outputs that are.
    pub attributes: u64,
}

impl Omitted {
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// How much of a plan is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    pub value_chars: usize,
    pub attributes_per_resource: usize,
    pub resources: usize,
    /// Roughly what the whole model may take as JSON.
    pub model_bytes: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self { value_chars: 400, attributes_per_resource: 200, resources: 5_000, model_bytes: 8 << 20 }
    }
}

fn is_false(value: &bool) -> bool {
    !value
}

fn is_zero(value: &u64) -> bool {
    *value == 0
}
