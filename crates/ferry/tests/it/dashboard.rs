//! The dashboard in a real Chromium against a real server: every page in both themes and widths, approvals by keyboard, logs, hostile
//! contents, a server that dies meanwhile, and how fast all that is. The scripts are in `ui/e2e`.

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use api::control::CreateToken;
use model::Role;
use serde_json::Value;
use testkit::system::{Runner, System, script};
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::process::Command;

use crate::workflows::Rehearsal;
use crate::{options, seconds};

/// How long one script may take.
const BOUND: Duration = seconds(400);
/// Installs of the fleet; the bench has 1,000.
const FLEET: usize = 60;
const README: &str = "# Shop of {{ .nuon.install.name }}\n\n<script>window.__pwned = 1</script>\n\n[bad](javascript:window.__pwned=2) [good](https://example.com)\n\n| a | b |\n|---|---|\n| {{ .nuon.id }} | \u{202e}turned |\n\n```mermaid\ngraph TD\n```\n";

fn repo() -> PathBuf {
    fs_err::canonicalize(Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")).unwrap()
}

/// Node, as `scripts/node-tools.sh` found or installed it.
fn node() -> PathBuf {
    let target = std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| repo().join("target"), PathBuf::from);
    fs_err::canonicalize(target.join("idp-tools")).expect("scripts/node-tools.sh installs it").join("node")
}

/// A server with what the scripts look at.
struct Stage {
    system: System,
    org: Rehearsal,
    runner: Runner,
    reader: String,
}

impl Stage {
    async fn new(fleet: usize) -> Self {
        let system = System::start(options()).await;
        let runner = system.start_runner("local").await;
        let org = Rehearsal::new(&system, &[("step_ms", 0), ("drift_percent", 100), ("seed", 5)]).await;
        // Before the app has what an install shows as hostile; a new version each time.
        let metadata = ("metadata.toml", "version = \"v2\"\nreadme = \"./README.md\"\n");
        org.sync(&system, &[metadata, ("README.md", README)]).await;
        for n in 0..fleet {
            org.install(&format!("fleet-{n}")).await;
        }
        for name in ["ada", "bob", "cyd"] {
            org.install(name).await;
        }
        let first = org.newest("ada").await;
        org.client.approve_all(&first).await.unwrap();
        org.until(&first, "success").await;
        for name in ["bob", "cyd"] {
            org.until(&org.newest(name).await, "approval-awaiting").await;
        }
        let token = CreateToken { name: "reader".into(), role: Role::ReadOnly, runner_id: None, expires_in_s: None };
        let reader = org.client.create_token(&token).await.unwrap().token.unwrap();
        Self { system, org, runner, reader }
    }

    /// A log with whatever a script may print: many lines, colours, a bomb of them, marks that turn text, a line of a megabyte, a failure.
    async fn hostile_log(&self) -> String {
        let text = "i=0; while [ $i -lt 30000 ]; do i=$((i+1)); echo \"line $i\"; done\n\
            printf '\\033[31mred\\033[0m \\033]0;title\\007 <b>bold</b> <script>window.__pwned=3</script>\\n'\n\
            printf '\\342\\200\\256turned\\n'\n\
            head -c 20000 /dev/zero | tr '\\0' '\\033'; echo\n\
            head -c 1000000 /dev/zero | tr '\\0' x; echo\n\
            for n in 1 2 3; do echo error: request $n timed out >&2; done; exit 3";
        let job = self.system.run(vec![script("print", text)]).await;
        job.log_stream_id.to_string()
    }

    /// Runs a script of `ui/e2e`; where it asks for it, the server is killed and comes back.
    async fn plays(&mut self, name: &str, more: &[(&str, String)]) -> Value {
        let mut command = Command::new(node());
        command.arg(repo().join("ui/e2e").join(name)).current_dir(repo()).kill_on_drop(true);
        command.env("CONTROL", &self.system.control_url).env("TOKEN", self.system.token());
        command
            .env("ORG", &self.org.org)
            .env("REAL_ORG", self.system.org.id.as_str())
            .env("READER_TOKEN", &self.reader);
        command.envs(more.iter().map(|(name, value)| (*name, value.as_str())));
        let mut child =
            command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("node starts");
        let (mut input, mut errors) = (child.stdin.take().unwrap(), child.stderr.take().unwrap());
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let complaints = tokio::spawn(async move {
            let mut text = String::new();
            let _ = errors.read_to_string(&mut text).await;
            text
        });
        let mut said = String::new();
        let played = tokio::time::timeout(BOUND, async {
            while let Some(line) = lines.next_line().await.unwrap() {
                if line == "KILL" {
                    self.system.kill_server();
                    input.write_all(b"DOWN\n").await.unwrap();
                }
                if line == "START" {
                    self.system.start_server().await;
                    input.write_all(b"UP\n").await.unwrap();
                }
                said += &format!("{line}\n");
            }
            child.wait().await.unwrap()
        });
        let status = played.await.unwrap_or_else(|_| panic!("{name} takes more than {BOUND:?}:\n{said}"));
        assert!(status.success(), "{name}:\n{said}\n{}", complaints.await.unwrap());
        said.lines().rev().find_map(|line| serde_json::from_str(line).ok()).unwrap_or_default()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn every_page_is_whole_in_both_themes_and_widths() {
    let mut stage = Stage::new(FLEET).await;
    let log = stage.hostile_log().await;
    stage.plays("pages.mjs", &[("JOB_LOG", log)]).await;
}

/// One after the other, since each wants a core for itself: approvals by keyboard, and never of another plan than the one that is shown; a
/// log while the server dies; and that nothing is slow by its nature, as far as a debug build beside other tests can tell. `make bench
/// PARTS=ui` has the aims.
#[tokio::test(flavor = "multi_thread")]
async fn plans_and_logs_withstand_what_happens_to_them() {
    let mut stage = Stage::new(FLEET).await;
    stage.plays("approve.mjs", &[]).await;

    let log = stage.hostile_log().await;
    let ticks = "i=0; while [ $i -lt 1500 ]; do i=$((i+1)); echo \"tick $i\"; sleep 0.02; done";
    let live = stage.system.script(ticks).await;
    let more = [("JOB_LOG", log.clone()), ("LIVE_LOG", live.log_stream_id.to_string()), ("TICKS", "1500".to_owned())];
    stage.plays("log.mjs", &more).await;
    stage.system.client.cancel_job(&live.id).await.unwrap();
    stage.system.until_over(&live.id).await;
    assert!(stage.runner.process.pid() > 0);

    let figures = stage.plays("speed.mjs", &[("JOB_LOG", log), ("FLEET_N", FLEET.to_string())]).await;
    let figure = |name: &str| figures[name].as_f64().unwrap_or_else(|| panic!("no {name} in {figures}"));
    assert!(figure("ui_first_load_kib") <= 250.0, "{figures}");
    let bounds = [("interaction_p95_ms", 1500.0), ("event_to_pixel_p95_ms", 2000.0), ("log_jump_p95_ms", 2000.0)];
    for (name, most) in bounds {
        assert!(figure(name) <= most, "{name}: {figures}");
    }
}
