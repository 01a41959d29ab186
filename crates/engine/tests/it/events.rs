use engine::{
    Changes, Context, Ended, Event, Held, Judged, Lock, OnError, Plan, Refused, Response, Step, StepStatus, Work,
    Workflow, WorkflowKind as K, WorkflowStatus,
};
use model::{StepId, Timestamp};
use proptest::prelude::*;

use super::{NOW, ids, workflow};

/// A workflow that is driven by hand.
struct Run {
    workflow: Workflow,
    now: Timestamp,
    limit: usize,
    held: Vec<Held>,
    ids: Box<dyn FnMut() -> StepId>,
}

impl Run {
    fn new(kind: K, on_error: OnError) -> Self {
        let mut next = ids();
        for _ in 0..1000 {
            next();
        }
        let workflow = workflow(kind, on_error);
        Self { workflow, now: NOW, limit: 100, held: Vec::new(), ids: Box::new(next) }
    }

    fn tell(&mut self, event: Event) -> Result<(), Refused> {
        let cx = Context { now: self.now, held: &self.held, limit: self.limit, answer_s: 3600, approve_all: false };
        self.workflow.advance(event, &cx, &mut *self.ids)
    }

    fn step(&self, name: &str) -> &Step {
        let found = self.workflow.steps.iter().rev().find(|step| step.title() == name);
        found.unwrap_or_else(|| panic!("no step {name}"))
    }

    fn status(&self, name: &str) -> StepStatus {
        self.step(name).status
    }

    fn end(&mut self, name: &str, ended: Ended) {
        let step = self.step(name).id.clone();
        assert_eq!(self.status(name), StepStatus::InProgress, "{name}");
        self.tell(Event::Ended { step, ended }).expect("told");
    }

    fn plan(&mut self, name: &str, changes: Changes) {
        let (digest, basis) = (format!("digest of {}", self.step(name).id), String::new());
        self.end(
            name,
            Ended::Planned(Plan { digest, changes, basis, policies: Judged::default(), ask: None, ..Plan::default() }),
        );
    }

    fn answer(&mut self, name: &str, response: Response) -> Result<(), Refused> {
        let step = self.step(name).id.clone();
        self.tell(Event::Answered { step, response, digest: None, by: "ann".into(), note: String::new() })
    }
}

const CHANGE: Changes = Changes {
    create: 1,
    update: 0,
    replace: 0,
    destroy: 0,
    outputs: 0,
    import: 0,
    moved: 0,
    forget: 0,
    other: 0,
    recorded: 0,
};
const REPLACE: Changes = Changes {
    create: 0,
    update: 0,
    replace: 1,
    destroy: 0,
    outputs: 0,
    import: 0,
    moved: 0,
    forget: 0,
    other: 0,
    recorded: 0,
};
const NOTHING: Changes = Changes {
    create: 0,
    update: 0,
    replace: 0,
    destroy: 0,
    outputs: 0,
    import: 0,
    moved: 0,
    forget: 0,
    other: 0,
    recorded: 0,
};

fn deploy() -> Run {
    let mut run = Run::new(K::DeployComponents { components: Vec::new() }, OnError::Abort);
    run.tell(Event::Look).expect("told");
    run.end("await runner healthy", Ended::Success);
    run.end("pre-deploy-all-components: first", Ended::Success);
    run
}

fn waits(run: &Run, name: &str) -> String {
    run.workflow.waiting(run.step(name), &run.workflow.current(), false)
}

#[test]
fn independent_components_run_side_by_side() {
    let run = deploy();
    let in_progress: Vec<&str> = run
        .workflow
        .steps
        .iter()
        .filter(|step| step.status == StepStatus::InProgress)
        .map(|step| step.name.as_str())
        .collect();
    assert_eq!(in_progress, ["sync img", "sync and plan db", "sync and plan queue"]);
    assert_eq!(waits(&run, "pre-deploy-component api: second"), "waits for apply db, sync img");
    let mut run = Run { limit: 2, ..deploy() };
    run.end("sync img", Ended::Success);
    assert_eq!(run.workflow.status(), WorkflowStatus::InProgress);
}

