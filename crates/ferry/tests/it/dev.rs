//! `ferry dev`: one command, the whole system.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

use rustix::process::Signal;
use serde_json::Value;
use testkit::system::{SOON, end_all, is_running, processes_of, run, runner_binary, send, shown, temporary, until};

use crate::{ferry, seconds};

/// A `ferry dev` of a test; whatever is left of it is killed in the end.
struct Dev {
    dir: PathBuf,
    child: std::process::Child,
}

impl Dev {
    fn start(dir: &Path, arguments: &[&str]) -> Self {
        let runner = runner_binary(&ferry());
        assert!(runner.exists(), "{} is missing: `cargo build -p runner` makes it", runner.display());
        fs_err::create_dir_all(dir.join("witness")).unwrap();
        let log = std::fs::File::create(dir.join("dev.log")).unwrap();
        let child = Command::new(ferry())
            .arg("dev")
            .arg("--data-dir")
            .arg(dir.join("data"))
            .arg("--allow-path")
            .arg(dir.join("witness"))
            .args(arguments)
            .env("HOME", dir)
            .env("XDG_CONFIG_HOME", dir)
            .env_remove("FERRY_URL")
            .env_remove("FERRY_TOKEN")
            .stdin(Stdio::null())
            .stdout(log.try_clone().unwrap())
            .stderr(log)
            .spawn()
            .unwrap();
        Self { dir: dir.to_owned(), child }
    }

    fn log(&self) -> String {
        fs_err::read_to_string(self.dir.join("dev.log")).unwrap_or_default()
    }

    fn file(&self) -> Result<Value, String> {
        let text = fs_err::read(self.dir.join("data/dev.json")).map_err(|e| e.to_string())?;
        serde_json::from_slice(&text).map_err(|e| e.to_string())
    }

    async fn up(&mut self) -> Value {
        until("`ferry dev` is up", SOON, async || {
            let ended = self.child.try_wait().unwrap();
            assert!(ended.is_none(), "it ended: {}", self.log());
            if self.log().contains("Ferry is up") { self.file() } else { Err(self.log()) }
        })
        .await
    }

    async fn stop(&mut self) -> std::process::ExitStatus {
        send(self.child.id() as i32, Signal::TERM);
        until("it ends", SOON, async || self.child.try_wait().unwrap().ok_or_else(|| self.log())).await
    }

    /// `ferry` with the context that dev has written.
    async fn ferry(&self, words: &[&str]) -> std::process::Output {
        let mut command = Command::new(ferry());
        command.args(words).env("HOME", &self.dir).env("XDG_CONFIG_HOME", &self.dir);
        for name in ["FERRY_URL", "FERRY_TOKEN", "FERRY_ORG", "FERRY_CONTEXT"] {
            command.env_remove(name);
        }
        run(command).await
    }
}

impl Drop for Dev {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("{}", self.log());
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
        end_all(&self.dir, std::time::Duration::ZERO, &Default::default());
    }
}

fn pid(file: &Value, key: &str) -> i32 {
    file[key].as_i64().filter(|pid| *pid > 0).unwrap_or_else(|| panic!("no {key} in {file}")) as i32
}

