//! Deaths: of runners, executors, servers, machines; silence, and the return from it.

use std::time::{Duration, Instant};

use api::control::{CreateRunnerJob, Job};
use model::{JobState, JobType};
use rustix::process::Signal;
use testkit::Backend;
use testkit::system::{SOON, System, action, is_running, script, send, until};

use crate::{options, seconds};

async fn pause_ms(ms: u64) {
    tokio::time::sleep(Duration::from_millis(ms)).await;
}

/// The states that a job went through, from its events.
async fn history(system: &System, job: &Job) -> Vec<String> {
    let events = system.client.events(None, None, 100).await.unwrap().0;
    let of_job = events.iter().filter(|e| e.kind == "job.state" && e.subject_id == job.id.as_str());
    of_job.map(|e| e.data["to"].as_str().unwrap().to_owned()).collect()
}

async fn runner_dies(backend: Backend) {
    let system = System::start(options().on(backend)).await;
    let mut runner = system.start_runner("a").await;
    let job = system.held("script").await;
    let executor = system.executors();
    runner.kill();
    pause_ms(500).await;
    assert_eq!(system.executors(), executor, "the executor goes on");
    let mut second = system.resume_runner("a");
    pause_ms(700).await;
    assert_eq!(system.executors(), executor, "the same one");
    // Once more, and this time the script ends while nobody is there.
    second.kill();
    system.open("script");
    system.until_witness("script", "end").await;
    let _third = system.resume_runner("a");
    let job = system.until_over(&job.id).await;
    assert_eq!(job.status, JobState::Finished, "{}", job.status_description);
    assert_eq!((job.execution_count, job.executions.len()), (1, 1));
    system.assert_whole(&job, "script").await;
}

#[tokio::test]
async fn a_script_survives_two_kills_of_its_runner_and_is_finished_once() {
    runner_dies(Backend::Sqlite).await;
}

#[tokio::test]
async fn a_script_survives_two_kills_of_its_runner_on_postgresql() {
    runner_dies(Backend::Postgres).await;
}

#[tokio::test]
async fn two_kills_in_a_row_lose_nothing() {
    let system = System::start(options()).await;
    let mut runner = system.start_runner("a").await;
    let job = system.held("script").await;
    runner.kill();
    // The second one dies at once, at some point of its start.
    for delay_ms in [0, 5, 20, 60] {
        let mut next = system.resume_runner("a");
        pause_ms(delay_ms).await;
        next.kill();
    }
    let _last = system.resume_runner("a");
    system.open("script");
    let job = system.until_over(&job.id).await;
    assert_eq!(job.status, JobState::Finished, "{}", job.status_description);
    system.assert_whole(&job, "script").await;
}

#[tokio::test]
async fn a_runner_killed_at_any_moment_of_a_start_runs_nothing_twice() {
    let system = System::start(options()).await;
    let mut runner = system.start_runner("a").await;
    let mut jobs = Vec::new();
    for n in 0..12 {
        let name = format!("w{n}");
        jobs.push((name.clone(), system.script(&format!("echo ran >> {}", system.witness(&name).display())).await));
        pause_ms(n * 7).await;
        runner.kill();
        runner = system.resume_runner("a");
    }
    for (name, job) in jobs {
        let job = system
            .until_job(&job.id, "settled", SOON, |j| j.status.is_terminal() || j.status == JobState::Unknown)
            .await;
        let ran = system.lines(&name).len();
        match job.status {
            JobState::Finished => assert_eq!(ran, 1, "{name}: {}", job.status_description),
            // It was started, and the machine's word is all there is: then it says so, and did not run twice.
            JobState::Unknown => assert!(ran <= 1, "{name}: {}", job.status_description),
            other => panic!("{name} is {other}: {}", job.status_description),
        }
    }
    system.until_quiet().await;
}