#[test]
fn nobody_approves_what_policies_deny() {
    let mut run = deploy();
    let judged = Judged { asked: 1, evaluated: 1, denied: 1, warned: 0 };
    let plan = |judged| Plan {
        digest: "d".into(),
        changes: CHANGE,
        basis: String::new(),
        policies: judged,
        ask: None,
        ..Plan::default()
    };
    run.tell(Event::ApproveAll { by: "ann".into() }).expect("told");
    run.end("sync and plan db", Ended::Denied(plan(judged), "policy `p` denies it".into()));
    assert_eq!(run.status("sync and plan db"), StepStatus::Error, "and is not tried again by itself");
    assert_eq!(run.step("sync and plan db").reason, "policy `p` denies it");
    assert!(matches!(run.answer("sync and plan db", Response::Approve), Err(Refused::NotAwaiting(_))));
    // A look changes nothing, so there is nothing to deny.
    let mut run = Run::new(K::DriftRun { component: "db".into() }, OnError::Abort);
    run.tell(Event::Look).expect("told");
    run.end("await runner healthy", Ended::Success);
    run.end("sync and plan db", Ended::Denied(plan(judged), "policy `p` denies it".into()));
    assert_eq!(run.status("sync and plan db"), StepStatus::Drifted);
}

/// What was approved beforehand was approved without knowing that there would be such an end.
#[test]
fn after_an_unknown_end_a_person_is_asked() {
    let mut run = deploy();
    run.tell(Event::ApproveAll { by: "ann".into() }).expect("told");
    run.plan("sync and plan db", CHANGE);
    run.end("apply db", Ended::Unknown("nobody knows".into()));
    let step = run.step("apply db").id.clone();
    run.tell(Event::Retry { step }).expect("told");
    run.plan("sync and plan db (retry 1)", CHANGE);
    assert_eq!(run.status("sync and plan db (retry 1)"), StepStatus::ApprovalAwaiting);
    run.plan("sync and plan queue", CHANGE);
    assert_eq!(run.status("apply queue"), StepStatus::InProgress, "others are not held up");
    run.tell(Event::ApproveAll { by: "ann, who has looked".into() }).expect("told");
    assert_eq!(run.status("apply db (retry 1)"), StepStatus::InProgress);
}

/// Why a person is asked comes with the plan: the target is uncertain, whichever workflow looks at it.
#[test]
fn an_uncertain_target_is_never_approved_beforehand() {
    let mut run = deploy();
    run.tell(Event::ApproveAll { by: "ann".into() }).expect("told");
    let plan = Plan {
        digest: "d".into(),
        changes: CHANGE,
        basis: String::new(),
        policies: Judged::default(),
        ask: Some("the outcome of job j is unknown".into()),
        ..Plan::default()
    };
    run.end("sync and plan db", Ended::Planned(plan));
    assert_eq!(run.status("sync and plan db"), StepStatus::ApprovalAwaiting);
    let reason = &run.step("sync and plan db").reason;
    assert_eq!(reason, "waits for a person's approval: the outcome of job j is unknown");
    run.answer("sync and plan db", Response::Approve).expect("approved");
    assert_eq!(run.status("apply db"), StepStatus::InProgress);
}

#[test]
fn an_unknown_end_that_is_settled_goes_on_or_waits_for_people() {
    let unknown = || {
        let mut run = deploy();
        run.plan("sync and plan db", CHANGE);
        run.answer("sync and plan db", Response::Approve).expect("approved");
        run.end("apply db", Ended::Unknown("vanished".into()));
        run.end("sync img", Ended::Success);
        run.plan("sync and plan queue", NOTHING);
        assert_eq!(run.workflow.status(), WorkflowStatus::Error);
        run
    };
    let mut run = unknown();
    let step = run.step("apply db").id.clone();
    run.tell(Event::Ended { step, ended: Ended::Success }).expect("told");
    assert_eq!(run.status("apply db"), StepStatus::Success);
    assert_eq!(run.status("pre-deploy-component api: second"), StepStatus::InProgress, "the workflow goes on");
    let mut run = unknown();
    let step = run.step("apply db").id.clone();
    run.tell(Event::Ended { step, ended: Ended::Failed("settled".into()) }).expect("told");
    assert_eq!(run.status("apply db"), StepStatus::Error, "`max_auto_retries` is for failures that are known");
    assert_eq!(run.workflow.status(), WorkflowStatus::Error);
}

