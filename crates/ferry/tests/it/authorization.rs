//! Who may call what: every operation of both OpenAPI documents, by everyone who must not. An operation that this file does
//! not know how to call fails the test.

use std::time::Duration;

use api::control::{CreateInstall, CreateOrg, CreateToken, Job};
use api::headers;
use model::papers::{RequestText, Signatory};
use model::{JobState, Role};
use reqwest::{Method, StatusCode};
use runner::session::{SessionClient, Unjoined, now, random_hex};
use serde_json::{Value, json};
use testkit::system::{System, script};

use crate::options;
use crate::security::{execution_dir, http};

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
        ("post", "/v1/installs/{install_id}/artifact-syncs") => json!({ "component": "greeting" }),
        ("post", "/v1/views") => json!({ "name": "drift", "query": "drift=drifted" }),
        ("post", "/v1/source-logins") => json!({ "prefix": "example.com", "username": "u", "password": "secret" }),
        ("post", "/v1/orgs/current/invites") => json!({ "email": "a@example.com" }),
        ("patch", "/v1/members/{account_id}") => json!({ "role": "operator" }),
        ("post", "/v1/sign-in-links") => Value::Null,
        ("post", "/v1/tokens") => json!({ "name": "another", "role": "read-only" }),
        ("patch", "/v1/runners/{runner_id}/settings") => json!({ "drain_s": 1 }),
        ("patch", "/v1/orgs/current/logs") => json!({ "quota_bytes": 0 }),
        ("post", "/v1/installs/{install_id}/workflows") => json!({ "type": "deploy_components" }),
        (
            "post",
            "/v1/installs/{install_id}/components/deploy-all"
            | "/v1/installs/{install_id}/components/teardown-all"
            | "/v1/installs/{install_id}/components/{component_id}/teardown"
            | "/v1/installs/{install_id}/deploys"
            | "/v1/installs/{install_id}/forget"
            | "/v1/installs/{install_id}/phone-home/{phone_home_id}"
            | "/v1/installs/{install_id}/runbooks/{runbook_id}/runs"
            | "/v1/installs/{install_id}/reprovision"
            | "/v1/installs/{install_id}/reprovision-sandbox"
            | "/v1/installs/{install_id}/deprovision"
            | "/v1/installs/{install_id}/deprovision-sandbox",
        )
        | ("patch", "/v1/installs/{install_id}" | "/v1/installs/{install_id}/configs/{config_id}")
        | ("post", "/v1/installs/{install_id}/configs") => json!({}),
        ("post", "/v1/installs/{install_id}/labels") => json!({ "labels": { "env": "prod" } }),
        ("delete", "/v1/installs/{install_id}/labels") => json!({ "keys": ["env"] }),
        ("post", "/v1/installs/{install_id}/components/{component_id}/toggle") => json!({ "enabled": true }),
        ("patch", "/v1/workflows/{workflow_id}") => json!({ "approval_option": "approve-all" }),
        ("post", path) if path.starts_with("/v1/workflows/{workflow_id}") => json!({ "response_type": "approve" }),
        ("put", "/v1/archives/{digest}") => Value::Null,
        (
            "post",
            "/v1/runner-jobs/{runner_job_id}/cancel"
            | "/v1/builds/{build_id}/cancel"
            | "/v1/terraform-workspaces/{workspace_id}/unlock"
            | "/v1/terraform-workspaces/{workspace_id}/states/{state_id}/restore"
            | "/v1/runners/{runner_id}/drain"
            | "/v1/runners/{runner_id}/resume"
            | "/v1/runners/{runner_id}/revoke"
            | "/v1/runners/{runner_id}/join-commands",
        ) => Value::Null,
        ("put", "/v1/installs/{install_id}/components/{component}/health/checks/{name}") => {
            json!({ "status": "healthy" })
        }
        ("get", _)
        | (
            "delete",
            "/v1/tokens/{token_id}"
            | "/v1/members/{account_id}"
            | "/v1/orgs/current/invites/{invite_id}"
            | "/v1/account/sessions"
            | "/v1/account/sessions/{session_id}"
            | "/v1/installs/{install_id}/components/{component}/health/checks/{name}"
            | "/v1/log-streams/{log_stream_id}"
            | "/v1/views/{view_id}"
            | "/v1/source-logins/by-prefix"
            | "/v1/apps/{app_id}"
            | "/v1/apps/{app_id}/secret/{secret_id}"
            | "/v1/components/{component_id}"
            | "/v1/action-workflows/{action_workflow_id}",
        ) => Value::Null,
        ("post" | "patch", path)
            if ["/v1/apps/{app_id}", "/v1/components/{component_id}", "/v1/action-workflows/{action_workflow_id}"]
                .iter()
                .any(|known| path.starts_with(known))
                || path == "/v1/installs/{install_id}/inputs"
                || path == "/v1/installs/{install_id}/action-workflows/runs" =>
        {
            of_an_app()
        }
        other => panic!("this test does not know how to call {other:?}: teach it"),
    }
}

