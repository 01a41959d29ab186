//! Clocks that are wrong: within 17 minutes nobody minds; beyond, the skew is named, and nothing is lost when it is set right.

use model::JobState;
use rustix::process::Signal;
use testkit::system::{Runner, System, run, script, shown, until};

use crate::{options, seconds};

/// Moves the runner's clock.
fn set_clock(system: &System, skew_s: i64) {
    fs_err::write(system.root().join("skew"), skew_s.to_string()).unwrap();
}

async fn start_runner(system: &System) -> Runner {
    let join = system.join_command().await;
    let runner = system.start_runner_with("a", &join, |command| {
        command.env("FERRY_SKEW_FILE", system.root().join("skew"));
    });
    runner.await
}

async fn doctor(system: &System, runner: &Runner) -> String {
    let state = runner.state_dir.display().to_string();
    let mut command = system.runner_command(&["doctor", "--state-dir", &state]);
    command.env("FERRY_SKEW_FILE", system.root().join("skew"));
    shown(&run(command).await)
}

#[tokio::test]
async fn seventeen_minutes_of_skew_work_and_more_is_named() {
    let system = System::start(options()).await;
    let minutes = 17 * 60;
    for skew_s in [minutes - 20, 20 - minutes] {
        set_clock(&system, skew_s);
        let mut runner = start_runner(&system).await;
        let job = system.run(vec![script("skewed", "echo fine")]).await;
        assert_eq!(job.status, JobState::Finished, "{skew_s} s: {}", job.status_description);
        assert_eq!(system.text_log(&job, Some("stdout")).await, "fine\n");
        runner.signal(Signal::TERM);
        runner.process.ended(seconds(20)).await;
        fs_err::remove_dir_all(&runner.state_dir).unwrap();
    }
    for (skew_s, named) in [(minutes + 60, "s ahead: it says"), (-minutes - 60, "s behind: it says")] {
        set_clock(&system, 0);
        let mut runner = start_runner(&system).await;
        let name = format!("held{skew_s}");
        let running = system.held(&name).await;
        // The clock jumps while a script is at work.
        set_clock(&system, skew_s);
        let waiting = system.script("true").await;
        until("the runner names the skew", seconds(20), async || {
            let log = runner.log();
            if log.contains(named) && log.contains("the runner's clock is") { Ok(()) } else { Err(log) }
        })
        .await;
        let report = doctor(&system, &runner).await;
        assert!(report.contains("the first failing hop: clock") && report.contains("1020 s are tolerated"), "{report}");
        let waits = system.job(&waiting.id).await;
        assert!(waits.executions.iter().all(|e| e.started_at.is_none()), "nothing is started meanwhile: {waits:#?}");
        system.open(&name);
        system.until_witness(&name, "end").await;
        set_clock(&system, 0);
        let running = system.until_over(&running.id).await;
        assert_eq!(running.status, JobState::Finished, "{}", running.status_description);
        system.assert_whole(&running, &name).await;
        let waited = system.until_over(&waiting.id).await;
        // A poll that was held since before the jump may have brought it; then its order was not good yet, here.
        let named = waited.status_description.contains("is the clock right?");
        assert!(
            waited.status == JobState::Finished || (waited.status == JobState::NotAttempted && named),
            "{waited:#?}"
        );
        assert_eq!(system.run(vec![script("next", "true")]).await.status, JobState::Finished);
        runner.signal(Signal::TERM);
        runner.process.ended(seconds(20)).await;
        fs_err::remove_dir_all(&runner.state_dir).unwrap();
    }
}
