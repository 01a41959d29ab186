//! Policies over a subject. Whatever can't be evaluated denies.

use std::io;
use std::num::NonZeroU32;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::{Duration, Instant};

use regorus::utils::limits::ExecutionTimerConfig;
use regorus::{Engine, Value};

use crate::check::{Info, PolicyError, load};
use crate::subject::Input;
use crate::{INPUT_BYTES_MAX, Policy, Report, Severity, Subject, VERDICTS_MAX, Verdict};

/// A longer message is not taken: cut before it is masked, it could show half a secret.
const RAW_MESSAGE_BYTES_MAX: usize = 64 << 10;
/// Steps of the interpreter between two looks at the time.
const STEPS: NonZeroU32 = NonZeroU32::new(256).expect("not zero");

/// Bounds of one call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// For all that is judged together, as JSON.
    pub input_bytes_max: u64,
    /// For one policy, over all that it judges.
    pub time_max: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self { input_bytes_max: INPUT_BYTES_MAX, time_max: Duration::from_secs(30) }
    }
}

/// Has the policies judge the subject. Who calls has chosen them: one that can't judge such a thing denies.
pub fn evaluate(policies: &[Policy], subject: &Subject, limits: Limits) -> Report {
    let mut report = Report::default();
    if policies.is_empty() {
        return report;
    }
    let inputs = inputs(subject, limits);
    for policy in policies {
        let mut said = Said { policy: &policy.name, verdicts: Vec::new(), left_out: Vec::new() };
        let outcome = match &inputs {
            _ if !policy.kind.judges(subject) => {
                Err(format!("policies of type `{}` can't judge {}", policy.kind.as_str(), subject.what()))
            }
            Err(reason) => Err(reason.clone()),
            Ok(inputs) => {
                caught(|| judge(policy, inputs, limits.time_max, &mut said, &mut report.evaluated)).unwrap_or_else(Err)
            }
        };
        if let Err(reason) = outcome {
            said.failed(None, &reason);
        }
        report.verdicts.extend(said.finish());
    }
    report
}

/// Catches a panic: its message, where it happened.
pub(crate) fn caught<T>(work: impl FnOnce() -> T) -> Result<T, String> {
    catch_unwind(AssertUnwindSafe(work)).map_err(|panic| {
        let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
        let text = text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_default();
        format!("the engine broke off: {text}")
    })
}

fn inputs(subject: &Subject, limits: Limits) -> Result<Vec<Input>, String> {
    if size(subject, limits.input_bytes_max) > limits.input_bytes_max {
        return Err(format!("what is to be judged is larger than {} bytes", limits.input_bytes_max));
    }
    subject.inputs().map_err(|error| format!("what is to be judged can't be read: {error}"))
}

