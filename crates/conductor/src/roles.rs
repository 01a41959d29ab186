//! Which role in the customer's account an operation is carried out with.
//!
//! The first that says something decides: who started it, the deprecated `break_glass_role` of an action, the thing itself, the app's
//! matrix (a rule that names the thing before one with `*`), and the default of the operation. A role that is named and is not there,
//! or is switched off, is never replaced by another: the operation fails and says which.

use config::{AppConfig, Role};

/// What is done, and to what.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Operation<'a> {
    /// `provision`, `reprovision` or `deprovision`.
    Sandbox(&'a str),
    /// `deploy` or `teardown`.
    Component(&'a str, &'a str),
    /// The action's name, and the role that a runbook's step gives it.
    Action(&'a str, Option<&'a str>),
    Secrets,
}

/// What chooses where nobody names a role.
pub const DEFAULT: &str = "the default";

/// The role that was chosen, as the config writes it, and what chose it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Chosen {
    pub role: String,
    pub by: &'static str,
}

/// Chooses. None: the app has no role for it, nobody names one, and none is needed where there are no roles.
pub fn choose(config: &AppConfig, operation: Operation, given: Option<&str>) -> Option<Chosen> {
    let chosen = |role: &str, by| Some(Chosen { role: role.to_owned(), by });
    if let Some(role) = given {
        return chosen(role, "the request");
    }
    let named: Option<(&str, &'static str)> = match operation {
        Operation::Sandbox(op) => {
            let mut roles = config.sandbox.iter().flat_map(|sandbox| &sandbox.operation_roles);
            roles.find(|role| role.operation == op).map(|role| (role.role.as_str(), "the sandbox"))
        }
        Operation::Component(name, op) => {
            let component = config.components.iter().find(|component| component.common.name == name);
            let mut roles = component.into_iter().flat_map(|component| &component.common.operation_roles);
            roles.find(|role| role.operation == op).map(|role| (role.role.as_str(), "the component"))
        }
        Operation::Action(name, of_step) => {
            let action = config.actions.iter().find(|action| action.name == name);
            let broken = action.and_then(|action| Some((action.break_glass_role.as_deref()?, "`break_glass_role`")));
            let own = action.and_then(|action| Some((action.role.as_deref()?, "the action")));
            broken.or_else(|| of_step.map(|role| (role, "the runbook"))).or(own)
        }
        Operation::Secrets => None,
    };
    if let Some((role, by)) = named {
        return chosen(role, by);
    }
    if let Some(role) = of_matrix(config, operation) {
        return chosen(role, "operation_roles");
    }
    let default = match operation {
        Operation::Sandbox("deprovision") => "deprovision",
        Operation::Sandbox(_) | Operation::Secrets => "provision",
        Operation::Component(..) | Operation::Action(..) => "maintenance",
    };
    config.roles.iter().find(|role| role.r#type == default).and_then(|role| chosen(&role.name, DEFAULT))
}

fn of_matrix<'c>(config: &'c AppConfig, operation: Operation) -> Option<&'c str> {
    let (exact, any, op) = match operation {
        Operation::Sandbox(op) => ("nuon::sandbox".to_owned(), "nuon::sandbox", op),
        Operation::Component(name, op) => (format!("nuon::component:{name}"), "nuon::component:*", op),
        Operation::Action(name, _) => (format!("nuon::action:{name}"), "nuon::action:*", "trigger"),
        Operation::Secrets => return None,
    };
    let rules = || config.operation_roles.iter().flat_map(|matrix| &matrix.rules).filter(|rule| rule.operation == op);
    let of = |principal: &str| rules().find(|rule| rule.principal == principal);
    of(&exact).or_else(|| of(any)).or_else(|| of("*")).map(|rule| rule.role.as_str())
}

/// Roles that the app declares; the second says whether the stack makes it switched on.
pub fn declared(config: &AppConfig) -> impl Iterator<Item = (&Role, bool)> {
    let roles = config.roles.iter().map(|role| (role, role.enabled_in_stack.unwrap_or(true)));
    roles.chain(config.break_glass.iter().map(|role| (role, role.enabled_in_stack.unwrap_or(false))))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn config() -> AppConfig {
        let role = |kind: &str, name: &str| json!({ "type": kind, "name": name, "description": "d" });
        let document = json!({
            "roles": [role("provision", "p"), role("maintenance", "m"), role("deprovision", "d"), role("custom", "c")],
            "break_glass": [role("", "b")],
            "actions": [
                { "name": "plain", "triggers": [], "steps": [] },
                { "name": "own", "triggers": [], "steps": [], "role": "c" },
                { "name": "broken", "triggers": [], "steps": [], "role": "c", "break_glass_role": "b" },
            ],
            "operation_roles": { "type": "matrix", "rules": [
                { "principal": "nuon::component:*", "operation": "deploy", "role": "any" },
                { "principal": "nuon::component:db", "operation": "deploy", "role": "exact" },
                { "principal": "nuon::sandbox", "operation": "reprovision", "role": "again" },
            ] },
        });
        AppConfig::from_json(&document).expect("a config")
    }

    #[test]
    fn the_first_that_says_something_decides() {
        let config = config();
        let of = |operation, given| choose(&config, operation, given).map(|chosen| chosen.role).unwrap_or_default();
        assert_eq!(of(Operation::Action("broken", None), Some("given")), "given");
        assert_eq!(of(Operation::Action("broken", None), None), "b");
        assert_eq!(of(Operation::Action("broken", Some("book")), None), "b");
        assert_eq!(of(Operation::Action("own", Some("book")), None), "book");
        assert_eq!(of(Operation::Action("own", None), None), "c");
        assert_eq!(of(Operation::Action("plain", None), None), "m");
        assert_eq!(of(Operation::Component("db", "deploy"), None), "exact");
        assert_eq!(of(Operation::Component("web", "deploy"), None), "any");
        assert_eq!(of(Operation::Component("web", "teardown"), None), "m");
        assert_eq!(of(Operation::Sandbox("provision"), None), "p");
        assert_eq!(of(Operation::Sandbox("reprovision"), None), "again");
        assert_eq!(of(Operation::Sandbox("deprovision"), None), "d");
        assert_eq!(of(Operation::Secrets, None), "p");
        assert_eq!(choose(&AppConfig::default(), Operation::Secrets, None), None);
    }
}
