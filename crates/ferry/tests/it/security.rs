//! Who may do what: trust, keys, papers, tenancy, roles.

use std::path::Path;
use std::time::Duration;

use api::client::{Client, Options as ClientOptions};
use api::control::{CreateApp, CreateInstall, CreateToken};
use api::runner::PollRequest;
use api::{ErrorCode, headers};
use model::papers::Signatory;
use model::runner::{HeldState, RunnerReport};
use model::{JobState, Role};
use reqwest::StatusCode;
use runner::directory::ExecutionDir;
use runner::session::{About, CallError, SessionClient, StateDir};
use serde_json::{Value, json};
use testkit::system::{Runner, SOON, System, run, shown, until};

use crate::{options, seconds};

pub(crate) fn http() -> reqwest::Client {
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
        process: 1,
        seq: 1,
        nonce: "0123456789abcdef".into(),
        free: Default::default(),
        held: vec![],
        cancels_known: vec![],
        watch: None,
        settings_version: 1,
        report: RunnerReport::default(),
        no_wait: true,
    }
}

/// The directory of the one execution that is under way.
pub(crate) async fn execution_dir(runner: &Runner) -> ExecutionDir {
    until("an execution's directory", SOON, async || {
        let found = ExecutionDir::list(&runner.state_dir).map_err(|e| e.to_string())?;
        let named = found.0.into_iter().find(|d| d.assignment().is_ok_and(|a| a.group == model::JobGroup::Actions));
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
    let install = CreateInstall::local("second");
    let second = system.client.create_install(app, &install).await.unwrap();
    let join = system.client.create_join_command(second.runner_id.as_str()).await.unwrap();
    let key = Signatory::from_seed(&[3; 32]);
    let client = http();
    let door = runner::session::Unjoined { http: &client, url: &system.runner_url };
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

#[tokio::test]
async fn tokens_end_when_they_expire_or_are_revoked() {
    let system = System::start(options()).await;
    let as_token = |token: &str| {
        let org = Some(system.org.id.to_string());
        Client::new(&system.control_url, Some(token.to_owned()), org, &ClientOptions::default()).unwrap()
    };
    let wanted = CreateToken { name: "short".into(), role: Role::Operator, runner_id: None, expires_in_s: Some(1) };
    let short = as_token(&system.client.create_token(&wanted).await.unwrap().token.unwrap());
    let wanted = CreateToken { name: "long".into(), role: Role::Operator, runner_id: None, expires_in_s: None };
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
