//! Actions: steps, environment, outputs, sources, logs, timeouts, limits.

use std::collections::BTreeMap;
use std::os::unix::fs::PermissionsExt as _;
use std::process::Command;

use futures::StreamExt as _;
use model::spec::{Source, StepSpec};
use model::{JobState, StepStatus};
use needs::needs;
use serde_json::{Value, json};
use testkit::Backend;
use testkit::system::{System, action, command, script, shown};

use crate::{options, seconds};

fn statuses(job: &api::control::Job) -> Vec<(&str, StepStatus)> {
    job.steps.iter().map(|s| (s.name.as_str(), s.status)).collect()
}

fn vars(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
    pairs.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect()
}

async fn three_steps(backend: Backend) {
    let system = System::start(options().on(backend)).await;
    let _runner = system.start_runner("a").await;
    let job = system
        .run(vec![
            script("one", "echo first\necho a=1 >> \"$NUON_ACTIONS_OUTPUT_FILEPATH\"\necho shared=one >> $FERRY_ACTIONS_OUTPUT_FILEPATH"),
            script("two", "#!/usr/bin/env -S sh -e\necho second >&2\necho '{\"b\": {\"deep\": [1, 2]}, \"shared\": \"two\"}' >> $FERRY_ACTIONS_OUTPUT_FILEPATH"),
            command("three", "echo third; echo from > file; cat file"),
        ])
        .await;
    assert_eq!(job.status, JobState::Finished, "{}", job.status_description);
    let done = StepStatus::Finished;
    assert_eq!(statuses(&job), [("one", done), ("two", done), ("three", done)]);
    assert!(job.steps.iter().all(|s| s.exit_code == Some(0) && s.started_at <= s.finished_at));
    let expected = json!({
        "a": "1", "b": {"deep": [1, 2]}, "shared": "two",
        "steps": {
            "one": {"a": "1", "shared": "one"}, "two": {"b": {"deep": [1, 2]}, "shared": "two"}, "three": {}
        },
    });
    assert_eq!(Value::Object(job.outputs.clone()), expected);
    assert_eq!(system.text_log(&job, Some("stdout")).await, "first\nthird\nfrom\n");
    assert_eq!(system.text_log(&job, Some("stderr")).await, "second\n");
    assert_eq!((job.execution_count, job.executions.len()), (1, 1));
}

#[tokio::test]
async fn an_action_of_three_steps_reports_statuses_and_merges_outputs() {
    three_steps(Backend::Sqlite).await;
}

#[tokio::test]
async fn an_action_of_three_steps_works_on_postgresql() {
    three_steps(Backend::Postgres).await;
}

#[tokio::test]
async fn the_environment_has_its_precedence_both_names_and_no_token() {
    let system = System::start(options()).await;
    let join = system.join_command().await;
    let runner = system.start_runner_with("a", &join, |command| {
        command.env("TZ", "Inherited/Zone").env("LANG", "inherited").env("AWS_SECRET_ACCESS_KEY", "not for scripts");
    });
    let _runner = runner.await;
    let step = StepSpec { env: vars(&[("LEVEL", "step"), ("NUON_APP_ID", "step")]), ..command("env", "env -0") };
    let mut wanted = action(vec![step, command("env2", "env -0")]);
    wanted.run_env_vars =
        vars(&[("LEVEL", "run"), ("TRIGGER_TYPE", "run"), ("LANG", "run"), ("NUON_ACTIONS_ROOT", "run")]);
    let job = system.submit(&wanted).await;
    let job = system.until_over(&job.id).await;
    assert_eq!(job.status, JobState::Finished, "{}", job.status_description);
    let log = system.text_log(&job, Some("stdout")).await;
    let all: Vec<(&str, &str)> = log.split('\0').filter_map(|v| v.split_once('=')).collect();
    let values = |name: &str| all.iter().filter(|(n, _)| *n == name).map(|(_, v)| *v).collect::<Vec<_>>();
    assert_eq!(values("TZ"), ["Inherited/Zone"; 2], "inherited");
    assert_eq!(values("LANG"), ["run"; 2], "the run's goes before the inherited one");
    assert_eq!(values("TRIGGER_TYPE"), ["run"; 2], "the run's goes before the builtin one");
    assert_eq!(values("NUON_ACTIONS_ROOT"), ["run"; 2], "the run's goes before the runtime one");
    assert_eq!(values("LEVEL"), ["step", "run"], "the step's goes before the run's");
    assert_eq!(values("NUON_APP_ID"), ["step", system.install.app_id.as_str()]);
    assert_eq!(values("FERRY_APP_ID"), [system.install.app_id.as_str(); 2]);
    for name in ["INSTALL_ID", "ORG_ID", "ACTIONS_OUTPUT_FILEPATH"] {
        let (old, new) = (values(&format!("NUON_{name}")), values(&format!("FERRY_{name}")));
        assert!(old.len() == 2 && old == new, "{name}: {old:?} and {new:?}");
    }
    assert!(values("AWS_SECRET_ACCESS_KEY").is_empty());
    let secrets = [system.token(), &join.credential, "fxt_", "session.key"];
    assert!(secrets.iter().all(|secret| !log.contains(secret)), "no token, credential or key: {log}");
    assert!(values("NUON_API_TOKEN").is_empty() && values("FERRY_RUNNER_JOIN").is_empty());
}

