//! What the server keeps to itself, and how it answers what makes no sense.

use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use api::control::{CreateOrg, CreateToken, UpdateRunnerSettings};
use model::Role;
use serde_json::Value;
use testkit::system::{System, run, shown};

use crate::options;
use crate::security::http;

fn mode(path: &Path) -> u32 {
    fs_err::metadata(path).unwrap().permissions().mode() & 0o777
}

#[tokio::test]
async fn the_database_and_its_backups_are_for_their_owner_alone() {
    let mut system = System::start(options()).await;
    let db = system.root().join("data/db");
    let files = || -> Vec<_> { fs_err::read_dir(&db).unwrap().map(|e| e.unwrap().path()).collect() };
    assert!(files().len() >= 2, "{:?}", files());
    for file in files() {
        assert_eq!(mode(&file), 0o600, "{}", file.display());
    }
    for dir in ["data/db", "data/blobs"] {
        assert_eq!(mode(&system.root().join(dir)), 0o700, "{dir}");
    }
    // However open the umask is.
    let backup = system.root().join("backup.tar");
    let mut command = std::process::Command::new("sh");
    let ferry = crate::ferry();
    let words = format!("umask 000; exec {} admin backup {}", ferry.display(), backup.display());
    command.args(["-c", &words]).env("FERRY_DATA_DIR", system.root().join("data"));
    let output = run(command).await;
    assert!(output.status.success(), "{}", shown(&output));
    assert_eq!(mode(&backup), 0o600);
    // What an older version left open is closed.
    system.kill_server();
    fs_err::set_permissions(db.join("ferry.db"), std::fs::Permissions::from_mode(0o644)).unwrap();
    system.start_server().await;
    assert_eq!(mode(&db.join("ferry.db")), 0o600);
}

#[tokio::test]
async fn a_token_for_one_org_shows_no_other() {
    let system = System::start(options()).await;
    let other = CreateOrg { name: "other".into(), use_sandbox_mode: false, simulation: None };
    let other = system.client.create_org(&other).await.unwrap();
    let token = CreateToken { name: "one".into(), role: Role::Admin, runner_id: None, expires_in_s: None };
    let token = system.client.create_token(&token).await.unwrap().token.unwrap();
    for path in ["/v1/general/current-user", "/v1/orgs", "/v1/events", "/v1/tokens"] {
        let answer = http().get(format!("{}{path}", system.control_url)).bearer_auth(&token).send().await.unwrap();
        let (status, text) = (answer.status(), answer.text().await.unwrap());
        assert!(status.is_success() && text.contains(system.org.id.as_str()) || path != "/v1/orgs", "{path}: {text}");
        assert!(!text.contains(other.id.as_str()), "{path}: {text}");
    }
}

#[tokio::test]
async fn what_is_no_utf_8_gets_our_error() {
    let system = System::start(options()).await;
    for (url, path) in [
        (&system.control_url, "/v1/apps/%ff"),
        (&system.control_url, "/v1/apps?q=%c3%28"),
        (&system.control_url, "/%80"),
        (&system.runner_url, "/v1/runners/%fe/poll"),
    ] {
        let call = http().get(format!("{url}{path}")).bearer_auth(system.token());
        let answer = call.header("X-Nuon-Org-ID", system.org.id.as_str()).send().await.unwrap();
        let status = answer.status().as_u16();
        let body: Value = answer.json().await.unwrap();
        assert_eq!((status, body["code"].as_str()), (400, Some("invalid_request")), "{path}: {body}");
        assert!(body["error"].as_str().unwrap().contains("UTF-8"), "{path}: {body}");
    }
    let good = format!("{}/v1/apps/%C3%A4", system.control_url);
    let answer = http().get(good).bearer_auth(system.token()).header("X-Nuon-Org-ID", system.org.id.as_str());
    assert_eq!(answer.send().await.unwrap().status(), 404);
}

#[tokio::test]
async fn settings_of_a_runner_are_bounded() {
    let system = System::start(options()).await;
    let runner = system.install.runner_id.as_str();
    for (settings, part) in [
        (UpdateRunnerSettings { spool_bytes: Some(1), ..Default::default() }, "spool_bytes can't be 1; use 65536 to"),
        (UpdateRunnerSettings { drain_s: Some(u64::MAX >> 1), ..Default::default() }, "drain_s can't be"),
        (
            UpdateRunnerSettings { execution_disk_bytes: Some(0), ..Default::default() },
            "execution_disk_bytes can't be 0",
        ),
    ] {
        let error = system.client.update_runner_settings(runner, &settings).await.unwrap_err().to_string();
        assert!(error.contains(part), "{error}");
    }
}

#[tokio::test]
async fn the_runner_of_a_forgotten_install_leaves_the_lists() {
    let system = System::start(options()).await;
    let listed = async || String::from_utf8(system.ferry(&["runners", "list", "--json"]).await.stdout).unwrap();
    assert!(listed().await.contains(system.install.runner_id.as_str()));
    let output = system.ferry(&["installs", "forget", "customer", "--yes", "--force"]).await;
    assert!(output.status.success(), "{}", shown(&output));
    let left = listed().await;
    assert!(!left.contains(system.install.runner_id.as_str()), "{left}");
    assert!(left.contains(system.org.build_runner_id.as_str()), "{left}");
}

#[tokio::test]
async fn a_first_sync_that_is_refused_leaves_no_app() {
    let system = System::start(options()).await;
    let dir = system.root().join("new-app");
    let words = ["apps", "init", dir.to_str().unwrap()];
    assert!(system.ferry(&words).await.status.success());
    // A source that is no directory by the time it is packed.
    fs_err::write(dir.join("components/broken.toml"), "name = \"broken\"\ntype = \"terraform_module\"\nterraform_version = \"latest\"\n[local]\ndirectory = \"nowhere\"\n").unwrap();
    let output = system.ferry(&["apps", "sync", dir.to_str().unwrap(), "--no-wait"]).await;
    assert!(!output.status.success(), "{}", shown(&output));
    let apps = String::from_utf8(system.ferry(&["apps", "list", "--json"]).await.stdout).unwrap();
    assert!(!apps.contains("new-app"), "{apps}\n{}", shown(&output));
}
