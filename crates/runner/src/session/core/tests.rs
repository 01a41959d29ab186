use model::papers::Signed;
use model::runner::RunnerKind;
use model::{JobType, LogStreamId, Timestamp};

use super::*;

fn core() -> Core {
    let timing = Timing { hold_s: 25, lease_s: 30, renew_s: 10, offline_s: 900 };
    let report = RunnerReport { disk_free_bytes: u64::MAX, ..RunnerReport::default() };
    Core::new(timing, RunnerSettings::defaults(RunnerKind::Install), report, 1, 7)
}

fn assignment(n: u128) -> Assignment {
    let t = Timestamp::from_micros(1);
    let paper = Signed { payload: String::new(), key: String::new(), signature: String::new() };
    Assignment {
        job_id: JobId::new(t, n),
        job_type: JobType::ActionsWorkflow,
        group: JobGroup::Actions,
        name: None,
        execution_id: ExecutionId::new(t, n),
        epoch: 1,
        log_stream_id: LogStreamId::new(t, n),
        order: paper.clone(),
        grant: paper,
        execution_token: String::new(),
        spec: None,
    }
}

fn answer() -> PollAnswer {
    PollAnswer {
        jobs: vec![],
        cancels: vec![],
        lost: vec![],
        settings: None,
        watch: 0,
        keys: vec![],
        restarting: false,
        reconnect_ms: 500,
        server_time: Timestamp::from_micros(1),
        unreadable: vec![],
    }
}

/// The answer to the latest poll.
fn answered(core: &Core, answer: PollAnswer) -> Event {
    Event::PollAnswered { seq: core.polls, nonce: "n".into(), answer: Box::new(answer) }
}

fn answer_to(core: &mut Core, answer: PollAnswer, now_ms: u64) -> Vec<Effect> {
    let event = answered(core, answer);
    core.handle(event, now_ms)
}

fn tick() -> Event {
    Event::Tick { disk_free_bytes: u64::MAX }
}

fn poll(effects: &[Effect]) -> Option<&PollRequest> {
    effects.iter().find_map(|e| if let Effect::Poll(p) = e { Some(&**p) } else { None })
}

fn renewed(id: &ExecutionId) -> Event {
    Event::Renewed(Box::new(RenewAnswer {
        renewed: vec![id.clone()],
        lost: vec![],
        cancels: vec![],
        lease_s: 30,
        server_time: Timestamp::from_micros(1),
    }))
}

/// Brings an execution to the point where its executor runs and its lease was renewed once.
fn running(core: &mut Core, n: u128) -> ExecutionId {
    let a = assignment(n);
    let id = a.execution_id.clone();
    answer_to(core, PollAnswer { jobs: vec![a], ..answer() }, 0);
    assert_eq!(core.handle(Event::Prepared(id.clone()), 0)[0], Effect::Start(id.clone()));
    assert_eq!(core.handle(Event::Started(id.clone()), 0)[0], Effect::Spawn(id.clone()));
    core.handle(renewed(&id), 0);
    id
}

#[test]
fn nothing_is_spawned_before_the_start_is_acknowledged() {
    let mut core = core();
    let a = assignment(1);
    let id = a.execution_id.clone();
    let effects = answer_to(&mut core, PollAnswer { jobs: vec![a], ..answer() }, 0);
    assert!(effects.iter().any(|e| matches!(e, Effect::Prepare { .. })));
    assert_eq!(poll(&effects).expect("polls on").held.len(), 1, "the claim is in the next list");
    assert_eq!(core.handle(Event::Prepared(id.clone()), 1)[0], Effect::Start(id.clone()));
    assert!(core.handle(Event::StartFailed(id.clone()), 2).is_empty());
    assert!(core.handle(tick(), 1000).contains(&Effect::Start(id.clone())), "asks again");
    let effects = core.handle(Event::StartRefused(id.clone()), 1001);
    assert!(effects.contains(&Effect::Remove(id)), "and never spawns");
}