#[tokio::test]
async fn a_script_can_not_read_what_belongs_to_its_runner() {
    needs!(Landlock);
    let system = System::start(options()).await;
    let runner = system.start_runner("a").await;
    let dir = runner.state_dir.display();
    let text = format!(
        "for f in {dir}/session.key {dir}/session.json {dir}/executions/*/assignment.json /proc/{}/environ; do\n\
         if cat $f >/dev/null 2>&1; then echo \"read $f\"; fi; done; echo looked",
        runner.pid()
    );
    let job = system.run(vec![script("look", &text)]).await;
    assert_eq!(system.text_log(&job, Some("stdout")).await, "looked\n");
}

#[tokio::test]
async fn output_arrives_byte_for_byte() {
    let system = System::start(options()).await;
    let _runner = system.start_runner("a").await;
    let text = r"
        printf 'nul\000and \377\376 invalid\n'
        printf 'no line end'
        printf 'e\000\200\n' >&2
        head -c 300000 /dev/zero
    ";
    let job = system.run(vec![script("bytes", text)]).await;
    assert_eq!(job.status, JobState::Finished, "{}", job.status_description);
    let mut expected = b"nul\0and \xff\xfe invalid\nno line end".to_vec();
    expected.extend(std::iter::repeat_n(0, 300_000));
    assert!(system.raw_log(&job, Some("stdout")).await == expected, "stdout differs");
    assert_eq!(system.raw_log(&job, Some("stderr")).await, b"e\0\x80\n");
    let both = system.raw_log(&job, None).await;
    assert_eq!(both.len(), expected.len() + 4, "both pipes, and nothing of ours");
}

#[tokio::test]
async fn a_failed_step_stops_the_action_and_its_code_is_the_commands() {
    let system = System::start(options()).await;
    let _runner = system.start_runner("a").await;
    let words = ["--step", "good=true", "--step", "bad=echo oops >&2; exit 42", "--step", "never=touch /never"];
    let line = [&["actions", "run", "--install", "customer", "--json"], &words[..]].concat();
    let output = system.ferry(&line).await;
    assert_eq!(output.status.code(), Some(42), "{}", shown(&output));
    let answer: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(answer["exit_code"], 42);
    assert_eq!(answer["job"]["status"], "failed");
    assert_eq!(answer["job"]["error"]["code"], "step_failed");
    let steps: Vec<_> = answer["job"]["steps"].as_array().unwrap().iter().map(|s| s["status"].clone()).collect();
    assert_eq!(steps, ["finished", "error", "not-attempted"]);
    assert_eq!(answer["log"], "oops\n");
    // The same for a person: log, then how it ended.
    let output = system.ferry(&["actions", "run", "-i", "customer", "-c", "echo hello; kill -9 $$"]).await;
    assert_eq!(output.status.code(), Some(1), "{}", shown(&output));
    assert!(shown(&output).contains("hello") && shown(&output).contains("signal 9"), "{}", shown(&output));
}

