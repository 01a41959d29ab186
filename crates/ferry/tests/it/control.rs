//! What people do to jobs and runners: cancel, drain, disable, set, wait; and a second runner.

use std::collections::BTreeMap;
use std::time::Instant;

use api::control::{CreateRunnerJob, UpdateRunnerSettings};
use futures::StreamExt as _;
use model::{JobGroup, JobState, JobType};
use rustix::process::Signal;
use testkit::system::{SOON, System, action, run, script, shown};

use crate::{options, seconds};

async fn set(system: &System, settings: UpdateRunnerSettings) {
    system.client.update_runner_settings(system.install.runner_id.as_str(), &settings).await.unwrap();
}

fn slots(actions: u32) -> UpdateRunnerSettings {
    UpdateRunnerSettings { groups: Some(BTreeMap::from([(JobGroup::Actions, actions)])), ..Default::default() }
}

#[tokio::test]
async fn a_queued_job_is_cancelled_at_once_and_never_runs() {
    let system = System::start(options()).await;
    let job = system.script(&format!("echo ran >> {}", system.witness("never").display())).await;
    let job = system.client.cancel_job(&job.id).await.unwrap();
    assert_eq!((job.status, job.status_description.as_str()), (JobState::Cancelled, "cancelled before it started"));
    assert_eq!(system.client.cancel_job(&job.id).await.unwrap().status, JobState::Cancelled, "twice is harmless");
    let _runner = system.start_runner("a").await;
    assert_eq!(system.run(vec![script("other", "true")]).await.status, JobState::Finished);
    assert!(system.lines("never").is_empty());
    assert_eq!(system.job(&job.id).await.status, JobState::Cancelled);
}

#[tokio::test]
async fn a_job_that_waits_behind_another_is_cancelled_at_once() {
    let system = System::start(options()).await;
    let _runner = system.start_runner("a").await;
    set(&system, slots(1)).await;
    let first = system.held("first").await;
    let second = system.script(&format!("echo ran >> {}", system.witness("never").display())).await;
    let second = system.client.cancel_job(&second.id).await.unwrap();
    assert_eq!(second.status, JobState::Cancelled);
    system.open("first");
    assert_eq!(system.until_over(&first.id).await.status, JobState::Finished);
    assert_eq!(system.run(vec![script("third", "true")]).await.status, JobState::Finished);
    assert!(system.lines("never").is_empty());
}

#[tokio::test]
async fn a_claimed_job_that_is_cancelled_never_starts() {
    let system = System::start(options().with("FERRY_TIMING__HOLD_S", 20)).await;
    let runner = system.start_runner("a").await;
    system.until_idle().await;
    // The runner holds its poll and is stopped: the claim reaches its socket, and nobody reads it.
    runner.signal(Signal::STOP);
    let job = system.script(&format!("echo ran >> {}", system.witness("never").display())).await;
    system.until_state(&job.id, JobState::Claimed, SOON).await;
    let job = system.client.cancel_job(&job.id).await.unwrap();
    assert_eq!(job.status, JobState::Cancelled);
    runner.signal(Signal::CONT);
    assert_eq!(system.run(vec![script("other", "true")]).await.status, JobState::Finished);
    assert!(system.lines("never").is_empty());
    assert_eq!(system.job(&job.id).await.status, JobState::Cancelled);
}

#[tokio::test]
async fn a_claim_that_is_never_started_goes_back_to_the_queue() {
    let system = System::start(options().with("FERRY_TIMING__HOLD_S", 20)).await;
    let mut runner = system.start_runner("a").await;
    system.until_idle().await;
    runner.signal(Signal::STOP);
    let job = system.script(&format!("echo ran >> {}", system.witness("once").display())).await;
    system.until_state(&job.id, JobState::Claimed, SOON).await;
    runner.kill();
    system.until_state(&job.id, JobState::Queued, seconds(8)).await;
    let _next = system.resume_runner("a");
    let job = system.until_over(&job.id).await;
    assert_eq!(job.status, JobState::Finished, "{}", job.status_description);
    assert_eq!(system.lines("once"), ["ran"]);
}