#[test]
fn a_skipped_failure_is_no_success() {
    let mut run = deploy();
    run.end("sync img", Ended::Success);
    run.plan("sync and plan queue", NOTHING);
    run.plan("sync and plan db", NOTHING);
    run.end("pre-deploy-component api: second", Ended::Success);
    run.end("pre-deploy-component api: first", Ended::Success);
    run.plan("sync and plan api", CHANGE);
    run.answer("sync and plan api", Response::Approve).expect("approved");
    run.end("apply api", Ended::Failed("boom".into()));
    let step = run.step("apply api").id.clone();
    run.tell(Event::Skip { step, by: "ann".into() }).expect("skipped");
    assert_eq!(run.step("apply api").reason, "boom; skipped by ann", "why it failed is not forgotten");
    assert_eq!(run.status("post-deploy-component api: second"), StepStatus::AutoSkipped, "nothing was deployed");
    run.plan("sync and plan web", NOTHING);
    run.end("post-deploy-all-components: third", Ended::Success);
    assert_eq!(run.workflow.status(), WorkflowStatus::FinishedWithSkips);
    assert!(run.workflow.status().is_over());
    assert_eq!(run.workflow.status().as_str(), "warning", "a word of the API's own list");
    let trouble = run.workflow.trouble().expect("told");
    assert_eq!(trouble, "finished without apply api (boom; skipped by ann)");
    // Whoever approves what is over a moment later made no mistake.
    run.tell(Event::ApproveAll { by: "ann".into() }).expect("harmless");
    assert_eq!(run.workflow.status(), WorkflowStatus::FinishedWithSkips);
}

#[test]
fn a_whole_deploy() {
    let mut run = deploy();
    run.end("sync img", Ended::Success);
    run.plan("sync and plan queue", NOTHING);
    assert_eq!(run.status("sync and plan queue"), StepStatus::AutoSkipped);
    assert_eq!(run.status("apply queue"), StepStatus::AutoSkipped);
    run.plan("sync and plan db", CHANGE);
    assert_eq!(run.workflow.status(), WorkflowStatus::ApprovalAwaiting);
    run.answer("sync and plan db", Response::Approve).expect("approved");
    // Approving twice is harmless.
    run.answer("sync and plan db", Response::Approve).expect("approved");
    run.end("apply db", Ended::Success);
    run.end("pre-deploy-component api: second", Ended::Success);
    run.end("pre-deploy-component api: first", Ended::Success);
    run.plan("sync and plan api", CHANGE);
    run.tell(Event::ApproveAll { by: "ann".into() }).expect("told");
    run.end("apply api", Ended::Success);
    run.end("post-deploy-component api: second", Ended::Success);
    // A replacement is never nothing.
    run.plan("sync and plan web", REPLACE);
    assert_eq!(run.status("apply web"), StepStatus::InProgress);
    assert_eq!(run.workflow.status(), WorkflowStatus::InProgress);
    run.end("apply web", Ended::Success);
    assert_eq!(run.workflow.status(), WorkflowStatus::InProgress);
    run.end("post-deploy-all-components: third", Ended::Success);
    assert_eq!(run.workflow.status(), WorkflowStatus::Success);
}

#[test]
fn a_plan_without_changes_skips_all_that_follows_it() {
    let mut run = deploy();
    run.end("sync img", Ended::Success);
    run.plan("sync and plan db", NOTHING);
    run.end("pre-deploy-component api: second", Ended::Success);
    run.end("pre-deploy-component api: first", Ended::Success);
    run.plan("sync and plan api", NOTHING);
    assert_eq!(run.status("apply api"), StepStatus::AutoSkipped);
    assert_eq!(run.status("post-deploy-component api: second"), StepStatus::AutoSkipped, "hooks, too");
    assert_eq!(run.status("sync and plan web"), StepStatus::InProgress, "what depends on it goes on");
}

