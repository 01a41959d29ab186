//! The ordinary life of an execution.

use std::process::Command;
use std::time::{Duration, Instant};

use model::log::Pipe;
use model::spec::{Source, StepSpec, Work};
use model::{Outcome, StepStatus};
use serde_json::json;

use crate::world::{World, script, start, step};

#[test]
fn a_script_of_three_steps_runs_with_its_outputs_and_its_log_byte_for_byte() {
    let mut world = World::new(vec![
        script(
            "first",
            "printf 'out 1\\nno newline'; printf 'err\\n' >&2\necho a=1 >> \"$NUON_ACTIONS_OUTPUT_FILEPATH\"\n",
        ),
        script(
            "second",
            "#!/usr/bin/env bash\nset -o pipefail\npwd; echo '{\"b\": [2]}' >> $FERRY_ACTIONS_OUTPUT_FILEPATH",
        ),
        step(
            "third",
            "env | sort | grep -E '^(A|B|HOME|RUNNER_SECRET|FERRY_ORG_ID|COLUMNS)=' ; seq 1 20000 | tail -c 10; echo secret-value-1",
        ),
    ]);
    world.spec.secrets = vec!["secret-value-1".into()];
    let action = world.action();
    action.builtin_env.insert("NUON_ORG_ID".into(), "org1".into());
    action.run_env.insert("A".into(), "run".into());
    action.run_env.insert("B".into(), "run".into());
    action.steps[2].env.insert("B".into(), "step".into());
    let (result, running) = world.finish();
    assert_eq!(result.outcome, Outcome::Finished, "{result:?}");
    assert_eq!(
        serde_json::Value::Object(result.outputs),
        json!({"a": "1", "b": [2], "steps": {"first": {"a": "1"}, "second": {"b": [2]}, "third": {}}})
    );
    assert!(result.steps.iter().all(|s| s.status == StepStatus::Finished && s.exit_code == Some(0)));
    let root = running.dir.work().join("root");
    let home = std::env::var("HOME").map(|h| format!("HOME={h}\n")).unwrap_or_default();
    assert_eq!(
        running.pipe(Pipe::Stdout),
        format!(
            "out 1\nno newline{}\nA=run\nB=step\nCOLUMNS=500\nFERRY_ORG_ID=org1\n{home}999\n20000\n***\n",
            root.display()
        )
    );
    assert_eq!(running.pipe(Pipe::Stderr), "err\n");
    assert_eq!(running.pipe(Pipe::System), "step 1/3 `first`\nstep 2/3 `second`\nstep 3/3 `third`\n");
    assert_eq!(running.dir.steps(), result.steps);
    running.dir.remove().expect("remove");
}

/// What a step registers is masked from then on: in both pipes, in every form, in later steps, in outputs and in errors.
#[test]
fn a_secret_that_a_step_registers_is_masked_from_then_on() {
    let first = "echo before fresh-secret-7\necho fresh-secret-7 >> \"$FERRY_MASK_FILE\"\n\
        for i in 1 2 3; do echo \"n $i fresh-secret-7\"; done; printf fresh-secret-7 | base64 >&2\n\
        printf '{\"token\": \"of-json-77\"}' >> \"$FERRY_MASK_FILE\"; echo of-json-77\n";
    let second = "echo later fresh-secret-7; echo out=fresh-secret-7 >> $FERRY_ACTIONS_OUTPUT_FILEPATH\n\
        rm $FERRY_MASK_FILE; ln -s /etc/hostname $FERRY_MASK_FILE; echo still fresh-secret-7\n";
    let world = World::new(vec![script("first", first), script("second", second)]);
    let (result, running) = world.finish();
    assert_eq!(result.outcome, Outcome::Finished, "{result:?}");
    let seen = running.pipe(Pipe::Stdout);
    // The first line may have left before the secret was registered, or not.
    let rest = seen.strip_prefix("before fresh-secret-7\n").or_else(|| seen.strip_prefix("before ***\n"));
    assert_eq!(rest, Some("n 1 ***\nn 2 ***\nn 3 ***\n***\nlater ***\nstill ***\n"), "{seen}");
    assert_eq!(running.pipe(Pipe::Stderr), "***\n");
    assert_eq!(result.outputs["out"], json!("***"));
}

