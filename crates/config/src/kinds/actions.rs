//! Actions, runbooks, and what starts them.

use super::*;
use crate::table::{NameRule::*, *};

tables! {
    /// A script that runs in an install.
    Action {
        /// Name, unique in the app; in templates: `.nuon.actions.workflows.NAME`.
        name: String = name(Free);
        /// How long the whole run may take; `5m` where nothing is said.
        timeout: Option<String> = timeout();
        /// What starts it.
        triggers: Vec<ActionTrigger> = list(&ActionTrigger::TABLE).required();
        /// What is run, in this order; the first failure ends the run.
        steps: Vec<ActionStep> = list(&ActionStep::TABLE).required();
        /// Components that it needs. Those which templates name are added by themselves.
        dependencies: Vec<String> = texts();
        /// Role of `break_glass` that it runs with.
        break_glass_role: Option<String> = text().rendered().deprecated("write `role`");
        /// Role that it runs with.
        role: Option<String> = text().rendered();
        /// Labels of the action.
        labels: Texts = map();
        /// Whether it gets access to the cluster; it does where nothing is said.
        enable_kube_config: Option<bool> = boolean();
        /// Image that the steps run in; all of them must be inline then.
        image: Option<String> = text();
        /// The cluster it gets access to, of `kubernetes_contexts.toml`.
        kubernetes_context: Option<String> = text();
    }

    /// A step of an action.
    ActionStep {
        /// Name, unique in the action; a key of its outputs.
        name: String = name(Free);
        /// Environment of the step.
        env_vars: Texts = map().rendered();
        /// The script, or the address of a file: `./scripts/check.sh`.
        inline_contents: Option<String> = text().get().rendered();
        /// A command, of the repository or of the runner.
        command: Option<String> = text().rendered();
        /// A repository that everyone can read.
        public_repo: Option<Repo> = table(&Repo::TABLE);
        /// A repository that is connected to the organization.
        connected_repo: Option<Repo> = table(&Repo::TABLE);
        /// A directory of the app itself.
        local: Option<Local> = table(&Local::TABLE);
    }
    one of OneOf::exactly(&["inline_contents", "command"]), OneOf::at_most(&["inline_contents", "public_repo", "connected_repo", "local"]);

    /// What starts an action.
    ActionTrigger {
        /// What happens.
        r#type: String = renamed(ACTION_TRIGGERS, &[
            ("pre-component-deploy", "pre-deploy-component"),
            ("post-component-deploy", "post-deploy-component"),
        ]).required();
        /// Order among the actions that the same thing starts; the lowest is first.
        index: i64 = int(i64::MIN, i64::MAX);
        /// When, for `cron`: five fields.
        cron_schedule: Option<String> = cron();
        /// Which component, for the triggers of components.
        component_name: Option<String> = text();
    }

    /// A sequence of steps that people start.
    Runbook {
        /// Name, unique in the app.
        name: String = name(Free);
        /// What it does.
        description: Option<String> = text();
        /// Markdown page of the runbook.
        readme: Option<String> = text().get().page();
        /// Labels of the runbook.
        labels: Texts = map();
        /// What is done, in this order.
        steps: Vec<RunbookStep> = list(&RunbookStep::TABLE).required();
        /// What is asked when it is started.
        input: Vec<RunbookInput> = list(&RunbookInput::TABLE);
        /// Components that it needs.
        dependencies: Vec<String> = texts();
    }

    /// A step of a runbook.
    RunbookStep {
        /// Name of the step.
        name: String = name(Free);
        /// What is done.
        r#type: String = renamed(
            &["component_deploy", "component_tear_down", "action", "sandbox_reprovision", "sandbox_deprovision", "wait_for_event"],
            &[("deploy", "component_deploy")],
        ).required();
        /// Which component.
        component_name: Option<String> = text();
        /// Deploy what depends on the component, too.
        deploy_dependents: bool = boolean().alias(&["deploy_dependencies"]);
        /// Tear what depends on the component down first.
        tear_down_dependents: bool = boolean();
        /// Only the sandbox.
        skip_component_deploys: bool = boolean();
        /// Only show what would change.
        plan_only: bool = boolean();
        /// Which action.
        action_name: Option<String> = text();
        /// A command, instead of an action.
        command: Option<String> = text().rendered();
        /// A script, instead of an action.
        inline_contents: Option<String> = text().get().rendered();
        /// Environment of the action.
        env_vars: Texts = map().rendered();
        /// How long it may take.
        timeout: Option<String> = timeout();
        /// Role that it runs with.
        role: Option<String> = text().rendered();
        /// Where the event comes from.
        trigger: Option<String> = text();
        /// Which events.
        event_types: Vec<String> = texts();
        /// Which of these events.
        filters: Vec<EventFilter> = list(&EventFilter::TABLE);
        /// All filters must match.
        match_all: Option<bool> = boolean();
    }

    /// Something that is asked when a runbook is started.
    RunbookInput {
        /// Name in templates: `.runbook_inputs.NAME`.
        name: String = name(Free);
        /// Name that people see.
        display_name: String = text().required();
        /// What the value is for.
        description: String = text().required();
        /// Value where none is given; a list or table becomes JSON.
        default: Option<String> = shaped(Shape::Any);
        /// A value must be given.
        required: bool = boolean();
        /// The value is never shown.
        sensitive: bool = boolean();
        /// What the value must be.
        r#type: Option<String> = choice(&["string", "number", "list", "json", "bool"]);
    }

    /// What happens upon events from outside.
    TriggerRule {
        /// Name of the rule.
        name: String = name(Free);
        /// Where the events come from.
        trigger: Option<String> = text();
        /// Which events.
        event_types: Vec<String> = texts();
        /// Which of these events.
        filters: Vec<EventFilter> = list(&EventFilter::TABLE);
        /// All filters must match.
        match_all: Option<bool> = boolean();
        /// What is started.
        target: Option<TriggerTarget> = table(&TriggerTarget::TABLE).required();
    }

    /// A condition on an event.
    EventFilter {
        /// Which part of the event.
        from: Option<String> = choice(&["payload", "headers"]);
        /// Path to the value.
        path: Option<String> = text();
        /// How the value is compared.
        op: Option<String> = choice(&[
            "eq", "neq", "in", "prefix", "suffix", "contains", "gt", "gte", "lt", "lte", "regex", "exists", "not_exists",
        ]);
        /// What the value is compared with; several are written as a list.
        value: Option<String> = shaped(Shape::Any);
    }

    /// What an event starts.
    TriggerTarget {
        /// A runbook, or a run of a branch.
        r#type: String = choice(&["runbook", "app_branch_run"]).required();
        /// Name of the runbook.
        runbook: Option<String> = text();
        /// The install it runs in.
        install: Option<String> = text();
        /// Inputs of the runbook, as paths into the event.
        inputs: Texts = map();
        /// Name of the branch.
        app_branch: Option<String> = text();
    }
}

const ACTION_TRIGGERS: &[&str] = &[
    "manual",
    "cron",
    "pre-provision",
    "post-provision",
    "pre-reprovision",
    "post-reprovision",
    "pre-deprovision",
    "post-deprovision",
    "pre-deprovision-sandbox",
    "post-deprovision-sandbox",
    "pre-reprovision-sandbox",
    "post-reprovision-sandbox",
    "post-provision-sandbox",
    "pre-deploy-all-components",
    "post-deploy-all-components",
    "pre-teardown-all-components",
    "post-teardown-all-components",
    "pre-deploy-component",
    "post-deploy-component",
    "pre-teardown-component",
    "post-teardown-component",
    "pre-enable-component",
    "post-enable-component",
    "pre-disable-component",
    "post-disable-component",
    "pre-update-inputs",
    "post-update-inputs",
    "pre-secrets-sync",
    "post-secrets-sync",
    "role-enabled",
    "role-disabled",
];

/// `triggers.toml`
pub(crate) const TRIGGERS_FILE: Table = Table::of(
    "Triggers",
    "What happens upon events from outside.",
    &[Field::new("rules", "A rule.", list(&TriggerRule::TABLE))],
);
