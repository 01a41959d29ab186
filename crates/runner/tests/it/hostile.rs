//! Children that misbehave, and executors that die.

use std::time::{Duration, Instant};

use model::log::Pipe;
use model::spec::Limits;
use model::{Outcome, StepStatus};
use needs::needs;
use runner::confine::process::reap_leftovers;

use crate::world::{World, marked, script, step, wait_until};

#[test]
fn a_daemon_neither_survives_nor_holds_the_executor_up() {
    // A time of its own finds the daemon even without the mark in its environment.
    let time = format!("1000.{}", std::process::id());
    let alive = || {
        let entries = std::fs::read_dir("/proc").expect("proc").flatten();
        entries
            .filter(|e| {
                fs_err::read(e.path().join("cmdline")).is_ok_and(|c| c.ends_with(format!("{time}\0").as_bytes()))
            })
            .count()
    };
    for daemon in [
        format!("setsid sleep {time} &"),
        format!("setsid sleep {time} </dev/null >/dev/null 2>&1 &"),
        format!("(setsid sh -c 'trap \"\" TERM HUP; while :; do sleep {time}; done') &"),
        format!("env -i setsid /bin/sleep {time} &"),
    ] {
        let world = World::new(vec![step("daemon", &format!("{daemon}\nsleep 0.2; echo done"))]);
        let began = Instant::now();
        let (result, running) = world.finish();
        assert!(began.elapsed() < Duration::from_secs(6), "{daemon}: {:?}", began.elapsed());
        assert_eq!(result.outcome, Outcome::Finished, "{daemon}");
        assert_eq!(running.pipe(Pipe::Stdout), "done\n");
        assert_eq!(alive(), 0, "{daemon}");
    }
}

#[test]
fn the_runner_is_hidden_from_scripts() {
    needs!(Landlock);
    let mut world = World::new(vec![]);
    let state = world.state.path().display().to_string();
    let witness = tempfile::tempdir().expect("dir");
    world.action().steps = vec![script(
        "thief",
        &format!(
            "cat {state}/session.key && echo LEAK key\n\
             cat {state}/executions/*/assignment.json && echo LEAK token\n\
             touch {state}/x && echo LEAK write\n\
             for e in /proc/[0-9]*/environ; do tr '\\0' '\\n' < $e | grep -q RUNNER_SECRET= && echo LEAK $e; done\n\
             kill -0 $PPID && echo LEAK signal\n\
             env | grep -i token && echo LEAK env\n\
             echo ok > {witness}/file && echo 1 > $TMPDIR/x && echo 2 > /dev/null && ls / > /dev/null && echo fine\n",
            witness = witness.path().display()
        ),
    )];
    let (result, running) = world.finish();
    assert_eq!(result.outcome, Outcome::Finished, "{}", running.pipe(Pipe::Stderr));
    assert_eq!(running.pipe(Pipe::Stdout), "fine\n");
    assert_eq!(fs_err::read_to_string(witness.path().join("file")).expect("file"), "ok\n");
}

#[test]
fn limits_hold() {
    needs!(Cgroups);
    let mut world = World::new(vec![step("hungry", "head -c 300m /dev/zero | tail | wc -c; exit 3")]);
    world.spec.limits = Limits { memory_bytes: Some(64 << 20), ..Limits::default() };
    let error = world.finish().0.error.expect("error");
    assert!(error.message.contains("memory limit"), "{}", error.message);

    let mut world = World::new(vec![step("bomb", "f() { f | f & }; f; sleep 30")]);
    world.spec.limits = Limits { processes: Some(40), ..Limits::default() };
    world.spec.timeout_s = 2;
    let (result, _running) = world.finish();
    assert!(matches!(result.steps[0].status, StepStatus::TimedOut | StepStatus::Error), "{result:?}");

    let mut world = World::new(vec![step("full", "head -c 20m /dev/zero > file; sleep 30")]);
    world.spec.limits = Limits { disk_bytes: Some(10 << 20), ..Limits::default() };
    let (result, _running) = world.finish();
    assert_eq!(result.error.expect("error").code, "disk_quota");
}

#[tokio::test]
async fn what_a_dead_executor_leaves_is_ended_and_it_is_not_run_again() {
    let world = World::new(vec![step("orphan", "setsid sleep 1000 & echo up; sleep 1000")]);
    let mut running = world.start();
    running.wait_for_output("up");
    running.executor.kill().expect("kill");
    running.executor.wait().expect("wait");
    wait_until("the lock is free", || !running.dir.executor_alive());
    assert!(marked(running.dir.name()).len() >= 2, "the children go on");
    assert!(running.dir.result().expect("result").is_none());
    assert_eq!(reap_leftovers(&running.dir, Duration::from_secs(1)).await, 0);
    assert_eq!(marked(running.dir.name()), Vec::<u32>::new());

    let mut again = crate::world::start(running.dir.clone());
    assert!(!again.executor.wait().expect("wait").success());
    assert!(again.dir.result().expect("result").is_none());
}

#[test]
fn a_child_that_is_bound_to_its_parent_ends_with_it_and_does_not_begin_without_it() {
    let dir = tempfile::tempdir().expect("dir");
    let (file, pid) = (dir.path().join("shim.json"), dir.path().join("pid"));
    let told = |parent: &str| {
        let rest = serde_json::to_string(&Limits::default()).expect("limits");
        format!(
            r#"{{"argv":["sleep","600"],"env":{{}},"cgroups":{{"dirs":[],"rest":{rest}}},"sandbox":null,"parent":{parent}}}"#
        )
    };
    let runner = env!("CARGO_BIN_EXE_ferry-runner");
    let json = told("PARENT");
    let script = format!(
        "echo '{json}' | sed s/PARENT/$$/ > {0}; {runner} shim {0} & echo $! > {1}.new; mv {1}.new {1}; wait",
        file.display(),
        pid.display()
    );
    let mut parent = std::process::Command::new("/bin/sh").args(["-c", &script]).spawn().expect("a parent");
    wait_until("the child is there", || pid.exists());
    let child = fs_err::read_to_string(&pid).expect("a pid").trim().to_owned();
    let is = |name: &str| {
        let stat = fs_err::read_to_string(format!("/proc/{child}/stat")).unwrap_or_default();
        stat.contains(name) && !stat.contains(") Z ")
    };
    wait_until("it runs", || is("(sleep)"));
    parent.kill().expect("it is killed");
    parent.wait().expect("it has ended");
    wait_until("it ends with its parent", || !is("(sleep)"));

    fs_err::write(&file, told("1")).expect("a file");
    let late = std::process::Command::new(runner).arg("shim").arg(&file).output().expect("an output");
    assert!(!late.status.success());
    assert!(String::from_utf8_lossy(&late.stderr).contains("has ended"), "{late:?}");
}