#[tokio::test]
async fn a_timeout_ends_the_step_and_everything_it_started() {
    let system = System::start(options()).await;
    let _runner = system.start_runner("a").await;
    let text = "setsid sleep 300 & sleep 300 & (trap '' HUP; sleep 300) & echo begun; sleep 300";
    let mut wanted = action(vec![script("slow", text), script("next", "true")]);
    wanted.timeout_s = Some(1);
    let job = system.submit(&wanted).await;
    let job = system.until_over(&job.id).await;
    assert_eq!(job.status, JobState::TimedOut);
    assert_eq!(statuses(&job), [("slow", StepStatus::TimedOut), ("next", StepStatus::NotAttempted)]);
    assert!(job.status_description.contains("timeout of 1 s"), "{}", job.status_description);
    assert_eq!(system.text_log(&job, Some("stdout")).await, "begun\n");
    system.until_quiet().await;
    let output = system.ferry(&["actions", "run", "-i", "customer", "-c", "sleep 60", "--timeout", "1s"]).await;
    assert_eq!(output.status.code(), Some(124), "{}", shown(&output));
}

#[tokio::test]
async fn outputs_that_can_not_be_taken_say_why() {
    let system = System::start(options()).await;
    let _runner = system.start_runner("a").await;
    let cases = [
        ("head -c 1100000 /dev/zero | tr '\\0' x > $NUON_ACTIONS_OUTPUT_FILEPATH", "1048576 are allowed"),
        (
            "printf 'a=1\\n\\nnonsense\\n' > $NUON_ACTIONS_OUTPUT_FILEPATH",
            "line 3: expected a JSON object or `key=value`",
        ),
        ("printf '{\"a\": oops}' > $NUON_ACTIONS_OUTPUT_FILEPATH", "line 1: not a JSON object"),
        ("rm $NUON_ACTIONS_OUTPUT_FILEPATH", "the outputs file is gone"),
        ("ln -sf /etc/passwd $NUON_ACTIONS_OUTPUT_FILEPATH", "replaced by something else"),
    ];
    for (text, part) in cases {
        let job = system.run(vec![script("outputs", text), script("next", "true")]).await;
        assert_eq!(job.status, JobState::Failed, "{text}");
        let error = job.error.clone().unwrap();
        assert_eq!(error.code, "bad_outputs");
        assert!(error.message.contains("step `outputs`") && error.message.contains(part), "{}", error.message);
        assert_eq!(job.steps[1].status, StepStatus::NotAttempted);
    }
}

