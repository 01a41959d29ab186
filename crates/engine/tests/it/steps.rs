use std::collections::BTreeMap;
use std::fmt::Write as _;

use engine::{PlanError, Request, Situation, Step, WorkflowKind as K};
use model::overrides::{OverrideKind, input_name};

use super::{NOW, app, ids, names};

fn steps(kind: K, plan_only: bool) -> Result<Vec<Step>, PlanError> {
    let (config, disabled) = (app(), names(&["queue"]));
    let deployed = names(&["api", "db", "img", "gone"]);
    let at = Situation {
        config: &config,
        disabled: &disabled,
        deployed: &deployed,
        sandbox_deployed: true,
        overrides: &BTreeMap::new(),
        secrets_written: false,
        now: NOW,
    };
    engine::plan(&Request { kind, plan_only, deployed: false }, at, &mut ids())
}

fn table(steps: &[Step]) -> String {
    let mut out = String::new();
    for step in steps {
        let after: Vec<&str> = step.after.iter().map(|slot| steps[*slot as usize].name.as_str()).collect();
        let kind = step.work.kind().name();
        let _ = writeln!(out, "{:>2}  {kind:<8}  {:<42}  {}", step.group, step.name, after.join(", "));
    }
    out
}

/// One table for each type: group, kind, name, and what the step waits for.
#[test]
fn every_type_of_workflow_has_its_steps() {
    let component = || "api".to_owned();
    let kinds = [
        (K::Provision, false),
        (K::Provision, true),
        (K::Reprovision, false),
        (K::ReprovisionSandbox { skip_components: false }, false),
        (K::ReprovisionSandbox { skip_components: true }, false),
        (K::Deprovision, false),
        (K::DeprovisionSandbox, false),
        (K::DeployComponents { components: Vec::new() }, false),
        (K::DeployComponents { components: vec!["web".into(), "db".into()] }, false),
        (K::ManualDeploy { component: component(), dependents: false }, false),
        (K::ManualDeploy { component: component(), dependents: true }, false),
        (K::ManualDeploy { component: component(), dependents: true }, true),
        (K::Deprovision, true),
        (K::TeardownComponent { component: component(), with_dependents: true, force: false }, false),
        (K::TeardownComponent { component: component(), with_dependents: false, force: true }, true),
        (K::TeardownComponent { component: "img".into(), with_dependents: false, force: true }, false),
        (K::TeardownComponent { component: "gone".into(), with_dependents: false, force: false }, false),
        (K::TeardownComponents, false),
        (K::InputUpdate { inputs: vec!["host".into()] }, false),
        (K::InputUpdate { inputs: vec!["size".into()] }, false),
        (K::InputUpdate { inputs: vec!["size".into()] }, true),
        (K::ActionWorkflowRun { action: "first".into(), trigger: "manual".into() }, false),
        (K::RunbookRun { runbook: "book".into() }, false),
        (K::SyncSecrets, false),
        (K::DriftRun { component: component() }, false),
        (K::DriftRunReprovisionSandbox, false),
    ];
    let mut out = String::new();
    for (kind, plan_only) in kinds {
        let title = format!("{kind:?}{}", if plan_only { ", plan only" } else { "" });
        let _ = writeln!(out, "# {title}\n{}", table(&steps(kind, plan_only).expect(&title)));
    }
    insta::assert_snapshot!(out);
}

#[test]
fn what_is_not_there_is_named() {
    let missing = |what, name: &str| Err(PlanError::Missing { what, name: name.to_owned() });
    let nothing = |kind| steps(kind, false).map(|_| ());
    assert_eq!(nothing(K::ManualDeploy { component: "x".into(), dependents: false }), missing("component", "x"));
    assert_eq!(
        nothing(K::TeardownComponent { component: "x".into(), with_dependents: false, force: false }),
        missing("component", "x")
    );
    assert_eq!(nothing(K::ActionWorkflowRun { action: "x".into(), trigger: "manual".into() }), missing("action", "x"));
    assert_eq!(nothing(K::RunbookRun { runbook: "x".into() }), missing("runbook", "x"));
    assert_eq!(nothing(K::InputUpdate { inputs: vec!["x".into()] }), missing("input", "x"));
    for kind in [
        K::SyncSecrets,
        K::ActionWorkflowRun { action: "first".into(), trigger: "manual".into() },
        K::RunbookRun { runbook: "book".into() },
    ] {
        let name = kind.name();
        assert_eq!(steps(kind, true).map(|_| ()), Err(PlanError::NotPlanned(name)));
    }
    let disabled = nothing(K::ManualDeploy { component: "queue".into(), dependents: false });
    assert_eq!(disabled, Err(PlanError::Disabled("queue".into())));
}

