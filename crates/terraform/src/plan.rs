//! Reads the document of `terraform show -json PLANFILE`.

use std::io::Read;

use serde::Deserialize;
use serde::de::{IgnoredAny, MapAccess};
use serde_json::Value;

use crate::address;
use crate::diff::{Diff, Marks, Path, Side};
use crate::keep::{Keeper, Room, bytes_of_attribute};
use crate::model::{Action, Changes, FORMAT, Limits, Omitted, OutputAction, OutputChange, Plan, ResourceChange};
use crate::reason;
use crate::stateful::holds_data;
use crate::stream::{Each, EachEntry, Fields, ReadError, read_document};

const OUTPUT_BYTES: usize = 80;

/// Why a plan can't be read.
#[derive(Debug, thiserror::Error)]
pub enum PlanError {
    #[error("the plan can't be read")]
    Malformed(#[source] ReadError),
    #[error("this is not a terraform plan: it has no {0}")]
    NotAPlan(&'static str),
    #[error("the plan has the format version {0}; only versions 0.x and 1.x are read")]
    Version(String),
    #[error("the plan has an action that is not known: {0}")]
    UnknownAction(String),
}

/// Reads a plan. Every text passes `masks`, before it is shortened. Sensitive values are left out by what the document
/// says; providers may copy them to places that are not marked, so `masks` should know `secrets_of_plan` too.
pub fn read_plan(reader: impl Read, masks: &dyn Fn(&str) -> String, limits: &Limits) -> Result<Plan, PlanError> {
    let room = |share: usize| Room { resources: limits.resources, bytes: limits.model_bytes / 8 * share };
    let mut reading = Reading {
        masks,
        limits,
        head: Head::default(),
        changes: Changes::default(),
        resources: Keeper::new(room(6)),
        drift: Keeper::new(room(1)),
        outputs: Vec::new(),
        outputs_omitted: 0,
        output_bytes_left: limits.model_bytes / 8,
        stateful: 0,
        unknown_action: None,
    };
    read_document(reader, &mut reading).map_err(PlanError::Malformed)?;
    reading.finish()
}

#[derive(Deserialize)]
pub(crate) struct RawResourceChange {
    #[serde(default)]
    address: String,
    previous_address: Option<String>,
    mode: Option<String>,
    #[serde(default, rename = "type")]
    kind: String,
    index: Option<Value>,
    #[serde(default)]
    provider_name: String,
    deposed: Option<String>,
    action_reason: Option<String>,
    #[serde(default)]
    pub(crate) change: RawChange,
}

#[derive(Default, Deserialize)]
#[serde(default)]
pub(crate) struct RawChange {
    actions: Option<Vec<String>>,
    pub(crate) before: Value,
    pub(crate) after: Value,
    after_unknown: Value,
    pub(crate) before_sensitive: Value,
    pub(crate) after_sensitive: Value,
    replace_paths: Option<Vec<Value>>,
    importing: Option<Importing>,
}

#[derive(Deserialize)]
struct Importing {
    id: Option<String>,
}

impl RawChange {
    /// None when the actions are not known.
    fn action(&self) -> Option<Action> {
        let actions: Vec<&str> = self.actions.iter().flatten().map(String::as_str).collect();
        Some(match actions.as_slice() {
            ["no-op"] => Action::Noop,
            ["create"] => Action::Create,
            ["read"] => Action::Read,
            ["update"] => Action::Update,
            ["delete", "create"] => Action::ReplaceDestroyFirst,
            ["create", "delete"] => Action::ReplaceCreateFirst,
            ["create", "forget"] | ["forget", "create"] => Action::ReplaceForget,
            ["delete"] => Action::Destroy,
            ["forget"] => Action::Forget,
            _ => return None,
        })
    }

    fn replace_paths(&self) -> &[Value] {
        self.replace_paths.as_deref().unwrap_or_default()
    }

    fn compare(&self, diff: &mut Diff, path: Path) {
        let before = Side::new(&self.before, Marks::of(&self.before_sensitive), Marks::NONE);
        let after = Side::new(&self.after, Marks::of(&self.after_sensitive), Marks::of(&self.after_unknown));
        diff.compare(path, before, after);
    }
}

#[derive(Default)]
struct Head {
    format_version: Option<String>,
    terraform_version: Option<String>,
    complete: Option<bool>,
    errored: Option<bool>,
    applyable: Option<bool>,
    /// Something was there that only a plan has.
    is_plan: bool,
}

struct Reading<'a> {
    masks: &'a dyn Fn(&str) -> String,
    limits: &'a Limits,
    head: Head,
    changes: Changes,
    resources: Keeper,
    drift: Keeper,
    outputs: Vec<OutputChange>,
    outputs_omitted: u64,
    output_bytes_left: usize,
    stateful: u64,
    unknown_action: Option<String>,
}

impl<'de> Fields<'de> for Reading<'_> {
    fn field<A: MapAccess<'de>>(&mut self, name: &str, values: &mut A) -> Result<(), A::Error> {
        let plan_fields = ["planned_values", "resource_changes", "output_changes", "configuration", "applyable"];
        self.head.is_plan |= plan_fields.contains(&name);
        match name {
            "format_version" => self.head.format_version = values.next_value()?,
            "terraform_version" => self.head.terraform_version = values.next_value()?,
            "complete" => self.head.complete = values.next_value()?,
            "errored" => self.head.errored = values.next_value()?,
            "applyable" => self.head.applyable = values.next_value()?,
            "resource_changes" => values.next_value_seed(Each::new(|raw| self.resource(&raw)))?,
            "resource_drift" => values.next_value_seed(Each::new(|raw| self.drifted(&raw)))?,
            "output_changes" => values.next_value_seed(EachEntry::new(|name, raw| self.output(&name, &raw)))?,
            "deferred_changes" => values.next_value_seed(Each::new(|_: IgnoredAny| self.changes.deferred += 1))?,
            "action_invocations" => values.next_value_seed(Each::new(|_: IgnoredAny| self.changes.invoke += 1))?,
            _ => drop(values.next_value::<IgnoredAny>()?),
        }
        Ok(())
    }
}

