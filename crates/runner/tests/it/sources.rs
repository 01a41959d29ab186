//! Sources from git: private repositories, submodules, commits that nobody points to, and a copy that was damaged.

use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex};

use base64::Engine as _;
use model::Outcome;
use model::build::Credentials;
use model::log::Pipe;
use model::runner::RunnerKind;
use model::spec::{Source, StepSpec, Work};

use crate::world::{World, step};

const PASSWORD: &str = "pass word@/:";

/// Git's own server over HTTP, for whoever knows the password.
struct Server {
    url: String,
    /// What stood in `Authorization`, for every request.
    heard: Arc<Mutex<Vec<Option<String>>>>,
}

impl Server {
    fn start(root: &Path) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("port");
        let url = format!("http://{}", listener.local_addr().expect("address"));
        let heard: Arc<Mutex<Vec<Option<String>>>> = Arc::default();
        let (root, told) = (root.to_owned(), Arc::clone(&heard));
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let _ = answer(stream, &root, &told);
            }
        });
        Self { url, heard }
    }

    fn heard(&self) -> Vec<Option<String>> {
        self.heard.lock().expect("lock").clone()
    }
}

fn answer(mut stream: TcpStream, root: &Path, heard: &Mutex<Vec<Option<String>>>) -> std::io::Result<()> {
    let (mut bytes, mut buffer) = (Vec::new(), [0; 8192]);
    let end = loop {
        if let Some(at) = bytes.windows(4).position(|w| w == b"\r\n\r\n") {
            break at + 4;
        }
        match stream.read(&mut buffer)? {
            0 => return Ok(()),
            n => bytes.extend_from_slice(&buffer[..n]),
        }
    };
    let head = String::from_utf8_lossy(&bytes[..end]).into_owned();
    let header = |name: &str| {
        let found = head.lines().filter_map(|l| l.split_once(": ")).find(|(key, _)| key.eq_ignore_ascii_case(name));
        found.map(|(_, value)| value.to_owned())
    };
    let length: usize = header("content-length").and_then(|n| n.parse().ok()).unwrap_or(0);
    let mut body = bytes[end..].to_vec();
    while body.len() < length {
        let n = stream.read(&mut buffer)?;
        body.extend_from_slice(&buffer[..n]);
    }
    let login = header("authorization");
    heard.lock().expect("lock").push(login.clone());
    let right = base64::engine::general_purpose::STANDARD.encode(format!("ada:{PASSWORD}"));
    if login != Some(format!("Basic {right}")) {
        let text = "HTTP/1.1 401 Unauthorized\r\nWWW-Authenticate: Basic realm=\"x\"\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";
        return stream.write_all(text.as_bytes());
    }
    let mut words = head.split(' ');
    let (method, target) = (words.next().unwrap_or_default().to_owned(), words.next().unwrap_or_default().to_owned());
    let (path, query) = target.split_once('?').unwrap_or((&target, ""));
    let mut backend = Command::new("git")
        .arg("http-backend")
        .env("GIT_PROJECT_ROOT", root)
        .env("GIT_HTTP_EXPORT_ALL", "1")
        .env("REQUEST_METHOD", method)
        .env("PATH_INFO", path)
        .env("QUERY_STRING", query)
        .env("CONTENT_TYPE", header("content-type").unwrap_or_default())
        .env("HTTP_CONTENT_ENCODING", header("content-encoding").unwrap_or_default())
        .env("GIT_PROTOCOL", header("git-protocol").unwrap_or_default())
        .env("REMOTE_USER", "ada")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()?;
    backend.stdin.take().expect("stdin").write_all(&body)?;
    let answer = backend.wait_with_output()?.stdout;
    let split = answer.windows(4).position(|w| w == b"\r\n\r\n").unwrap_or(0);
    let headers = String::from_utf8_lossy(&answer[..split]).into_owned();
    let status = headers.lines().find_map(|l| l.strip_prefix("Status: ")).unwrap_or("200 OK");
    write!(stream, "HTTP/1.1 {status}\r\n{headers}\r\nConnection: close\r\n\r\n")?;
    stream.write_all(&answer[split + 4..])
}

