//! Tests that stand beside policies: rules `test_…`, of the policy's package or of one that imports it.

use std::time::Duration;

use regorus::Value;
use regorus::utils::limits::ExecutionTimerConfig;
use serde::Serialize;

use crate::calls;
use crate::check::{PolicyError, add, engine};

/// How one test went.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct UnitTest {
    pub name: String,
    #[serde(flatten)]
    pub outcome: Outcome,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case", tag = "outcome", content = "reason")]
pub enum Outcome {
    Passed,
    /// The rule is not true.
    Failed,
    /// The rule can't be evaluated.
    Broken(String),
}

/// Runs the tests of a file against the policy that it stands beside, in the order of the file.
pub fn unit_tests(policy: &str, tests: &str, time_max: Duration) -> Result<Vec<UnitTest>, PolicyError> {
    crate::evaluate::caught(|| {
        let mut engine = engine()?;
        add(&mut engine, policy)?;
        let (module, _) = add(&mut engine, tests)?;
        calls::check(engine.get_modules())?;
        let package = calls::package(&module);
        let mut names: Vec<String> = Vec::new();
        for name in module.policy.iter().filter_map(|rule| calls::rule_name(rule)) {
            if name.starts_with("test_") && !names.contains(&name) {
                names.push(name);
            }
        }
        let check_interval = std::num::NonZeroU32::MIN;
        engine.set_execution_timer_config(ExecutionTimerConfig { limit: time_max, check_interval });
        let run = |name: String| {
            let outcome = match engine.eval_rule(format!("data.{package}.{name}")) {
                Ok(Value::Bool(true)) => Outcome::Passed,
                Ok(_) => Outcome::Failed,
                Err(error) => Outcome::Broken(PolicyError::of(&error).to_string()),
            };
            UnitTest { name, outcome }
        };
        Ok(names.into_iter().map(run).collect())
    })
    .unwrap_or_else(|panicked| Err(PolicyError::whole(panicked)))
}
