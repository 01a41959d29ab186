//! Who may do what: trust, keys, papers, tenancy, roles.

use std::path::Path;
use std::time::Duration;

use api::client::{Client, Options as ClientOptions};
use api::control::{CreateApp, CreateInstall, CreateOrg, CreateToken, Job};
use api::runner::PollRequest;
use api::{ErrorCode, headers};
use model::papers::Signatory;
use model::runner::{HeldState, RunnerReport};
use model::{JobState, Role};
use reqwest::{Method, StatusCode};
use runner::directory::ExecutionDir;
use runner::session::{About, CallError, SessionClient, StateDir};
use serde_json::{Value, json};
use testkit::system::{Runner, SOON, System, run, script, shown, until};

use crate::{options, seconds};

fn http() -> reqwest::Client {
    reqwest::Client::builder().no_proxy().tls_certs_only([]).build().unwrap()
}

/// The session of a state directory, with its own key or another one.
fn session_client(system: &System, state_dir: &Path, key: Option<Signatory>) -> SessionClient {
    let state = StateDir::new(state_dir);
    let session = state.session().unwrap().unwrap();
    let key = key.unwrap_or_else(|| state.key().unwrap().unwrap());
    SessionClient::new(http(), &system.runner_url, session.runner_id, session.generation, key)
}

fn refused_as(outcome: Result<impl std::fmt::Debug, CallError>, code: ErrorCode) {
    let error = outcome.expect_err("it is refused");
    assert_eq!(error.code(), Some(code), "{error}");
}

fn poll() -> PollRequest {
    PollRequest {
        process: 0,
        seq: 0,
        nonce: "0123456789abcdef".into(),
        free: Default::default(),
        held: vec![],
        cancels_known: vec![],
        settings_version: 1,
        report: RunnerReport::default(),
        no_wait: true,
    }
}

/// The directory of the one execution that is under way.
async fn execution_dir(runner: &Runner) -> ExecutionDir {
    until("an execution's directory", SOON, async || {
        let found = ExecutionDir::list(&runner.state_dir).map_err(|e| e.to_string())?;
        let named = found.into_iter().find(|d| d.assignment().is_ok_and(|a| a.group == model::JobGroup::Actions));
        named.ok_or_else(|| "none".to_owned())
    })
    .await
}

#[tokio::test]
async fn a_runner_that_trusts_another_key_joins_nothing() {
    let system = System::start(options()).await;
    let join = system.join_command().await;
    let other = Signatory::from_seed(&[7; 32]).fingerprint().to_owned();
    let cases = [(Some(other.as_str()), "not the ones that this runner trusts"), (None, "no key is trusted")];
    for (trust, part) in cases {
        let mut command = system.resume_command("a");
        command.env("FERRY_RUNNER_JOIN", &join.credential);
        if let Some(key) = trust {
            command.args(["--trust-key", key]);
        }
        let output = run(command).await;
        assert!(!output.status.success() && shown(&output).contains(part), "{}", shown(&output));
        assert!(!system.state_dir("a").join("session.key").exists());
        let runner = system.runner().await;
        assert_eq!((runner.generation, runner.status.as_str()), (0, "pending"), "nothing joined");
    }
    // The credential was not used up: with the right key it is good.
    let _runner = system.start_runner_with("a", &join, |_| ()).await;
    assert_eq!(system.runner().await.generation, 1);
}

#[tokio::test]
async fn a_session_that_learns_to_trust_another_key_runs_nothing() {
    let system = System::start(options()).await;
    let mut runner = system.start_runner("a").await;
    runner.kill();
    let other = Signatory::from_seed(&[7; 32]).fingerprint().to_owned();
    let mut command = system.resume_command("a");
    command.args(["--trust-key", &other]);
    let mut runner = system.spawn_runner("a", &mut command);
    let job = system.script(&format!("echo ran >> {}", system.witness("w").display())).await;
    let job = system.until_job(&job.id, "it is refused", SOON, |j| {
        j.status.is_terminal() || j.status == JobState::Queued && j.execution_count > 0
    });
    let job = job.await;
    assert_ne!(job.status, JobState::Finished);
    assert!(system.lines("w").is_empty(), "nothing was run");
    assert!(!runner.process.is_alive() || job.error.is_some_and(|e| e.code == "papers_refused"), "{}", runner.log());
}

