//! Old and new together: runners and servers of neighbouring protocols, jobs of a type that a runner does not know, and
//! what was said in protocol 1, word for word.

use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};

use api::control::CreateRunnerJob;
use api::headers;
use base64::Engine as _;
use model::papers::{RequestText, Signatory};
use model::{JobState, JobType};
use runner::session::{now, random_hex};
use serde_json::Value;
use testkit::system::{SOON, System, run, script, shown, until};

use crate::options;

const PROTOCOL: &str = "FERRY_TEST_PROTOCOL";

#[tokio::test]
async fn a_server_speaks_its_own_protocol_and_the_one_before() {
    let system = System::start(options().with(PROTOCOL, 3)).await;
    for (spoken, name) in [(3, "same"), (2, "before")] {
        let join = system.join_command().await;
        let mut runner = system
            .start_runner_with(name, &join, |c| {
                c.env(PROTOCOL, spoken.to_string());
            })
            .await;
        assert_eq!(system.run(vec![script(name, "true")]).await.status, JobState::Finished);
        runner.kill();
    }
    for (spoken, name, advice) in [(1, "old", "upgrade the runner"), (4, "new", "upgrade the control plane")] {
        let join = system.join_command().await;
        let mut command = system.resume_command(name);
        command.env("FERRY_RUNNER_JOIN", &join.credential).env("FERRY_RUNNER_TRUST_KEY", join.trust_keys.join(","));
        let runner = system.spawn_runner(name, command.env(PROTOCOL, spoken.to_string()));
        until("the runner says what is wrong", SOON, async || {
            let log = runner.log();
            let says = log.contains(&format!("protocol {spoken}; this server speaks 2 to 3")) && log.contains(advice);
            if says { Ok(()) } else { Err(log) }
        })
        .await;
        let mut doctor = system.runner_command(&["doctor", "--url", &system.runner_url, "--state-dir"]);
        let output = run({
            doctor.arg(system.state_dir("empty")).env(PROTOCOL, spoken.to_string());
            doctor
        })
        .await;
        assert!(shown(&output).contains(&format!("speaks 2 to 3, this runner {spoken}")), "{}", shown(&output));
    }
}

#[tokio::test]
async fn a_runner_that_a_new_server_left_behind_waits_and_goes_on_when_it_is_updated() {
    let mut system = System::start(options().with(PROTOCOL, 2)).await;
    let join = system.join_command().await;
    let speak = |c: &mut std::process::Command| {
        c.env(PROTOCOL, "1");
    };
    let mut old = system.start_runner_with("a", &join, speak).await;
    let held = system.held("across").await;
    // Two steps ahead at once: the runner can't speak any more, and its script goes on.
    system.kill_server();
    system.set("FERRY_TEST_PROTOCOL", "3");
    system.start_server().await;
    until("the runner says what is wrong", SOON, async || {
        if old.log().contains("upgrade the runner") { Ok(()) } else { Err(old.log()) }
    })
    .await;
    assert!(old.process.is_alive());
    // The updated runner takes the script over.
    old.kill();
    let mut command = system.resume_command("a");
    let _new = system.spawn_runner("a", command.env(PROTOCOL, "3"));
    tokio::time::sleep(crate::seconds(2)).await;
    system.open("across");
    let held = system.until_over(&held.id).await;
    assert_eq!(held.status, JobState::Finished, "{}", held.status_description);
    system.assert_whole(&held, "across").await;
}

/// Forwards, and calls the no-op job something that no runner knows.
fn renaming_proxy(to: &str) -> String {
    let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let to = to.trim_start_matches("http://").to_owned();
    std::thread::spawn(move || {
        for client in listener.incoming().flatten() {
            let server = TcpStream::connect(&to).unwrap();
            let (from_client, to_server) = (client.try_clone().unwrap(), server.try_clone().unwrap());
            std::thread::spawn(move || forward(from_client, to_server, false));
            std::thread::spawn(move || forward(server, client, true));
        }
    });
    url
}

