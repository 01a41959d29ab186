//! Build runners that the server hosts: there when they are needed, gone when they are not, and nobody's but their org's.

use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use api::control::{CreateApp, CreateOrg};
use rustix::process::Signal;
use serde_json::Value;
use testkit::Backend;
use testkit::system::{SOON, System, processes_of, send, shown, until, without_forks};

use crate::options;

/// An app of two components that need no tool to be built.
fn app(system: &System, name: &str) -> PathBuf {
    let dir = system.root().join(name);
    fs_err::create_dir_all(dir.join("components")).unwrap();
    fs_err::create_dir_all(dir.join("src/net")).unwrap();
    let files = [
        ("runner.toml", "runner_type = \"local\"\n".to_owned()),
        ("sandbox.toml", "terraform_version = \"1.11.4\"\n[local]\ndirectory = \"src/net\"\n".to_owned()),
        ("metadata.toml", "version = \"v1\"\ndisplay_name = \"two\"\n".to_owned()),
        ("src/net/main.tf", format!("output \"name\" {{\n  value = \"{name}\"\n}}\n")),
        (
            "components/net.toml",
            "name = \"net\"\ntype = \"terraform_module\"\nterraform_version = \"1.11.4\"\n[local]\ndirectory = \"src/net\"\n".to_owned(),
        ),
        (
            "components/note.toml",
            "name = \"note\"\ntype = \"kubernetes_manifest\"\nnamespace = \"default\"\nmanifest = \"\"\"\napiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: note\n\"\"\"\n".to_owned(),
        ),
    ];
    for (path, text) in files {
        fs_err::write(dir.join(path), text).unwrap();
    }
    dir
}

async fn sync(system: &System, org: &str, app: &str, dir: &Path) -> Value {
    let words = ["--org", org, "apps", "sync", dir.to_str().unwrap(), "--app", app, "--json"];
    let output = system.ferry(&words).await;
    assert!(output.status.success(), "{}", shown(&output));
    serde_json::from_slice(&output.stdout).unwrap()
}

fn statuses(synced: &Value) -> Vec<(String, String)> {
    let text = |build: &Value, key: &str| build[key].as_str().unwrap().to_owned();
    synced["builds"].as_array().unwrap().iter().map(|b| (text(b, "component_name"), text(b, "status"))).collect()
}

/// Sessions of hosted build runners.
fn hosted(system: &System) -> Vec<(i32, String)> {
    let words = |command: &[u8]| -> Vec<String> {
        command.split(|b| *b == 0).map(|w| String::from_utf8_lossy(w).into_owned()).collect()
    };
    let found = processes_of(system.root()).into_iter().map(|p| (p.pid, words(&p.command)));
    let found: Vec<(i32, String)> = found
        .filter(|(_, words)| words.get(1).is_some_and(|w| w == "build"))
        .filter_map(|(pid, words)| {
            let at = words.iter().position(|w| w == "--state-dir")?;
            Some((pid, words.get(at + 1)?.clone()))
        })
        .collect();
    let alone = without_forks(found.iter().map(|(pid, _)| *pid).collect());
    found.into_iter().filter(|(pid, _)| alone.contains(pid)).collect()
}

#[tokio::test]
async fn build_runners_come_when_they_are_needed_and_go_when_they_are_not() {
    let options = options().with("FERRY_BUILDS__LAUNCHER", "process").with("FERRY_BUILDS__IDLE_S", 2);
    let mut system = System::start(options).await;
    let (first, built) = (system.org.id.to_string(), [("net", "active"), ("note", "active")]);
    let built: Vec<(String, String)> = built.iter().map(|(a, b)| ((*a).to_owned(), (*b).to_owned())).collect();
    let other = system
        .client
        .create_org(&CreateOrg { name: "other".into(), use_sandbox_mode: false, simulation: None })
        .await
        .unwrap();
    let at_other = system.client.with_org(Some(other.id.to_string()));
    let described = CreateApp { name: "theirs".into(), display_name: String::new(), description: String::new() };
    at_other.create_app(&described).await.unwrap();
    let (ours, theirs) = (app(&system, "ours"), app(&system, "theirs"));
    let mine = system.install.app_id.to_string();
    let (one, two) =
        tokio::join!(sync(&system, &first, &mine, &ours), sync(&system, other.id.as_str(), "theirs", &theirs),);
    assert_eq!(statuses(&one), built);
    assert_eq!(statuses(&two), built);

    // Each org has its own runner in its own directory, which nobody else may enter.
    let running = hosted(&system);
    assert_eq!(running.len(), 2, "{running:?}");
    for (_, state_dir) in &running {
        let dir = Path::new(state_dir).parent().unwrap();
        assert_eq!(fs_err::metadata(dir).unwrap().permissions().mode() & 0o777, 0o700, "{}", dir.display());
    }
    assert!(
        running.iter().any(|(_, dir)| dir.contains(&first))
            && running.iter().any(|(_, dir)| dir.contains(other.id.as_str()))
    );

    // A build of the same content is not made again, and wakes nobody.
    until("the idle runners are gone", SOON, async || {
        let running = hosted(&system);
        if running.is_empty() { Ok(()) } else { Err(format!("{running:?}")) }
    })
    .await;
    let again = sync(&system, &first, &mine, &ours).await;
    assert_eq!(statuses(&again), built);
    let ids = |synced: &Value| -> Vec<Value> {
        synced["builds"].as_array().unwrap().iter().map(|build| build["id"].clone()).collect()
    };
    assert_eq!(ids(&again), ids(&one));
    assert!(hosted(&system).is_empty());

    // The next one is back for a change; a session that dies, and a server that does, are replaced.
    fs_err::write(ours.join("src/net/main.tf"), "output \"name\" {\n  value = \"changed\"\n}\n").unwrap();
    let waiting = system.ferry(&["apps", "sync", ours.to_str().unwrap(), "--app", &mine, "--no-wait", "--json"]).await;
    assert!(waiting.status.success(), "{}", shown(&waiting));
    let (pid, _) =
        until("a runner is started", SOON, async || hosted(&system).pop().ok_or_else(|| "none".to_owned())).await;
    send(pid, Signal::KILL);
    system.kill_server();
    system.start_server().await;
    let third = sync(&system, &first, &mine, &ours).await;
    assert_eq!(statuses(&third), built);
    assert_ne!(third["builds"][0]["id"], one["builds"][0]["id"]);
}