#[test]
fn a_cancel_is_passed_on_once_and_then_known() {
    let mut core = core();
    let id = running(&mut core, 1);
    let effects = answer_to(&mut core, PollAnswer { cancels: vec![id.clone()], ..answer() }, 5);
    assert!(effects.contains(&Effect::Cancel { id: id.clone(), reason: "by request" }));
    assert_eq!(poll(&effects).expect("poll").cancels_known, vec![id.clone()]);
    let effects = answer_to(&mut core, PollAnswer { cancels: vec![id], ..answer() }, 6);
    assert!(!effects.iter().any(|e| matches!(e, Effect::Cancel { .. })));
}

#[test]
fn leases_are_renewed_until_the_result_is_in() {
    let mut core = core();
    let id = running(&mut core, 1);
    let renew = |effects: &[Effect]| effects.iter().any(|e| matches!(e, Effect::Renew(_)));
    let renewed = || {
        let answer = RenewAnswer {
            renewed: vec![id.clone()],
            lost: vec![],
            cancels: vec![],
            lease_s: 30,
            server_time: Timestamp::from_micros(1),
        };
        Event::Renewed(Box::new(answer))
    };
    // The first renewal went out with the start.
    assert!(core.handle(renewed(), 0).contains(&Effect::Touch(vec![id.clone()])));
    let mut at = 0;
    let mut seen = 0;
    for _ in 0..40 {
        at += 1000;
        if renew(&core.handle(tick(), at)) {
            seen += 1;
            assert!(core.handle(renewed(), at).contains(&Effect::Touch(vec![id.clone()])));
        }
    }
    assert!((3..=5).contains(&seen), "{seen} renewals in 40 s");
    core.handle(Event::Ended { id: id.clone(), has_result: true }, at);
    assert!(core.handle(Event::Delivered(id.clone()), at).contains(&Effect::Remove(id)));
    assert!(!renew(&core.handle(tick(), at + 20_000)));
}

#[test]
fn a_dead_executor_is_told_at_once_and_its_log_still_delivered() {
    let mut core = core();
    let id = running(&mut core, 1);
    let effects = core.handle(Event::Ended { id: id.clone(), has_result: false }, 10);
    assert!(poll(&effects).expect("a fresh poll").held[0].state == HeldState::Dead);
    let effects = answer_to(&mut core, answer(), 11);
    assert!(effects.contains(&Effect::Finish(id)));
    assert_eq!(poll(&effects).expect("the next poll").held[0].state, HeldState::Dead, "and stays dead");
    assert!(!core.handle(tick(), 60_000).iter().any(|e| matches!(e, Effect::Renew(_))), "nothing revives it");
}

#[test]
fn an_executor_found_dead_is_told_when_nothing_of_it_is_left() {
    let mut core = core();
    let a = assignment(1);
    core.adopt(&a, Found::Dead);
    let effects = core.handle(tick(), 0);
    assert_eq!(poll(&effects).expect("polls").held[0].state, HeldState::Alive, "not yet");
    assert!(!effects.iter().any(|e| matches!(e, Effect::Renew(_))), "and nothing revives it");
    let effects = core.handle(Event::Ended { id: a.execution_id.clone(), has_result: false }, 10);
    assert!(poll(&effects).expect("a fresh poll").held[0].state == HeldState::Dead);
    assert!(answer_to(&mut core, answer(), 11).contains(&Effect::Finish(a.execution_id)));
}

#[test]
fn what_an_earlier_process_never_started_is_given_back_and_never_started() {
    let mut core = core();
    let a = assignment(1);
    core.adopt(&a, Found::Unstarted);
    let effects = core.handle(tick(), 0);
    assert_eq!(poll(&effects).expect("polls").held[0].state, HeldState::Unstarted);
    assert!(!effects.iter().any(|e| matches!(e, Effect::Start(_) | Effect::Spawn(_) | Effect::Renew(_))));
    let effects = answer_to(&mut core, answer(), 1);
    assert!(effects.contains(&Effect::Remove(a.execution_id)), "only when the server has heard of it");
}