#[test]
fn an_approval_is_for_one_plan() {
    let mut run = deploy();
    run.plan("sync and plan db", CHANGE);
    let step = run.step("sync and plan db").id.clone();
    let other = Event::Answered {
        step: step.clone(),
        response: Response::Approve,
        digest: Some("other".into()),
        by: "ann".into(),
        note: String::new(),
    };
    assert_eq!(run.tell(other), Err(Refused::OtherPlan));
    run.answer("sync and plan db", Response::Approve).expect("approved");
    // What it was made of has changed meanwhile.
    run.end("apply db", Ended::Stale("the inputs have changed".into()));
    assert_eq!(run.status("sync and plan db"), StepStatus::Discarded);
    assert_eq!(run.status("sync and plan db (retry 1)"), StepStatus::InProgress);
    assert_eq!(run.status("apply db (retry 1)"), StepStatus::Pending);
    run.plan("sync and plan db (retry 1)", CHANGE);
    assert_eq!(run.status("apply db (retry 1)"), StepStatus::Pending, "the new plan needs an approval of its own");
    let late =
        Event::Answered { step, response: Response::Approve, digest: None, by: "ann".into(), note: String::new() };
    let newest = run.step("sync and plan db (retry 1)").id.clone();
    assert_eq!(run.tell(late), Err(Refused::Superseded(newest)));
}

#[test]
fn failures_are_retried_by_themselves_then_by_people() {
    let mut run = deploy();
    run.plan("sync and plan db", CHANGE);
    run.answer("sync and plan db", Response::Approve).expect("approved");
    // `max_auto_retries` is 1: planned and approved anew, once.
    run.end("apply db", Ended::Failed("boom".into()));
    run.plan("sync and plan db (retry 1)", CHANGE);
    run.answer("sync and plan db (retry 1)", Response::Approve).expect("approved");
    run.end("apply db (retry 1)", Ended::Failed("boom".into()));
    run.end("sync img", Ended::Success);
    run.plan("sync and plan queue", CHANGE);
    assert_eq!(run.workflow.status(), WorkflowStatus::Error);
    assert_eq!(run.workflow.failure().map(|step| step.reason.as_str()), Some("boom"));
    assert_eq!(run.workflow.shown(run.step("sync and plan web"), true), StepStatus::NotAttempted);
    assert_eq!(run.answer("sync and plan queue", Response::Approve), Err(Refused::Over("error")));
    let step = run.step("apply db (retry 1)").id.clone();
    run.tell(Event::Retry { step }).expect("told");
    assert_eq!(run.status("sync and plan db (retry 2)"), StepStatus::InProgress);
    assert_eq!(run.workflow.status(), WorkflowStatus::InProgress);
    run.plan("sync and plan db (retry 2)", NOTHING);
    assert_eq!(run.status("apply db (retry 2)"), StepStatus::AutoSkipped);
    assert_eq!(run.status("pre-deploy-component api: second"), StepStatus::InProgress);
    run.end("pre-deploy-component api: second", Ended::Failed("no".into()));
    let step = run.step("pre-deploy-component api: second").id.clone();
    run.tell(Event::Skip { step, by: "ann".into() }).expect("told");
    assert_eq!(run.status("pre-deploy-component api: first"), StepStatus::InProgress);
}

#[test]
fn who_denies_may_go_on_without_it_and_without_its_dependents() {
    let mut run = deploy();
    run.end("sync img", Ended::Success);
    run.plan("sync and plan queue", NOTHING);
    run.plan("sync and plan db", CHANGE);
    run.answer("sync and plan db", Response::DenySkipDependents).expect("denied");
    for name in ["apply db", "sync and plan api", "apply api", "post-deploy-component api: second", "apply web"] {
        assert_eq!(run.status(name), StepStatus::AutoSkipped, "{name}");
    }
    assert_eq!(run.status("post-deploy-all-components: third"), StepStatus::InProgress);
    run.end("post-deploy-all-components: third", Ended::Success);
    assert_eq!(run.workflow.status(), WorkflowStatus::FinishedWithSkips);

    let mut run = deploy();
    run.end("sync img", Ended::Success);
    run.plan("sync and plan queue", NOTHING);
    run.plan("sync and plan db", CHANGE);
    run.answer("sync and plan db", Response::DenySkip).expect("denied");
    assert_eq!(run.status("pre-deploy-component api: second"), StepStatus::InProgress);

    let mut run = deploy();
    run.plan("sync and plan db", CHANGE);
    run.answer("sync and plan db", Response::Deny).expect("denied");
    run.end("sync img", Ended::Success);
    run.plan("sync and plan queue", NOTHING);
    assert_eq!(run.workflow.status(), WorkflowStatus::Error);
}