/// What every request about an app needs, all in one: what a route does not know it ignores.
fn of_an_app() -> Value {
    let role = json!({ "name": "r", "description": "r", "display_name": "r" });
    json!({
        "name": "another", "value": "v", "app_config_id": "cfg00000000000000000000000", "config": {}, "groups": {},
        "inputs": {}, "variables": {}, "env_vars": {}, "values": {}, "type": "aws", "description": "d", "roles": [],
        "provision_role": role, "maintenance_role": role, "deprovision_role": role, "rules": [], "steps": [],
        "triggers": [], "dockerfile": "Dockerfile", "image_url": "i", "tag": "t", "chart_name": "chart",
        "runtime": "go", "action_workflow_config_id": "sec00000000000000000000000",
    })
}

/// Everything of the org of `system` that has an id.
struct Things {
    token: String,
    job: Job,
    component: String,
    action: String,
    config: String,
    build: String,
    workflow: String,
    step: String,
    workspace: String,
}

impl Things {
    async fn new(system: &System, token: String, job: Job) -> Self {
        let made = |path: &'static str| async move {
            let path = format!("/v1/apps/{}/{path}", system.install.app_id);
            let (token, org) = (Some(system.token()), Some(system.org.id.as_str()));
            let (status, answer) =
                ask(&system.control_url, "post", &path, token, org, &json!({ "name": "thing" })).await;
            assert_eq!(status, StatusCode::CREATED, "{answer}");
            answer["id"].as_str().unwrap().to_owned()
        };
        let (component, action) = (made("components").await, made("action-workflows").await);
        let (dir, app) = (system.root().join("things"), system.install.app_id.as_str());
        let workspace = workspace_of(system, app).await;
        let dir = dir.to_str().unwrap();
        assert!(system.ferry(&["apps", "init", dir]).await.status.success());
        let synced = system.ferry(&["apps", "sync", dir, "--app", app, "--no-wait", "--json"]).await;
        let synced: Value = serde_json::from_slice(&synced.stdout).unwrap();
        let build = synced["builds"][0]["id"].as_str().unwrap().to_owned();
        let started = json!({ "type": "sync_secrets" });
        let started = serde_json::from_value(started).unwrap();
        let workflow = system.client.start_workflow(system.install.id.as_str(), &started).await.unwrap().workflow_id;
        let step = system.client.workflow(&workflow).await.unwrap().steps[0].id.clone();
        Self { token, job, component, action, config: made("config").await, build, workflow, step, workspace }
    }
}

/// A workspace of Terraform, of an install of its own.
async fn workspace_of(system: &System, app: &str) -> String {
    let install = system.client.create_install(app, &CreateInstall::local("thing")).await.unwrap();
    let Session { generation, key, .. } = joined(system, install.runner_id.as_str(), 9).await;
    let client = SessionClient::new(http(), &system.runner_url, install.runner_id, generation, key);
    client.open_workspace("sandbox").await.unwrap().workspace_id.to_string()
}

