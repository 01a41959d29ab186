//! Checks of the app's own: an address that must answer, a port that must be open, a program that must succeed.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Stdio;
use std::sync::Once;
use std::time::Duration;

use fs_err as fs;
use model::health::{Probe, ProbeKind, Verdict};
use model::kubernetes::ClusterSpec;
use model::spec::Limits;
use rustix::process::{Pid, Signal};
use tokio::io::{AsyncRead, AsyncReadExt as _};
use tokio::time::timeout;

use super::board::{Board, Look};
use crate::confine::limits::Cgroups;
use crate::confine::shim::{self, Sandbox, ShimFile};
use crate::directory::{ExecutionContext, ExecutionDir, remove_tree};
use crate::execute::kubernetes::cluster::config_of;
use crate::execute::tool;
use crate::net;

const TIMEOUT: Duration = Duration::from_secs(5);
const EVERY: Duration = Duration::from_secs(30);
const AGAIN: Duration = Duration::from_secs(15);
/// What is kept of what a program prints.
const OUTPUT_BYTES_MAX: usize = 4096;
const LINE_CHARS_MAX: usize = 200;
/// What a program is given of the runner's own environment.
const INHERITED: [&str; 4] = ["PATH", "LANG", "LC_ALL", "TZ"];

/// Tries a probe for ever.
pub(super) async fn observe(
    board: &Board,
    place: (usize, usize),
    probe: Probe,
    cluster: &ClusterSpec,
    (context, dir): (&ExecutionContext, &ExecutionDir),
) {
    loop {
        let outcome = match &probe.how {
            ProbeKind::Http { url } => http(url, context.ca_file.as_deref()).await,
            ProbeKind::Tcp { url } => tcp(url).await,
            ProbeKind::Exec { command } => exec(command, place, cluster, (context, dir)).await,
        };
        let (look, pause) = match outcome {
            Ok(()) => (Look::new(Verdict::Healthy, ""), EVERY),
            Err(why) => (Look::new(Verdict::Unhealthy, format!("probe `{}`: {why}", probe.name)), AGAIN),
        };
        board.see_probe(place, look);
        tokio::time::sleep(pause).await;
    }
}

/// Any 2xx or 3xx; a redirect is an answer, and is not followed.
async fn http(url: &str, ca_file: Option<&Path>) -> Result<(), String> {
    let client = net::client(url, ca_file).map_err(|e| net::chain(&e))?;
    let response = client.get(url).timeout(TIMEOUT).send().await;
    let status = response.map_err(|e| format!("{url} does not answer: {}", net::chain(&e)))?.status();
    match status.is_success() || status.is_redirection() {
        true => Ok(()),
        false => Err(format!("{url} answers {status}")),
    }
}

async fn tcp(url: &str) -> Result<(), String> {
    let address = url.strip_prefix("tcp://").unwrap_or(url).trim_end_matches('/');
    match timeout(TIMEOUT, tokio::net::TcpStream::connect(address)).await {
        Ok(Ok(_)) => Ok(()),
        Ok(Err(error)) => Err(format!("{address} can't be connected to: {error}")),
        Err(_) => Err(format!("{address} does not accept a connection within {} s", TIMEOUT.as_secs())),
    }
}