#[test]
fn cancelling_stops_at_once_and_tells_the_truth() {
    let mut run = deploy();
    run.plan("sync and plan queue", CHANGE);
    run.tell(Event::Cancel { by: "ann".into() }).expect("told");
    assert_eq!(run.workflow.status(), WorkflowStatus::InProgress, "two jobs are still there");
    assert_eq!(run.status("sync and plan queue"), StepStatus::Cancelled);
    run.end("sync img", Ended::Success);
    run.end("sync and plan db", Ended::Cancelled("interrupted".into()));
    assert_eq!(run.workflow.status(), WorkflowStatus::Cancelled);
    assert_eq!(run.status("sync img"), StepStatus::Success, "it had come too late");
    assert_eq!(run.tell(Event::Cancel { by: "bob".into() }), Ok(()), "twice is harmless");
    let step = run.step("sync and plan db").id.clone();
    assert_eq!(run.tell(Event::Retry { step }), Err(Refused::Over("cancelled")));
}

#[test]
fn a_teardown_may_go_on_after_an_error() {
    let mut run = Run::new(K::Deprovision, OnError::Continue);
    run.tell(Event::Look).expect("told");
    run.tell(Event::ApproveAll { by: "ann".into() }).expect("told");
    run.end("await runner healthy", Ended::Success);
    run.end("plan teardown web", Ended::Failed("no".into()));
    // What it needs stays, and so does the sandbox; the rest goes on.
    for name in ["teardown web", "plan teardown api", "teardown db", "remove secrets", "deprovision sandbox plan"] {
        assert_eq!(run.status(name), StepStatus::NotAttempted, "{name}");
    }
    run.plan("plan teardown queue", CHANGE);
    run.end("teardown queue", Ended::Success);
    assert_eq!(run.workflow.status(), WorkflowStatus::Error, "it is told that web is still there");
    // What was not attempted is, after a retry.
    let step = run.step("plan teardown web").id.clone();
    run.tell(Event::Retry { step }).expect("told");
    run.plan("plan teardown web (retry 1)", CHANGE);
    run.end("teardown web", Ended::Success);
    run.plan("plan teardown api", CHANGE);
    run.end("teardown api", Ended::Success);
    run.end("pre-teardown-component db: third", Ended::Failed("no".into()));
    let step = run.step("pre-teardown-component db: third").id.clone();
    run.tell(Event::Skip { step, by: "ann".into() }).expect("told");
    run.plan("plan teardown db", CHANGE);
    run.end("teardown db", Ended::Success);
    run.end("remove secrets", Ended::Success);
    run.plan("deprovision sandbox plan", CHANGE);
    run.end("deprovision sandbox apply plan", Ended::Success);
    run.end("post-deprovision: third", Ended::Success);
    assert_eq!(run.workflow.status(), WorkflowStatus::FinishedWithSkips, "the hook that was skipped had failed");
}

#[test]
fn a_teardown_that_is_skipped_keeps_what_it_stands_on() {
    for denied in [false, true] {
        let mut run = Run::new(K::Deprovision, OnError::Abort);
        run.tell(Event::Look).expect("told");
        run.end("await runner healthy", Ended::Success);
        run.plan("plan teardown web", CHANGE);
        if denied {
            run.answer("plan teardown web", Response::DenySkip).expect("denied");
        } else {
            run.answer("plan teardown web", Response::Approve).expect("approved");
            run.end("teardown web", Ended::Failed("it does not go away".into()));
            let step = run.step("teardown web").id.clone();
            run.tell(Event::Skip { step, by: "ann".into() }).expect("skipped");
        }
        for name in [
            "plan teardown api",
            "plan teardown db",
            "remove secrets",
            "deprovision sandbox plan",
            "deprovision sandbox apply plan",
        ] {
            assert_eq!(run.status(name), StepStatus::AutoSkipped, "{name}");
            assert!(run.step(name).reason.ends_with("what it needs is kept"), "{}", run.step(name).reason);
        }
        // What is beside it goes on.
        run.plan("plan teardown queue", CHANGE);
        run.answer("plan teardown queue", Response::Approve).expect("approved");
        run.end("teardown queue", Ended::Success);
        assert_eq!(run.workflow.status(), WorkflowStatus::FinishedWithSkips);
    }
}