/// The size as JSON; where it is above the bound, any number above it.
fn size(subject: &Subject, bound: u64) -> u64 {
    struct Count {
        bytes: u64,
        bound: u64,
    }
    impl io::Write for Count {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.bytes += bytes.len() as u64;
            if self.bytes > self.bound { Err(io::ErrorKind::FileTooLarge.into()) } else { Ok(bytes.len()) }
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    let mut count = Count { bytes: 0, bound };
    match serde_json::to_writer(&mut count, subject) {
        Ok(()) => count.bytes,
        Err(_) => u64::MAX,
    }
}

/// One policy over all that is judged.
fn judge(
    policy: &Policy,
    inputs: &[Input],
    time_max: Duration,
    said: &mut Said,
    evaluated: &mut usize,
) -> Result<(), String> {
    let (mut engine, info) = load(&policy.contents).map_err(|error| format!("it can't be read: {error}"))?;
    if !info.denies && !info.warns {
        return Err("it has neither a rule `deny` nor a rule `warn`".into());
    }
    let start = Instant::now();
    for input in inputs {
        let left = time_max.saturating_sub(start.elapsed());
        if left.is_zero() {
            return Err(timed_out(time_max));
        }
        match one(&mut engine, &info, input, left) {
            Ok(found) => {
                *evaluated += 1;
                for (severity, message, about) in found {
                    said.say(severity, message, about.or_else(|| input.object.clone()));
                }
            }
            Err(Broken::TimedOut) => return Err(timed_out(time_max)),
            // The other objects are judged all the same.
            Err(Broken::Error(reason)) => said.failed(input.object.clone(), &reason),
        }
    }
    Ok(())
}

fn timed_out(time_max: Duration) -> String {
    format!("it took longer than {time_max:?}")
}

enum Broken {
    TimedOut,
    Error(String),
}

type Found = (Severity, String, Option<String>);

/// One policy over one object.
fn one(engine: &mut Engine, info: &Info, input: &Input, left: Duration) -> Result<Vec<Found>, Broken> {
    engine.set_execution_timer_config(ExecutionTimerConfig { limit: left, check_interval: STEPS });
    engine.set_input(input.value.clone());
    let mut found = Vec::new();
    for rule in info.rules() {
        let value = evaluated(engine, &format!("data.{}.{rule}", info.package))?;
        let severity = if rule == "deny" { Severity::Deny } else { Severity::Warn };
        for (message, about) in messages(rule, &value).map_err(Broken::Error)? {
            found.push((severity, message, about));
        }
    }
    Ok(found)
}

fn evaluated(engine: &mut Engine, path: &str) -> Result<Value, Broken> {
    let value = engine.eval_rule(path.to_owned());
    // Nobody reads what was printed.
    let _ = engine.take_prints();
    value.map_err(|error| match error.downcast_ref::<regorus::LimitError>() {
        Some(regorus::LimitError::TimeLimitExceeded { .. }) => Broken::TimedOut,
        _ => Broken::Error(format!("it can't be evaluated: {}", PolicyError::of(&error))),
    })
}

/// What a rule says: a set of texts or of objects with `msg`, and the forms that come near it.
fn messages(rule: &str, value: &Value) -> Result<Vec<(String, Option<String>)>, String> {
    match value {
        Value::Undefined | Value::Bool(false) | Value::Null => Ok(Vec::new()),
        Value::Bool(true) => Ok(vec![(format!("`{rule}` holds"), None)]),
        Value::String(text) => Ok(vec![(text.to_string(), None)]),
        Value::Set(set) => Ok(set.iter().map(message).collect()),
        Value::Array(array) => Ok(array.iter().map(message).collect()),
        // `deny[msg] if { … }` makes the messages keys.
        Value::Object(object) if object.iter().all(|(_, value)| *value == Value::Bool(true)) => {
            let mut keys: Vec<&Value> = object.iter().map(|(key, _)| key).collect();
            keys.sort();
            Ok(keys.into_iter().map(message).collect())
        }
        Value::Object(_) | Value::Number(_) => Err(format!("`{rule}` is not a set of messages")),
    }
}

fn message(value: &Value) -> (String, Option<String>) {
    let text = |key: &str| match value {
        Value::Object(_) => value[key].as_string().ok().map(|text| text.to_string()),
        _ => None,
    };
    let about = ["address", "resource", "object"].into_iter().find_map(text);
    let message = match value {
        Value::String(text) => text.to_string(),
        _ => ["msg", "message"].into_iter().find_map(text).unwrap_or_else(|| value.to_string()),
    };
    (message, about)
}

/// Gathers what one policy says, up to a bound.
struct Said<'a> {
    policy: &'a str,
    verdicts: Vec<Verdict>,
    left_out: Vec<Severity>,
}

impl Said<'_> {
    fn say(&mut self, severity: Severity, message: String, object: Option<String>) {
        if self.verdicts.len() >= VERDICTS_MAX {
            self.left_out.push(severity);
            return;
        }
        let message = match message.len() {
            length if length > RAW_MESSAGE_BYTES_MAX => format!("a message of {length} bytes, which is not shown"),
            _ => message,
        };
        self.verdicts.push(Verdict { policy: self.policy.to_owned(), severity, message, object });
    }

    /// Closed, not open.
    fn failed(&mut self, object: Option<String>, reason: &str) {
        let message = format!("denied, because the policy `{}` could not be evaluated: {reason}", self.policy);
        self.say(Severity::Deny, message, object);
    }

    fn finish(mut self) -> Vec<Verdict> {
        if let Some(severity) = self.left_out.iter().min() {
            let message = format!("{} more verdicts of this policy are not shown", self.left_out.len());
            let (policy, severity) = (self.policy.to_owned(), *severity);
            self.verdicts.push(Verdict { policy, severity, message, object: None });
        }
        self.verdicts
    }
}
