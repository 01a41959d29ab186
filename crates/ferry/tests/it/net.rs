//! The way between runner and control plane: TLS, extra certificates, proxies, and what `doctor` says of them.

use model::JobState;
use testkit::proxy::Proxy;
use testkit::system::{Options, System, run, script, shown};
use testkit::tls::Certificate;

use crate::options;

/// A server with a certificate of its own CA, and a client that knows it.
pub(crate) fn with_tls(dir: &std::path::Path, name: &str) -> Options {
    Certificate::make(dir, &[name, "127.0.0.1"]).serve(options())
}

#[tokio::test]
async fn tls_with_a_private_ca_works_and_doctor_names_the_hop_without_it() {
    let dir = testkit::system::temporary();
    let mut system = System::start(with_tls(dir.path(), "ferry.test")).await;
    assert!(system.control_url.starts_with("https://") && system.runner_url.starts_with("https://"));
    let runner = system.start_runner("a").await;
    let output = system.ferry(&["actions", "run", "-i", "customer", "-c", "echo over tls"]).await;
    assert!(output.status.success() && shown(&output).contains("over tls"), "{}", shown(&output));
    // Without the CA: the command line says what to do, and doctor names the hop.
    let mut command = system.ferry_command();
    command.env_remove("FERRY_CA_FILE").args(["apps", "list"]);
    let output = run(command).await;
    assert_eq!(output.status.code(), Some(6), "{}", shown(&output));
    assert!(shown(&output).contains("--ca-file"), "{}", shown(&output));
    let empty = system.state_dir("empty").display().to_string();
    fs_err::create_dir_all(&empty).unwrap();
    let output = run(system.runner_command(&["doctor", "--state-dir", &empty, "--url", &system.runner_url])).await;
    assert!(!output.status.success() && shown(&output).contains("the first failing hop: tls"), "{}", shown(&output));
    let state = runner.state_dir.display().to_string();
    let output = run(system.runner_command(&["doctor", "--state-dir", &state])).await;
    assert!(output.status.success() && shown(&output).contains("all hops work"), "{}", shown(&output));
    // A server that stops lets go of TLS connections as well.
    let (status, took) = system.stop_server().await;
    assert!(status.success() && took < crate::seconds(2), "{status} after {took:?}");
    system.start_server().await;
    assert_eq!(system.run(vec![script("again", "true")]).await.status, JobState::Finished);
}

#[tokio::test]
async fn a_runner_goes_through_the_proxy_that_is_set_and_around_it_for_no_proxy() {
    let system = System::start(options()).await;
    let proxy = Proxy::start();
    // A name that leads nowhere but through the proxy.
    let url = system.runner_url.replace("127.0.0.1", "ferry.invalid");
    let join = system.join_command().await;
    let mut command = system.runner_command(&["install", "--url", &url, "--allow-path"]);
    command
        .arg(system.root().join("witness"))
        .arg("--state-dir")
        .arg(system.state_dir("a"))
        .env("http_proxy", &proxy.url)
        .env("FERRY_RUNNER_JOIN", &join.credential)
        .env("FERRY_RUNNER_TRUST_KEY", join.trust_keys.join(","));
    let _runner = system.spawn_runner("a", &mut command);
    let job = system.run(vec![script("proxied", "echo $http_proxy")]).await;
    assert_eq!(job.status, JobState::Finished, "{}", job.status_description);
    assert_eq!(system.text_log(&job, Some("stdout")).await.trim(), proxy.url, "scripts get it too");
    assert!(
        proxy.seen().iter().any(|line| line.contains("ferry.invalid") && line.contains("/poll")),
        "{:?}",
        proxy.seen()
    );

    // The same name, and NO_PROXY: the proxy is left alone, and doctor says which hop fails.
    let before = proxy.seen().len();
    let dir = system.state_dir("b").display().to_string();
    fs_err::create_dir_all(&dir).unwrap();
    let doctor = |no_proxy: &str| {
        let mut command = system.runner_command(&["doctor", "--state-dir", &dir, "--url", &url]);
        command.env("http_proxy", &proxy.url).env("NO_PROXY", no_proxy);
        command
    };
    let output = run(doctor("other.example,ferry.invalid")).await;
    assert!(!output.status.success() && shown(&output).contains("the first failing hop: dns"), "{}", shown(&output));
    assert!(
        proxy.seen()[before..]
            .iter()
            .all(|line| line.contains(system.install.runner_id.as_str()) || line.contains("/executions/")),
        "{:?}",
        proxy.seen()
    );
    let output = run(doctor("other.example")).await;
    assert!(shown(&output).contains("goes through"), "{}", shown(&output));
    // A control plane on this very machine needs no proxy, whatever the environment says.
    let mut command = system.runner_command(&["doctor", "--state-dir", &dir, "--url", &system.runner_url]);
    command.env("http_proxy", "http://127.0.0.1:9");
    let output = run(command).await;
    assert!(output.status.success(), "{}", shown(&output));
}

#[tokio::test]
async fn a_runner_speaks_tls_through_a_proxy() {
    let dir = testkit::system::temporary();
    let system = System::start(with_tls(dir.path(), "ferry.invalid")).await;
    let proxy = Proxy::start();
    let url = system.runner_url.replace("127.0.0.1", "ferry.invalid");
    let join = system.join_command().await;
    let mut command = system.runner_command(&["install", "--url", &url, "--ca-file"]);
    command
        .arg(dir.path().join("ca.pem"))
        .arg("--state-dir")
        .arg(system.state_dir("a"))
        .env("HTTPS_PROXY", &proxy.url)
        .env("FERRY_RUNNER_JOIN", &join.credential)
        .env("FERRY_RUNNER_TRUST_KEY", join.trust_keys.join(","));
    let _runner = system.spawn_runner("a", &mut command);
    let job = system.run(vec![script("tunnelled", "true")]).await;
    assert_eq!(job.status, JobState::Finished, "{}", job.status_description);
    let seen = proxy.seen();
    assert!(!seen.is_empty() && seen.iter().all(|line| line.starts_with("CONNECT ferry.invalid:")), "{seen:?}");
}