impl Reading<'_> {
    fn resource(&mut self, raw: &RawResourceChange) {
        let Some(action) = self.known(&raw.change) else { return };
        self.count(raw, action);
        let is_shown = action != Action::Noop || raw.change.importing.is_some() || raw.moved_from().is_some();
        if is_shown {
            let change = self.shown(raw, action);
            self.stateful += u64::from(change.stateful);
            self.resources.add(change);
        }
    }

    fn drifted(&mut self, raw: &RawResourceChange) {
        let Some(action) = self.known(&raw.change) else { return };
        if action != Action::Noop {
            // What drifted is not going to be destroyed by this plan.
            let change = ResourceChange { stateful: false, ..self.shown(raw, action) };
            self.drift.add(change);
        }
    }

    fn known(&mut self, change: &RawChange) -> Option<Action> {
        let action = change.action();
        if action.is_none() && self.unknown_action.is_none() {
            self.unknown_action = Some(change.actions.iter().flatten().cloned().collect::<Vec<_>>().join(", "));
        }
        action
    }

    fn count(&mut self, raw: &RawResourceChange, action: Action) {
        let changes = &mut self.changes;
        changes.import += u64::from(raw.change.importing.is_some());
        changes.moved += u64::from(raw.moved_from().is_some());
        match action {
            Action::Create => changes.create += 1,
            Action::Update => changes.update += 1,
            Action::ReplaceDestroyFirst | Action::ReplaceCreateFirst | Action::ReplaceForget => changes.replace += 1,
            Action::Destroy => changes.destroy += 1,
            Action::Read => changes.read += 1,
            Action::Forget => changes.forget += 1,
            Action::Noop => {}
        }
    }

    fn shown(&self, raw: &RawResourceChange, action: Action) -> ResourceChange {
        let mask = |text: &str| (self.masks)(text);
        let mut diff = Diff::new(self.masks, self.limits, raw.change.replace_paths());
        if action != Action::Forget {
            raw.change.compare(&mut diff, Path::ROOT);
        }
        let reason = reason::sentence(raw.action_reason.as_deref(), raw.change.replace_paths(), self.masks);
        let is_managed = raw.mode.as_deref() != Some("data");
        ResourceChange {
            address: address::masked(&raw.address, raw.index.as_ref(), self.masks),
            previous_address: raw.moved_from().map(mask),
            import_id: raw.change.importing.as_ref().map(|importing| mask(importing.id.as_deref().unwrap_or_default())),
            kind: mask(&raw.kind),
            provider: mask(address::provider_name(&raw.provider_name)),
            action,
            reason,
            deposed: raw.deposed.as_deref().filter(|key| !key.is_empty()).map(mask),
            stateful: is_managed && action.destroys() && holds_data(&raw.kind),
            attributes: diff.changes,
            attributes_omitted: diff.omitted,
        }
    }

    fn output(&mut self, name: &str, raw: &RawChange) {
        let action = match self.known(raw) {
            Some(Action::Create) => OutputAction::Create,
            Some(Action::Destroy | Action::Forget) => OutputAction::Destroy,
            None | Some(Action::Noop | Action::Read) => return,
            Some(_) => OutputAction::Update,
        };
        self.changes.outputs += 1;
        let mut diff = Diff::new(self.masks, self.limits, &[]);
        raw.compare(&mut diff, Path::ROOT.field(name));
        let bytes = OUTPUT_BYTES + name.len() + diff.changes.iter().map(bytes_of_attribute).sum::<usize>();
        if bytes > self.output_bytes_left {
            self.outputs_omitted += 1;
            return;
        }
        self.output_bytes_left -= bytes;
        let name = (self.masks)(name);
        self.outputs.push(OutputChange { name, action, values: diff.changes, values_omitted: diff.omitted });
    }

    fn finish(self) -> Result<Plan, PlanError> {
        let version = self.head.format_version.ok_or(PlanError::NotAPlan("format_version"))?;
        if !version.starts_with("1.") && !version.starts_with("0.") {
            return Err(PlanError::Version((self.masks)(&version)));
        }
        if !self.head.is_plan {
            return Err(PlanError::NotAPlan("resource_changes"));
        }
        if let Some(actions) = self.unknown_action {
            return Err(PlanError::UnknownAction((self.masks)(&actions)));
        }
        let (resources, drift) = (self.resources.finish(), self.drift.finish());
        let listed = resources.resources.iter().chain(&drift.resources);
        let attributes = listed.map(|change| change.attributes_omitted).sum::<u64>()
            + self.outputs.iter().map(|output| output.values_omitted).sum::<u64>();
        Ok(Plan {
            format: FORMAT,
            terraform_version: self.head.terraform_version.as_deref().map(self.masks),
            changes: self.changes,
            stateful: self.stateful,
            resources: resources.resources,
            drift: drift.resources,
            outputs: self.outputs,
            omitted: Omitted {
                resources: resources.omitted,
                drift: drift.omitted,
                outputs: self.outputs_omitted,
                attributes,
            },
            complete: self.head.complete,
            errored: self.head.errored,
            applyable: self.head.applyable,
        })
    }
}

impl RawResourceChange {
    fn moved_from(&self) -> Option<&str> {
        self.previous_address.as_deref().filter(|previous| !previous.is_empty() && *previous != self.address)
    }
}