async fn comes_up_restarts_and_stops(dir: &Path, arguments: &[&str]) {
    let mut dev = Dev::start(dir, arguments);
    let file = dev.up().await;
    for key in ["control_url", "runner_url", "token", "org_id", "install_id"] {
        assert!(file[key].as_str().is_some_and(|v| !v.is_empty()), "{key} in {file}");
    }
    for key in ["server", "build_runner", "install_runner"] {
        assert!(is_running(pid(&file, key)), "{key} in {file}");
    }
    // The next command just works.
    let output = dev.ferry(&["actions", "run", "-i", "local", "-c", "echo from dev"]).await;
    assert!(output.status.success() && shown(&output).contains("from dev"), "{}", shown(&output));

    // Each process that dies is back soon, again and again, under a new number; a script goes on meanwhile.
    let witness = dir.join("witness/script");
    let line =
        format!("echo begin >> {0}; while [ ! -e {0}.go ]; do sleep 0.05; done; echo end >> {0}", witness.display());
    let output = dev.ferry(&["actions", "run", "-i", "local", "-d", "-c", &line]).await;
    assert!(output.status.success(), "{}", shown(&output));
    let job = String::from_utf8(output.stdout).unwrap().trim().to_owned();
    until("the script runs", SOON, async || fs_err::read(&witness).map_err(|e| e.to_string())).await;
    for key in ["install_runner", "install_runner", "install_runner", "build_runner", "server"] {
        let before = pid(&dev.file().unwrap(), key);
        let killed = Instant::now();
        send(before, Signal::KILL);
        let after = until(&format!("a new {key}"), SOON, async || {
            let file = dev.file()?;
            let now = pid(&file, key);
            if now != before && is_running(now) { Ok(now) } else { Err(file.to_string()) }
        })
        .await;
        assert!(killed.elapsed() < seconds(1) / 2, "{key} {after} was back after {:?}", killed.elapsed());
    }
    until("the new server answers", SOON, async || {
        let output = dev.ferry(&["jobs", "get", &job]).await;
        // 6: the control plane can't be reached.
        if output.status.code() == Some(6) { Err(shown(&output)) } else { Ok(()) }
    })
    .await;
    fs_err::write(witness.with_extension("go"), "").unwrap();
    let output = dev.ferry(&["jobs", "wait", &job]).await;
    assert!(output.status.success(), "{}", shown(&output));
    assert_eq!(fs_err::read_to_string(&witness).unwrap(), "begin\nend\n");

    assert!(dev.stop().await.success());
    assert!(!dir.join("data/dev.json").exists());
    let left: Vec<_> = processes_of(dir);
    assert!(left.is_empty(), "left running: {left:?}");

    // A second start finds everything as it was.
    let mut dev = Dev::start(dir, arguments);
    let again = dev.up().await;
    for key in ["token", "org_id", "install_id"] {
        assert_eq!(again[key], file[key], "{key}");
    }
    let output = dev.ferry(&["runners", "get", "local", "--json"]).await;
    assert!(shown(&output).contains("connected"), "{}", shown(&output));
    let output = dev.ferry(&["jobs", "get", &job, "--json"]).await;
    assert!(shown(&output).contains("finished"), "{}", shown(&output));
    let output = dev.ferry(&["actions", "run", "-i", "local", "-c", "echo again"]).await;
    assert!(output.status.success() && shown(&output).contains("again"), "{}", shown(&output));
    assert!(dev.stop().await.success());
    assert!(processes_of(dir).is_empty());
}

#[tokio::test]
async fn dev_comes_up_restarts_what_dies_and_stops_cleanly() {
    let dir = temporary();
    comes_up_restarts_and_stops(dir.path(), &[]).await;
}

#[tokio::test]
async fn dev_works_on_postgresql() {
    let dir = temporary();
    let url = testkit::database();
    comes_up_restarts_and_stops(dir.path(), &["--database", &url]).await;
}

#[tokio::test]
async fn two_devs_in_one_directory_are_one_too_many() {
    let dir = temporary();
    let mut dev = Dev::start(dir.path(), &["--no-context"]);
    dev.up().await;
    let mut command = Command::new(ferry());
    command.args(["dev", "--no-context", "--data-dir"]).arg(dir.path().join("data")).env("HOME", dir.path());
    let output = run(command).await;
    assert!(!output.status.success() && shown(&output).contains("another `ferry dev`"), "{}", shown(&output));
    assert!(shown(&output).contains(&format!("(process {})", dev.child.id())), "{}", shown(&output));
    assert!(dev.stop().await.success());
}