fn git(dir: &std::path::Path, words: &[&str]) -> String {
    let output = Command::new("git")
        .args(["-c", "user.name=t", "-c", "user.email=t@t", "-c", "init.defaultBranch=main"])
        .args(words)
        .current_dir(dir)
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .output()
        .expect("git is needed: `apt-get install git`");
    assert!(output.status.success(), "git {words:?}: {}", shown(&output));
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

#[tokio::test]
async fn a_step_runs_in_a_source_from_git() {
    let system = System::start(options()).await;
    let _runner = system.start_runner("a").await;
    let work = system.witness("work");
    fs_err::create_dir_all(work.join("sub")).unwrap();
    git(&work, &["init", "--quiet"]);
    fs_err::write(work.join("sub/run.sh"), "#!/bin/sh\necho one from $(basename $PWD)\n").unwrap();
    fs_err::set_permissions(work.join("sub/run.sh"), std::fs::Permissions::from_mode(0o755)).unwrap();
    git(&work, &["add", "."]);
    git(&work, &["commit", "--quiet", "-m", "one"]);
    let first = git(&work, &["rev-parse", "HEAD"]);
    git(&work, &["checkout", "--quiet", "-b", "next"]);
    fs_err::write(work.join("sub/run.sh"), "#!/bin/sh\necho two\n").unwrap();
    git(&work, &["commit", "--quiet", "-am", "two"]);
    git(&work, &["tag", "v2"]);
    git(&work, &["checkout", "--quiet", "main"]);
    git(&work, &["clone", "--quiet", "--bare", ".", "../bare.git"]);
    let url = format!("file://{}", system.witness("bare.git").display());
    let step = |name: &str, reference: Option<&str>| StepSpec {
        source: Some(Source::Git {
            url: url.clone(),
            reference: reference.map(str::to_owned),
            directory: Some("sub".into()),
            submodules: false,
            credentials: None,
        }),
        ..command(name, "run.sh")
    };
    let steps =
        vec![step("head", None), step("branch", Some("next")), step("tag", Some("v2")), step("commit", Some(&first))];
    let job = system.run(steps).await;
    assert_eq!(job.status, JobState::Finished, "{}", job.status_description);
    assert_eq!(system.text_log(&job, Some("stdout")).await, "one from sub\ntwo\ntwo\none from sub\n");
    let job = system.run(vec![step("missing", Some("nowhere"))]).await;
    let error = job.error.unwrap();
    assert_eq!((job.status, error.code.as_str()), (JobState::Failed, "source_failed"));
    assert!(error.message.contains("`nowhere`"), "{}", error.message);
}

#[tokio::test]
async fn a_step_runs_in_an_uploaded_directory() {
    let system = System::start(options()).await;
    let _runner = system.start_runner("a").await;
    let source = system.witness("source");
    fs_err::create_dir_all(source.join("data")).unwrap();
    fs_err::write(source.join("go.sh"), "#!/bin/sh\ncat data/text\n").unwrap();
    fs_err::set_permissions(source.join("go.sh"), std::fs::Permissions::from_mode(0o755)).unwrap();
    fs_err::write(source.join("data/text"), "carried along\n").unwrap();
    let dir = source.display().to_string();
    let line = ["actions", "run", "-i", "customer", "--json", "-c", "go.sh", "--source-dir", &dir];
    let output = system.ferry(&line).await;
    assert!(output.status.success(), "{}", shown(&output));
    let answer: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(answer["log"], "carried along\n");
}

#[tokio::test]
async fn secrets_are_masked_before_they_leave_the_executor() {
    let system = System::start(options()).await;
    let _runner = system.start_runner("a").await;
    let secret = "hunter2-and-more";
    let word = format!("PASSWORD={secret}");
    let line = "echo \"it is $PASSWORD.\"; echo \"out=$PASSWORD\" >> $NUON_ACTIONS_OUTPUT_FILEPATH";
    let output = system.ferry(&["actions", "run", "-i", "customer", "--json", "-c", line, "--secret-env", &word]).await;
    assert!(output.status.success(), "{}", shown(&output));
    assert!(!shown(&output).contains(secret), "{}", shown(&output));
    let answer: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert!(answer["log"].as_str().unwrap().starts_with("it is *"), "{answer}");
}

#[tokio::test]
async fn the_same_idempotency_key_makes_one_job() {
    let system = System::start(options()).await;
    let _runner = system.start_runner("a").await;
    let wanted = action(vec![script("once", &format!("echo ran >> {}", system.witness("once").display()))]);
    let keyed = system.client.with_idempotency_key("the-same");
    let install = system.install.id.as_str();
    let (first, second) =
        tokio::join!(keyed.create_action_run(install, &wanted), keyed.create_action_run(install, &wanted));
    let (first, second) = (first.unwrap(), second.unwrap());
    assert_eq!(first.id, second.id);
    system.until_over(&first.id).await;
    let third = keyed.create_action_run(install, &wanted).await.unwrap();
    assert_eq!(third.id, first.id, "also after it is over");
    assert_eq!(system.lines("once"), ["ran"]);
    let other = keyed.create_action_run(install, &action(vec![script("other", "true")])).await.unwrap_err();
    assert_eq!(other.code(), Some(api::ErrorCode::IdempotencyMismatch));
}

#[tokio::test]
async fn a_tail_that_joins_midway_has_no_seam_and_equals_the_log() {
    let system = System::start(options()).await;
    let _runner = system.start_runner("a").await;
    let job = system.held("tail").await;
    let text = |chunk: &api::control::LogChunk| if chunk.pipe == "system" { String::new() } else { chunk.text.clone() };
    let mut tail = system.client.tail(&job.log_stream_id, None);
    let (mut whole, mut positions) = (String::new(), Vec::new());
    while whole.matches('\n').count() < 10 {
        let api::client::Tail::Chunk(chunk) = tail.next().await.unwrap().unwrap() else { panic!("it goes on") };
        whole.push_str(&text(&chunk));
        positions.push(chunk.position);
    }
    // Others come later: from the start, and from where the first one is now.
    let late = system.client.tail(&job.log_stream_id, None);
    let after = system.client.tail(&job.log_stream_id, positions.last().cloned());
    system.open("tail");
    let rest = async |stream: futures::stream::BoxStream<'static, api::client::Result<api::client::Tail>>| {
        let (mut all, mut end) = (String::new(), String::new());
        let items: Vec<_> = stream.collect().await;
        for item in items {
            match item.unwrap() {
                api::client::Tail::Chunk(chunk) => all.push_str(&text(&chunk)),
                api::client::Tail::End { status } => end = status,
            }
        }
        assert_eq!(end, "finished");
        all
    };
    let (first, late, after) = tokio::join!(rest(tail), rest(late), rest(after));
    let log = system.text_log(&job, None).await;
    assert_eq!(whole.clone() + &first, log, "from the start, live");
    assert_eq!(late, log, "from the start, joined later");
    assert_eq!(whole + &after, log, "from the middle on");
    system.assert_whole(&job, "tail").await;
    let output = system.ferry(&["logs", job.id.as_str(), "-f", "--pipe", "stdout"]).await;
    assert_eq!(String::from_utf8_lossy(&output.stdout), log, "{}", shown(&output));
}