fn forward(mut from: TcpStream, mut to: TcpStream, rename: bool) {
    let mut buffer = vec![0; 1 << 20];
    while let Ok(n @ 1..) = from.read(&mut buffer) {
        let (old, new) = (br#""job_type":"noop""#, br#""job_type":"zoop""#);
        let found = buffer[..n].windows(old.len()).position(|window| window == old).filter(|_| rename);
        if let Some(at) = found {
            buffer[at..at + new.len()].copy_from_slice(new);
        }
        if to.write_all(&buffer[..n]).is_err() {
            break;
        }
    }
    let _ = to.shutdown(std::net::Shutdown::Both);
}

#[tokio::test]
async fn a_job_of_an_unknown_type_is_refused_and_the_others_are_done() {
    let system = System::start(options()).await;
    let join = system.join_command().await;
    let mut command = system.runner_command(&["install", "--url", &renaming_proxy(&system.runner_url)]);
    command
        .arg("--state-dir")
        .arg(system.state_dir("a"))
        .env("FERRY_RUNNER_JOIN", &join.credential)
        .env("FERRY_RUNNER_TRUST_KEY", join.trust_keys.join(","));
    let _runner = system.spawn_runner("a", &mut command);
    let noop = CreateRunnerJob { job_type: JobType::Noop, sleep_ms: 0, priority: 0 };
    let strange = system.client.create_runner_job(system.install.runner_id.as_str(), &noop).await.unwrap();
    let known = system.run(vec![script("known", "true")]).await;
    assert_eq!(known.status, JobState::Finished);
    let strange = system.until_over(&strange.id).await;
    assert_eq!(strange.status, JobState::NotAttempted);
    assert!(
        strange.status_description.contains("does not know jobs of type `zoop`: update the runner"),
        "{}",
        strange.status_description
    );
    assert_eq!(strange.executions.len(), 1, "it did not come again and again");
}

/// Everything that was there is there still, of the same kind.
fn has_all_of(old: &Value, new: &Value, place: &str) {
    match (old, new) {
        (Value::Object(old), Value::Object(new)) => {
            for (key, value) in old {
                let found = new.get(key).unwrap_or_else(|| panic!("{place}.{key} is gone"));
                has_all_of(value, found, &format!("{place}.{key}"));
            }
        }
        (Value::Array(old), Value::Array(new)) => {
            if let (Some(old), Some(new)) = (old.first(), new.first()) {
                has_all_of(old, new, &format!("{place}[0]"));
            }
        }
        _ => assert_eq!(std::mem::discriminant(old), std::mem::discriminant(new), "{place}: {old} and {new}"),
    }
}

/// A runner of protocol 1, made of nothing but what one said then: a job goes its whole way.
#[tokio::test]
async fn what_was_said_in_protocol_1_is_still_understood() {
    let conversation: Vec<Value> = serde_json::from_str(include_str!("../fixtures/protocol-1.json")).unwrap();
    let system = System::start(options().with(PROTOCOL, 1)).await;
    let join = system.join_command().await;
    let job = system.script("echo hi").await;
    let key = Signatory::from_seed(&[9; 32]);
    let http = reqwest::Client::builder().tls_certs_only([]).no_proxy().build().unwrap();
    let (mut runner, mut execution, mut token) = (String::new(), String::new(), String::new());
    for said in &conversation {
        let path = said["path"].as_str().unwrap().replace("{runner_id}", &runner).replace("{execution_id}", &execution);
        let nonce = random_hex::<16>();
        let mut body = said["body"].clone();
        match path.as_str() {
            "/v1/join" => {
                body["credential"] = join.credential.clone().into();
                body["public_key"] = key.public().into();
                body["proof"] = key.request(&api::runner::join_proof(&key.public()).text()).into();
            }
            poll if poll.ends_with("/poll") => body["nonce"] = nonce.clone().into(),
            renew if renew.ends_with("/renew") => body["executions"][0]["execution_id"] = execution.clone().into(),
            _ => {}
        }
        let bytes = match said["body_base64"].as_str() {
            Some(text) => base64::engine::general_purpose::STANDARD.decode(text).unwrap(),
            None if body.is_null() => Vec::new(),
            None => body.to_string().into_bytes(),
        };
        let method = said["method"].as_str().unwrap();
        let time = now().to_string();
        let text = RequestText {
            method,
            path_and_query: &path,
            runner: &runner,
            generation: 1,
            time: &time,
            nonce: &nonce,
            body: &bytes,
        };
        let request = http
            .request(method.parse().unwrap(), format!("{}{path}", system.runner_url))
            .header(headers::PROTOCOL, 1)
            .header(headers::RUNNER, &runner)
            .header(headers::GENERATION, 1)
            .header(headers::TIME, &time)
            .header(headers::NONCE, &nonce)
            .header(headers::SIGNATURE, key.request(&text.text()))
            .header(headers::EXECUTION_TOKEN, &token)
            .header("content-type", "application/json")
            .body(bytes);
        let response = request.send().await.unwrap();
        let (status, answer) = (response.status(), response.text().await.unwrap());
        assert!(status.is_success(), "{method} {path}: {status} {answer}");
        let answer: Value = serde_json::from_str(&answer).unwrap_or_default();
        has_all_of(&said["answer"], &answer, &path);
        if path == "/v1/join" {
            runner = answer["runner_id"].as_str().unwrap().to_owned();
        } else if path.ends_with("/poll") {
            execution = answer["jobs"][0]["execution_id"].as_str().unwrap().to_owned();
            token = answer["jobs"][0]["execution_token"].as_str().unwrap().to_owned();
        }
    }
    let job = system.until_over(&job.id).await;
    assert_eq!(job.status, JobState::Finished);
    assert_eq!(job.outputs["a"], "b");
    assert_eq!(system.text_log(&job, Some("stdout")).await, "hi\n");
}