#[tokio::test]
async fn a_killed_dev_takes_its_children_with_it_and_the_next_one_goes_on() {
    let dir = temporary();
    let mut dev = Dev::start(dir.path(), &[]);
    let file = dev.up().await;
    let witness = dir.path().join("witness/script");
    let line =
        format!("echo begin >> {0}; while [ ! -e {0}.go ]; do sleep 0.05; done; echo end >> {0}", witness.display());
    let output = dev.ferry(&["actions", "run", "-i", "local", "-d", "-c", &line]).await;
    let job = String::from_utf8(output.stdout).unwrap().trim().to_owned();
    until("the script runs", SOON, async || fs_err::read(&witness).map_err(|e| e.to_string())).await;
    dev.child.kill().unwrap();
    dev.child.wait().unwrap();
    let children = ["server", "build_runner", "install_runner"].map(|key| pid(&file, key));
    until("its children end", SOON, async || {
        let left: Vec<_> = children.iter().filter(|pid| is_running(**pid)).collect();
        if left.is_empty() { Ok(()) } else { Err(format!("{left:?}")) }
    })
    .await;
    assert_eq!(fs_err::read_to_string(&witness).unwrap(), "begin\n");

    // Killed again, and started at once: the children of before are still on their way out.
    drop_quietly(Dev::start(dir.path(), &[])).await;
    let mut dev = Dev::start(dir.path(), &[]);
    let again = dev.up().await;
    for key in ["org_id", "install_id"] {
        assert_eq!(again[key], file[key], "{key}");
    }
    let output = dev.ferry(&["actions", "run", "-i", "local", "-c", "echo again"]).await;
    assert!(output.status.success() && shown(&output).contains("again"), "{}", shown(&output));
    fs_err::write(witness.with_extension("go"), "").unwrap();
    let output = dev.ferry(&["jobs", "wait", &job]).await;
    assert!(output.status.success(), "{}", shown(&output));
    assert_eq!(fs_err::read_to_string(&witness).unwrap(), "begin\nend\n");
    assert!(!dev.log().contains("started again"), "{}", dev.log());
    assert!(dev.stop().await.success());
    assert!(processes_of(dir.path()).is_empty());
}

/// Kills a dev as soon as it is up, and nothing else.
async fn drop_quietly(mut dev: Dev) {
    dev.up().await;
    dev.child.kill().unwrap();
    dev.child.wait().unwrap();
    std::mem::forget(dev);
}

/// Children that do not follow their parent, as of a version before.
#[tokio::test]
async fn what_an_earlier_dev_left_running_is_ended() {
    let dir = temporary();
    let mut dev = Dev::start(dir.path(), &[]);
    let file = dev.up().await;
    // The file names another server now, which knows nothing of a parent.
    let data = dir.path().join("data");
    assert!(dev.stop().await.success());
    let _ = fs_err::remove_file(data.join("server.json"));
    let mut stray = Command::new(ferry())
        .arg("server")
        .env("FERRY_DATA_DIR", &data)
        .env("FERRY_CONTROL__LISTEN", "127.0.0.1:0")
        .env("FERRY_RUNNER__LISTEN", "127.0.0.1:0")
        .env("FERRY_METRICS__LISTEN", "127.0.0.1:0")
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    until("the server is up", SOON, async || fs_err::read(data.join("server.json")).map_err(|e| e.to_string())).await;
    let mut old = file;
    old["server"] = stray.id().into();
    fs_err::write(data.join("dev.json"), old.to_string()).unwrap();
    let mut dev = Dev::start(dir.path(), &[]);
    until("the stray server ends", SOON, async || stray.try_wait().unwrap().ok_or_else(|| dev.log())).await;
    dev.up().await;
    let output = dev.ferry(&["actions", "run", "-i", "local", "-c", "echo again"]).await;
    assert!(output.status.success() && shown(&output).contains("again"), "{}", shown(&output));
    assert!(dev.stop().await.success());
}

#[tokio::test]
async fn a_dev_that_cannot_start_leaves_nothing_and_says_why() {
    let dir = temporary();
    let data = dir.path().join("data");
    let failing = async |program: &Path, words: &[&str]| {
        let mut command = Command::new(program);
        command.args(["dev", "--no-context", "--data-dir"]).arg(&data).args(words).env("HOME", dir.path());
        let output = run(command).await;
        assert!(!output.status.success(), "{}", shown(&output));
        until("nothing is left", SOON, async || {
            let left = processes_of(dir.path());
            if left.is_empty() { Ok(()) } else { Err(format!("{left:?}")) }
        })
        .await;
        shown(&output)
    };
    // The binary alone, without the runner's beside it.
    let alone = dir.path().join("ferry");
    fs_err::copy(ferry(), &alone).unwrap();
    let said = failing(&alone, &[]).await;
    assert!(said.contains("ferry-runner is missing"), "{said}");
    assert!(!data.exists());

    let said = failing(&ferry(), &["--allow-path", "/tmp/a:b"]).await;
    assert!(said.contains("a path with a `:` in it"), "{said}");

    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port().to_string();
    let said = failing(&ferry(), &["--port", &port]).await;
    assert!(said.contains("in use") && !said.contains("\"fields\""), "{said}");

    // Runners that can't start: the server, which could, goes too.
    fs_err::create_dir_all(&data).unwrap();
    fs_err::write(data.join("runners"), "not a directory").unwrap();
    let said = failing(&ferry(), &[]).await;
    assert!(said.contains("build runner ended") && said.contains("state directory"), "{said}");
}