#[tokio::test]
async fn copied_credentials_are_worthless_without_the_key() {
    let system = System::start(options()).await;
    let runner = system.start_runner("a").await;
    let job = system.held("script").await;
    // Everything but the key: the copy can't resume, and it has nothing to join with.
    let copy = system.state_dir("copy");
    fs_err::create_dir_all(&copy).unwrap();
    fs_err::copy(runner.state_dir.join("session.json"), copy.join("session.json")).unwrap();
    let trust = StateDir::new(&runner.state_dir).session().unwrap().unwrap().trust.join(",");
    let mut command = system.resume_command("copy");
    command.env("FERRY_RUNNER_TRUST_KEY", trust);
    let output = run(command).await;
    assert!(!output.status.success() && shown(&output).contains("has not joined yet"), "{}", shown(&output));
    // With a key of its own it is refused by the server, for every request.
    let thief = session_client(&system, &runner.state_dir, Some(Signatory::from_seed(&[9; 32])));
    refused_as(thief.poll(&poll(), 1).await, ErrorCode::BadSignature);
    refused_as(thief.renew(vec![], seconds(5)).await, ErrorCode::BadSignature);
    let dir = execution_dir(&runner).await;
    let assignment = dir.assignment().unwrap();
    let about = About { id: &assignment.execution_id, token: &assignment.execution_token };
    refused_as(thief.spec(about).await, ErrorCode::BadSignature);
    refused_as(thief.start(about).await, ErrorCode::BadSignature);
    // And with the key, but not the token of the execution.
    let owner = session_client(&system, &runner.state_dir, None);
    refused_as(owner.spec(About { token: "fxt_wrong", ..about }).await, ErrorCode::BadSignature);
    assert!(owner.spec(about).await.is_ok(), "the owner may");
    system.open("script");
    let job = system.until_over(&job.id).await;
    assert_eq!(job.status, JobState::Finished, "none of it did harm");
    refused_as(owner.spec(about).await, ErrorCode::LeaseLost);
    assert_eq!(system.runner().await.generation, 1);
}

#[tokio::test]
async fn a_signed_request_is_good_for_its_own_words_only() {
    let system = System::start(options()).await;
    let runner = system.start_runner("a").await;
    let state = StateDir::new(&runner.state_dir);
    let (session, key) = (state.session().unwrap().unwrap(), state.key().unwrap().unwrap());
    let path = format!("/v1/runners/{}/renew", session.runner_id);
    let send = async |body: &'static [u8], time: String, protocol: &str, signed_body: &[u8]| {
        let text = model::papers::RequestText {
            method: "POST",
            path_and_query: &path,
            runner: session.runner_id.as_str(),
            generation: session.generation,
            time: &time,
            nonce: "n",
            body: signed_body,
        };
        let request = http()
            .post(format!("{}{path}", system.runner_url))
            .header(headers::PROTOCOL, protocol)
            .header(headers::RUNNER, session.runner_id.as_str())
            .header(headers::GENERATION, session.generation)
            .header(headers::NONCE, "n")
            .header(headers::SIGNATURE, key.request(&text.text()))
            .header(headers::TIME, &time)
            .body(body);
        let answer = request.send().await.unwrap();
        let status = answer.status();
        (status, answer.json::<Value>().await.unwrap())
    };
    let now = runner::session::now();
    let body: &[u8] = b"{\"executions\":[]}";
    let (status, _) = send(body, now.to_string(), "1", body).await;
    assert_eq!(status, StatusCode::OK);
    let (status, answer) = send(body, now.to_string(), "1", b"{}").await;
    assert_eq!((status, &answer["code"]), (StatusCode::UNAUTHORIZED, &json!("bad_signature")));
    let (status, answer) = send(body, now.plus_s(-3600).to_string(), "1", body).await;
    assert_eq!((status, &answer["code"]), (StatusCode::UNAUTHORIZED, &json!("clock_skew")));
    assert!(answer["error"].as_str().unwrap().contains("behind"), "{answer}");
    let (status, answer) = send(body, now.to_string(), "99", body).await;
    assert_eq!((status, &answer["code"]), (StatusCode::BAD_REQUEST, &json!("protocol_unsupported")));
    assert!(answer["error"].as_str().unwrap().contains("speaks 1 to 1"), "{answer}");
}

fn copy_tree(from: &Path, to: &Path) {
    fs_err::create_dir_all(to).unwrap();
    for entry in fs_err::read_dir(from).unwrap().flatten() {
        let target = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copy_tree(&entry.path(), &target);
        } else {
            fs_err::copy(entry.path(), target).unwrap();
        }
    }
}