#[test]
fn what_others_need_is_not_torn_down_in_passing() {
    let bare = K::TeardownComponent { component: "db".into(), with_dependents: false, force: false };
    let needed = PlanError::Needed { component: "db".into(), dependents: vec!["api".into()] };
    assert_eq!(steps(bare, false).map(|_| ()), Err(needed), "`web` needs it too, and is not deployed");
    let all = K::TeardownComponent { component: "db".into(), with_dependents: true, force: false };
    let torn: Vec<String> = steps(all, false)
        .expect("steps")
        .iter()
        .filter(|step| step.work.is_apply())
        .map(|step| step.name.clone())
        .collect();
    assert_eq!(torn, ["teardown api", "teardown db"]);
    let alone = K::TeardownComponent { component: "db".into(), with_dependents: false, force: true };
    assert_eq!(steps(alone, false).expect("steps").iter().filter(|step| step.work.is_apply()).count(), 1);
}

#[test]
fn dependents_that_are_switched_off_go_first() {
    let (config, disabled, deployed) = (app(), names(&["api", "db"]), names(&["api", "db"]));
    let at = Situation {
        config: &config,
        disabled: &disabled,
        deployed: &deployed,
        sandbox_deployed: true,
        overrides: &BTreeMap::new(),
        secrets_written: false,
        now: NOW,
    };
    let kind = K::TeardownComponent { component: "db".into(), with_dependents: false, force: false };
    let steps = engine::plan(&Request { kind, plan_only: false, deployed: false }, at, &mut ids()).expect("steps");
    let torn: Vec<&str> = steps.iter().filter(|step| step.work.is_apply()).map(|step| step.name.as_str()).collect();
    assert_eq!(torn, ["teardown api", "teardown db"]);
}

#[test]
fn a_sandbox_that_the_app_has_no_longer_is_torn_down_once() {
    let (mut config, none) = (app(), names(&[]));
    config.sandbox = None;
    let count = |sandbox_deployed| {
        let at = Situation {
            config: &config,
            disabled: &none,
            deployed: &none,
            sandbox_deployed,
            overrides: &BTreeMap::new(),
            secrets_written: false,
            now: NOW,
        };
        let request = Request { kind: K::Deprovision, plan_only: false, deployed: false };
        let steps = engine::plan(&request, at, &mut ids()).expect("steps");
        steps.iter().filter(|step| step.name == "deprovision sandbox apply plan").count()
    };
    assert_eq!((count(true), count(false)), (1, 0));
}

/// A cluster that a component puts out is cleaned up while there is a way into it.
#[test]
fn secrets_are_removed_from_a_cluster_before_its_component_is_torn_down() {
    let (mut config, none) = (app(), names(&[]));
    let context = serde_json::json!([{ "name": "edge", "component": "queue" }]);
    config.kubernetes_contexts = serde_json::from_value(context).expect("contexts");
    let plan = |kind: K, deployed: &[&str]| {
        let deployed = names(deployed);
        let at = Situation {
            config: &config,
            disabled: &none,
            deployed: &deployed,
            sandbox_deployed: true,
            overrides: &BTreeMap::new(),
            secrets_written: false,
            now: NOW,
        };
        engine::plan(&Request { kind, plan_only: false, deployed: false }, at, &mut ids()).expect("steps")
    };
    let name = "remove secrets from the cluster of queue";
    let steps = plan(K::Deprovision, &["queue"]);
    let removal = steps.iter().find(|step| step.name == name).expect("a step");
    let teardown = steps.iter().find(|step| step.name == "plan teardown queue").expect("a step");
    assert!(teardown.after == [removal.slot] && teardown.group == removal.group, "{teardown:?}");
    for (kind, deployed) in [(K::Deprovision, &[][..]), (K::TeardownComponents, &["queue"])] {
        assert!(
            !plan(kind, deployed).iter().any(|step| step.name == name),
            "there is no such cluster, or it comes back"
        );
    }
}

