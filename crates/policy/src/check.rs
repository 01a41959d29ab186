//! Whether a policy can be read, and what is in it.

use std::sync::Arc;

use regorus::unstable::{Module, Ref, Source};
use regorus::{Engine, PolicyLengthConfig, Value};
use serde::{Deserialize, Serialize};

use crate::{PACKAGES, POLICY_BYTES_MAX, calls, guard};

/// The name that texts have in the engine's own messages.
const FILE: &str = "policy";
/// What `numbers.range` makes at most.
const RANGE_MAX: i64 = 100_000;
/// Of a rule that is looked at.
pub(crate) const RULES: [&str; 2] = ["deny", "warn"];

/// What is in a policy.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Info {
    pub package: String,
    pub syntax: Syntax,
    /// There is a rule `deny`.
    pub denies: bool,
    /// There is a rule `warn`.
    pub warns: bool,
}

/// Of which of Rego's two syntaxes a text is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Syntax {
    /// `deny[msg] { … }`
    V0,
    /// `deny contains msg if { … }`
    V1,
}

/// Why a policy can't be read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[error("line {line}, column {column}: {message}")]
pub struct PolicyError {
    pub message: String,
    /// From 1.
    pub line: usize,
    /// From 1.
    pub column: usize,
}

/// Reads a policy and evaluates nothing. One without `deny` and `warn` is read without an error; evaluated, it denies.
pub fn check(contents: &str) -> Result<Info, PolicyError> {
    crate::evaluate::caught(|| {
        let (mut engine, info) = load(contents)?;
        for rule in info.rules() {
            let path: Arc<str> = format!("data.{}.{rule}", info.package).into();
            engine.compile_with_entrypoint(&path).map_err(|e| PolicyError::of(&e))?;
        }
        Ok(info)
    })
    .unwrap_or_else(|panicked| Err(PolicyError::whole(panicked)))
}

impl Info {
    /// Those of the rules that are looked at which the policy has.
    pub(crate) fn rules(&self) -> impl Iterator<Item = &'static str> {
        RULES.into_iter().zip([self.denies, self.warns]).filter_map(|(rule, there)| there.then_some(rule))
    }
}

impl PolicyError {
    pub(crate) fn at(span: &regorus::unstable::Span, message: String) -> Self {
        Self { message, line: span.line as usize, column: span.col as usize }
    }

    /// About the policy as a whole.
    pub(crate) fn whole(message: impl Into<String>) -> Self {
        Self { message: message.into(), line: 1, column: 1 }
    }

    /// The engine's errors are drawings: the place in the first line, the message after `error: `.
    pub(crate) fn of(error: &anyhow::Error) -> Self {
        let text = error.to_string();
        let place = text.trim_start().strip_prefix("--> ").and_then(|rest| rest.lines().next());
        let mut numbers = place.into_iter().flat_map(|place| place.rsplit(':')).map(|number| number.parse().ok());
        let (column, line) = (numbers.next().flatten().unwrap_or(1), numbers.next().flatten().unwrap_or(1));
        let message = text.rsplit_once("\nerror: ").map_or(text.as_str(), |(_, message)| message);
        let message = message.trim().lines().next().unwrap_or_default().trim_end_matches(':');
        Self { message: message.to_owned(), line, column }
    }
}

/// An engine that holds the policy.
pub(crate) fn load(contents: &str) -> Result<(Engine, Info), PolicyError> {
    let mut engine = engine()?;
    let (module, syntax) = add(&mut engine, contents)?;
    calls::check(engine.get_modules())?;
    let package = calls::package(&module);
    if !PACKAGES.contains(&package.as_str()) {
        let message = format!("the package is `{package}`: Ferry reads only rules of `package {}`", PACKAGES[0]);
        return Err(PolicyError::at(&module.package.span, message));
    }
    let has = |name: &str| module.policy.iter().any(|rule| calls::rule_name(rule).as_deref() == Some(name));
    let info = Info { package, syntax, denies: has("deny"), warns: has("warn") };
    Ok((engine, info))
}

/// An engine without policies.
pub(crate) fn engine() -> Result<Engine, PolicyError> {
    let mut engine = Engine::new();
    // What a policy prints is nobody's.
    engine.set_gather_prints(true);
    engine.set_policy_length_config(PolicyLengthConfig::default());
    engine.add_extension("numbers.range".into(), 2, Box::new(range)).map_err(|e| PolicyError::of(&e))?;
    Ok(engine)
}

/// Adds a text in whichever syntax it is.
pub(crate) fn add(engine: &mut Engine, contents: &str) -> Result<(Ref<Module>, Syntax), PolicyError> {
    if contents.len() > POLICY_BYTES_MAX {
        let message = format!("the policy has {} bytes, more than {POLICY_BYTES_MAX}", contents.len());
        return Err(PolicyError::whole(message));
    }
    let source = Source::from_contents(FILE.into(), contents.to_owned()).map_err(|e| PolicyError::of(&e))?;
    guard::guard(&source)?;
    let mut parsed = |syntax| {
        engine.set_rego_v0(syntax == Syntax::V0);
        engine.add_policy(FILE.into(), contents.to_owned()).map_err(|e| PolicyError::of(&e))
    };
    let mut syntax = Syntax::V1;
    if let Err(error) = parsed(Syntax::V1) {
        if !is_old(&error.message) {
            return Err(error);
        }
        syntax = Syntax::V0;
        parsed(Syntax::V0)?;
    }
    let module = engine.get_modules().last().cloned().ok_or_else(|| PolicyError::whole("the policy is empty"))?;
    Ok((module, syntax))
}

/// What the new syntax says about texts in the old one.
fn is_old(message: &str) -> bool {
    ["keyword is required", "must have a body", "cannot be shadowed", "shadows previous"]
        .iter()
        .any(|part| message.contains(part))
}

/// `numbers.range` with a bound.
fn range(numbers: Vec<Value>) -> anyhow::Result<Value> {
    let [from, to] = numbers.as_slice() else { anyhow::bail!("numbers.range takes two numbers") };
    let (from, to) = (from.as_i64()?, to.as_i64()?);
    if from.abs_diff(to) >= RANGE_MAX.unsigned_abs() {
        anyhow::bail!("numbers.range makes at most {RANGE_MAX} numbers");
    }
    let up: Vec<Value> = (from.min(to)..=from.max(to)).map(Value::from).collect();
    Ok(Value::from(if from <= to { up } else { up.into_iter().rev().collect() }))
}