/// What was built before stands again when the files are as they were, and installs get that.
#[tokio::test]
async fn what_the_active_config_says_is_what_installs_get_on_postgresql() {
    let system = System::start(options().on(Backend::Postgres).with("FERRY_BUILDS__LAUNCHER", "process")).await;
    let (org, id) = (system.org.id.to_string(), system.install.app_id.to_string());
    let dir = app(&system, "ours");
    let net = |synced: &Value| synced["builds"][0].clone();
    let first = net(&sync(&system, &org, &id, &dir).await);
    let write =
        |text: &str| fs_err::write(dir.join("src/net/main.tf"), format!("output \"name\" {{ value = \"{text}\" }}\n"));
    write("other").unwrap();
    let second = net(&sync(&system, &org, &id, &dir).await);
    assert_ne!(first["artifact"]["digest"], second["artifact"]["digest"]);
    fs_err::write(dir.join("src/net/main.tf"), "output \"name\" {\n  value = \"ours\"\n}\n").unwrap();
    let third = net(&sync(&system, &org, &id, &dir).await);
    assert_eq!((&third["artifact"], &third["same_as"]), (&first["artifact"], &first["id"]), "{third}");
    let component = first["component_id"].as_str().unwrap();
    let digest = |build: &api::control::Build| build.artifact.as_ref().unwrap().digest.clone();
    assert_eq!(digest(&system.client.latest_build(component).await.unwrap()), first["artifact"]["digest"]);
    assert_eq!(digest(&system.client.current_build(component).await.unwrap()), first["artifact"]["digest"]);

    // An artifact that was deleted is built again, not believed to be there.
    let repository = first["artifact"]["repository"].as_str().unwrap();
    let url =
        format!("{}/v2/{repository}/manifests/{}", system.control_url, first["artifact"]["digest"].as_str().unwrap());
    let deleted = crate::security::http().delete(url).basic_auth("x", Some(system.token())).send().await.unwrap();
    assert!(deleted.status().is_success(), "{deleted:?}");
    let fourth = net(&sync(&system, &org, &id, &dir).await);
    assert_eq!(
        (&fourth["artifact"]["digest"], &fourth["same_as"]),
        (&first["artifact"]["digest"], &Value::Null),
        "{fourth}"
    );

    let all = system.client.builds(Some(&id), Some(component), 10).await.unwrap();
    assert_eq!(all.len(), 4, "{all:?}");
    let anew = system.ferry(&["builds", "create", "net", "--anew", "--json"]).await;
    assert!(anew.status.success(), "{}", shown(&anew));
    let moved = system.ferry(&["builds", "create", "net", "--ref", "main"]).await;
    assert!(String::from_utf8_lossy(&moved.stderr).contains("no branch, tag or version"), "{}", shown(&moved));

    // Logins are kept, listed without their passwords, and forgotten.
    let login = api::control::CreateSourceLogin {
        prefix: "https://git.example.com/acme/".into(),
        username: "ada".into(),
        password: "hunter22".into(),
        expires_at: None,
    };
    system.client.create_source_login(&login).await.unwrap();
    let listed = system.ferry(&["sources", "list", "--json"]).await;
    let listed = String::from_utf8_lossy(&listed.stdout).into_owned();
    assert!(listed.contains("git.example.com/acme") && !listed.contains("hunter22"), "{listed}");
    assert!(system.client.delete_source_login("git.example.com/acme").await.unwrap());
    assert!(system.client.source_logins().await.unwrap().is_empty());
}

/// How often the build runner was joined.
async fn generation(system: &System) -> u64 {
    system.client.runner(system.org.build_runner_id.as_str()).await.unwrap().generation
}