/// Starts a program, confined as a script is, and without a shell.
async fn exec(
    command: &[String],
    (component, n): (usize, usize),
    cluster: &ClusterSpec,
    (context, dir): (&ExecutionContext, &ExecutionDir),
) -> Result<(), String> {
    let program = command.first().ok_or("it has no command")?.clone();
    let work = dir.work().join(format!("{component}-{n}"));
    let fault = |e: std::io::Error| format!("`{program}` can't be started: {e}");
    make_anew(&work).map_err(fault)?;
    let state_dir = context.state_dir.canonicalize().unwrap_or_else(|_| context.state_dir.clone());
    let hide = context.hide.clone().filter(|hide| state_dir.starts_with(hide));
    let sandbox = shim::landlock_available().then(|| Sandbox {
        state_dir: hide.unwrap_or(state_dir),
        work_dir: work.clone(),
        allow_paths: context.allow_paths.clone(),
        narrow: false,
    });
    let mut env: BTreeMap<String, String> =
        INHERITED.iter().filter_map(|name| Some(((*name).to_owned(), std::env::var(name).ok()?))).collect();
    for name in ["TMPDIR", "HOME"] {
        env.insert(name.into(), work.display().to_string());
    }
    // Without a cluster there is nothing to name.
    if let Ok(config) = config_of(context.tools.kubeconfig.as_deref(), cluster) {
        let file = work.join("kubeconfig");
        tool::private(&file, &config.to_string()).map_err(fault)?;
        env.insert("KUBECONFIG".into(), file.display().to_string());
    }
    let name = format!("{component}-{n}");
    // As for a script whose job names no limits.
    let cgroups = Cgroups::create(&format!("health-{}-{name}", context.runner_id), &Limits::default());
    say_gaps(sandbox.is_some(), &cgroups);
    let file = format!("work/shim-{name}.json");
    let (argv, parent) = (command.to_vec(), Some(std::process::id()));
    let told = ShimFile { argv, env, cgroups: cgroups.clone(), sandbox, parent };
    let written = dir.write_json(&file, &told);
    let file = dir.path().join(file);
    let mut command = tokio::process::Command::new("/proc/self/exe");
    command.arg0("ferry-runner").arg("shim").arg(&file).env_clear().current_dir(&work);
    let ended = match written {
        Ok(()) => attended(&program, &mut command).await,
        Err(error) => Err(fault(error)),
    };
    // Secrets may stand in it.
    let _ = fs::remove_file(file);
    cgroups.remove();
    ended
}

/// Says once in the watcher's log what this host does not enforce.
fn say_gaps(has_sandbox: bool, cgroups: &Cgroups) {
    static SAID: Once = Once::new();
    SAID.call_once(|| {
        if !has_sandbox {
            tracing::warn!("this kernel has no landlock: probes are not kept from the runner's files");
        }
        if cgroups.dirs.is_empty() {
            tracing::warn!(
                "the runner can't create cgroups on this host: memory and processes of probes have no limit"
            );
        }
    });
}

/// What a program wrote the last time does not add up.
fn make_anew(work: &Path) -> std::io::Result<()> {
    remove_tree(work)?;
    fs::create_dir_all(work)
}

/// Processes that a probe has started end with it, also where it is given up.
struct Group(Option<Pid>);

impl Drop for Group {
    fn drop(&mut self) {
        if let Some(group) = self.0 {
            let _ = rustix::process::kill_process_group(group, Signal::KILL);
        }
    }
}

async fn attended(program: &str, command: &mut tokio::process::Command) -> Result<(), String> {
    let fault = |e: std::io::Error| format!("`{program}` can't be started: {e}");
    let pipes = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
    let mut child = pipes.process_group(0).kill_on_drop(true).spawn().map_err(fault)?;
    let group = Group(child.id().and_then(|id| Pid::from_raw(id as i32)));
    let stderr = child.stderr.take();
    let ended = timeout(TIMEOUT, async {
        let said = match stderr {
            Some(stderr) => end_of(stderr).await,
            None => Vec::new(),
        };
        (child.wait().await, said)
    });
    let ended = ended.await;
    drop(group);
    match ended {
        Ok((Ok(status), _)) if status.success() => Ok(()),
        Ok((Ok(status), said)) => {
            let text = String::from_utf8_lossy(&said);
            let last = text.lines().rev().map(str::trim).find(|line| !line.is_empty()).unwrap_or_default();
            let last: String = last.chars().take(LINE_CHARS_MAX).collect();
            let said = if last.is_empty() { String::new() } else { format!(": {last}") };
            Err(format!("`{program}` ended with {status}{said}"))
        }
        Ok((Err(error), _)) => Err(fault(error)),
        Err(_) => Err(format!("`{program}` did not end within {} s", TIMEOUT.as_secs())),
    }
}