#[tokio::test]
async fn a_running_job_that_is_cancelled_gets_its_signal_and_says_goodbye() {
    let system = System::start(options()).await;
    let _runner = system.start_runner("a").await;
    let text = format!(
        "trap 'echo goodbye; exit 3' TERM\necho begin >> {}\nwhile :; do sleep 0.05; done",
        system.witness("w").display()
    );
    let job = system.submit(&action(vec![script("run", &text), script("next", "true")])).await;
    system.until_witness("w", "begin").await;
    let asked = Instant::now();
    let seen = system.client.cancel_job(&job.id).await.unwrap();
    assert!(seen.cancel_requested_at.is_some());
    let again = system.client.cancel_job(&job.id).await.unwrap();
    assert_eq!(again.cancel_requested_at.is_some(), seen.cancel_requested_at.is_some(), "twice is harmless");
    let job = system.until_over(&job.id).await;
    assert!(asked.elapsed() < seconds(3), "it took {:?}", asked.elapsed());
    assert_eq!(job.status, JobState::Cancelled, "{}", job.status_description);
    assert_eq!(system.text_log(&job, Some("stdout")).await, "goodbye\n");
    assert_eq!(job.steps[1].status, model::StepStatus::NotAttempted);
    system.until_quiet().await;
}

#[tokio::test]
async fn a_script_that_ignores_the_signal_is_killed_after_its_grace() {
    let system = System::start(options()).await;
    let _runner = system.start_runner("a").await;
    let text = format!("trap '' TERM\necho begin >> {}\nwhile :; do sleep 0.1; done", system.witness("w").display());
    let job = system.script(&text).await;
    system.until_witness("w", "begin").await;
    let asked = Instant::now();
    let output = system.ferry(&["jobs", "cancel", job.id.as_str()]).await;
    assert!(output.status.success(), "{}", shown(&output));
    let job = system.until_job(&job.id, "it is over", seconds(25), |j| j.status.is_terminal()).await;
    assert_eq!(job.status, JobState::Cancelled, "{}", job.status_description);
    assert!((seconds(9)..seconds(15)).contains(&asked.elapsed()), "the grace is 10 s, it took {:?}", asked.elapsed());
    system.until_quiet().await;
}

#[tokio::test]
async fn a_cancel_reaches_a_runner_that_was_away() {
    let mut system = System::start(options()).await;
    let mut runner = system.start_runner("a").await;
    let job = system.held("script").await;
    runner.kill();
    system.client.cancel_job(&job.id).await.unwrap();
    system.kill_server();
    system.start_server().await;
    let _next = system.resume_runner("a");
    let job = system.until_over(&job.id).await;
    assert_eq!(job.status, JobState::Cancelled, "{}", job.status_description);
    assert_eq!(system.lines("script"), ["begin"]);
    system.until_quiet().await;
}

#[tokio::test]
async fn a_second_runner_with_the_same_credential_fences_the_first() {
    let system = System::start(options()).await;
    let join = system.join_command().await;
    let mut first = system.start_runner_with("a", &join, |_| ()).await;
    let job = system.held("script").await;
    let _second = system.start_runner_with("b", &join, |_| ()).await;
    let unknown = system.until_state(&job.id, JobState::Unknown, seconds(5)).await;
    assert!(unknown.status_description.contains("new"), "{}", unknown.status_description);
    let status = first.process.ended(SOON).await;
    assert!(!status.success(), "{status}");
    let log = first.log();
    assert!(log.contains("a newer session has taken this runner's place"), "{log}");
    system.until_quiet().await;
    assert_eq!(system.lines("script"), ["begin"], "the first one's script was interrupted");
    assert_eq!(system.runner().await.generation, 2);
    assert_eq!(system.run(vec![script("next", "true")]).await.status, JobState::Finished, "the second one works");
    assert_eq!(system.job(&job.id).await.status, JobState::Unknown, "nobody can say how it ended");
    // The first one can't come back.
    let mut again = system.resume_runner("a");
    assert!(!again.process.ended(SOON).await.success());
    assert_eq!(system.run(vec![script("next", "true")]).await.status, JobState::Finished);
}