#[tokio::test]
async fn papers_that_are_played_again_are_refused() {
    let system = System::start(options()).await;
    let runner = system.start_runner("a").await;
    let job = system.held("script").await;
    let dir = execution_dir(&runner).await;
    // A second executor beside the first, in the same directory.
    let execute = async |dir: &Path| run(system.runner_command(&["execute", &dir.display().to_string()])).await;
    let output = execute(dir.path()).await;
    assert!(!output.status.success(), "{}", shown(&output));
    // Elsewhere, as if it had never run: a copy, one thing of it changed, and what an executor says to it.
    let replay = async |folder: &str, name: &str, change: &dyn Fn(&Path)| {
        let copy = system.state_dir(folder).join(name);
        copy_tree(dir.path(), &copy);
        for file in ["executor.lock", "renewed", "group", "steps.json"] {
            let _ = fs_err::remove_file(copy.join(file));
        }
        change(&copy);
        execute(&copy).await;
        let result: Value = serde_json::from_slice(&fs_err::read(copy.join("result.json")).unwrap()).unwrap();
        assert_eq!((&result["outcome"], &result["error"]["code"]), (&json!("not-attempted"), &json!("papers_refused")));
    };
    let rewrite = |file: std::path::PathBuf, change: &dyn Fn(String) -> String| {
        fs_err::write(&file, change(fs_err::read_to_string(&file).unwrap())).unwrap();
    };
    // Under another name: the grant is for another execution.
    replay("renamed", "exe00000000000000000000000", &|_| ()).await;
    // For a poll with another nonce: the grant answers an earlier one.
    replay("later", dir.name(), &|copy| {
        rewrite(copy.join("context.json"), &|text| {
            let mut context: Value = serde_json::from_str(&text).unwrap();
            context["nonce"] = json!("ffffffffffffffffffffffffffffffff");
            context.to_string()
        });
    })
    .await;
    // Another spec than the one that was ordered.
    replay("changed", dir.name(), &|copy| {
        rewrite(copy.join("spec.json"), &|text| text.replace("echo begin", "echo forged"));
    })
    .await;
    // For another generation of the runner.
    replay("generation", dir.name(), &|copy| {
        rewrite(copy.join("context.json"), &|text| text.replace("\"generation\":1", "\"generation\":2"));
    })
    .await;
    system.open("script");
    let job = system.until_over(&job.id).await;
    assert_eq!(job.status, JobState::Finished);
    system.assert_whole(&job, "script").await;
}

#[tokio::test]
async fn a_runner_sees_nothing_of_another_runner() {
    let system = System::start(options()).await;
    let runner = system.start_runner("a").await;
    let job = system.held("script").await;
    let assignment = execution_dir(&runner).await.assignment().unwrap();
    let about = About { id: &assignment.execution_id, token: &assignment.execution_token };
    // A runner of the same org, with a session of its own, and even the token of that execution.
    let app = system.install.app_id.as_str();
    let install = CreateInstall { name: "second".into(), aws_account: None, azure_account: None, gcp_account: None };
    let second = system.client.create_install(app, &install).await.unwrap();
    let join = system.client.create_join_command(second.runner_id.as_str()).await.unwrap();
    let key = Signatory::from_seed(&[3; 32]);
    let client = http();
    let door = runner::session::Door { http: &client, url: &system.runner_url };
    let answer = door.join(&join.credential, &key, "test").await.unwrap();
    let other = SessionClient::new(client, &system.runner_url, answer.runner_id, answer.generation, key.clone());
    refused_as(other.spec(about).await, ErrorCode::NotFound);
    refused_as(other.start(about).await, ErrorCode::NotFound);
    refused_as(other.append_log(about, Default::default()).await, ErrorCode::NotFound);
    let result = model::ExecutionResult::without_work(
        model::Outcome::Finished,
        model::JobError::new("forged", "forged"),
        runner::session::now(),
    );
    refused_as(other.result(about, assignment.epoch, &result).await, ErrorCode::NotFound);
    let held = api::runner::Held {
        execution_id: assignment.execution_id.clone(),
        epoch: assignment.epoch,
        state: HeldState::Dead,
    };
    let renewed = other.renew(vec![held.clone()], seconds(5)).await.unwrap();
    assert_eq!((renewed.renewed.len(), renewed.lost.len()), (0, 1));
    let polled = other.poll(&PollRequest { held: vec![held], ..poll() }, 1).await.unwrap();
    assert!(polled.jobs.is_empty() && polled.lost.len() == 1);
    // In the name of the first runner, with the second one's key.
    let posing = session_client(&system, &runner.state_dir, Some(key));
    refused_as(posing.renew(vec![], seconds(5)).await, ErrorCode::BadSignature);
    assert_eq!(system.job(&job.id).await.status, JobState::Running);
    system.open("script");
    let job = system.until_over(&job.id).await;
    assert_eq!(job.status, JobState::Finished);
    system.assert_whole(&job, "script").await;
}