#[tokio::test]
async fn under_random_kills_of_runner_and_server_nothing_runs_twice_and_no_log_is_torn() {
    // Longer than a restart takes on a busy machine: none of these may become unknown.
    let mut system = System::start(options().with("FERRY_TIMING__LEASE_S", 10)).await;
    let mut runner = system.start_runner("a").await;
    let mut seed = u64::from(std::process::id()) | 1;
    eprintln!("seed {seed}");
    let mut draw = |bound: u64| {
        seed ^= seed << 13;
        seed ^= seed >> 7;
        seed ^= seed << 17;
        seed % bound
    };
    let mut jobs = Vec::new();
    for round in 0..14 {
        for n in 0..2 {
            let name = format!("r{round}n{n}");
            let witness = system.witness(&name).display().to_string();
            let text = format!(
                "echo begin >> {witness}\nfor i in $(seq 20); do echo line $i; sleep 0.0{}; done\necho end >> {witness}",
                draw(4)
            );
            jobs.push((name, system.script(&text).await));
        }
        pause_ms(draw(350)).await;
        if draw(3) == 0 {
            system.kill_server();
            pause_ms(draw(300)).await;
            system.start_server().await;
        } else {
            runner.kill();
            pause_ms(draw(300)).await;
            runner = system.resume_runner("a");
        }
    }
    let expected: String = (1..=20).map(|n| format!("line {n}\n")).collect();
    let mut unknown = 0;
    for (name, job) in &jobs {
        let settled = |j: &Job| j.status.is_terminal() || j.status == JobState::Unknown;
        let job = system.until_job(&job.id, "settled", seconds(40), settled).await;
        match job.status {
            JobState::Finished => {
                assert_eq!(system.lines(name), ["begin", "end"], "{name} ran once");
                assert_eq!(system.text_log(&job, Some("stdout")).await, expected, "{name}: its log is whole");
            }
            // The process died between the start and its executor: nobody ran it, and it says so.
            JobState::Unknown => {
                unknown += 1;
                assert_eq!(system.lines(name), [""; 0], "{name}: {}", job.status_description);
            }
            other => panic!("{name} is {other}: {}", job.status_description),
        }
    }
    // Executors were never killed, so each of them has told how it ended.
    assert_eq!(unknown, 0, "{unknown} of {} are unknown", jobs.len());
    system.until_quiet().await;
}

#[tokio::test]
async fn a_machine_that_dies_leaves_unknown_and_nothing_is_tried_again() {
    let system = System::start(options()).await;
    let mut runner = system.start_runner("a").await;
    let job = system.held("script").await;
    pause_ms(500).await;
    // Runner first: nobody may see the executor die.
    runner.kill();
    for pid in system.executors().into_iter().chain(system.children()) {
        send(pid, Signal::KILL);
    }
    let died = Instant::now();
    let job = system.until_state(&job.id, JobState::Unknown, seconds(10)).await;
    assert!(died.elapsed() <= seconds(5), "unknown after {:?}, and the lease is 3 s", died.elapsed());
    assert!(job.status_description.contains("the lease ended at"), "{}", job.status_description);
    let output = system.ferry(&["jobs", "get", job.id.as_str()]).await;
    assert!(String::from_utf8_lossy(&output.stdout).contains("the lease ended"), "{output:?}");
    // The machine comes back with its disk: it says that the executor is dead, and starts nothing.
    let _next = system.resume_runner("a");
    system.open("script");
    pause_ms(2500).await;
    assert_eq!(system.job(&job.id).await.status, JobState::Unknown);
    assert_eq!(system.lines("script"), ["begin"], "not run again");
    // Work goes on, and what the log had is there.
    let other = system.run(vec![script("next", "true")]).await;
    assert_eq!(other.status, JobState::Finished);
    assert!(system.text_log(&job, None).await.starts_with("line 1\nline 2\n"));
    let output = system.ferry(&["jobs", "settle", job.id.as_str(), "--as", "failed", "--note", "looked"]).await;
    assert!(output.status.success(), "{output:?}");
    assert_eq!(system.job(&job.id).await.status, JobState::Failed);
}

#[tokio::test]
async fn a_job_that_only_reads_is_tried_again_after_a_machine_died() {
    let system = System::start(options()).await;
    let mut runner = system.start_runner("a").await;
    let noop = CreateRunnerJob { job_type: JobType::Noop, sleep_ms: 2500, priority: 0 };
    let job = system.client.create_runner_job(system.install.runner_id.as_str(), &noop).await.unwrap();
    system.until_state(&job.id, JobState::Running, SOON).await;
    until(
        "its executor runs",
        SOON,
        async || {
            if system.executors().is_empty() { Err("none".to_owned()) } else { Ok(()) }
        },
    )
    .await;
    runner.kill();
    system.executors().into_iter().for_each(|pid| send(pid, Signal::KILL));
    system.until_state(&job.id, JobState::Queued, seconds(10)).await;
    let _next = system.resume_runner("a");
    let job = system.until_over(&job.id).await;
    assert_eq!((job.status, job.execution_count), (JobState::Finished, 2), "{}", job.status_description);
}