#[tokio::test]
async fn a_dev_that_is_interrupted_while_it_starts_ends_in_order() {
    let dir = temporary();
    for wait in [0, 20, 60, 120] {
        let mut dev = Dev::start(dir.path(), &[]);
        let lock = dir.path().join("data/dev.lock");
        until("it has begun", SOON, async || {
            let holder = fs_err::read_to_string(&lock).map_err(|e| e.to_string())?;
            if holder == dev.child.id().to_string() { Ok(()) } else { Err(holder) }
        })
        .await;
        tokio::time::sleep(std::time::Duration::from_millis(wait)).await;
        assert!(dev.stop().await.success(), "{}", dev.log());
        let left = processes_of(dir.path());
        assert!(left.is_empty(), "left running: {left:?}");
    }
}

#[tokio::test]
async fn the_ports_of_the_last_run_are_taken_again_unless_somebody_has_them() {
    let dir = temporary();
    let mut dev = Dev::start(dir.path(), &[]);
    let first = dev.up().await;
    assert!(dev.stop().await.success());
    let url = first["runner_url"].as_str().unwrap();
    let port: u16 = url.rsplit(':').next().unwrap().parse().unwrap();
    let taken = std::net::TcpListener::bind(("127.0.0.1", port)).unwrap();
    let mut dev = Dev::start(dir.path(), &[]);
    let second = dev.up().await;
    assert_ne!(second["runner_url"], first["runner_url"]);
    let output = dev.ferry(&["actions", "run", "-i", "local", "-c", "echo elsewhere"]).await;
    assert!(output.status.success(), "{}", shown(&output));
    assert!(dev.stop().await.success());
    drop(taken);
    let mut dev = Dev::start(dir.path(), &[]);
    let third = dev.up().await;
    assert_eq!(third["runner_url"], second["runner_url"]);
    assert!(dev.stop().await.success());
}

/// `ferry admin …` on the data of a `ferry dev`.
async fn admin(data: &Path, words: &[&str]) -> std::process::Output {
    let mut command = Command::new(ferry());
    command.arg("admin").args(words).env("FERRY_DATA_DIR", data);
    run(command).await
}

#[tokio::test]
async fn a_backup_of_a_running_system_restores_to_one_that_goes_on() {
    let home = temporary();
    let (old, new) = (home.path().join("old"), home.path().join("new"));
    let mut dev = Dev::start(&old, &[]);
    dev.up().await;
    let output = dev.ferry(&["actions", "run", "-i", "local", "-c", "echo before the backup", "--json"]).await;
    let job: Value = serde_json::from_slice(&output.stdout).unwrap();
    let job = job["job"]["id"].as_str().unwrap().to_owned();
    let file = home.path().join("ferry.backup");
    let output = admin(&old.join("data"), &["backup", file.to_str().unwrap()]).await;
    assert!(output.status.success(), "{}", shown(&output));
    let refused = admin(&old.join("data"), &["restore", file.to_str().unwrap()]).await;
    assert!(!refused.status.success() && shown(&refused).contains("holds a database already"), "{}", shown(&refused));
    assert!(dev.stop().await.success());

    // What a backup leaves out on purpose: the master key (and here the token of the first account).
    fs_err::create_dir_all(new.join("data")).unwrap();
    for name in ["master.key", "token"] {
        fs_err::copy(old.join("data").join(name), new.join("data").join(name)).unwrap();
    }
    let output = admin(&new.join("data"), &["restore", file.to_str().unwrap()]).await;
    assert!(output.status.success(), "{}", shown(&output));
    let output = admin(&new.join("data"), &["rotate-master-key"]).await;
    assert!(output.status.success(), "{}", shown(&output));
    let key = fs_err::read_to_string(new.join("data/master.key")).unwrap();
    fs_err::write(new.join("data/master.key"), key.lines().next().unwrap()).unwrap();

    let mut dev = Dev::start(&new, &[]);
    dev.up().await;
    let output = dev.ferry(&["logs", &job]).await;
    assert!(shown(&output).contains("before the backup"), "{}", shown(&output));
    let output = dev.ferry(&["actions", "run", "-i", "local", "-c", "echo after it"]).await;
    assert!(output.status.success() && shown(&output).contains("after it"), "{}", shown(&output));
    assert!(dev.stop().await.success());
}
