//! Follows the lines of `terraform plan|apply|destroy -json`.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::diagnostic::Diagnostic;
use crate::show::shorten;

const RESOURCES_MAX: usize = 50_000;
const ERRORS_MAX: usize = 50;
const ADDRESS_CHARS: usize = 1_000;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    Started,
    Done,
    Failed,
}

/// What a run did with a resource. One that is replaced is there twice: destroyed, and created.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ResourceProgress {
    pub address: String,
    /// As terraform says it: `create`, `update`, `delete`, `read`.
    pub action: String,
    pub status: Status,
    /// Absent until it ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub took_s: Option<u64>,
}

/// Takes the lines of a run one after the other. Nothing here is masked: mask the lines before or after.
#[derive(Debug, Clone, Default)]
pub struct Progress {
    resources: Vec<ResourceProgress>,
    /// Where those that have not ended are in `resources`, by address and action.
    running: BTreeMap<(String, String), usize>,
    errors: Vec<String>,
}

impl Progress {
    /// The text for people, of one line or more, if there is anything to say. What is not JSON is passed through.
    pub fn line(&mut self, line: &str) -> Option<String> {
        let message = match serde_json::from_str(line) {
            Ok(message @ Value::Object(_)) => Message(message),
            Ok(_) | Err(_) => return Some(line.to_owned()),
        };
        match message.kind() {
            "apply_start" | "apply_progress" | "apply_complete" | "apply_errored" => self.apply(&message),
            "provision_start" | "provision_complete" => None,
            "provision_progress" | "provision_errored" => Some(message.provisioner_says()),
            "ephemeral_op_errored" => Some(format!("{}: failed", message.address())),
            "diagnostic" => Some(self.diagnostic(&message)),
            "resource_drift" => Some(format!("{}: changed outside of terraform", message.address())),
            // The plan is read from its file, and outputs from the state.
            "planned_change" | "outputs" | "refresh_start" | "refresh_complete" => None,
            "ephemeral_op_start" | "ephemeral_op_progress" | "ephemeral_op_complete" => None,
            _ => Some(message.0.get("@message").and_then(Value::as_str).unwrap_or(line).to_owned()),
        }
    }

    /// All that were started, in that order; at most 50,000 are kept.
    pub fn resources(&self) -> &[ResourceProgress] {
        &self.resources
    }

    /// Those that were started and have not ended.
    pub fn unfinished(&self) -> impl Iterator<Item = &ResourceProgress> {
        self.resources.iter().filter(|resource| resource.status == Status::Started)
    }

    /// The first error in one line.
    pub fn first_error(&self) -> Option<&str> {
        self.errors.first().map(String::as_str)
    }

    /// The errors seen, each in one line; at most 50 are kept.
    pub fn errors(&self) -> &[String] {
        &self.errors
    }

    fn apply(&mut self, message: &Message) -> Option<String> {
        let (address, action) = (message.address(), message.action());
        let (doing, done) = verbs(&action);
        let took_s = message.elapsed_s();
        let text = match message.kind() {
            "apply_start" => format!("{address}: {doing}"),
            "apply_progress" => format!("{address}: still {doing} after {took_s} s"),
            "apply_complete" => format!("{address}: {done} in {took_s} s"),
            _ => format!("{address}: {doing} failed after {took_s} s"),
        };
        match message.kind() {
            "apply_start" => self.start(address, action),
            "apply_complete" => self.end(address, action, Status::Done, took_s),
            "apply_errored" => self.end(address, action, Status::Failed, took_s),
            _ => {}
        }
        Some(text)
    }

    fn start(&mut self, address: String, action: String) {
        let key = (address, action);
        if self.resources.len() == RESOURCES_MAX || self.running.contains_key(&key) {
            return;
        }
        self.running.insert(key.clone(), self.resources.len());
        let (address, action) = key;
        self.resources.push(ResourceProgress { address, action, status: Status::Started, took_s: None });
    }

    fn end(&mut self, address: String, action: String, status: Status, took_s: u64) {
        let running = self.running.remove(&(address, action));
        if let Some(resource) = running.and_then(|at| self.resources.get_mut(at)) {
            resource.status = status;
            resource.took_s = Some(took_s);
        }
    }

    fn diagnostic(&mut self, message: &Message) -> String {
        let diagnostic = Diagnostic(message.0.get("diagnostic").unwrap_or(&message.0));
        if diagnostic.is_error() && self.errors.len() < ERRORS_MAX {
            self.errors.push(diagnostic.one_line());
        }
        diagnostic.text()
    }
}

/// One line, an object. Every field may be absent or of another type.
struct Message(Value);

impl Message {
    fn kind(&self) -> &str {
        self.0.get("type").and_then(Value::as_str).unwrap_or_default()
    }

    fn hook(&self, name: &str) -> Option<&Value> {
        self.0.get("hook").or_else(|| self.0.get("change"))?.get(name)
    }

    fn address(&self) -> String {
        let address = self.hook("resource").and_then(|resource| resource.get("addr")).and_then(Value::as_str);
        shorten(address.unwrap_or("a resource"), ADDRESS_CHARS).0
    }

    fn action(&self) -> String {
        shorten(self.hook("action").and_then(Value::as_str).unwrap_or_default(), ADDRESS_CHARS).0
    }

    fn elapsed_s(&self) -> u64 {
        self.hook("elapsed_seconds").and_then(Value::as_f64).unwrap_or_default() as u64
    }

    fn provisioner_says(&self) -> String {
        let provisioner = self.hook("provisioner").and_then(Value::as_str).unwrap_or("provisioner");
        let output = self.hook("output").and_then(Value::as_str).unwrap_or("failed");
        format!("{} ({provisioner}): {output}", self.address())
    }
}

/// What is being done, and what was done.
fn verbs(action: &str) -> (&'static str, &'static str) {
    match action {
        "create" => ("creating", "created"),
        "update" => ("updating", "updated"),
        "delete" => ("destroying", "destroyed"),
        "read" => ("reading", "read"),
        "import" => ("importing", "imported"),
        "forget" | "remove" => ("forgetting", "forgotten"),
        _ => ("working", "finished"),
    }
}