#[tokio::test]
async fn a_revoked_runner_ends_and_can_not_come_back() {
    let system = System::start(options()).await;
    let join = system.join_command().await;
    let mut runner = system.start_runner_with("a", &join, |_| ()).await;
    let output = system.ferry(&["runners", "revoke", "customer", "--yes"]).await;
    assert!(output.status.success(), "{}", shown(&output));
    assert!(!runner.process.ended(SOON).await.success());
    let log = runner.log();
    assert!(log.contains("the vendor revoked this runner") && !log.contains("newer session"), "{log}");
    let mut command = system.resume_command("b");
    command.env("FERRY_RUNNER_JOIN", &join.credential).env("FERRY_RUNNER_TRUST_KEY", join.trust_keys.join(","));
    let output = run(command).await;
    assert!(!output.status.success() && shown(&output).contains("revoked"), "{}", shown(&output));
    let job = system.script("true").await;
    system.until_waiting(&job.id, "revoked").await;
    system.client.cancel_job(&job.id).await.unwrap();
}

#[tokio::test]
async fn disable_works_without_the_server_lasts_and_is_told_when_it_can_be() {
    let mut system = System::start(options()).await;
    let mut runner = system.start_runner("a").await;
    let job = system.held("script").await;
    system.kill_server();
    let dir = runner.state_dir.display().to_string();
    let output = run(system.runner_command(&["disable", "--state-dir", &dir])).await;
    assert!(output.status.success() && shown(&output).contains("the runner interrupts its jobs"), "{}", shown(&output));
    system.until_quiet().await;
    assert_eq!(system.lines("script"), ["begin"], "interrupted, with the server down");
    // It lasts across a restart of the process.
    runner.kill();
    let _next = system.resume_runner("a");
    system.start_server().await;
    let job = system.until_over(&job.id).await;
    assert_eq!(job.status, JobState::Cancelled, "{}", job.status_description);
    assert!(job.status_description.contains("the customer has disabled the runner"), "{}", job.status_description);
    let waiting = system.script("true").await;
    system.until_waiting(&waiting.id, "disabled by the customer since").await;
    assert_eq!(system.runner().await.status, "disabled");
    let output = run(system.runner_command(&["explain", "--state-dir", &dir])).await;
    assert!(shown(&output).contains("OFF since"), "{}", shown(&output));
    let output = run(system.runner_command(&["enable", "--state-dir", &dir])).await;
    assert!(output.status.success(), "{}", shown(&output));
    assert_eq!(system.until_over(&waiting.id).await.status, JobState::Finished);
}

#[tokio::test]
async fn a_runner_drains_by_request_and_resumes() {
    let system = System::start(options()).await;
    let _runner = system.start_runner("a").await;
    let running = system.held("script").await;
    let output = system.ferry(&["runners", "drain", "customer"]).await;
    assert!(output.status.success(), "{}", shown(&output));
    let waiting = system.script("true").await;
    system.until_waiting(&waiting.id, "draining by request").await;
    system.open("script");
    assert_eq!(system.until_over(&running.id).await.status, JobState::Finished);
    assert_eq!(system.job(&waiting.id).await.status, JobState::Queued);
    let output = system.ferry(&["runners", "resume", "customer"]).await;
    assert!(output.status.success(), "{}", shown(&output));
    assert_eq!(system.until_over(&waiting.id).await.status, JobState::Finished);
}

#[tokio::test]
async fn sigterm_lets_running_jobs_finish_and_takes_no_new_ones() {
    let system = System::start(options()).await;
    let mut runner = system.start_runner("a").await;
    let running = system.held("script").await;
    runner.signal(Signal::TERM);
    system.until_runner("it says that it drains", SOON, |r| r.report.as_ref().is_some_and(|r| r.draining)).await;
    let waiting = system.script("true").await;
    system.until_waiting(&waiting.id, "the runner is shutting down").await;
    assert!(runner.process.is_alive());
    system.open("script");
    assert_eq!(system.until_over(&running.id).await.status, JobState::Finished);
    assert!(runner.process.ended(SOON).await.success(), "and the process ends well");
    system.assert_whole(&running, "script").await;
    system.until_waiting(&waiting.id, "offline since").await;
    let _next = system.resume_runner("a");
    assert_eq!(system.until_over(&waiting.id).await.status, JobState::Finished);
}