/// The answer to a request without a body that matters.
async fn ask(
    url: &str,
    method: &str,
    path: &str,
    token: Option<&str>,
    org: Option<&str>,
    body: &Value,
) -> (StatusCode, Value) {
    let method = Method::from_bytes(method.to_uppercase().as_bytes()).unwrap();
    let mut request = http().request(method, format!("{url}{path}")).timeout(Duration::from_secs(5));
    if let Some(token) = token {
        request = request.bearer_auth(token);
    }
    if let Some(org) = org {
        request = request.header(headers::ORG, org);
    }
    if !body.is_null() {
        request = request.json(body);
    }
    let answer = request.send().await.unwrap_or_else(|e| panic!("{path}: {e}"));
    let status = answer.status();
    // A live stream has no end; what matters is its head.
    let live = answer.headers().get("content-type").is_some_and(|v| v == "text/event-stream");
    if live { (status, Value::Null) } else { (status, answer.json().await.unwrap_or_default()) }
}

async fn operations(url: &str) -> Vec<(String, String, Option<String>)> {
    let document: Value = http().get(format!("{url}/openapi.json")).send().await.unwrap().json().await.unwrap();
    let mut found = Vec::new();
    for (path, methods) in document["paths"].as_object().unwrap() {
        for (method, operation) in methods.as_object().unwrap() {
            let role = operation["security"][0]["token"][0].as_str().map(str::to_owned);
            found.push((method.clone(), path.clone(), role));
        }
    }
    assert!(found.len() > 10, "{found:?}");
    found
}

/// A body that would be taken if the caller were allowed.
fn body_of(method: &str, path: &str) -> Value {
    match (method, path) {
        ("post", "/v1/orgs") => json!({ "name": "another" }),
        ("post", "/v1/apps") => json!({ "name": "another" }),
        ("post", "/v1/apps/{app_id}/installs") => json!({ "name": "another" }),
        ("post", "/v1/installs/{install_id}/action-runs") => json!({ "steps": [{ "name": "a", "command": "true" }] }),
        ("post", "/v1/runners/{runner_id}/jobs") => json!({ "type": "noop" }),
        ("post", "/v1/runner-jobs/{runner_job_id}/settle") => json!({ "outcome": "failed" }),
        ("post", "/v1/tokens") => json!({ "name": "another", "role": "read-only" }),
        ("patch", "/v1/runners/{runner_id}/settings") => json!({ "drain_s": 1 }),
        ("put", "/v1/archives/{digest}") => Value::Null,
        (
            "post",
            "/v1/runner-jobs/{runner_job_id}/cancel"
            | "/v1/runners/{runner_id}/drain"
            | "/v1/runners/{runner_id}/resume"
            | "/v1/runners/{runner_id}/revoke"
            | "/v1/runners/{runner_id}/join-commands",
        ) => Value::Null,
        ("get", _) | ("delete", "/v1/tokens/{token_id}") => Value::Null,
        other => panic!("this test does not know how to call {other:?}: teach it"),
    }
}

/// Everything of the org of `system` that has an id.
struct Things {
    token: String,
    job: Job,
}

fn fill(system: &System, things: &Things, path: &str) -> String {
    let filled = path
        .replace("{app_id}", system.install.app_id.as_str())
        .replace("{install_id}", system.install.id.as_str())
        .replace("{runner_id}", system.install.runner_id.as_str())
        .replace("{runner_job_id}", things.job.id.as_str())
        .replace("{log_stream_id}", things.job.log_stream_id.as_str())
        .replace("{token_id}", &things.token)
        .replace("{digest}", model::Digest::of(b"").as_str());
    assert!(!filled.contains('{'), "this test does not know what to put into {path}: teach it");
    filled
}