#[tokio::test]
async fn a_dead_executor_is_unknown_at_once_and_its_children_are_ended() {
    let system = System::start(options()).await;
    let _runner = system.start_runner("a").await;
    let text = format!("setsid sleep 300 &\n{}", system.held_script("script"));
    let mut wanted = action(vec![script("run", &text)]);
    wanted.target = Some("db".into());
    let job = system.submit(&wanted).await;
    system.until_witness("script", "begin").await;
    let children = system.children();
    assert!(children.len() >= 2, "{children:?}");
    system.executors().into_iter().for_each(|pid| send(pid, Signal::KILL));
    let killed = Instant::now();
    let job = system.until_state(&job.id, JobState::Unknown, seconds(5)).await;
    assert!(killed.elapsed() < seconds(2), "unknown after {:?}", killed.elapsed());
    assert!(job.status_description.contains("the executor died without a result"), "{}", job.status_description);
    assert!(children.iter().all(|pid| !is_running(*pid)), "nothing of it runs when its death is told");
    // Its target is free again: the runner has said that the executor is dead.
    wanted.steps = vec![script("run", "true")];
    let next = system.submit(&wanted).await;
    assert_eq!(system.until_over(&next.id).await.status, JobState::Finished);
    assert_eq!(system.lines("script"), ["begin"]);
}

#[tokio::test]
async fn what_a_dead_executor_left_is_ended_by_the_next_runner_before_it_says_so() {
    let system = System::start(options()).await;
    let mut runner = system.start_runner("a").await;
    // It outlives its pipes too: they close with the executor.
    let stubborn = format!("trap '' TERM PIPE\n{}", system.held_script("script"));
    let job = system.script(&stubborn).await;
    system.until_witness("script", "begin").await;
    runner.kill();
    system.executors().into_iter().for_each(|pid| send(pid, Signal::KILL));
    assert!(!system.children().is_empty(), "the script lives on");
    let _next = system.resume_runner("a");
    // The grace is longer than the lease, so the job is unknown before; its execution is over only when nothing of it is left.
    let over = |j: &Job| j.executions.last().is_some_and(|e| e.finished_at.is_some());
    let job = system.until_job(&job.id, "its death is told", seconds(25), over).await;
    assert_eq!(job.status, JobState::Unknown);
    assert_eq!(system.children(), [0; 0], "and nothing of it runs");
}

async fn server_dies(backend: Backend) {
    // Long enough for the runner of a busy machine to renew it in time once the server is back.
    let mut system = System::start(options().on(backend).with("FERRY_TIMING__LEASE_S", 10)).await;
    let _runner = system.start_runner("a").await;
    let job = system.held("script").await;
    let queued = {
        let mut wanted = action(vec![script("later", &format!("echo ran >> {}", system.witness("later").display()))]);
        wanted.target = Some("t".into());
        system.submit(&wanted).await
    };
    system.kill_server();
    pause_ms(600).await;
    system.start_server().await;
    // Longer than a lease: what was running stays so.
    system.kill_server();
    pause_ms(10_500).await;
    system.start_server().await;
    assert_eq!(system.job(&job.id).await.status, JobState::Running, "a starting server extends leases");
    pause_ms(1000).await;
    system.open("script");
    let job = system.until_over(&job.id).await;
    assert_eq!(job.status, JobState::Finished, "{}", job.status_description);
    assert!(!history(&system, &job).await.contains(&"unknown".to_owned()));
    system.assert_whole(&job, "script").await;
    assert_eq!(system.until_over(&queued.id).await.status, JobState::Finished);
    assert_eq!(system.lines("later"), ["ran"]);
}

#[tokio::test]
async fn a_server_that_is_killed_loses_nothing() {
    server_dies(Backend::Sqlite).await;
}

#[tokio::test]
async fn a_server_that_is_killed_loses_nothing_on_postgresql() {
    server_dies(Backend::Postgres).await;
}

#[tokio::test]
async fn a_script_that_ends_while_the_server_is_down_is_finished_when_it_returns() {
    let mut system = System::start(options()).await;
    let _runner = system.start_runner("a").await;
    let job = system.held("script").await;
    system.kill_server();
    system.open("script");
    system.until_witness("script", "end").await;
    system.start_server().await;
    let job = system.until_over(&job.id).await;
    assert_eq!(job.status, JobState::Finished, "{}", job.status_description);
    system.assert_whole(&job, "script").await;
}

