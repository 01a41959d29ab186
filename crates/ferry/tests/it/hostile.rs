//! Scripts that mean harm, beside one that does not: they are stopped or bounded, the runner lives, the polite one is not
//! disturbed, and nothing stays.

use std::path::Path;

use api::control::CreateActionRun;
use model::spec::Limits;
use model::{JobState, Outcome};
use needs::needs;
use testkit::system::{SOON, System, action, script, until};

use crate::options;

struct Attack {
    name: &'static str,
    script: String,
    limits: Limits,
    timeout_s: u64,
    /// What it must end as, and what its error or its log must say.
    ends: (Outcome, &'static str),
}

fn one(name: &'static str, script: &str, ends: (Outcome, &'static str)) -> Attack {
    Attack { name, script: script.to_owned(), limits: Limits::default(), timeout_s: 120, ends }
}

fn attacks(state_dir: &Path, runner: i32) -> Vec<Attack> {
    let state = state_dir.display();
    vec![
        one(
            "a hundred thousand files",
            "#!/usr/bin/env python3\nimport os\nfor n in range(100000): os.close(os.open(f'f{n}', os.O_CREAT))\nprint('made them')\n",
            (Outcome::Finished, "made them"),
        ),
        one(
            "a daemon that ignores SIGTERM",
            "(trap '' TERM INT HUP; setsid sh -c \"trap '' TERM INT HUP; while :; do sleep 0.1; done\" </dev/null >/dev/null 2>&1 &)\necho left it\n",
            (Outcome::Finished, "left it"),
        ),
        one(
            "links out of the workspace",
            &format!(
                "ln -s {state} there; ln -s {state}/session.key key\ncat key && echo LEAK\necho x > there/planted && echo LEAK\nln -f {state}/session.key hard && echo LEAK\necho held\n"
            ),
            (Outcome::Finished, "held"),
        ),
        one(
            "its outputs are the runner's key",
            &format!(
                "rm \"$FERRY_ACTIONS_OUTPUT_FILEPATH\"; ln -s {state}/session.key \"$FERRY_ACTIONS_OUTPUT_FILEPATH\"\n"
            ),
            (Outcome::Failed, "replaced by something else"),
        ),
        one(
            "the others' secrets",
            &format!(
                "for e in /proc/[0-9]*/environ; do tr '\\0' '\\n' < $e 2>/dev/null | grep -q 'FERRY_IT_DIR=' && [ $e != /proc/$$/environ ] && echo LEAK $e; done\ncat {state}/executions/*/work/root/* && echo LEAK\ncat {state}/executions/*/assignment.json && echo LEAK\nkill -9 $PPID && echo LEAK\nkill -9 {runner} && echo LEAK\necho held\n"
            ),
            (Outcome::Finished, "held"),
        ),
    ]
}

/// Those that only a control group bounds.
fn floods() -> Vec<Attack> {
    vec![
        Attack {
            limits: Limits { processes: Some(200), ..Limits::default() },
            timeout_s: 2,
            ..one("fork bomb", "bomb() { bomb | bomb & }; bomb & exec sleep 60", (Outcome::TimedOut, "timeout"))
        },
        Attack {
            limits: Limits { memory_bytes: Some(128 << 20), ..Limits::default() },
            ..one(
                "ten gigabytes",
                "#!/usr/bin/env python3\nkept = []\nfor _ in range(10240): kept.append(bytearray(b'x' * (1 << 20)))\n",
                (Outcome::Failed, "memory limit"),
            )
        },
    ]
}

#[tokio::test]
async fn hostile_scripts_harm_nobody_and_leave_nothing() {
    needs!(Landlock);
    all_fail(attacks).await;
}

#[tokio::test]
async fn floods_of_processes_and_memory_are_stopped_and_leave_nothing() {
    needs!(Cgroups);
    all_fail(|_, _| floods()).await;
}

async fn all_fail(attacks: impl FnOnce(&Path, i32) -> Vec<Attack>) {
    let system = System::start(options()).await;
    let mut runner = system.start_runner("a").await;
    let settings = api::control::UpdateRunnerSettings {
        groups: Some([(model::JobGroup::Actions, 2)].into()),
        ..Default::default()
    };
    system.client.update_runner_settings(system.install.runner_id.as_str(), &settings).await.unwrap();
    let polite = system.held("polite").await;
    let pid = runner.pid();
    for attack in attacks(&runner.state_dir, pid) {
        let step = script("attack", &attack.script);
        let run = CreateActionRun { limits: attack.limits, timeout_s: Some(attack.timeout_s), ..action(vec![step]) };
        let job = system.submit(&run).await;
        let job = system.until_job(&job.id, attack.name, 3 * SOON, |job| job.status.is_terminal()).await;
        let log = system.text_log(&job, None).await;
        let told = format!("{}\n{log}", job.status_description);
        assert_eq!(job.status, JobState::from(attack.ends.0), "{}: {told}", attack.name);
        assert!(told.contains(attack.ends.1), "{}: {told}", attack.name);
        assert!(!log.contains("LEAK"), "{}: {told}", attack.name);
        assert!(runner.process.is_alive() && runner.pid() == pid, "{}: the runner lives", attack.name);
        let gone = format!("{}: only the polite one is left, and its directory", attack.name);
        until(&gone, SOON, async || {
            let left = fs_err::read_dir(runner.state_dir.join("executions")).unwrap().count();
            match (system.executors().len(), left) {
                (1, 1) => Ok(()),
                found => Err(format!("{found:?}")),
            }
        })
        .await;
        assert_eq!(system.job(&polite.id).await.status, JobState::Running, "{}: the other goes on", attack.name);
    }
    assert!(!runner.state_dir.join("planted").exists());
    system.open("polite");
    assert_eq!(system.until_over(&polite.id).await.status, JobState::Finished);
    system.assert_whole(&polite, "polite").await;
    system.until_quiet().await;
}