#[test]
fn a_failing_step_ends_the_action_and_says_how() {
    let mut world = World::new(vec![step("ok", "true"), step("bad", "exit 7"), step("never", "touch x")]);
    let (result, _running) = world.finish();
    assert_eq!(result.outcome, Outcome::Failed);
    let error = result.error.expect("error");
    assert_eq!((error.code.as_str(), error.message.as_str()), ("step_failed", "step `bad`: exit code 7"));
    let states: Vec<_> = result.steps.iter().map(|s| (s.status, s.exit_code)).collect();
    assert_eq!(
        states,
        [(StepStatus::Finished, Some(0)), (StepStatus::Error, Some(7)), (StepStatus::NotAttempted, None)]
    );

    world.action().steps = vec![step("out", "echo '[1]' >> $NUON_ACTIONS_OUTPUT_FILEPATH")];
    let error = world.finish().0.error.expect("error");
    assert_eq!(error.code, "bad_outputs");
    assert!(error.message.contains("line 1: an array"), "{}", error.message);

    world.action().steps = vec![step("gone", "no-such-command-here")];
    let (result, running) = world.finish();
    assert_eq!(result.steps[0].exit_code, Some(127));
    assert!(running.pipe(Pipe::Stderr).contains("not found"));

    world.action().steps = vec![script("gone", "#!/no/such/interpreter\n")];
    let (result, running) = world.finish();
    assert_eq!(result.steps[0].exit_code, Some(127));
    assert!(running.pipe(Pipe::Stderr).contains("can't be started"), "{}", running.pipe(Pipe::Stderr));
}

#[test]
fn a_child_that_ignores_the_interrupt_is_killed_after_its_grace() {
    let mut world =
        World::new(vec![step("deaf", "trap '' TERM INT; echo up; while :; do sleep 1; done"), step("b", "true")]);
    world.spec.timeout_s = 1;
    let began = Instant::now();
    let (result, _running) = world.finish();
    assert!(began.elapsed() < Duration::from_secs(8), "{:?}", began.elapsed());
    assert_eq!(result.outcome, Outcome::TimedOut);
    assert_eq!(result.error.expect("error").code, "timed_out");
    assert_eq!(result.steps[0].status, StepStatus::TimedOut);
    assert_eq!(result.steps[1].status, StepStatus::NotAttempted);
}

#[test]
fn a_cancel_interrupts_at_once_and_lets_the_child_clean_up() {
    let world =
        World::new(vec![step("polite", "trap 'echo cleaned; exit 0' TERM; echo up; while :; do sleep 0.05; done")]);
    let mut running = world.start();
    running.wait_for_output("up");
    let began = Instant::now();
    running.dir.request_cancel("because").expect("cancel");
    let result = running.result();
    assert!(began.elapsed() < Duration::from_secs(1), "{:?}", began.elapsed());
    assert_eq!(result.outcome, Outcome::Cancelled);
    assert_eq!(result.error.expect("error").message, "cancelled: because");
    assert_eq!(result.steps[0].status, StepStatus::Cancelled);
    assert_eq!(running.pipe(Pipe::Stdout), "up\ncleaned\n");
}

#[test]
fn silence_ends_an_execution_and_renewals_keep_it_going() {
    let mut world = World::new(vec![step("long", "echo up; sleep 100")]);
    world.offline_s = 2;
    let mut running = world.start();
    let began = Instant::now();
    for n in 1..=3 {
        std::thread::sleep(Duration::from_secs(1));
        running.dir.touch_renewed(n).expect("renewed");
    }
    let result = running.result();
    assert!(began.elapsed() > Duration::from_millis(4500), "{:?}", began.elapsed());
    assert_eq!(result.outcome, Outcome::Failed);
    assert_eq!(result.error.expect("error").code, "offline");
}

#[test]
fn bad_papers_start_nothing() {
    let witness = tempfile::tempdir().expect("dir");
    let touched = witness.path().join("touched");
    let world = World::new(vec![step("a", &format!("touch {}", touched.display()))]);
    type Spoil = fn(&mut model::papers::Order, &mut model::papers::Grant, &mut Vec<u8>);
    let cases: [(&str, Spoil); 6] = [
        ("papers_refused", |_, _, spec| spec.push(b' ')),
        ("papers_refused", |_, grant, _| grant.nonce = "other".into()),
        ("papers_refused", |_, grant, _| grant.epoch = 2),
        ("papers_refused", |order, _, _| order.job_id = model::JobId::new(crate::world::now(), 1)),
        ("papers_refused", |order, _, _| order.artifact_digests = vec![model::Digest::of(b"x")]),
        ("unsupported_job", |order, _, spec| {
            let text = String::from_utf8(spec.clone()).expect("text").replace("actions-workflow", "teleport");
            *spec = text.into_bytes();
            order.spec_digest = model::Digest::of(spec);
        }),
    ];
    for (code, spoil) in cases {
        let dir = world.prepare(spoil);
        dir.mark_started().expect("started");
        let result = start(dir).result();
        assert_eq!(result.outcome, Outcome::NotAttempted);
        assert_eq!(result.error.expect("error").code, code);
    }
    // Good papers, but the server has not acknowledged the start: no result either.
    let mut running = start(world.prepare(|_, _, _| {}));
    assert!(!running.executor.wait().expect("wait").success());
    assert!(running.dir.result().expect("result").is_none());
    assert!(!touched.exists());
}