/// Reads to the end, however much it is: a program that nobody listens to would die. Its last bytes are kept.
async fn end_of(mut from: impl AsyncRead + Unpin) -> Vec<u8> {
    let (mut kept, mut piece) = (Vec::new(), [0; OUTPUT_BYTES_MAX]);
    while let Ok(count @ 1..) = from.read(&mut piece).await {
        kept.extend_from_slice(&piece[..count]);
        kept.drain(..kept.len().saturating_sub(OUTPUT_BYTES_MAX));
    }
    kept
}

#[cfg(test)]
mod tests {
    use tokio::io::AsyncWriteExt as _;
    use tokio::net::TcpListener;

    use super::*;

    #[tokio::test]
    async fn a_redirect_is_an_answer_and_an_error_is_not() {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("an address");
        let server = tokio::spawn(async move {
            for code in [200, 302, 503] {
                let (mut stream, _) = listener.accept().await.expect("a caller");
                let mut asked = [0; 1024];
                let _ = stream.read(&mut asked).await;
                let head = format!(
                    "HTTP/1.1 {code} X\r\nlocation: /elsewhere\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"
                );
                stream.write_all(head.as_bytes()).await.expect("an answer");
            }
            listener
        });
        let url = format!("http://{address}/healthz");
        assert_eq!(http(&url, None).await, Ok(()));
        assert_eq!(http(&url, None).await, Ok(()), "it is not followed");
        assert!(http(&url, None).await.expect_err("an error").contains("503"));
        let listener = server.await.expect("a listener");
        assert_eq!(tcp(&format!("tcp://{address}")).await, Ok(()));
        drop(listener);
        assert!(tcp(&address.to_string()).await.expect_err("refused").contains("can't be connected to"));
        assert!(http(&url, None).await.expect_err("refused").contains("does not answer"));
    }
    fn shell(script: &str) -> tokio::process::Command {
        let mut command = tokio::process::Command::new("/bin/sh");
        command.args(["-c", script]);
        command
    }

    #[test]
    fn what_a_program_wrote_is_not_there_the_next_time() {
        let dir = tempfile::tempdir().expect("dir");
        let work = dir.path().join("work/0-0");
        for _ in 0..2 {
            make_anew(&work).expect("a directory");
            assert_eq!(fs::read_dir(&work).expect("entries").count(), 0);
            fs::write(work.join("big"), "more").expect("a file");
            fs::create_dir(work.join("sub")).expect("a directory");
        }
    }

    #[tokio::test]
    async fn a_program_may_say_much_and_its_last_words_are_kept() {
        let much = "i=0; while [ $i -lt 3000 ]; do echo 'a line that is long enough to fill the pipe' >&2 || exit 9; i=$((i+1)); done";
        assert_eq!(attended("it", &mut shell(much)).await, Ok(()));
        let why = attended("it", &mut shell(&format!("{much}; echo the end >&2; exit 3"))).await.expect_err("it fails");
        assert!(why.ends_with("exit status: 3: the end"), "{why}");
    }

    #[tokio::test]
    async fn what_a_probe_has_started_ends_when_it_is_given_up() {
        let dir = tempfile::tempdir().expect("dir");
        let file = dir.path().join("pid");
        let mut command = shell(&format!("sleep 600 & echo $! > {0}.new; mv {0}.new {0}; wait", file.display()));
        let given_up = timeout(Duration::from_secs(4), async {
            tokio::select! {
                ended = attended("it", &mut command) => panic!("it has ended: {ended:?}"),
                () = async { while !file.exists() { tokio::time::sleep(Duration::from_millis(10)).await } } => {}
            }
        });
        given_up.await.expect("it has begun");
        let pid = fs::read_to_string(&file).expect("a pid").trim().to_owned();
        let is_gone = || {
            let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
            stat.is_empty() || stat.contains(") Z ")
        };
        for _ in 0..200 {
            if is_gone() {
                return;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        panic!("process {pid} goes on");
    }
}
