//! What the customer decides and sees on their own machine, and that nothing they are told to do destroys what can't be made again.

use rustix::process::Signal;
use testkit::system::{SOON, System, run, send, shown, until};

use crate::options;

#[tokio::test]
async fn a_reset_keeps_the_installs_key_and_the_runner_joins_again() {
    let system = System::start(options()).await;
    let mut runner = system.start_runner("a").await;
    let dir = runner.state_dir.display().to_string();
    // As an earlier version has left it, and as this one makes it.
    let (key, rescued) = (runner.state_dir.join("keys/install.key"), runner.state_dir.join("rescued/some.tfstate"));
    for file in [&key, &rescued] {
        fs_err::create_dir_all(file.parent().unwrap()).unwrap();
    }
    let text = runner::seal::InstallKey::new().text().to_string();
    fs_err::write(&key, &text).unwrap();
    fs_err::write(&rescued, "a state").unwrap();
    let output = run(system.runner_command(&["reset", "--state-dir", &dir])).await;
    assert!(
        !output.status.success() && shown(&output).contains("is in use by the runner process"),
        "{}",
        shown(&output)
    );

    // A second runner takes its place: the first is told what to do, and that is nothing that can't be undone.
    let _second = system.start_runner("b").await;
    until("the first one ends", SOON, async || if runner.process.is_alive() { Err(runner.log()) } else { Ok(()) })
        .await;
    let told = runner.log();
    assert!(told.contains("ferry-runner reset") && told.contains("keeps the install's key"), "{told}");
    assert!(!told.contains("remove the state directory"), "{told}");
    let output = run(system.runner_command(&["reset", "--state-dir", &dir])).await;
    assert!(output.status.success() && shown(&output).contains("kept the install's key"), "{}", shown(&output));
    assert_eq!(fs_err::read_to_string(&key).unwrap(), text);
    assert_eq!(fs_err::read_to_string(&rescued).unwrap(), "a state");
    assert!(!runner.state_dir.join("session.json").exists() && !runner.state_dir.join("session.key").exists());
    let again = system.start_runner("a").await;
    let explained = run(system.runner_command(&["explain", "--state-dir", &dir])).await;
    let explained = shown(&explained);
    assert!(explained.contains("keys/install.key") && explained.contains("ferry-runner key backup"), "{explained}");
    assert!(again.log().contains("has no backup"), "{}", again.log());
    let saved = system.root().join("saved.key").display().to_string();
    let output = run(system.runner_command(&["key", "backup", &saved, "--state-dir", &dir])).await;
    assert!(output.status.success(), "{}", shown(&output));
    let explained = shown(&run(system.runner_command(&["explain", "--state-dir", &dir])).await);
    assert!(!explained.contains("has no backup"), "{explained}");
}

#[tokio::test]
async fn a_state_directory_that_vanishes_ends_the_runner_with_one_message() {
    let system = System::start(options()).await;
    let mut runner = system.start_runner("a").await;
    system.until_idle().await;
    fs_err::rename(&runner.state_dir, system.root().join("moved")).unwrap();
    until("the runner ends", SOON, async || if runner.process.is_alive() { Err(runner.log()) } else { Ok(()) }).await;
    let log = runner.log();
    let told: Vec<&str> = log.lines().filter(|line| line.contains("was deleted or replaced")).collect();
    assert_eq!(told.len(), 1, "{log}");
    assert!(log.lines().filter(|line| line.contains("\"ERROR\"")).count() <= 1, "{log}");
}

#[tokio::test]
async fn a_customer_can_switch_ad_hoc_actions_off() {
    let system = System::start(options()).await;
    let join = system.join_command().await;
    let runner = system
        .start_runner_with("a", &join, |command| {
            command.env("FERRY_RUNNER_NO_AD_HOC", "true");
        })
        .await;
    let output = system.ferry(&["actions", "run", "--install", &system.install.name, "--command", "true"]).await;
    assert!(!output.status.success(), "{}", shown(&output));
    assert!(shown(&output).contains("the customer has switched ad hoc actions off"), "{}", shown(&output));
    let dir = runner.state_dir.display().to_string();
    let explained = shown(&run(system.runner_command(&["explain", "--state-dir", &dir])).await);
    for wanted in ["REFUSED: only scripts that are part of the app's config", "scripts may also use", "works as"] {
        assert!(explained.contains(wanted), "{wanted}: {explained}");
    }
    let root = rustix::process::geteuid().is_root();
    assert_eq!(explained.contains("this user is root"), root, "{explained}");
    send(runner.pid(), Signal::TERM);
}