fn git(dir: &Path, line: &str) -> String {
    let script = format!(
        "export HOME=/nonexistent GIT_CONFIG_NOSYSTEM=1 GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a@b GIT_COMMITTER_NAME=a GIT_COMMITTER_EMAIL=a@b; {line}"
    );
    fs_err::create_dir_all(dir).expect("dir");
    let done = Command::new("sh").current_dir(dir).args(["-ec", &script]).output().expect("git");
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    String::from_utf8(done.stdout).expect("text").trim().to_owned()
}

fn from_git(url: &str, reference: Option<&str>, login: Option<&str>, command: &str) -> StepSpec {
    StepSpec {
        source: Some(Source::Git {
            url: url.to_owned(),
            reference: reference.map(str::to_owned),
            directory: None,
            submodules: true,
            credentials: login.map(|password| Credentials { username: "ada".into(), password: password.into() }),
        }),
        ..step(reference.unwrap_or("head"), command)
    }
}

#[test]
fn a_private_repository_is_read_with_a_login_that_nobody_sees() {
    let root = tempfile::tempdir().expect("dir");
    let (here, there) = (root.path().join("here"), root.path().join("there"));
    let (server, other) = (Server::start(&here), Server::start(&there));
    for (dir, name) in [(&here, "part"), (&there, "foreign")] {
        git(&dir.join(name), &format!("git init -q -b main .; echo {name} > file; git add .; git commit -qm x"));
    }
    let add = |name: &str, modules: &[(&str, String, PathBuf)]| {
        let dir = here.join(name);
        git(&dir, "git init -q -b main .; echo top > file");
        for (path, url, from) in modules {
            let commit = git(from, "git rev-parse HEAD");
            git(
                &dir,
                &format!(
                    "git config -f .gitmodules submodule.{path}.path {path}; git config -f .gitmodules submodule.{path}.url {url}; git add .gitmodules; git update-index --add --cacheinfo 160000,{commit},{path}"
                ),
            );
        }
        git(&dir, "git add file; git commit -qm x");
    };
    add("top", &[("sub", "../part".into(), here.join("part"))]);
    add("reaches", &[("sub", format!("{}/foreign", other.url), there.join("foreign"))]);
    add("local", &[("sub", format!("file://{}", there.join("foreign").display()), there.join("foreign"))]);

    let look = "cat file sub/file; git log --format=%s; cat .git/config .git/modules/*/config; env; ls -A \"$TMPDIR\"; \
                grep -rl 'pass.word' .. ; echo done";
    let url = format!("{}/top", server.url);
    let world = World::new(vec![from_git(&url, Some("main"), Some(PASSWORD), look)]);
    let (result, running) = world.finish();
    assert_eq!(result.outcome, Outcome::Finished, "{result:?}\n{}", running.pipe(Pipe::Stderr));
    let out = running.pipe(Pipe::Stdout);
    assert!(out.starts_with("top\npart\n") && out.ends_with("done\n"), "{out}");
    let all = format!("{out}{}{}", running.pipe(Pipe::Stderr), running.pipe(Pipe::System));
    for trace in [PASSWORD, "pass%20word", "git-login", "credential"] {
        assert!(!all.contains(trace), "{trace}: {all}");
    }
    // The login in the address itself is as good, and goes nowhere else either.
    let in_url = url.replace("http://", "http://ada:pass%20word%40%2F%3A@");
    let world = World::new(vec![from_git(&in_url, None, None, look)]);
    let (result, running) = world.finish();
    assert_eq!(result.outcome, Outcome::Finished, "{result:?}");
    assert!(!format!("{}{}", running.pipe(Pipe::Stdout), running.pipe(Pipe::System)).contains("pass%20word"));

    for (login, url) in [
        (None, url.clone()),
        (Some("wrong"), url),
        (Some(PASSWORD), format!("{}/reaches", server.url)),
        (Some(PASSWORD), format!("{}/local", server.url)),
    ] {
        let (result, _running) = World::new(vec![from_git(&url, None, login, "true")]).finish();
        assert_eq!(result.error.map(|e| e.code).as_deref(), Some("source_failed"), "{url}");
    }
    assert!(!other.heard().is_empty() && other.heard().iter().all(Option::is_none), "{:?}", other.heard());
}

