//! Command lines, their output and their exit codes.

use std::os::unix::fs::PermissionsExt as _;
use std::time::{Duration, Instant};

use api::ErrorCode;
use serde_json::{Value, json};

use crate::client::{app, chunk};
use crate::ferry::{self, ferry};
use crate::server::{Reply, Request, Server};

const JOB: &str = "job0123456789abcdefghijklm";
const ORG: &str = "org0123456789abcdefghijklm";

type Env = &'static [(&'static str, &'static str)];

fn job(status: &str, more: Value) -> Value {
    let mut job = json!({
        "id": JOB, "org_id": ORG, "runner_id": "run0123456789abcdefghijklm", "owner_id": "ins0123456789abcdefghijklm",
        "owner_type": "installs", "type": "actions-workflow", "group": "actions", "operation": "exec",
        "status": status, "status_description": "", "priority": 0, "log_stream_id": "log0123456789abcdefghijklm",
        "execution_count": 1, "max_executions": 1, "execution_timeout": 300_000_000_000u64, "queue_timeout": 1,
        "created_by_id": "acc0123456789abcdefghijklm", "created_at": "2025-01-01T00:00:00Z",
        "updated_at": "2025-01-01T00:00:00Z",
    });
    for (key, value) in more.as_object().expect("object") {
        job[key] = value.clone();
    }
    job
}

fn not_found(what: &str) -> Reply {
    let body = json!({
        "error": "not found", "description": format!("there is no {what}"), "user_error": true,
        "code": ErrorCode::NotFound.as_str(), "hint": "check the name", "request_id": "r1",
    });
    Reply::Json(404, body)
}

fn path(request: &Request) -> &str {
    request.path.split('?').next().unwrap_or_default()
}