fn fill(system: &System, things: &Things, path: &str) -> String {
    let filled = path
        .replace("{app_id}", system.install.app_id.as_str())
        .replace("{install_id}", system.install.id.as_str())
        .replace("{runner_id}", system.install.runner_id.as_str())
        .replace("{runner_job_id}", things.job.id.as_str())
        .replace("{log_stream_id}", things.job.log_stream_id.as_str())
        .replace("{token_id}", &things.token)
        .replace("{account_id}", "acc00000000000000000000000")
        .replace("{invite_id}", "inv00000000000000000000000")
        .replace("{session_id}", "ses00000000000000000000000")
        .replace("{view_id}", "viw00000000000000000000000")
        .replace("{component_id}", &things.component)
        .replace("{component_name_or_id}", &things.component)
        .replace("{action_workflow_id}", &things.action)
        .replace("{app_config_id}", &things.config)
        .replace("{build_id}", &things.build)
        .replace("{workflow_id}", &things.workflow)
        .replace("{step_id}", &things.step)
        .replace("{config_id}", system.install.id.as_str())
        .replace("{approval_id}", "sha256:0")
        .replace("{deploy_id}", "dpl00000000000000000000000")
        .replace("{runbook_id}", "rbk00000000000000000000000")
        .replace("{phone_home_id}", "phs_wrong")
        .replace("{component}", "web")
        .replace("{name}", "smoke")
        .replace("{workspace_id}", &things.workspace)
        .replace("{state_id}", "tfr00000000000000000000000")
        .replace("{secret_id}", "var00000000000000000000000")
        .replace("{run_id}", "arn00000000000000000000000")
        .replace("{digest}", model::Digest::of(b"").as_str());
    assert!(!filled.contains('{'), "this test does not know what to put into {path}: teach it");
    filled
}