#[test]
fn other_work_than_actions() {
    let world = World::with_work(Work::Noop { sleep_ms: 60_000 });
    let mut running = world.start();
    running.dir.request_cancel("enough").expect("cancel");
    assert_eq!(running.result().outcome, Outcome::Cancelled);
    assert_eq!(World::with_work(Work::Noop { sleep_ms: 1 }).finish().0.outcome, Outcome::Finished);

    let world = World::with_work(Work::HealthCheck {});
    let (result, running) = world.finish();
    assert_eq!(result.outcome, Outcome::Finished);
    assert_eq!(result.outputs["healthy"], false, "nobody listens there");
    assert!(result.outputs["disk_free_bytes"].as_u64().is_some_and(|n| n > 0));
    assert!(running.pipe(Pipe::System).contains("the first failing hop: tcp"), "{}", running.pipe(Pipe::System));
}

#[test]
fn a_source_comes_from_git_by_branch_tag_and_commit() {
    let repository = tempfile::tempdir().expect("dir");
    let git = |line: &str| {
        let script = format!("export HOME=/nonexistent GIT_CONFIG_NOSYSTEM=1; {line}");
        let done = Command::new("sh").current_dir(repository.path()).args(["-ec", &script]).output().expect("git");
        assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
        String::from_utf8(done.stdout).expect("text").trim().to_owned()
    };
    git("git init -q -b main .; git config user.email a@example.com; git config user.name a; mkdir tools; \
         printf '#!/bin/sh\\necho v1 $1\\n' > tools/run; chmod +x tools/run; git add .; git commit -qm one; git tag v1");
    let first = git("git rev-parse HEAD");
    git("printf '#!/bin/sh\\necho v2 $1\\n' > tools/run; git commit -qam two");
    let with_source = |reference: Option<&str>, directory: &str| StepSpec {
        source: Some(Source::Git {
            url: format!("file://{}", repository.path().display()),
            reference: reference.map(str::to_owned),
            directory: Some(directory.to_owned()),
            submodules: false,
            credentials: None,
        }),
        ..step(reference.unwrap_or("head"), "run arg")
    };
    let steps = [None, Some("main"), Some("v1"), Some(first.as_str()), Some(&first[..10])];
    let world = World::new(steps.iter().map(|r| with_source(*r, "tools")).collect());
    let (result, running) = world.finish();
    assert_eq!(result.outcome, Outcome::Finished, "{result:?} {}", running.pipe(Pipe::Stderr));
    assert_eq!(running.pipe(Pipe::Stdout), "v2 arg\nv2 arg\nv1 arg\nv1 arg\nv1 arg\n");

    for bad in [with_source(Some("nowhere"), "."), with_source(None, ".."), with_source(Some("--upload-pack=x"), ".")] {
        let (result, _running) = World::new(vec![bad]).finish();
        assert_eq!(result.error.expect("error").code, "source_failed");
    }
}

#[test]
fn an_ad_hoc_action_is_refused_where_the_customer_allows_none() {
    let mut world = World::new(vec![step("only", "true")]);
    world.no_ad_hoc = true;
    assert_eq!(world.finish().0.outcome, Outcome::Finished, "one of the app's config is run");
    world.action().builtin_env.insert(model::spec::TRIGGER_TYPE.into(), model::spec::AD_HOC.into());
    let (result, _running) = world.finish();
    assert_eq!(result.outcome, Outcome::NotAttempted, "{result:?}");
    assert_eq!(result.error.map(|error| error.code).as_deref(), Some("ad_hoc_refused"));
}

#[test]
fn a_child_that_cannot_be_noted_is_ended() {
    let world = World::new(vec![step("only", "sleep 60")]);
    let dir = world.prepare(|_, _, _| {});
    // Where its process group would be noted.
    fs_err::create_dir(dir.path().join("group")).expect("dir");
    dir.mark_started().expect("started");
    // `result` makes sure that no process is left.
    let result = start(dir).result();
    assert_eq!(result.outcome, Outcome::Failed, "{result:?}");
}