#[tokio::test(flavor = "multi_thread")]
async fn an_unknown_name_is_answered_with_a_guess() {
    let home = tempfile::tempdir().expect("home");
    let server = Server::start(|request, _| match path(request) {
        "/v1/apps" => Reply::Json(200, json!([app("shop"), app("billing")])),
        _ => not_found("app `shpo`"),
    })
    .await;
    let env = [("FERRY_URL", server.url.as_str()), ("FERRY_TOKEN", "t"), ("FERRY_ORG", ORG)];
    let ran = ferry(home.path(), &env, &["apps", "get", "shpo"]).await;
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(4), ""));
    assert_eq!(ran.stderr, "error: there is no app `shpo` [code: not_found]\nhint: did you mean `shop`?\n");

    let ran = ferry(home.path(), &env, &["apps", "get", "shpo", "--json"]).await;
    let document: Value = serde_json::from_str(&ran.stderr).expect("json");
    assert_eq!(document["code"], "not_found");
    assert_eq!(document["exit_code"], 4);

    let ran = ferry(home.path(), &env, &["apps", "list"]).await;
    let lines: Vec<&str> = ran.stdout.lines().collect();
    assert_eq!(lines[0].split_whitespace().collect::<Vec<_>>(), ["NAME", "ID", "STATUS", "CREATED", "DESCRIPTION"]);
    assert!(lines[1].starts_with("shop ") && lines[1].contains(" days ago"), "{lines:?}");
    assert!(!ran.stdout.contains('\u{1b}'), "no colour in a pipe");

    let ran = ferry(home.path(), &env, &["apps", "list", "--json"]).await;
    let apps: Value = serde_json::from_str(&ran.stdout).expect("json");
    assert_eq!(apps[1]["name"], "billing");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_missing_has_its_exit_code_and_a_hint() {
    let home = tempfile::tempdir().expect("home");
    let table: [(Env, &[&str], i32, &str); 6] = [
        (&[], &["apps", "list"], 2, "hint: start one with `ferry dev`"),
        (&[("FERRY_URL", "http://127.0.0.1:9")], &["apps", "list"], 3, "error: not signed in to http://127.0.0.1:9"),
        (&[("FERRY_TOKEN", "t")], &["apps", "list", "--url", "http://127.0.0.1:9"], 6, "error: can't reach"),
        (&[], &["apps", "list", "--context", "x"], 4, "error: there is no context `x`"),
        (&[], &["apps", "lst"], 2, "unrecognized subcommand"),
        (
            &[("FERRY_URL", ""), ("FERRY_TOKEN", "t")],
            &["tokens", "revoke", "x", "--url", "http://127.0.0.1:9"],
            2,
            "--yes",
        ),
    ];
    for (env, args, code, part) in table {
        let ran = ferry(home.path(), env, args).await;
        assert_eq!(ran.code, Some(code), "{args:?}: {}", ran.stderr);
        assert!(ran.stderr.contains(part), "{args:?}: {}", ran.stderr);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn flags_win_over_the_environment_and_that_over_the_context() {
    let home = tempfile::tempdir().expect("home");
    let account = json!({
        "id": "acc0123456789abcdefghijklm", "email": "ada@example.com", "account_type": "auth", "org_ids": [ORG],
        "permissions": { ORG: "all" }, "created_at": "2025-01-01T00:00:00Z",
    });
    let server = Server::start(move |request, _| match path(request) {
        "/v1/general/current-user" => Reply::Json(200, account.clone()),
        _ => Reply::Json(200, json!([])),
    })
    .await;
    let ran = ferry(home.path(), &[], &["auth", "login", "--url", &server.url, "--token", "kept"]).await;
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert!(ran.stderr.contains("as ada@example.com (context `default`)"), "{}", ran.stderr);
    let config = home.path().join("config.toml");
    let mode = std::fs::metadata(&config).expect("config").permissions().mode();
    assert_eq!(mode & 0o777, 0o600);

    let calls: [(Env, &[&str]); 3] = [
        (&[], &["apps", "list"]),
        (&[("FERRY_TOKEN", "env")], &["apps", "list"]),
        (&[("FERRY_TOKEN", "env")], &["apps", "list", "--token", "flag"]),
    ];
    for (env, args) in calls {
        assert_eq!(ferry(home.path(), env, args).await.code, Some(0));
    }
    let seen = server.seen();
    let tokens: Vec<&str> = seen.iter().filter_map(|r| r.header("authorization")).collect();
    assert_eq!(tokens, ["Bearer kept", "Bearer kept", "Bearer env", "Bearer flag"]);
    assert_eq!(seen[1].header("x-nuon-org-id"), Some(ORG), "the only org is selected");

    let ran = ferry(home.path(), &[], &["contexts", "show", "--json"]).await;
    assert!(!ran.stdout.contains("kept"), "{}", ran.stdout);
    assert_eq!(ferry(home.path(), &[], &["auth", "logout"]).await.code, Some(0));
    assert_eq!(ferry(home.path(), &[], &["apps", "list"]).await.code, Some(3));
}

/// An install whose job waits, runs, and fails in its second step.
async fn failing_action() -> Server {
    let looks = std::sync::atomic::AtomicUsize::new(0);
    Server::start(move |request, _| {
        let steps = json!([
            { "name": "one", "status": "finished", "exit_code": 0 },
            { "name": "two", "status": "error", "exit_code": 42, "error": "exit status 42" },
            { "name": "three", "status": "not-attempted" },
        ]);
        let ended =
            json!({ "steps": steps, "status_description": "step `two` failed", "outputs": { "url": "http://x" } });
        match path(request) {
            "/v1/installs/acme/action-runs" => Reply::Json(201, job("queued", json!({}))),
            "/v1/log-streams/log0123456789abcdefghijklm/tail" => Reply::EventsOpen(format!(
                "{}{}{}event: end\ndata: {{\"status\":\"failed\"}}\n\n",
                chunk(1, "system", "step one\n"),
                chunk(2, "stdout", "to stdout\n"),
                chunk(3, "stderr", "to stderr\n"),
            )),
            "/v1/log-streams/log0123456789abcdefghijklm/logs" => {
                Reply::Bytes(b"step one\nto stdout\nto stderr\n".to_vec())
            }
            _ => match looks.fetch_add(1, std::sync::atomic::Ordering::SeqCst) {
                0 | 1 => Reply::Json(200, job("queued", json!({ "waiting_reason": "runner offline since noon" }))),
                _ => Reply::Json(200, job("failed", ended)),
            },
        }
    })
    .await
}

#[tokio::test(flavor = "multi_thread")]
async fn an_action_shows_its_log_and_ends_as_it_did() {
    let home = tempfile::tempdir().expect("home");
    let server = failing_action().await;
    let env = [("FERRY_URL", server.url.as_str()), ("FERRY_TOKEN", "t"), ("FERRY_ORG", ORG)];
    let ran = ferry(home.path(), &env, &["actions", "run", "--install", "acme", "--command", "x"]).await;
    assert_eq!(ran.code, Some(42), "{}", ran.stderr);
    assert_eq!(ran.stdout, "to stdout\n\nOutputs\nurl  http://x\n");
    for part in
        ["step one\n", "to stderr\n", "waiting: runner offline since noon\n", "step `two` failed", "not-attempted"]
    {
        assert_eq!(ran.stderr.matches(part).count(), 1, "{part:?} in {}", ran.stderr);
    }
    assert!(!ran.stderr.contains('\u{1b}'));
}

#[tokio::test(flavor = "multi_thread")]
async fn an_action_as_one_document() {
    let home = tempfile::tempdir().expect("home");
    let server = failing_action().await;
    let env = [("FERRY_URL", server.url.as_str()), ("FERRY_TOKEN", "t"), ("FERRY_ORG", ORG)];
    let line = ["actions", "run", "--install", "acme", "--command", "x", "--json"];
    let ran = ferry(home.path(), &env, &line).await;
    assert_eq!(ran.code, Some(42), "{}", ran.stderr);
    let document: Value = serde_json::from_str(&ran.stdout).expect("one document");
    assert_eq!(document["exit_code"], 42);
    assert_eq!(document["outputs"], json!({ "url": "http://x" }));
    assert_eq!(document["log"], "step one\nto stdout\nto stderr\n");
    assert_eq!(document["job"]["status"], "failed");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_source_directory_is_uploaded_before_the_job_names_it() {
    let home = tempfile::tempdir().expect("home");
    fs_err::write(home.path().join("hello.sh"), "echo hello").expect("file");
    let server = Server::start(|request, _| match request.method.as_str() {
        "PUT" => {
            let digest = request.path.trim_start_matches("/v1/archives/");
            Reply::Json(201, json!({ "digest": digest, "size_bytes": request.body.len() }))
        }
        _ => Reply::Json(201, job("queued", json!({}))),
    })
    .await;
    let env = [("FERRY_URL", server.url.as_str()), ("FERRY_TOKEN", "t"), ("FERRY_ORG", ORG)];
    let directory = home.path().to_string_lossy().into_owned();
    let line = ["actions", "run", "-i", "acme", "-c", "sh hello.sh", "--source-dir", &directory, "--detach"];
    let ran = ferry(home.path(), &env, &line).await;
    assert_eq!((ran.code, ran.stdout.trim()), (Some(0), JOB), "{}", ran.stderr);
    let seen = server.seen();
    let digest = model::Digest::of(&seen[0].body);
    assert_eq!(seen[0].line(), format!("PUT /v1/archives/{digest}"));
    let body: Value = serde_json::from_slice(&seen[1].body).expect("json");
    assert_eq!(body["steps"][0]["source"], json!({ "kind": "archive", "digest": digest }));
}

#[tokio::test(flavor = "multi_thread")]
async fn ctrl_c_cancels_and_a_second_one_leaves() {
    let home = tempfile::tempdir().expect("home");
    let server = Server::start(|request, _| match path(request) {
        "/v1/log-streams/log0123456789abcdefghijklm/tail" => Reply::EventsOpen(chunk(1, "stdout", "working\n")),
        p if p.ends_with("/cancel") => {
            Reply::Json(202, job("in-progress", json!({ "cancel_requested_at": "2025-01-01T00:00:00Z" })))
        }
        p if p.ends_with("/action-runs") => Reply::Json(201, job("queued", json!({}))),
        _ => Reply::Json(200, job("in-progress", json!({ "cancel_requested_at": "2025-01-01T00:00:00Z" }))),
    })
    .await;
    let mut command = ferry::command(home.path(), &["actions", "run", "--install", "acme", "--command", "x"]);
    command.env("FERRY_URL", &server.url).env("FERRY_TOKEN", "t").env("FERRY_ORG", ORG);
    let child = command.spawn().expect("start");
    let pid = child.id().to_string();
    let interrupt =
        || assert!(std::process::Command::new("kill").args(["-INT", &pid]).status().expect("kill").success());
    let cancels = || server.lines().iter().filter(|l| l.ends_with("/cancel")).count();

    wait_until(|| server.lines().iter().any(|l| l.contains("/tail"))).await;
    interrupt();
    wait_until(|| cancels() == 1).await;
    let looks = server.seen().len();
    wait_until(|| server.seen().len() > looks).await;
    interrupt();
    let output = tokio::task::spawn_blocking(move || child.wait_with_output().expect("wait")).await.expect("join");
    let ran = ferry::ran(output);
    assert_eq!(ran.code, Some(130), "{}", ran.stderr);
    assert!(ran.stderr.contains("cancelling") && ran.stderr.contains("is being cancelled"), "{}", ran.stderr);
    assert_eq!(cancels(), 1);
}

async fn wait_until(condition: impl Fn() -> bool) {
    let start = Instant::now();
    while !condition() {
        assert!(start.elapsed() < Duration::from_secs(30), "waited too long");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn events_go_on_line_by_line() {
    let home = tempfile::tempdir().expect("home");
    let event = |id: u32, kind: &str| {
        let data = json!({
            "id": id.to_string(), "time": "2025-01-01T00:00:00Z", "kind": kind, "subject_type": "job",
            "subject_id": JOB, "actor": "ada", "data": {},
        });
        format!("id: {id}\nevent: {kind}\ndata: {data}\n\n")
    };
    let server = Server::start(move |_, n| match n {
        0 => Reply::Events(format!("{}{}", event(1, "job.state"), event(2, "job.cancelled"))),
        1 => Reply::Events(event(3, "job.state")),
        _ => Reply::Json(403, json!({ "error": "the token is revoked", "code": "forbidden" })),
    })
    .await;
    let env = [("FERRY_URL", server.url.as_str()), ("FERRY_TOKEN", "t"), ("FERRY_ORG", ORG)];
    let ran = ferry(home.path(), &env, &["events", "-f", "--kind", "job", "--json"]).await;
    assert_eq!(ran.code, Some(3), "{}", ran.stderr);
    let ids: Vec<Value> =
        ran.stdout.lines().map(|l| serde_json::from_str::<Value>(l).expect("json")["id"].clone()).collect();
    assert_eq!(ids, [json!("1"), json!("2"), json!("3")]);
    assert_eq!(server.seen()[2].header("last-event-id"), Some("3"));
    assert!(server.seen().iter().all(|seen| seen.path.contains("kind=job")), "the server filters");
}

/// What lists print, each with a row that is as long as rows get.
fn lists(request: &Request) -> Reply {
    let id = |prefix: &str| format!("{prefix}0123456789abcdefghijklm");
    let at = "2025-01-01T00:00:00Z";
    let why =
        "the plan of component `storefront` was denied by policy `tags`: no owner, no cost centre, no environment";
    let name = "a-customer-with-a-long-name";
    Reply::Json(
        200,
        match path(request) {
            "/v1/orgs" => json!([{
                "id": id("org"), "name": name, "status": "active", "status_description": "", "sandbox_mode": false,
                "created_by_id": id("acc"), "created_at": at, "updated_at": at, "build_runner_id": id("run"),
            }]),
            "/v1/runner-jobs" => {
                json!([job("failed", json!({ "name": "sync and plan storefront", "status_description": why }))])
            }
            "/v1/workflows" => json!([{
                "id": id("wfl"), "type": "drift_run_reprovision_sandbox", "owner_id": id("ins"), "owner_type": "installs",
                "status": { "status": "approval-awaiting", "status_human_description": why }, "name": "n",
                "created_by_id": id("acc"), "approval_option": "prompt", "created_at": at, "updated_at": at,
                "owner_name": name, "config_version": 12, "finished": false, "execution_time": 90_000_000_000u64,
            }]),
            "/v1/installs" => json!([{
                "id": id("ins"), "org_id": ORG, "app_id": id("app"), "name": name, "runner_id": id("run"),
                "runner_status": "active", "sandbox_status": "active", "composite_component_status": "active",
                "cloud_platform": "aws", "aws_account": { "region": "ap-southeast-2" }, "created_by_id": id("acc"),
                "created_at": at, "updated_at": at, "labels": { "environment": "production", "tier": "gold" },
            }]),
            "/v1/tokens" => json!([{
                "id": id("tok"), "name": name, "role": "operator", "hint": "ferry_0123", "created_by_id": id("acc"),
                "created_at": at, "expires_at": "2125-01-01T00:00:00Z", "last_used_at": at,
            }]),
            "/v1/events" => json!([{
                "id": "123456", "time": at, "kind": "terraform.unlocked", "subject_type": "job", "subject_id": JOB,
                "actor": id("acc"), "data": { "why": why },
            }]),
            other => panic!("{other}"),
        },
    )
}

#[tokio::test(flavor = "multi_thread")]
async fn tables_fit_100_columns_and_wide_shows_everything() {
    let home = tempfile::tempdir().expect("home");
    let server = Server::start(|request, _| lists(request)).await;
    let env = [("FERRY_URL", server.url.as_str()), ("FERRY_TOKEN", "t"), ("FERRY_ORG", ORG)];
    for noun in ["orgs list", "jobs list", "workflows list", "installs list", "tokens list", "events"] {
        let words: Vec<&str> = noun.split(' ').collect();
        let ran = ferry(home.path(), &env, &words).await;
        assert_eq!((ran.code, ran.stdout.lines().count()), (Some(0), 2), "{noun}: {}{}", ran.stdout, ran.stderr);
        for line in ran.stdout.lines() {
            assert!(line.chars().count() <= 100, "{noun}: {}", ran.stdout);
        }
        assert!(ran.stdout.contains("…fghijklm") && ran.stdout.contains(" days ago"), "{noun}: {}", ran.stdout);
        assert!(!ran.stdout.contains("0123456789abcdefghijklm"), "{noun}: {}", ran.stdout);

        // Before the command and after it.
        let wide = ferry(home.path(), &env, &[&["--wide"], words.as_slice()].concat()).await.stdout;
        assert_eq!(wide, ferry(home.path(), &env, &[words.as_slice(), &["--wide"]].concat()).await.stdout);
        assert!(wide.contains("0123456789abcdefghijklm") && wide.contains("2025-01-01 00:00:00Z"), "{noun}: {wide}");
        assert!(!wide.contains('…') || noun == "tokens list", "{noun}: {wide}");
        assert_eq!(wide.lines().count(), 2, "{noun}: {wide}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_id_from_a_table_is_understood() {
    let home = tempfile::tempdir().expect("home");
    let server = Server::start(|request, _| match path(request) {
        "/v1/runner-jobs" => Reply::Json(200, json!([job("finished", json!({}))])),
        _ => Reply::Json(200, job("finished", json!({}))),
    })
    .await;
    let env = [("FERRY_URL", server.url.as_str()), ("FERRY_TOKEN", "t"), ("FERRY_ORG", ORG)];
    let ran = ferry(home.path(), &env, &["jobs", "get", "job…fghijklm"]).await;
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert!(ran.stdout.contains(JOB) && ran.stdout.contains("2025-01-01 00:00:00Z ("), "{}", ran.stdout);
    assert_eq!(server.seen().last().map(|seen| seen.path.clone()), Some(format!("/v1/runner-jobs/{JOB}")));
    let ran = ferry(home.path(), &env, &["jobs", "get", "job…zzzzzzzz"]).await;
    assert_eq!(ran.code, Some(4), "{}", ran.stderr);
    assert!(ran.stderr.contains("--wide"), "{}", ran.stderr);
    let ran = ferry(home.path(), &env, &["installs", "get", "ins…fghijklm"]).await;
    assert!(ran.code == Some(2) && ran.stderr.contains("use the name"), "{}", ran.stderr);
}