#[test]
fn an_execution_that_is_given_up_while_it_is_prepared_leaves_nothing() {
    let mut core = core();
    let a = assignment(1);
    let id = a.execution_id.clone();
    answer_to(&mut core, PollAnswer { jobs: vec![a], ..answer() }, 0);
    answer_to(&mut core, PollAnswer { lost: vec![id.clone()], ..answer() }, 1);
    let effects = core.handle(Event::Prepared(id.clone()), 2);
    assert_eq!(effects, [Effect::Remove(id.clone())], "it was made after it had been given up");
    assert_eq!(core.handle(Event::Started(id.clone()), 3), [Effect::Remove(id)], "and never spawned");
}

#[test]
fn an_answer_that_was_overtaken_says_nothing() {
    let mut core = core();
    let id = running(&mut core, 1);
    let old = answered(&core, answer());
    core.handle(Event::Ended { id: id.clone(), has_result: false }, 10);
    assert!(core.handle(old, 11).is_empty(), "the server has not heard of the death yet");
    assert!(answer_to(&mut core, answer(), 12).contains(&Effect::Finish(id)));
}

#[test]
fn draining_takes_nothing_waits_and_then_interrupts() {
    let mut core = core();
    let id = running(&mut core, 1);
    let effects = core.handle(Event::Drain, 100);
    let request = poll(&effects).expect("the server is told at once");
    assert!(request.free.is_empty() && request.report.draining);
    assert!(!effects.iter().any(|e| matches!(e, Effect::Cancel { .. })));
    let effects = core.handle(tick(), 100 + 60_000);
    assert!(effects.contains(&Effect::Cancel { id: id.clone(), reason: "the runner is shutting down" }));
    core.handle(Event::Ended { id: id.clone(), has_result: true }, 61_000);
    assert!(core.handle(Event::Delivered(id), 61_001).contains(&Effect::Exit(Ending::Done)));
}

#[test]
fn the_customers_switch_interrupts_and_lasts() {
    let mut core = core();
    let id = running(&mut core, 1);
    let since = Some(Timestamp::from_micros(9));
    let effects = core.handle(Event::Disabled(since), 10);
    assert!(effects.contains(&Effect::Cancel { id, reason: "the customer has disabled the runner" }));
    let request = poll(&effects).expect("told at once");
    assert!(request.free.is_empty());
    assert_eq!(request.report.disabled_since, since);
    assert!(!poll(&core.handle(Event::Disabled(None), 20)).expect("told").free.is_empty());
}

#[test]
fn a_fenced_session_interrupts_everything_and_exits() {
    let mut core = core();
    let id = running(&mut core, 1);
    let effects = core.handle(Event::PollFailed { seq: core.polls, over: Some(Over::Fenced) }, 10);
    assert!(matches!(&effects[0], Effect::Cancel { id: c, .. } if *c == id));
    assert!(poll(&effects).is_none());
    let effects = core.handle(Event::Ended { id, has_result: true }, 20);
    assert!(effects.contains(&Effect::Exit(Ending::Over(Over::Fenced))));
}

#[test]
fn a_full_disk_offers_nothing_until_there_is_room() {
    let mut core = core();
    let effects = core.handle(Event::Tick { disk_free_bytes: 0 }, 0);
    assert!(poll(&effects).expect("polls all the same").free.is_empty());
    assert!(poll(&core.handle(Event::Tick { disk_free_bytes: 0 }, 5)).is_none());
    assert!(!poll(&core.handle(tick(), 10)).expect("a fresh poll").free.is_empty());
}