#[tokio::test]
async fn events_go_on_where_a_client_left_them() {
    let system = System::start(options()).await;
    let _runner = system.start_runner("a").await;
    let start = system.client.events(None, None, 100).await.unwrap().0.last().unwrap().id.clone();
    let mut live = system.client.watch_events(Some(start.clone()), None);
    let job = system.run(vec![script("run", "true")]).await;
    let of_job = |event: &api::control::Event| {
        (event.kind == "job.state" && event.subject_id == job.id.as_str()).then(|| event.data["to"].clone())
    };
    let (mut states, mut ids) = (Vec::new(), Vec::new());
    while states.last().is_none_or(|s| s != "finished") {
        let event = tokio::time::timeout(seconds(10), live.next()).await.expect("an event in time").unwrap().unwrap();
        states.extend(of_job(&event));
        ids.push(event.id);
    }
    assert_eq!(states, ["queued", "available", "in-progress", "finished"]);
    // The same again, from the middle: nothing twice, nothing missing.
    let middle = ids.len() / 2;
    let again = system.client.watch_events(Some(ids[middle - 1].clone()), None);
    let rest: Vec<String> = again.take(ids.len() - middle).map(|e| e.unwrap().id).collect().await;
    assert_eq!(rest, ids[middle..]);
    let listed: Vec<String> =
        system.client.events(Some(&start), None, 100).await.unwrap().0.into_iter().map(|e| e.id).collect();
    assert!(listed.starts_with(&ids), "{listed:?} and {ids:?}");
}

#[tokio::test]
async fn a_health_check_shows_in_the_runner() {
    let system = System::start(options()).await;
    let _runner = system.start_runner("a").await;
    let output = system.ferry(&["runners", "health-check", "customer"]).await;
    assert!(output.status.success(), "{}", shown(&output));
    let runner = system.until_runner("its health is known", seconds(10), |r| r.health.is_some()).await;
    let health = runner.health.unwrap();
    for key in ["checks", "load_average", "disk_free_bytes", "groups"] {
        assert!(health.outputs.contains_key(key), "no {key} in {:?}", health.outputs);
    }
}

#[tokio::test]
async fn what_confines_a_script_runs_under_an_environment_of_its_own() {
    let system = System::start(options()).await;
    let _runner = system.start_runner("a").await;
    // The loader complains once for every program that it starts under this: the script's, and not ours before it.
    let env = BTreeMap::from([("LD_PRELOAD".to_owned(), "/nowhere/evil.so".to_owned())]);
    let job = system.run(vec![StepSpec { env, ..script("preload", "echo done") }]).await;
    assert_eq!(job.status, JobState::Finished, "{}", job.status_description);
    let complaints = system.text_log(&job, Some("stderr")).await;
    assert_eq!(complaints.matches("/nowhere/evil.so").count(), 1, "{complaints}");
}

#[tokio::test]
async fn no_credential_is_on_a_command_line() {
    let system = System::start(options()).await;
    let runner = system.start_runner("a").await;
    let seen = fs_err::read_to_string(format!("/proc/{}/cmdline", runner.pid())).unwrap();
    assert!(!seen.contains("fjc_"), "{seen}");
    let join = system.join_command().await;
    assert!(
        join.command.starts_with(&format!("FERRY_RUNNER_JOIN={} ferry-runner", join.credential)),
        "{}",
        join.command
    );
}