#[test]
fn what_a_runbook_does_besides_goes_on_after_a_teardown_that_was_skipped() {
    let mut run = Run::new(K::RunbookRun { runbook: "swap".into() }, OnError::Abort);
    run.tell(Event::Look).expect("told");
    run.end("await runner healthy", Ended::Success);
    run.plan("plan teardown queue", CHANGE);
    run.answer("plan teardown queue", Response::DenySkip).expect("denied");
    run.plan("sync and plan db", CHANGE);
    run.answer("sync and plan db", Response::Approve).expect("approved");
    run.end("apply db", Ended::Success);
    run.end("tell", Ended::Success);
    assert_eq!(run.workflow.status(), WorkflowStatus::FinishedWithSkips);
}

#[test]
fn locks_hold_and_a_look_holds_nobody_up() {
    let mut run = deploy();
    run.held = vec![Held { lock: Lock::Component("api".into()), by: "deploy of bob".into() }];
    run.end("sync img", Ended::Success);
    run.plan("sync and plan db", NOTHING);
    run.end("pre-deploy-component api: second", Ended::Success);
    run.end("pre-deploy-component api: first", Ended::Success);
    assert_eq!(run.step("sync and plan api").reason, "waits for deploy of bob");
    run.held.clear();
    run.tell(Event::Look).expect("told");
    assert_eq!(run.status("sync and plan api"), StepStatus::InProgress);
    let mut look = Run::new(K::DriftRun { component: "api".into() }, OnError::Abort);
    look.tell(Event::Look).expect("told");
    look.held = run.workflow.holds().map(|(step, lock)| Held { lock, by: step.name.clone() }).collect();
    look.end("await runner healthy", Ended::Success);
    assert_eq!(look.step("sync and plan api").reason, "waits for sync and plan api", "it would see half a change");
    look.held.clear();
    look.tell(Event::Look).expect("told");
    assert_eq!(look.workflow.holds().count(), 0, "a look holds nothing");
    look.plan("sync and plan api", CHANGE);
    assert_eq!(look.status("sync and plan api"), StepStatus::Drifted);
    assert_eq!(look.workflow.status(), WorkflowStatus::Success);
}

#[test]
fn an_approval_expires() {
    let mut run = deploy();
    run.plan("sync and plan db", CHANGE);
    run.now = run.now.plus_s(3599);
    run.tell(Event::Look).expect("told");
    assert_eq!(run.status("sync and plan db"), StepStatus::ApprovalAwaiting);
    run.now = run.now.plus_s(1);
    run.tell(Event::Look).expect("told");
    assert_eq!(run.status("sync and plan db"), StepStatus::ApprovalExpired);
}

/// What a person, a runner or time may do to a random step.
fn event(run: &Run, kind: u8, at: usize) -> Event {
    let step = &run.workflow.steps[at % run.workflow.steps.len()];
    let id = step.id.clone();
    let plan = |changes| {
        let digest = format!("digest of {id}");
        Ended::Planned(Plan {
            digest,
            changes,
            basis: String::new(),
            policies: Judged::default(),
            ask: None,
            ..Plan::default()
        })
    };
    let success = if step.work.is_plan() { plan(CHANGE) } else { Ended::Success };
    let answered = |response| Event::Answered {
        step: step.id.clone(),
        response,
        digest: None,
        by: "ann".into(),
        note: String::new(),
    };
    match kind {
        0..=9 => Event::Ended { step: id, ended: success },
        10 if step.work.is_plan() => Event::Ended { step: id.clone(), ended: plan(NOTHING) },
        11 => Event::Ended { step: id, ended: Ended::Failed("boom".into()) },
        12 if step.work.is_apply() => Event::Ended { step: id, ended: Ended::Stale("moved".into()) },
        13..=17 => answered(Response::Approve),
        18 => answered(Response::DenySkip),
        19 => answered(Response::DenySkipDependents),
        20 => answered(Response::Deny),
        21 => answered(Response::Retry),
        22..=24 => Event::Retry { step: id },
        25 | 26 => Event::Skip { step: id, by: "ann".into() },
        27 if at.is_multiple_of(50) => Event::Cancel { by: "ann".into() },
        28 if at.is_multiple_of(20) => Event::ApproveAll { by: "ann".into() },
        _ => Event::Look,
    }
}