#[test]
fn failures_back_off_with_jitter_and_stay_short_with_work_in_hand() {
    let mut idle = core();
    for n in 0..12u64 {
        idle.handle(Event::PollFailed { seq: idle.polls, over: None }, n);
        assert!(idle.next_due_ms().expect("due") - n <= 12_500, "half a hold");
    }
    let mut busy = core();
    running(&mut busy, 1);
    for n in 0..12u64 {
        busy.handle(Event::PollFailed { seq: busy.polls, over: None }, n);
        assert!(busy.poll_at_ms.expect("due") - n <= 2_000);
    }
}

#[test]
fn slots_are_counted_by_group() {
    let mut core = core();
    for n in 1..=4 {
        running(&mut core, n);
    }
    let effects = answer_to(&mut core, answer(), 1);
    let request = poll(&effects).expect("poll");
    assert_eq!(request.free.get(&JobGroup::Actions), None);
    assert_eq!(request.free.get(&JobGroup::Deploy), Some(&4));
    assert_eq!(request.report.busy[&JobGroup::Actions].len(), 4);
}

fn workspace(n: u128) -> model::WorkspaceId {
    model::WorkspaceId::new(Timestamp::from_micros(1), n)
}

#[test]
fn a_result_goes_out_after_the_control_plane_knows_of_the_states_that_wait() {
    let mut core = core();
    let id = running(&mut core, 1);
    let effects = core.handle(Event::Rescues(vec![workspace(1)]), 10);
    let request = poll(&effects).expect("told at once");
    assert_eq!(request.report.rescues_open, [workspace(1)]);
    assert!(request.no_wait, "and answered at once");
    let effects = core.handle(Event::Ended { id: id.clone(), has_result: true }, 11);
    assert!(!effects.contains(&Effect::Finish(id.clone())), "a retry must not begin before");
    let effects = answer_to(&mut core, answer(), 12);
    assert!(effects.contains(&Effect::Finish(id)));
    assert!(!poll(&effects).expect("polls on").no_wait, "held as usual");
    let effects = core.handle(Event::Rescues(vec![]), 13);
    assert!(poll(&effects).expect("told when it is delivered").report.rescues_open.is_empty());
}

#[test]
fn a_result_without_a_waiting_state_goes_out_at_once() {
    let mut core = core();
    let id = running(&mut core, 1);
    let effects = core.handle(Event::Ended { id: id.clone(), has_result: true }, 11);
    assert!(effects.contains(&Effect::Finish(id)));
    let a = assignment(2);
    core.adopt(&a, Found::WithResult);
    assert!(core.handle(tick(), 12).contains(&Effect::Finish(a.execution_id)), "also one of an earlier process");
}

/// An execution whose start is on its way.
fn starting(core: &mut Core) -> ExecutionId {
    let a = assignment(1);
    let id = a.execution_id.clone();
    answer_to(core, PollAnswer { jobs: vec![a], ..answer() }, 0);
    assert!(core.handle(Event::Prepared(id.clone()), 0).contains(&Effect::Start(id.clone())));
    id
}

fn spawns(effects: &[Effect]) -> bool {
    effects.iter().any(|e| matches!(e, Effect::Spawn(_) | Effect::Start(_)))
}

#[test]
fn a_start_that_is_granted_after_the_switch_was_turned_goes_back() {
    for stop in [Event::Disabled(Some(Timestamp::from_micros(9))), Event::Stop] {
        let mut core = core();
        let id = starting(&mut core);
        core.handle(stop, 5);
        let effects = core.handle(Event::Started(id.clone()), 6);
        assert!(!spawns(&effects), "{effects:?}");
        assert_eq!(poll(&effects).expect("told at once").held[0].state, HeldState::Unstarted);
        let effects = answer_to(&mut core, answer(), 7);
        assert!(effects.contains(&Effect::Remove(id)), "when the server has heard of it: {effects:?}");
    }
}