#[tokio::test]
async fn every_operation_is_closed_to_strangers_and_to_other_orgs() {
    let system = System::start(options()).await;
    let runner = system.start_runner("a").await;
    let job = system.run(vec![script("run", "true")]).await;
    let token = CreateToken { name: "some".into(), role: Role::ReadOnly, expires_in_s: None };
    let token = system.client.create_token(&token).await.unwrap();
    let things = Things { token: token.id.to_string(), job };
    // Another org, with an admin token that is good for it alone.
    let other = system.client.create_org(&CreateOrg { name: "other".into(), use_sandbox_mode: false }).await.unwrap();
    let in_other = system.client.with_org(Some(other.id.to_string()));
    let admin = CreateToken { name: "admin".into(), role: Role::Admin, expires_in_s: None };
    let admin = in_other.create_token(&admin).await.unwrap().token.unwrap();
    let (own, foreign) = (other.id.as_str(), system.org.id.as_str());
    let url = &system.control_url;
    let mut named = 0;
    for (method, path, role) in operations(url).await {
        let (filled, body) = (fill(&system, &things, &path), body_of(&method, &path));
        let what = format!("{method} {path}");
        let Some(role) = role else {
            // Open to all: it must say nothing of anyone.
            assert!(
                ["/livez", "/readyz", "/version", "/v1/general/cli-config"].contains(&path.as_str()),
                "{what} is open"
            );
            continue;
        };
        let (status, answer) = ask(url, &method, &filled, None, Some(foreign), &body).await;
        assert_eq!(status, StatusCode::UNAUTHORIZED, "{what}, anonymous: {answer}");
        let (status, answer) = ask(url, &method, &filled, Some("fry_wrong"), Some(foreign), &body).await;
        assert_eq!(status, StatusCode::UNAUTHORIZED, "{what}, unknown token: {answer}");
        if role == "any" {
            continue;
        }
        let (status, answer) = ask(url, &method, &filled, Some(&admin), Some(foreign), &body).await;
        assert_eq!(
            (status, &answer["code"]),
            (StatusCode::FORBIDDEN, &json!("unknown_org")),
            "{what}, in the foreign org"
        );
        let (status, answer) =
            ask(url, &method, &filled, Some(&admin), Some("org00000000000000000000000"), &body).await;
        assert_eq!((status, &answer["code"]), (StatusCode::FORBIDDEN, &json!("unknown_org")), "{what}, in no org");
        if path.contains('{') && path != "/v1/archives/{digest}" {
            named += 1;
            let (status, answer) = ask(url, &method, &filled, Some(&admin), Some(own), &body).await;
            assert_eq!(
                (status, &answer["code"]),
                (StatusCode::NOT_FOUND, &json!("not_found")),
                "{what}, by its id: {answer}"
            );
        }
        // A runner's credentials open nothing here.
        let session = fs_err::read_to_string(runner.state_dir.join("session.key")).unwrap();
        let join = system.join_command().await.credential;
        for credential in [session.trim(), &join] {
            let (status, _) = ask(url, &method, &filled, Some(credential), Some(foreign), &body).await;
            assert_eq!(status, StatusCode::UNAUTHORIZED, "{what}, with a runner's credential");
        }
    }
    assert!(named > 15, "only {named} operations name a thing");
    assert_eq!(system.runner().await.generation, 1);
    // Lists of the other org are empty.
    assert!(in_other.jobs(&Default::default(), 10).await.unwrap().is_empty());
    assert!(in_other.installs(None).await.unwrap().is_empty());
    assert_eq!(in_other.runners(None).await.unwrap().len(), 1, "its own build runner");
    assert!(in_other.events(None, 100).await.unwrap().iter().all(|e| e.subject_id != things.job.id.as_str()));
    assert_eq!(system.job(&things.job.id).await.status, JobState::Finished);
}