/// A step waits only for steps before it: one pass starts all that can start.
#[test]
fn slots_are_in_order() {
    for kind in [K::Provision, K::Deprovision, K::TeardownComponents] {
        for (at, step) in steps(kind, false).expect("steps").iter().enumerate() {
            assert_eq!(step.slot as usize, at);
            assert!(step.after.iter().all(|slot| *slot < step.slot), "{step:?}");
        }
    }
}

/// A component whose health is waited for: after its hooks, and what needs it comes later still.
#[test]
fn a_gate_is_the_last_step_of_its_component() {
    let mut config = app();
    let api = config.components.iter_mut().find(|component| component.common.name == "api").expect("a chart");
    let gate = serde_json::json!({ "block_deploy": true });
    match &mut api.kind {
        config::ComponentKind::HelmChart(chart) => chart.health = serde_json::from_value(gate).ok(),
        other => panic!("{other:?}"),
    }
    let (disabled, deployed) = (names(&[]), names(&[]));
    let at = Situation {
        config: &config,
        disabled: &disabled,
        deployed: &deployed,
        sandbox_deployed: true,
        overrides: &BTreeMap::new(),
        secrets_written: false,
        now: NOW,
    };
    for (plan_only, expected) in [(false, 1), (true, 0)] {
        let request = Request { kind: K::DeployComponents { components: Vec::new() }, plan_only, deployed: false };
        let steps = engine::plan(&request, at, &mut ids()).expect("steps");
        let gates: Vec<&Step> = steps.iter().filter(|step| step.name == "verify health api").collect();
        assert_eq!(gates.len(), expected);
        let Some(gate) = gates.first() else { continue };
        let of_group: Vec<&Step> = steps.iter().filter(|step| step.group == gate.group).collect();
        assert_eq!(of_group.last().map(|step| step.slot), Some(gate.slot));
        let web =
            steps.iter().find(|step| step.name == "sync and plan web" || step.name.contains("web: ")).expect("web");
        assert!(web.after.contains(&gate.slot), "what needs it waits for it: {web:?}");
    }
}

#[test]
fn an_override_that_changes_deploys_its_component_alone_and_what_needs_it() {
    let (config, disabled, deployed) = (app(), names(&[]), names(&["api", "db", "web", "queue"]));
    let reads = config::InputUse { names: names(&["size"]), any: false };
    let overrides = BTreeMap::from([("queue".to_owned(), reads)]);
    let applied = |inputs: &[&str]| {
        let at = Situation {
            config: &config,
            disabled: &disabled,
            deployed: &deployed,
            // It reads everything; what is laid over components is not among that.
            sandbox_deployed: true,
            overrides: &overrides,
            secrets_written: false,
            now: NOW,
        };
        let kind = K::InputUpdate { inputs: inputs.iter().map(|name| (*name).to_owned()).collect() };
        let steps = engine::plan(&Request { kind, plan_only: false, deployed: false }, at, &mut ids()).expect("steps");
        let mut names: Vec<String> =
            steps.iter().filter(|step| step.work.is_apply()).map(|step| step.work.target()).collect();
        names.sort();
        names
    };
    let over = |component: &str| input_name(component, OverrideKind::HelmValues);
    assert_eq!(applied(&[&over("api")]), ["components/api", "components/web"]);
    assert_eq!(applied(&[&over("web")]), ["components/web"]);
    assert!(applied(&["size"]).contains(&"components/queue".to_owned()), "its override reads it");
}