#[test]
fn what_is_prepared_or_asked_for_again_while_switched_off_goes_back() {
    let mut core = core();
    let a = assignment(1);
    let id = a.execution_id.clone();
    answer_to(&mut core, PollAnswer { jobs: vec![a], ..answer() }, 0);
    core.handle(Event::Disabled(Some(Timestamp::from_micros(9))), 1);
    let effects = core.handle(Event::Prepared(id), 2);
    assert!(!spawns(&effects), "{effects:?}");
    assert_eq!(poll(&effects).expect("told").held[0].state, HeldState::Unstarted);

    let mut core = self::core();
    let id = starting(&mut core);
    core.handle(Event::StartFailed(id), 1);
    let effects = core.handle(Event::Disabled(Some(Timestamp::from_micros(9))), 2);
    assert!(!spawns(&effects), "{effects:?}");
    assert_eq!(poll(&effects).expect("told").held[0].state, HeldState::Unstarted);
    assert!(!spawns(&core.handle(tick(), 5_000)));
}

#[test]
fn a_start_that_is_granted_to_a_fenced_session_is_dropped() {
    let mut core = core();
    let id = starting(&mut core);
    core.handle(Event::RenewFailed { over: Some(Over::Fenced) }, 1);
    let effects = core.handle(Event::Started(id.clone()), 2);
    assert!(effects.contains(&Effect::Remove(id)) && !spawns(&effects), "{effects:?}");
    assert!(effects.contains(&Effect::Exit(Ending::Over(Over::Fenced))));
}

#[test]
fn terraform_has_its_own_grace_when_the_runner_stops() {
    for (job_type, exits_at_ms) in
        [(JobType::ActionsWorkflow, 10_000 + 15_000), (JobType::TerraformDeploy, 120_000 + 15_000)]
    {
        let mut core = core();
        let a = Assignment { job_type, ..assignment(1) };
        core.adopt(&a, Found::Running);
        core.handle(Event::Stop, 0);
        assert_eq!(core.next_due_ms().map(|ms| ms.max(exits_at_ms)), Some(exits_at_ms));
        let exits = |effects: &[Effect]| effects.iter().any(|e| matches!(e, Effect::Exit(_)));
        assert!(!exits(&core.handle(tick(), exits_at_ms - 1)), "{job_type:?} is given its time");
        assert!(core.handle(tick(), exits_at_ms).contains(&Effect::Exit(Ending::HandedOver)));
    }
}

#[test]
fn a_fenced_session_sleeps_until_something_happens() {
    let mut core = core();
    let id = running(&mut core, 1);
    core.handle(Event::PollFailed { seq: core.polls, over: Some(Over::Fenced) }, 10);
    assert_eq!(core.next_due_ms(), None, "a due time in the past would make it spin");
    assert_eq!(core.handle(tick(), 60_000), [], "and it asks for nothing");
    assert!(
        core.handle(Event::Ended { id, has_result: true }, 60_001).contains(&Effect::Exit(Ending::Over(Over::Fenced)))
    );
}

#[test]
fn a_lost_execution_in_its_grace_does_not_make_the_session_ask_without_a_pause() {
    let mut core = core();
    let id = running(&mut core, 1);
    let lost = || PollAnswer { lost: vec![assignment(1).execution_id], ..answer() };
    let effects = answer_to(&mut core, lost(), 5);
    assert!(effects.iter().any(|e| matches!(e, Effect::Cancel { id: c, .. } if *c == id)));
    assert!(poll(&effects).is_some(), "the first time it is news");
    assert!(poll(&answer_to(&mut core, lost(), 6)).is_none(), "then it is not");
    assert!(poll(&core.handle(tick(), 300)).is_some());
}

#[test]
fn a_renewal_that_was_answered_before_the_machine_was_suspended_says_nothing() {
    let mut core = core();
    let id = running(&mut core, 1);
    assert!(core.handle(tick(), 10_000).iter().any(|e| matches!(e, Effect::Renew(_))));
    let effects = core.handle(renewed(&id), 10_000 + 30_000);
    assert!(!effects.iter().any(|e| matches!(e, Effect::Touch(_))), "{effects:?}");
    assert!(effects.iter().any(|e| matches!(e, Effect::Renew(_))), "it asks again at once");
}
