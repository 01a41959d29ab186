//! The live view of a workflow, on a terminal that `script` makes: keys go in, and what they do is seen by the API.

use std::process::Stdio;
use std::sync::{Arc, Mutex};

use serde_json::json;
use testkit::system::until;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::process::{Child, ChildStdin, Command};

use crate::install_files::Shop;
use crate::seconds;

/// Enters and leaves the screen that is not kept.
const ENTER: &str = "\u{1b}[?1049h";
const LEAVE: &str = "\u{1b}[?1049l";

/// A command on a terminal.
struct OnTerminal {
    child: Child,
    keys: ChildStdin,
    screen: Arc<Mutex<Vec<u8>>>,
}

impl OnTerminal {
    fn start(shop: &Shop, words: &str) -> Self {
        let ferry = shop.system.ferry_command();
        let line = format!("stty rows 30 cols 110; exec {} --org {} {words}", crate::ferry().display(), shop.org);
        let mut command = Command::new("script");
        command.args(["-qec", &line, "/dev/null"]).stdin(Stdio::piped()).stdout(Stdio::piped()).kill_on_drop(true);
        for (name, value) in ferry.get_envs() {
            match value {
                Some(value) => command.env(name, value),
                None => command.env_remove(name),
            };
        }
        command.env("TERM", "xterm-256color").env("SHELL", "/bin/sh");
        let mut child = command.spawn().expect("`script` of util-linux");
        let (keys, mut output) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
        let screen = Arc::new(Mutex::new(Vec::new()));
        let seen = Arc::clone(&screen);
        tokio::spawn(async move {
            let mut bytes = [0; 4096];
            while let Ok(n @ 1..) = output.read(&mut bytes).await {
                seen.lock().unwrap().extend_from_slice(&bytes[..n]);
            }
        });
        Self { child, keys, screen }
    }

    fn text(&self) -> String {
        String::from_utf8_lossy(&self.screen.lock().unwrap()).into_owned()
    }

    async fn until(&self, part: &str) {
        until(&format!("`{part}` on the screen"), seconds(30), async || {
            let text = self.text();
            if text.contains(part) { Ok(()) } else { Err(text) }
        })
        .await;
    }

    async fn press(&mut self, keys: &str) {
        self.keys.write_all(keys.as_bytes()).await.unwrap();
        self.keys.flush().await.unwrap();
    }

    /// How it ended, and what stays on the terminal.
    async fn end(mut self) -> (Option<i32>, String) {
        let ended = tokio::time::timeout(seconds(60), self.child.wait()).await;
        let code = ended.unwrap_or_else(|_| panic!("it goes on:\n{}", self.text())).unwrap().code();
        tokio::time::sleep(std::time::Duration::from_millis(200)).await;
        let text = self.text();
        (code, text.rsplit_once(LEAVE).map_or_else(|| text.clone(), |(_, kept)| kept.to_owned()))
    }
}

#[tokio::test]
async fn an_approval_by_key_carries_the_workflow_on() {
    let shop = Shop::new().await;
    shop.install("one", json!({})).await;
    let id = shop.client.workflows(Some("one"), 1).await.unwrap().remove(0).id;
    let step = async |name: &str| {
        let workflow = shop.client.workflow(&id).await.unwrap();
        workflow.steps.into_iter().find(|step| step.name == name).unwrap()
    };

    // Who leaves leaves the workflow as it is, and the terminal as it was.
    let mut terminal = OnTerminal::start(&shop, &format!("workflows watch {id}"));
    terminal.until("simulated.sandbox").await;
    assert!(terminal.text().contains(ENTER));
    terminal.press("q").await;
    let (code, kept) = terminal.end().await;
    assert_eq!(code, Some(8), "{kept}");
    assert!(kept.contains("waits for an approval") && kept.contains("ferry workflows watch"), "{kept}");
    assert_eq!(step("provision sandbox plan").await.status.status, "approval-awaiting");

    let mut terminal = OnTerminal::start(&shop, &format!("workflows watch {id}"));
    terminal.until("simulated.sandbox").await;
    terminal.press("a").await;
    until("the approval is there", seconds(30), async || {
        let plan = step("provision sandbox plan").await;
        match plan.approval.and_then(|approval| approval.response) {
            Some(response) if response.r#type == "approve" => Ok(()),
            other => Err(format!("{other:?}\n{}", terminal.text())),
        }
    })
    .await;
    // The next plan is another one, and needs its own answer; then all may pass.
    until("the next plan waits", seconds(30), async || {
        let now = step("sync and plan api").await.status.status;
        if now == "approval-awaiting" { Ok(()) } else { Err(now) }
    })
    .await;
    terminal.press("A").await;
    terminal.until("come?").await;
    terminal.press("y").await;
    let (code, kept) = terminal.end().await;
    assert_eq!(code, Some(0), "{kept}");
    assert!(kept.contains("is done") && kept.contains("provision sandbox plan"), "{kept}");

    // Lines are for everyone who wants lines.
    let plain = OnTerminal::start(&shop, &format!("--plain workflows watch {id}"));
    let (code, text) = plain.end().await;
    assert!(code == Some(0) && !text.contains(ENTER) && text.contains("is done"), "{text}");
}

#[tokio::test]
async fn a_workflow_is_cancelled_by_a_key_that_asks_first() {
    let shop = Shop::new().await;
    shop.install("one", json!({})).await;
    let id = shop.client.workflows(Some("one"), 1).await.unwrap().remove(0).id;
    let mut terminal = OnTerminal::start(&shop, &format!("workflows watch {id}"));
    terminal.until("simulated.sandbox").await;
    terminal.press("c").await;
    terminal.until("jobs?").await;
    terminal.press("n").await;
    tokio::time::sleep(std::time::Duration::from_millis(500)).await;
    assert_eq!(shop.client.workflow(&id).await.unwrap().status.status, "approval-awaiting");
    terminal.press("cy").await;
    let (code, kept) = terminal.end().await;
    assert_eq!(code, Some(7), "{kept}");
}

#[tokio::test]
async fn a_sync_of_files_asks_on_a_terminal() {
    let shop = Shop::new().await;
    let file = shop.system.root().join("one.toml");
    fs_err::write(&file, "name = \"one\"\n").unwrap();
    let words = format!("--plain installs sync {} --app shop --input password=secret-1", file.display());
    for (answer, code, there) in [("n\n", 1, 0), ("y\n", 0, 1)] {
        let mut terminal = OnTerminal::start(&shop, &words);
        terminal.until("change 1 install? [y/N]").await;
        terminal.press(answer).await;
        let (ended, text) = terminal.end().await;
        assert_eq!(ended, Some(code), "{text}");
        assert_eq!(shop.client.installs(None).await.unwrap().len(), there, "{text}");
    }
}