#[tokio::test]
async fn a_runner_that_returns_after_its_lease_revives_the_job() {
    let system = System::start(options()).await;
    let runner = system.start_runner("a").await;
    let job = system.held("script").await;
    runner.signal(Signal::STOP);
    let unknown = system.until_state(&job.id, JobState::Unknown, seconds(8)).await;
    assert!(unknown.status_description.contains("the lease ended"), "{}", unknown.status_description);
    runner.signal(Signal::CONT);
    system.until_state(&job.id, JobState::Running, seconds(8)).await;
    system.open("script");
    let job = system.until_over(&job.id).await;
    assert_eq!(job.status, JobState::Finished, "{}", job.status_description);
    assert_eq!(
        history(&system, &job).await,
        ["queued", "available", "in-progress", "unknown", "in-progress", "finished"]
    );
    assert_eq!(job.execution_count, 1);
    system.assert_whole(&job, "script").await;
}

#[tokio::test]
async fn a_script_that_ends_in_an_unknown_job_still_finishes_it() {
    let system = System::start(options()).await;
    let runner = system.start_runner("a").await;
    let job = system.held("script").await;
    runner.signal(Signal::STOP);
    system.until_state(&job.id, JobState::Unknown, seconds(8)).await;
    system.open("script");
    system.until_witness("script", "end").await;
    system.until_quiet().await;
    runner.signal(Signal::CONT);
    let job = system.until_over(&job.id).await;
    assert_eq!(job.status, JobState::Finished, "{}", job.status_description);
    system.assert_whole(&job, "script").await;
}

#[tokio::test]
async fn silence_longer_than_offline_s_interrupts_the_script() {
    let mut system = System::start(options().with("FERRY_TIMING__OFFLINE_S", 3)).await;
    let _runner = system.start_runner("a").await;
    let witness = system.witness("ticks").display().to_string();
    let text = format!(
        "trap 'echo interrupted >> {witness}; exit 7' TERM\nwhile :; do echo tick >> {witness}; sleep 0.1; done"
    );
    let job = system.script(&text).await;
    system.until_witness("ticks", "tick").await;
    // With the server there it goes on for as long as it likes.
    pause_ms(4000).await;
    assert_eq!(system.job(&job.id).await.status, JobState::Running);
    system.kill_server();
    let gone = Instant::now();
    system.until_witness("ticks", "interrupted").await;
    // Silence counts from the last answer, up to a hold before.
    assert!((seconds(1)..seconds(20)).contains(&gone.elapsed()), "interrupted after {:?}", gone.elapsed());
    let lines = system.lines("ticks").len();
    system.until_quiet().await;
    assert_eq!(system.lines("ticks").len(), lines, "nothing after the interrupt");
    system.start_server().await;
    let job = system.until_over(&job.id).await;
    assert_eq!(job.status, JobState::Failed, "{}", job.status_description);
    assert_eq!(job.error.unwrap().code, "offline");
}

#[tokio::test]
async fn a_busy_machine_does_not_lose_its_lease() {
    let system = System::start(options()).await;
    let _runner = system.start_runner("a").await;
    let cores = std::thread::available_parallelism().unwrap().get();
    // Two for every core, for more than three leases.
    let text =
        format!("for i in $(seq {}); do (while :; do :; done) & done\nsleep 10\nkill $(jobs -p)\necho end", cores * 2);
    let job = system.script(&text).await;
    let job = system.until_job(&job.id, "it is over", seconds(40), |j| j.status.is_terminal()).await;
    assert_eq!(job.status, JobState::Finished, "{}", job.status_description);
    assert_eq!(history(&system, &job).await, ["queued", "available", "in-progress", "finished"]);
    assert_eq!(system.text_log(&job, Some("stdout")).await, "end\n");
}

#[tokio::test]
async fn limits_end_what_grows_over_them() {
    let system = System::start(options()).await;
    let _runner = system.start_runner("a").await;
    let mut wanted = action(vec![script("fill", "head -c 60000000 /dev/zero > big; sleep 30")]);
    wanted.limits.disk_bytes = Some(20 << 20);
    let job = system.submit(&wanted).await;
    let job = system.until_over(&job.id).await;
    assert_eq!((job.status, job.error.unwrap().code.as_str()), (JobState::Failed, "disk_quota"));
    system.until_quiet().await;
}