/// Two servers on one database host one runner between them, and when one dies the other takes over.
#[tokio::test]
async fn two_servers_host_one_build_runner_on_postgresql() {
    let mut system = System::start(options().on(Backend::Postgres).with("FERRY_BUILDS__LAUNCHER", "process")).await;
    system.add_replica().await;
    let (org, id) = (system.org.id.to_string(), system.install.app_id.to_string());
    let dir = app(&system, "ours");
    let most = std::sync::Arc::new(std::sync::atomic::AtomicUsize::new(0));
    let synced = tokio::select! {
        synced = sync(&system, &org, &id, &dir) => synced,
        () = async {
            loop {
                most.fetch_max(hosted(&system).len(), std::sync::atomic::Ordering::Relaxed);
                tokio::time::sleep(std::time::Duration::from_millis(50)).await;
            }
        } => unreachable!(),
    };
    assert!(statuses(&synced).iter().all(|(_, status)| status == "active"), "{synced}");
    // Long enough for several claims: nobody fences anybody.
    for _ in 0..40 {
        most.fetch_max(hosted(&system).len(), std::sync::atomic::Ordering::Relaxed);
        tokio::time::sleep(std::time::Duration::from_millis(200)).await;
    }
    assert_eq!(most.load(std::sync::atomic::Ordering::Relaxed), 1);
    assert_eq!(generation(&system).await, 1);

    let host = hosted(&system).pop().unwrap().1;
    let first = usize::from(host.contains("/data1/"));
    system.kill_replica(first);
    if first == 0 {
        let (control, runner) = system.listeners();
        system.go_through(Some(control[1]), Some(runner[1]));
    }
    fs_err::write(dir.join("src/net/main.tf"), "output \"name\" {\n  value = \"changed\"\n}\n").unwrap();
    let again = sync(&system, &org, &id, &dir).await;
    assert!(statuses(&again).iter().all(|(_, status)| status == "active"), "{again}");
    let running = hosted(&system);
    assert!(running.len() == 1 && running[0].1 != host, "{host}, now {running:?}");

    // The first comes back, and leaves the other alone.
    system.start_replica(first).await;
    tokio::time::sleep(std::time::Duration::from_secs(8)).await;
    assert_eq!(hosted(&system), running);
    assert_eq!(generation(&system).await, 2);
}

/// A runner that somebody has joined is theirs: the server does not take its place when it is away.
#[tokio::test]
async fn a_build_runner_of_ones_own_is_left_alone() {
    let system = System::start(options().with("FERRY_BUILDS__LAUNCHER", "process")).await;
    let (org, id) = (system.org.id.to_string(), system.install.app_id.to_string());
    let mut runner = system.start_build_runner("mine", |_| {}).await;
    let dir = app(&system, "ours");
    // It says what it can't build here.
    let state = runner.state_dir.display().to_string();
    let doctor = system.runner_command(&["doctor", "--state-dir", &state]).env("PATH", "/nowhere").output().unwrap();
    let report = shown(&doctor);
    assert!(doctor.status.success(), "a missing tool is no fault\n{report}");
    for line in
        ["no `buildah` or `podman` on PATH: no builds of images", "no `helm` on PATH: no charts of a repository"]
    {
        assert!(report.contains(line), "{report}");
    }
    runner.kill();
    let offline = async || match system.client.runner(system.org.build_runner_id.as_str()).await.unwrap() {
        found if found.status == "active" => Err(found.status),
        _ => Ok(()),
    };
    until("it counts as away", SOON, offline).await;
    let waiting = system.ferry(&["apps", "sync", dir.to_str().unwrap(), "--app", &id, "--no-wait", "--json"]).await;
    assert!(waiting.status.success(), "{}", shown(&waiting));
    tokio::time::sleep(std::time::Duration::from_secs(6)).await;
    assert!(hosted(&system).iter().all(|(_, dir)| !dir.contains("build-runners")), "{:?}", hosted(&system));
    let _runner = system.spawn_runner("mine", &mut system.build_runner_command("mine"));
    let synced = sync(&system, &org, &id, &dir).await;
    assert!(statuses(&synced).iter().all(|(_, status)| status == "active"), "{synced}");
    assert_eq!(generation(&system).await, 1);
}

/// A server without the program says so, once, and goes on; builds wait and say why.
#[tokio::test]
async fn a_missing_program_is_named() {
    let options =
        options().with("FERRY_BUILDS__LAUNCHER", "process").with("FERRY_BUILDS__RUNNER_PROGRAM", "/nowhere/x");
    let system = System::start(options).await;
    let dir = app(&system, "ours");
    let words = ["apps", "sync", dir.to_str().unwrap(), "--app", system.install.app_id.as_str(), "--no-wait", "--json"];
    let waiting = system.ferry(&words).await;
    assert!(waiting.status.success(), "{}", shown(&waiting));
    tokio::time::sleep(std::time::Duration::from_secs(5)).await;
    let builds = system.client.builds(None, None, 10).await.unwrap();
    assert!(builds.iter().all(|b| b.status_description.contains("/nowhere/x is missing")), "{builds:?}");
    let log = fs_err::read_to_string(system.root().join("server.log")).unwrap();
    assert_eq!(log.matches("/nowhere/x is missing").count(), 1, "{log}");
}