#[tokio::test]
async fn a_drain_that_is_over_interrupts() {
    let system = System::start(options()).await;
    let mut runner = system.start_runner("a").await;
    set(&system, UpdateRunnerSettings { drain_s: Some(1), ..Default::default() }).await;
    let job = system.held("script").await;
    runner.signal(Signal::TERM);
    let job = system.until_over(&job.id).await;
    assert_eq!(job.status, JobState::Cancelled);
    assert!(job.status_description.contains("the runner is shutting down"), "{}", job.status_description);
    assert!(runner.process.ended(SOON).await.success());
    assert_eq!(system.lines("script"), ["begin"]);
}

#[tokio::test]
async fn new_settings_reach_a_runner_without_a_restart() {
    let system = System::start(options()).await;
    let runner = system.start_runner("a").await;
    set(&system, slots(1)).await;
    let first = system.held("first").await;
    let second = system.script(&system.held_script("second")).await;
    let second = system.until_waiting(&second.id, "busy with job").await;
    assert!(second.waiting_reason.unwrap().contains(first.id.as_str()), "it names the job");
    set(&system, slots(2)).await;
    system.until_witness("second", "begin").await;
    assert_eq!(system.job(&first.id).await.status, JobState::Running, "both at once");
    system.open("first");
    system.open("second");
    for job in [&first.id, &second.id] {
        assert_eq!(system.until_over(job).await.status, JobState::Finished);
    }
    let session = fs_err::read_to_string(runner.state_dir.join("session.json")).unwrap();
    assert_eq!(serde_json::from_str::<serde_json::Value>(&session).unwrap()["pid"], runner.pid());
}

#[tokio::test]
async fn every_wait_has_its_reason() {
    let system = System::start(options().with("FERRY_TIMING__CLOSED_OFFLINE_S", 5)).await;
    let job = system.script("true").await;
    system.until_waiting(&job.id, "no runner yet").await;
    let mut runner = system.start_runner("a").await;
    assert_eq!(system.until_over(&job.id).await.status, JobState::Finished);

    let mut on_target = action(vec![script("run", &system.held_script("target"))]);
    on_target.target = Some("db".into());
    let holder = system.submit(&on_target).await;
    system.until_witness("target", "begin").await;
    on_target.steps = vec![script("run", "true")];
    let second = system.submit(&on_target).await;
    system.until_waiting(&second.id, &format!("`db` is held by job {}", holder.id)).await;
    let other = system.run(vec![script("other", "true")]).await;
    assert_eq!(other.status, JobState::Finished, "others go by");
    system.open("target");
    for job in [&holder.id, &second.id] {
        assert_eq!(system.until_over(job).await.status, JobState::Finished);
    }

    set(&system, UpdateRunnerSettings { disk_floor_bytes: Some(1 << 50), ..Default::default() }).await;
    let runner_knows = |r: &api::control::Runner| r.report.as_ref().is_some_and(|r| r.disk_floor_bytes == 1 << 50);
    system.until_runner("the floor is there", SOON, runner_knows).await;
    let job = system.script("true").await;
    system.until_waiting(&job.id, "too little disk").await;
    set(&system, UpdateRunnerSettings { disk_floor_bytes: Some(0), ..Default::default() }).await;
    assert_eq!(system.until_over(&job.id).await.status, JobState::Finished);

    set(&system, slots(0)).await;
    let job = system.script("true").await;
    system.until_waiting(&job.id, "takes no jobs of group actions").await;
    set(&system, slots(1)).await;
    assert_eq!(system.until_over(&job.id).await.status, JobState::Finished);

    // Between two polls nobody sees a connection close: the runner holds one when it dies.
    system.until_idle().await;
    runner.kill();
    let job = system.script("true").await;
    system.until_waiting(&job.id, "runner disconnected at").await;
    system.until_waiting(&job.id, "runner offline since").await;
    let output = system.ferry(&["jobs", "list"]).await;
    assert!(shown(&output).contains("queued"), "{}", shown(&output));
    assert_eq!(system.client.cancel_job(&job.id).await.unwrap().status, JobState::Cancelled);
}