#[tokio::test]
async fn no_api_token_opens_a_runner_route() {
    let system = System::start(options()).await;
    let runner = system.start_runner("a").await;
    let job = system.held("script").await;
    let execution = execution_dir(&runner).await.assignment().unwrap().execution_id;
    for (method, path, _) in operations(&system.runner_url).await {
        if ["/livez", "/readyz", "/version", "/v1/keys"].contains(&path.as_str()) {
            continue;
        }
        let filled = path
            .replace("{runner_id}", system.install.runner_id.as_str())
            .replace("{execution_id}", execution.as_str())
            .replace("{digest}", model::Digest::of(b"").as_str());
        assert!(!filled.contains('{'), "this test does not know what to put into {path}: teach it");
        let request = http()
            .request(
                Method::from_bytes(method.to_uppercase().as_bytes()).unwrap(),
                format!("{}{filled}", system.runner_url),
            )
            .header(headers::PROTOCOL, 1)
            .header(headers::ORG, system.org.id.as_str())
            .bearer_auth(system.token())
            .json(
                &json!({ "credential": system.token(), "public_key": "", "proof": "", "version": "", "hostname": "" }),
            );
        let answer = request.send().await.unwrap();
        assert_eq!(answer.status(), StatusCode::UNAUTHORIZED, "{method} {path}");
    }
    // And what belongs to the Control API is not there at all.
    for path in ["/v1/orgs", "/v1/runner-jobs", "/v1/tokens"] {
        let (status, _) = ask(&system.runner_url, "get", path, Some(system.token()), None, &Value::Null).await;
        assert_eq!(status, StatusCode::NOT_FOUND, "{path}");
    }
    system.open("script");
    assert_eq!(system.until_over(&job.id).await.status, JobState::Finished);
}

#[tokio::test]
async fn roles_bound_what_a_token_may_do() {
    let system = System::start(options()).await;
    let job = system.script("true").await;
    let mut tokens = std::collections::BTreeMap::new();
    for role in [Role::ReadOnly, Role::Operator, Role::Admin] {
        let token = CreateToken { name: role.as_str().into(), role, expires_in_s: None };
        tokens.insert(role.as_str(), system.client.create_token(&token).await.unwrap().token.unwrap());
    }
    let things = Things { token: "tok00000000000000000000000".into(), job };
    let rank = |role: &str| ["read-only", "operator", "admin"].iter().position(|r| *r == role);
    for (method, path, role) in operations(&system.control_url).await {
        let Some(needed) = role.as_deref().and_then(rank) else { continue };
        let (filled, body) = (fill(&system, &things, &path), body_of(&method, &path));
        for (name, token) in &tokens {
            if rank(name).unwrap() >= needed {
                continue;
            }
            let org = Some(system.org.id.as_str());
            let (status, answer) = ask(&system.control_url, &method, &filled, Some(token), org, &body).await;
            assert_eq!(
                (status, &answer["code"]),
                (StatusCode::FORBIDDEN, &json!("forbidden")),
                "{method} {path} as {name}"
            );
        }
        if method != "get" {
            assert!(needed > 0, "{method} {path} changes something, and read-only may do it");
        }
    }
    // A token of one org makes no orgs beside it.
    let (status, _) =
        ask(&system.control_url, "post", "/v1/orgs", Some(&tokens["read-only"]), None, &json!({ "name": "mine" }))
            .await;
    assert_eq!(status, StatusCode::FORBIDDEN);
    assert_eq!(system.job(&things.job.id).await.status, JobState::Queued, "nothing was done");
    system.client.cancel_job(&things.job.id).await.unwrap();
}

#[tokio::test]
async fn tokens_end_when_they_expire_or_are_revoked() {
    let system = System::start(options()).await;
    let as_token = |token: &str| {
        let org = Some(system.org.id.to_string());
        Client::new(&system.control_url, Some(token.to_owned()), org, &ClientOptions::default()).unwrap()
    };
    let wanted = CreateToken { name: "short".into(), role: Role::Operator, expires_in_s: Some(1) };
    let short = as_token(&system.client.create_token(&wanted).await.unwrap().token.unwrap());
    let wanted = CreateToken { name: "long".into(), role: Role::Operator, expires_in_s: None };
    let made = system.client.create_token(&wanted).await.unwrap();
    let long = as_token(made.token.as_deref().unwrap());
    assert!(short.apps().await.is_ok() && long.apps().await.is_ok());
    tokio::time::sleep(Duration::from_millis(1200)).await;
    assert_eq!(short.apps().await.unwrap_err().status(), Some(401), "expired");
    let output = system.ferry(&["tokens", "revoke", "long", "--yes"]).await;
    assert!(output.status.success(), "{}", shown(&output));
    assert_eq!(long.apps().await.unwrap_err().status(), Some(401), "revoked");
    // Shown once, and never again.
    let listed = serde_json::to_string(&system.client.tokens().await.unwrap()).unwrap();
    assert!(!listed.contains(made.token.as_deref().unwrap()), "{listed}");
    let app = CreateApp { name: "x".into(), display_name: String::new(), description: String::new() };
    assert_eq!(long.create_app(&app).await.unwrap_err().code(), Some(ErrorCode::Unauthenticated));
}