/// Rules that hold after every event.
fn check(run: &Run, before: &Workflow) {
    let workflow = &run.workflow;
    let current = workflow.current();
    for &at in &current {
        let step = &workflow.steps[at];
        if step.status == StepStatus::InProgress || step.status == StepStatus::Success {
            for slot in &step.after {
                let before = &workflow.steps[current[*slot as usize]];
                let settled =
                    before.status.is_done() || workflow.on_error == OnError::Continue && before.status.is_failed();
                // A retry of what went before does not undo what came after it.
                let retried = workflow.steps.iter().any(|other| other.group == before.group && other.attempt > 0);
                assert!(
                    settled || retried,
                    "{} is {:?} before {} ({:?})",
                    step.name,
                    step.status,
                    before.name,
                    before.status
                );
            }
        }
        // No apply without the approval of the very plan before it.
        if step.work.is_apply() && step.status == StepStatus::InProgress {
            let plan = current
                .iter()
                .map(|at| &workflow.steps[*at])
                .find(|other| other.group == step.group && other.work.is_plan() && other.slot < step.slot);
            let plan = plan.expect("a plan");
            assert_eq!(plan.status, StepStatus::Approved, "{}", step.name);
            let (found, answer) = (plan.plan.as_ref().expect("a plan"), plan.answer.as_ref().expect("an answer"));
            assert_eq!(found.digest, answer.digest);
        }
    }
    let running: Vec<&Step> =
        current.iter().map(|at| &workflow.steps[*at]).filter(|s| s.status == StepStatus::InProgress).collect();
    assert!(running.len() <= run.limit);
    for (n, one) in running.iter().enumerate() {
        for other in &running[n + 1..] {
            let (Some(a), Some(b)) = (one.lock(), other.lock()) else { continue };
            assert!(one.look_only || other.look_only || !a.conflicts(&b), "{} beside {}", one.name, other.name);
        }
    }
    // Success is the end of everything.
    if workflow.status() == WorkflowStatus::Success {
        assert!(current.iter().all(|at| workflow.steps[*at].status.is_done()));
    }
    // A step that has ended keeps its end, unless a retry takes it away.
    for step in &before.steps {
        let now = workflow.steps.iter().find(|other| other.id == step.id).expect("steps are never lost");
        let kept = now.status == step.status
            || matches!(now.status, StepStatus::Discarded)
            || !step.status.is_done()
            || step.status == StepStatus::AutoSkipped && now.status != StepStatus::AutoSkipped;
        assert!(kept, "{}: {:?} became {:?}", step.name, step.status, now.status);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    #[test]
    fn no_order_of_events_breaks_a_rule(
        kind in 0..6usize,
        goes_on in any::<bool>(),
        limit in 1..5usize,
        events in proptest::collection::vec((0..30u8, 0..400usize), 1..300),
    ) {
        let kinds = [
            K::Provision,
            K::Deprovision,
            K::DeployComponents { components: Vec::new() },
            K::InputUpdate { inputs: vec!["host".into()] },
            K::RunbookRun { runbook: "book".into() },
            K::DriftRun { component: "api".into() },
        ];
        let on_error = if goes_on { OnError::Continue } else { OnError::Abort };
        let mut run = Run { limit, ..Run::new(kinds[kind].clone(), on_error) };
        for (kind, at) in events {
            let before = run.workflow.clone();
            let event = event(&run, kind, at);
            if run.tell(event).is_err() {
                prop_assert_eq!(&before, &run.workflow, "what is refused changes nothing");
            }
            check(&run, &before);
        }
        // Whatever happened, when all work succeeds and people approve, every workflow comes to its end.
        for _ in 0..2000 {
            if run.workflow.status().is_over() {
                break;
            }
            run.tell(Event::ApproveAll { by: "ann".into() }).expect("told");
            let next = run.workflow.steps.iter().find(|step| step.status == StepStatus::InProgress).map(|s| (s.id.clone(), s.work.clone()));
            let Some((step, work)) = next else { continue };
            let ended = match work {
                Work::SandboxPlan { .. } | Work::ComponentPlan { .. } => {
                    let digest = format!("digest of {step}");
                    Ended::Planned(Plan { digest, changes: CHANGE, basis: String::new(), policies: Judged::default(), ask: None, ..Plan::default() })
                }
                _ => Ended::Success,
            };
            let before = run.workflow.clone();
            run.tell(Event::Ended { step, ended }).expect("told");
            check(&run, &before);
        }
        prop_assert!(run.workflow.status().is_over(), "it is {:?}", run.workflow.status());
    }
}