/// Admin tokens of the system's org that are good no more.
async fn ended_tokens(system: &System) -> [(&'static str, String); 2] {
    let make =
        |name: &str, expires_in_s| CreateToken { name: name.into(), role: Role::Admin, runner_id: None, expires_in_s };
    let expired = system.client.create_token(&make("expired", Some(1))).await.unwrap();
    let revoked = system.client.create_token(&make("revoked", None)).await.unwrap();
    system.client.revoke_token(&revoked.id).await.unwrap();
    tokio::time::sleep(Duration::from_millis(1200)).await;
    [("expired", expired.token.unwrap()), ("revoked", revoked.token.unwrap())]
}

#[tokio::test]
async fn every_operation_is_closed_to_strangers_and_to_other_orgs() {
    let system = System::start(options()).await;
    let runner = system.start_runner("a").await;
    let job = system.run(vec![script("run", "true")]).await;
    let token = CreateToken { name: "some".into(), role: Role::ReadOnly, runner_id: None, expires_in_s: None };
    let token = system.client.create_token(&token).await.unwrap();
    let things = Things::new(&system, token.id.to_string(), job).await;
    // Another org, with an admin token that is good for it alone.
    let other = system
        .client
        .create_org(&CreateOrg { name: "other".into(), use_sandbox_mode: false, simulation: None })
        .await
        .unwrap();
    let in_other = system.client.with_org(Some(other.id.to_string()));
    let admin = CreateToken { name: "admin".into(), role: Role::Admin, runner_id: None, expires_in_s: None };
    let admin = in_other.create_token(&admin).await.unwrap().token.unwrap();
    let (own, foreign) = (other.id.as_str(), system.org.id.as_str());
    let ended = ended_tokens(&system).await;
    let url = &system.control_url;
    let mut named = 0;
    for (method, path, role) in operations(url).await {
        let (filled, body) = (fill(&system, &things, &path), body_of(&method, &path));
        let what = format!("{method} {path}");
        if path == "/v1/installs/{install_id}/phone-home/{phone_home_id}" {
            // Open to whoever knows the id; to all others it is not there.
            let (status, answer) = ask(url, &method, &filled, None, None, &body).await;
            assert_eq!(status, StatusCode::NOT_FOUND, "{what}: {answer}");
            continue;
        }
        let Some(role) = role else {
            // Open to all: it must say nothing of anyone.
            assert!(
                ["/livez", "/readyz", "/version", "/v1/general/cli-config", "/v1/general/config-schema"]
                    .contains(&path.as_str()),
                "{what} is open"
            );
            continue;
        };
        let (status, answer) = ask(url, &method, &filled, None, Some(foreign), &body).await;
        assert_eq!(status, StatusCode::UNAUTHORIZED, "{what}, anonymous: {answer}");
        let (status, answer) = ask(url, &method, &filled, Some("fry_wrong"), Some(foreign), &body).await;
        assert_eq!(status, StatusCode::UNAUTHORIZED, "{what}, unknown token: {answer}");
        for (why, token) in &ended {
            let (status, answer) = ask(url, &method, &filled, Some(token), Some(foreign), &body).await;
            assert_eq!(status, StatusCode::UNAUTHORIZED, "{what}, {why}: {answer}");
        }
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
    assert!(in_other.events(None, None, 100).await.unwrap().0.iter().all(|e| e.subject_id != things.job.id.as_str()));
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
            .replace("{workspace_id}", "tfw00000000000000000000000")
            .replace("{upload_id}", "upl00000000000000000000000")
            .replace("{piece}", "0")
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

/// What one asks with.
#[derive(Clone, Copy)]
enum By<'a> {
    Token(&'a str),
    /// The cookie of a browser.
    Session(&'a str),
}

/// As a page of our own asks.
async fn ask_by(system: &System, by: By<'_>, method: &str, path: &str, body: &Value) -> (StatusCode, Value) {
    let (url, org) = (&system.control_url, system.org.id.as_str());
    let cookie = match by {
        By::Token(token) => return ask(url, method, path, Some(token), Some(org), body).await,
        By::Session(cookie) => cookie,
    };
    let method = Method::from_bytes(method.to_uppercase().as_bytes()).unwrap();
    let mut request = http().request(method, format!("{url}{path}")).timeout(Duration::from_secs(5));
    request =
        request.header("cookie", cookie).header("origin", url).header(headers::BROWSER, "1").header(headers::ORG, org);
    if !body.is_null() {
        request = request.json(body);
    }
    let answer = request.send().await.unwrap();
    let status = answer.status();
    let live = answer.headers().get("content-type").is_some_and(|v| v == "text/event-stream");
    if live { (status, Value::Null) } else { (status, answer.json().await.unwrap_or_default()) }
}

/// A browser session that reaches as far as a token.
async fn traded(system: &System, token: &str) -> String {
    let url = &system.control_url;
    let body = format!("token={token}");
    let http = reqwest::Client::builder().no_proxy().redirect(reqwest::redirect::Policy::none()).build().unwrap();
    let request = http.post(format!("{url}/auth/session")).header("origin", url);
    let answer = request.header("content-type", "application/x-www-form-urlencoded").body(body).send().await.unwrap();
    let cookies = answer.headers().get_all("set-cookie").iter().map(|it| it.to_str().unwrap());
    let mut own = cookies.filter(|it| it.starts_with("ferry-dev-")).map(|it| it.split(';').next().unwrap().to_owned());
    own.next_back().unwrap()
}

/// Every operation by the four roles, with a token and with a browser's session.
#[tokio::test]
async fn roles_bound_what_tokens_and_sessions_may_do() {
    let system = System::start(options()).await;
    let job = system.script("true").await;
    let (mut tokens, mut sessions) = (std::collections::BTreeMap::new(), std::collections::BTreeMap::new());
    for role in Role::ALL {
        let token = CreateToken { name: role.as_str().into(), role, runner_id: None, expires_in_s: None };
        let token = system.client.create_token(&token).await.unwrap().token.unwrap();
        sessions.insert(role.as_str(), traded(&system, &token).await);
        tokens.insert(role.as_str(), token);
    }
    let things = Things::new(&system, "tok00000000000000000000000".into(), job).await;
    let rank = |role: &str| Role::ALL.iter().position(|known| known.as_str() == role);
    // What is one's own anybody may change.
    let own = ["/v1/tokens", "/v1/tokens/{token_id}", "/v1/views", "/v1/views/{view_id}"];
    for (method, path, role) in operations(&system.control_url).await {
        let Some(needed) = role.as_deref().and_then(rank) else { continue };
        let (filled, body) = (fill(&system, &things, &path), body_of(&method, &path));
        let all = tokens.iter().map(|(name, it)| (name, By::Token(it), "token"));
        for (name, by, how) in all.chain(sessions.iter().map(|(name, it)| (name, By::Session(it), "session"))) {
            let may = rank(name).unwrap() >= needed;
            // What may be done is not done here, but for looking.
            if may && method != "get" {
                continue;
            }
            let (status, answer) = ask_by(&system, by, &method, &filled, &body).await;
            if may {
                assert!(![401, 403].contains(&status.as_u16()), "{method} {path} as {name} by {how}: {answer}");
                continue;
            }
            assert_eq!(
                (status, &answer["code"]),
                (StatusCode::FORBIDDEN, &json!("forbidden")),
                "{method} {path} as {name} by {how}"
            );
        }
        if method != "get" && !own.contains(&path.as_str()) {
            assert!(needed > 0, "{method} {path} changes something, and read-only may do it");
        }
    }
    // A token that is narrower than its account has no say about the account, and makes none that outlives it.
    for (method, path) in [("post", "/v1/tokens"), ("get", "/v1/account/sessions"), ("delete", "/v1/account/sessions")]
    {
        for by in [By::Token(&tokens["operator"]), By::Session(&sessions["operator"])] {
            let (status, answer) =
                ask_by(&system, by, method, path, &json!({ "name": "more", "role": "read-only" })).await;
            assert_eq!(status, StatusCode::FORBIDDEN, "{method} {path}: {answer}");
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

/// A session as a runner has it.
struct Session {
    runner: String,
    generation: u64,
    key: Signatory,
}

async fn joined(system: &System, runner: &str, seed: u8) -> Session {
    let join = system.client.create_join_command(runner).await.unwrap();
    let key = Signatory::from_seed(&[seed; 32]);
    let door = Unjoined { http: &http(), url: &system.runner_url };
    let answer = door.join(&join.credential, &key, "test").await.unwrap();
    Session { runner: answer.runner_id.to_string(), generation: answer.generation, key }
}

async fn ask_signed(system: &System, session: &Session, method: &str, path: &str, token: &str) -> (StatusCode, Value) {
    let (method, time, nonce) = (method.to_uppercase(), now().to_string(), random_hex::<16>());
    let nothing = json!({ "nonce": nonce, "process": 1, "seq": 1, "free": {}, "held": [], "settings_version": 1,
        "report": { "version": "", "hostname": "", "disk_free_bytes": 0, "disk_floor_bytes": 0, "busy": {}, "slots": {} },
        "no_wait": true, "executions": [], "epoch": 1, "steps": [],
        "result": { "outcome": "finished", "steps": [], "outputs": {}, "log_chunks": 0, "started_at": time, "finished_at": time } });
    let body = if method == "GET" || path.ends_with("/logs") { Vec::new() } else { nothing.to_string().into_bytes() };
    let text = RequestText {
        method: &method,
        path_and_query: path,
        runner: &session.runner,
        generation: session.generation,
        time: &time,
        nonce: &nonce,
        body: &body,
    };
    let request = http()
        .request(method.parse().unwrap(), format!("{}{path}", system.runner_url))
        .header(headers::PROTOCOL, 1)
        .header(headers::RUNNER, &session.runner)
        .header(headers::GENERATION, session.generation)
        .header(headers::TIME, &time)
        .header(headers::NONCE, &nonce)
        .header(headers::SIGNATURE, session.key.request(&text.text()))
        .header(headers::EXECUTION_TOKEN, token)
        .header("content-type", "application/json")
        .body(body);
    let answer = request.send().await.unwrap();
    (answer.status(), answer.json().await.unwrap_or_default())
}

#[tokio::test]
async fn every_runner_operation_is_closed_to_other_runners_and_to_sessions_that_are_over() {
    let system = System::start(options()).await;
    let runner = system.start_runner("a").await;
    let job = system.held("script").await;
    let assignment = execution_dir(&runner).await.assignment().unwrap();
    let install = |name: &str| CreateInstall::local(name);
    let app = system.install.app_id.as_str();
    let second = system.client.create_install(app, &install("second")).await.unwrap().runner_id;
    let third = system.client.create_install(app, &install("third")).await.unwrap().runner_id;
    let fenced = joined(&system, second.as_str(), 1).await;
    let other = joined(&system, second.as_str(), 2).await;
    let revoked = joined(&system, third.as_str(), 3).await;
    system.client.revoke_runner(third.as_str()).await.unwrap();
    let posing =
        Session { runner: system.install.runner_id.to_string(), generation: 1, key: Signatory::from_seed(&[4; 32]) };
    let mut asked = 0;
    for (method, path, _) in operations(&system.runner_url).await {
        if ["/livez", "/readyz", "/version", "/v1/keys", "/v1/join"].contains(&path.as_str()) {
            continue;
        }
        let about = |runner: &str| {
            let filled = path
                .replace("{runner_id}", runner)
                .replace("{execution_id}", assignment.execution_id.as_str())
                .replace("{workspace_id}", "tfw00000000000000000000000")
                .replace("{upload_id}", "upl00000000000000000000000")
                .replace("{piece}", "0")
                .replace("{digest}", model::Digest::of(b"").as_str());
            assert!(!filled.contains('{'), "this test does not know what to put into {path}: teach it");
            filled
        };
        let (first, token) = (system.install.runner_id.as_str(), assignment.execution_token.as_str());
        // Another runner of the org, which even knows the execution's token. Telemetry is always of who signs.
        if !["/v1/logs", "/v1/traces", "/v1/metrics"].contains(&path.as_str()) {
            let (status, answer) = ask_signed(&system, &other, &method, &about(first), token).await;
            assert_eq!(status, StatusCode::NOT_FOUND, "{method} {path}, another runner: {answer}");
        }
        let (status, answer) = ask_signed(&system, &posing, &method, &about(first), token).await;
        assert_eq!((status, &answer["code"]), (StatusCode::UNAUTHORIZED, &json!("bad_signature")), "{method} {path}");
        // Sessions that are over may say goodbye; one that was fenced may bring the sealed pieces of a state, which is kept beside
        // the others.
        for (why, session) in [("fenced", &fenced), ("revoked", &revoked)] {
            let (status, answer) = ask_signed(&system, session, &method, &about(&session.runner), token).await;
            let closed = [StatusCode::NOT_FOUND, StatusCode::CONFLICT, StatusCode::UNAUTHORIZED].contains(&status);
            let open = path.ends_with("/leave") || (method == "put" && path.contains("/sealed/") && why == "fenced");
            assert!(closed || open, "{method} {path}, {why}: {status} {answer}");
        }
        asked += 1;
    }
    assert!(asked >= 8, "only {asked} operations");
    system.open("script");
    assert_eq!(system.until_over(&job.id).await.status, JobState::Finished);
    system.assert_whole(&system.job(&job.id).await, "script").await;
}