#[test]
fn commits_are_found_wherever_they_are_and_a_damaged_copy_is_replaced() {
    let root = tempfile::tempdir().expect("dir");
    let repo = root.path().join("repo");
    git(
        &repo,
        "git init -q -b main .; echo 1 > file; git add .; git commit -qm 1; git tag -a -m note noted; echo 2 > file; git commit -qam 2; git branch both; git tag both HEAD~1; echo 3 > file; git commit -qam 3",
    );
    let lost = git(&repo, "git rev-parse HEAD; git reset -q --hard HEAD~1");
    let url = format!("file://{}", repo.display());
    let steps = [Some("noted"), Some("both"), Some(lost.as_str()), Some("refs/heads/main"), None];
    let world =
        World::new(steps.iter().map(|r| from_git(&url, *r, None, "cat file; git status --porcelain")).collect());
    let (result, running) = world.finish();
    assert_eq!(result.outcome, Outcome::Finished, "{result:?} {}", running.pipe(Pipe::Stderr));
    assert_eq!(running.pipe(Pipe::Stdout), "1\n2\n3\n2\n2\n", "a branch comes before a tag of its name");
    running.dir.remove().expect("remove");

    // Everything that was kept is spoilt, one part after the other.
    let world = World::new(vec![from_git(&url, Some(&lost), None, "cat file")]);
    assert_eq!(world.finish().0.outcome, Outcome::Finished);
    let copies: Vec<PathBuf> =
        fs_err::read_dir(world.state.path().join("cache/git")).expect("copies").flatten().map(|e| e.path()).collect();
    let copy = copies.iter().find(|p| p.extension().is_some_and(|e| e == "git")).expect("a copy").clone();
    let spoil = |what: &str| {
        let script = format!("find . -path './{what}*' -type f -exec sh -c 'chmod u+w {{}}; echo broken > {{}}' ';'");
        git(&copy, &script);
    };
    for what in ["objects/", "refs/", "HEAD", "config", "shallow"] {
        spoil(what);
        let (result, running) = world.finish();
        assert_eq!(result.outcome, Outcome::Finished, "{what}: {result:?} {}", running.pipe(Pipe::Stderr));
        assert_eq!(running.pipe(Pipe::Stdout), "3\n", "{what}");
        running.dir.remove().expect("remove");
    }
}

#[test]
fn a_runner_does_only_what_it_is_for() {
    let touched = tempfile::tempdir().expect("dir");
    let file = touched.path().join("touched");
    let mut action = World::new(vec![step("touch", &format!("touch {}", file.display()))]);
    action.kind = Some(RunnerKind::Build);
    let (result, _running) = action.finish();
    let error = result.error.expect("error");
    assert_eq!((result.outcome, error.code.as_str()), (Outcome::NotAttempted, "wrong_runner"));
    assert!(error.message.contains("build runner") && !file.exists(), "{error:?}");

    let spec = serde_json::json!({
        "type": "build", "build_id": "bldho701213tpp04b08fvskkzu", "component_id": "cmpho701213tpp04b08fvskkzu", "component": "x",
        "to": { "name": "a/b" }, "tag": "t", "recipe": { "kind": "manifest", "contents": "a: b" },
    });
    let work: Work = serde_json::from_value(spec).expect("work");
    let mut build = World::with_work(work);
    build.kind = Some(RunnerKind::Install);
    let (result, _running) = build.finish();
    assert_eq!((result.outcome, result.error.expect("error").code.as_str()), (Outcome::NotAttempted, "wrong_runner"));

    // A copy of something else than the order names is not made either.
    let spec = serde_json::json!({
        "type": "oci-sync", "build_id": "bldho701213tpp04b08fvskkzu", "component": "x", "tag": "t",
        "from": { "name": "a/b" }, "digest": model::Digest::of(b"asked for"),
    });
    let sync = World::with_work(serde_json::from_value(spec).expect("work"));
    let dir = sync.prepare(|order, _, _| order.artifact_digests = vec![model::Digest::of(b"another")]);
    dir.mark_started().expect("started");
    let result = crate::world::start(dir).result();
    assert_eq!((result.outcome, result.error.expect("error").code.as_str()), (Outcome::NotAttempted, "papers_refused"));

    for kind in [RunnerKind::Build, RunnerKind::Install] {
        let mut world = World::with_work(Work::Noop { sleep_ms: 1 });
        world.kind = Some(kind);
        assert_eq!(world.finish().0.outcome, Outcome::Finished);
    }
}