#[tokio::test]
async fn a_server_that_stops_ends_held_requests_at_once() {
    let mut system = System::start(options().with("FERRY_TIMING__HOLD_S", 25)).await;
    let _runner = system.start_runner("a").await;
    let job = system.held("script").await;
    let (mut events, mut tail) = (system.client.watch_events(None, None), system.client.tail(&job.log_stream_id, None));
    let reading = tokio::spawn(async move { while tail.next().await.is_some_and(|c| c.is_ok()) {} });
    let watching = tokio::spawn(async move { while events.next().await.is_some_and(|e| e.is_ok()) {} });
    tokio::time::sleep(seconds(1)).await;
    let (status, took) = system.stop_server().await;
    assert!(status.success(), "{status}");
    assert!(took < seconds(2), "it took {took:?}");
    system.start_server().await;
    system.open("script");
    assert_eq!(system.until_over(&job.id).await.status, JobState::Finished);
    reading.abort();
    watching.abort();
}

/// On every route that creates a job by itself.
#[tokio::test]
async fn the_same_key_makes_one_job_of_every_type() {
    let system = System::start(options()).await;
    let client = system.client.with_idempotency_key("once");
    for job_type in [JobType::Noop, JobType::HealthCheck] {
        let client = system.client.with_idempotency_key(job_type.as_str());
        let new = CreateRunnerJob { job_type, sleep_ms: 1, priority: 0 };
        let runner = system.install.runner_id.as_str();
        let (first, again) = (
            client.create_runner_job(runner, &new).await.unwrap(),
            client.create_runner_job(runner, &new).await.unwrap(),
        );
        assert_eq!(first.id, again.id, "{job_type}");
    }
    let install = system.install.id.as_str();
    let steps = action(vec![script("one", "true")]);
    let (first, again) = (
        client.create_action_run(install, &steps).await.unwrap(),
        client.create_action_run(install, &steps).await.unwrap(),
    );
    assert_eq!(first.id, again.id);
}

/// Of every job type that can be asked for on its own. What starts no program is stopped by the executor itself, so no kind of work can
/// forget to look.
#[tokio::test]
async fn a_job_of_every_type_stops_within_two_seconds() {
    let system = System::start(options()).await;
    let _runner = system.start_runner("a").await;
    let runner_id = system.install.runner_id.as_str();
    let noop = CreateRunnerJob { job_type: JobType::Noop, sleep_ms: 600_000, priority: 0 };
    let noop = system.client.create_runner_job(runner_id, &noop).await.unwrap().id;
    let script = system.script("trap 'exit 3' TERM; while :; do sleep 0.05; done").await.id;
    for job in [noop, script] {
        system.until_state(&job, JobState::Running, seconds(20)).await;
        let asked = Instant::now();
        system.client.cancel_job(&job).await.unwrap();
        let over = system.until_over(&job).await;
        assert_eq!(over.status, JobState::Cancelled, "{}", over.status_description);
        assert!(asked.elapsed() < seconds(2), "{}: {:?}", over.job_type, asked.elapsed());
    }
}

#[tokio::test]
async fn priorities_go_first() {
    let system = System::start(options()).await;
    let witness = system.witness("order").display().to_string();
    let mut jobs = Vec::new();
    for (name, priority) in [("low", -1), ("first", 0), ("second", 0), ("high", 5)] {
        let mut wanted = action(vec![script("run", &format!("echo {name} >> {witness}"))]);
        wanted.priority = priority;
        jobs.push(system.submit(&wanted).await);
    }
    set(&system, slots(1)).await;
    let _runner = system.start_runner("a").await;
    for job in &jobs {
        assert_eq!(system.until_over(&job.id).await.status, JobState::Finished);
    }
    assert_eq!(system.lines("order"), ["high", "first", "second", "low"]);
    // A group of its own is not held up.
    let held = system.held("held").await;
    let noop = CreateRunnerJob { job_type: JobType::Noop, sleep_ms: 0, priority: 0 };
    let noop = system.client.create_runner_job(system.install.runner_id.as_str(), &noop).await.unwrap();
    assert_eq!(system.until_over(&noop.id).await.status, JobState::Finished);
    system.open("held");
    system.until_over(&held.id).await;
}
