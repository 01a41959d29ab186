//! One PostgreSQL for the whole test process, started when it is first wanted; a fresh database for every test.
//!
//! It ends with the process, however that ends: a watchdog waits for the pipe that only this process holds open. A test that
//! restarts its database has one of its own.

use std::io::{BufRead as _, BufReader};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};

use anyhow::{Context as _, Result, bail, ensure};
use rustix::process::Signal;

use crate::system::{children_of, is_running, send};

const INSTALL: &str = "install it with `apt-get install postgresql`";
/// Enough for every test of a binary at once, each with its pools and listeners.
const CONNECTIONS: u32 = 500;

struct Server {
    port: u16,
    dir: PathBuf,
    as_user: Option<Vec<String>>,
    /// Closed by the kernel when this process ends: then the watchdog stops the server and removes its directory.
    _alive: ChildStdin,
    _watchdog: Child,
}

/// Makes a fresh, empty database and returns its URL.
pub fn database() -> String {
    static SERVER: OnceLock<Server> = OnceLock::new();
    // Nothing of it must outlive the tests.
    make_database(SERVER.get_or_init(|| start_some("off")))
}

/// A PostgreSQL of a test's own, with one database; it keeps what it has acknowledged when it is restarted.
pub struct OwnPostgres {
    server: Server,
    pub url: String,
}

impl OwnPostgres {
    pub fn start() -> Self {
        let server = start_some("on");
        let url = make_database(&server);
        Self { server, url }
    }

    /// Ends it without any goodbye, and starts it again; returns when it takes connections.
    pub fn restart(&self) {
        let pg_ctl = find("pg_ctl").unwrap_or_else(|e| panic!("{e:#}"));
        let Server { dir, as_user, .. } = &self.server;
        let mut command = command_as(as_user.as_deref(), &pg_ctl, dir);
        command.args(["restart", "-w", "-m", "immediate", "-D"]).arg(dir.join("data")).arg("-l").arg(dir.join("log"));
        let status = command.stdout(Stdio::null()).stderr(Stdio::null()).status().expect("pg_ctl runs");
        assert!(status.success(), "pg_ctl: {status}");
    }

    /// SIGKILL to all its processes, which are gone when this returns; `restart` starts it again.
    pub fn kill(&self) {
        let file = self.server.dir.join("data/postmaster.pid");
        let text = fs_err::read_to_string(&file).expect("it runs");
        let first: i32 = text.lines().next().and_then(|line| line.parse().ok()).expect("a process");
        // So that it starts no more of them.
        send(first, Signal::STOP);
        let all: Vec<i32> = std::iter::once(first).chain(children_of(first)).collect();
        all.iter().for_each(|pid| send(*pid, Signal::KILL));
        while all.iter().any(|pid| is_running(*pid)) {
            std::thread::sleep(std::time::Duration::from_millis(2));
        }
        // Who is to reap them may take a while, and until then they would look alive.
        fs_err::remove_file(file).expect("removed");
    }
}

/// Someone else may take the port that was free a moment ago: hence the second try.
fn start_some(synchronous_commit: &str) -> Server {
    let first = start(synchronous_commit);
    first.or_else(|_| start(synchronous_commit)).unwrap_or_else(|e| panic!("PostgreSQL does not start: {e:#}"))
}

fn make_database(server: &Server) -> String {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let name = format!("test_{}", NEXT.fetch_add(1, Ordering::Relaxed));
    let (port, database) = (server.port, name.clone());
    // A thread of its own: callers may be inside a runtime or not.
    std::thread::spawn(move || create(port, &database))
        .join()
        .expect("the thread ends")
        .unwrap_or_else(|e| panic!("can't make a database: {e:#}"));
    url(server.port, &name)
}

fn url(port: u16, database: &str) -> String {
    format!("postgres://postgres@127.0.0.1:{port}/{database}?sslmode=disable")
}

fn create(port: u16, database: &str) -> Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let (client, connection) =
            tokio_postgres::connect(&url(port, "postgres"), tokio_postgres::NoTls).await.context("connect")?;
        tokio::spawn(connection);
        // Several test binaries never share a server, so the name is free.
        client.batch_execute(&format!("CREATE DATABASE {database} STRATEGY wal_log")).await?;
        Ok(())
    })
}

/// Starts `postgres` under a shell that outlives neither it nor us.
fn start(synchronous_commit: &str) -> Result<Server> {
    let initdb = find("initdb")?;
    let postgres = find("postgres")?;
    let dir = tempfile::Builder::new().prefix("ferry-pg-").tempdir()?.keep();
    let as_user = unprivileged(&dir)?;
    let data = dir.join("data");
    let run = |program: &Path| command_as(as_user.as_deref(), program, &dir);
    let made = run(&initdb)
        .args(["--username=postgres", "--auth=trust", "--encoding=UTF8", "--no-locale", "--no-sync", "-D"])
        .arg(&data)
        .output()
        .context("initdb")?;
    ensure!(made.status.success(), "initdb: {}", String::from_utf8_lossy(&made.stderr));

    let port = free_port()?;
    // The shell starts the server, says that it is ready, and waits for our end of its stdin to close.
    let script = r#"
        dir=$1; port=$2; shift 2
        trap '' INT TERM HUP
        "$@" </dev/null >"$dir/log" 2>&1 &
        cat >/dev/null
        server=$(head -n 1 "$dir/data/postmaster.pid")
        kill -QUIT "$server" 2>/dev/null
        while kill -0 "$server" 2>/dev/null; do wait; sleep 0.1; done
        rm -rf "$dir"
    "#;
    let mut command = run(Path::new("/bin/sh"));
    command.args(["-c", script, "sh"]).arg(&dir).arg(port.to_string()).arg(&postgres).arg("-D").arg(&data);
    // Tests do not ask whether a commit outlives the machine; measurements do.
    let durable = if std::env::var_os(model::env::PG_DURABLE).is_some() { "on" } else { "off" };
    for (key, value) in [
        ("listen_addresses", "127.0.0.1"),
        ("unix_socket_directories", ""),
        ("fsync", durable),
        ("synchronous_commit", if durable == "on" { durable } else { synchronous_commit }),
        ("full_page_writes", durable),
        ("autovacuum", "off"),
        ("shared_buffers", "64MB"),
        ("max_wal_size", "1GB"),
        ("logging_collector", "off"),
        // Not in /dev/shm, which a container has little of, and which a test may fill.
        ("dynamic_shared_memory_type", "sysv"),
    ] {
        command.arg("-c").arg(format!("{key}={value}"));
    }
    command.arg("-c").arg(format!("port={port}")).arg("-c").arg(format!("max_connections={CONNECTIONS}"));
    let mut watchdog = command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null()).spawn()?;
    let alive = watchdog.stdin.take().context("the watchdog has a pipe")?;
    wait_ready(port, &dir.join("log"))?;
    Ok(Server { port, dir, as_user, _alive: alive, _watchdog: watchdog })
}

/// A command in the directory of the server, as the user that owns it.
fn command_as(user: Option<&[String]>, program: &Path, dir: &Path) -> Command {
    let mut command = match user {
        Some(words) => {
            let mut command = Command::new(&words[0]);
            command.args(&words[1..]).arg(program);
            command
        }
        None => Command::new(program),
    };
    command.current_dir(dir);
    command
}

/// Waits until the server says in its log that it takes connections.
fn wait_ready(port: u16, log: &Path) -> Result<()> {
    for _ in 0..600 {
        if let Ok(file) = fs_err::File::open(log) {
            for line in BufReader::new(file).lines().map_while(Result::ok) {
                if line.contains("database system is ready to accept connections") {
                    return Ok(());
                }
                if line.contains("FATAL") {
                    bail!("{line}");
                }
            }
        }
        std::thread::sleep(std::time::Duration::from_millis(50));
    }
    bail!("it was not ready on port {port} within 30 s")
}

/// A program of PostgreSQL: from PATH, else where Debian puts it.
fn find(program: &str) -> Result<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let mut dirs: Vec<PathBuf> = std::env::split_paths(&path).collect();
    if let Ok(versions) = fs_err::read_dir("/usr/lib/postgresql") {
        let mut found: Vec<PathBuf> = versions.flatten().map(|v| v.path().join("bin")).collect();
        found.sort();
        dirs.extend(found.into_iter().rev());
    }
    let found = dirs.iter().map(|dir| dir.join(program)).find(|file| file.is_file());
    found.with_context(|| format!("there is no `{program}` on PATH or in /usr/lib/postgresql/*/bin; {INSTALL}"))
}

/// PostgreSQL refuses to run as root: the words that make a command run as `postgres`, who then owns the directory.
fn unprivileged(dir: &Path) -> Result<Option<Vec<String>>> {
    if !rustix::process::geteuid().is_root() {
        return Ok(None);
    }
    let owned = Command::new("chown").arg("postgres:").arg(dir).output().context("chown")?;
    ensure!(
        owned.status.success(),
        "as root it needs the user `postgres`, which comes with the package; {INSTALL}: {}",
        String::from_utf8_lossy(&owned.stderr)
    );
    fs_err::set_permissions(dir, std::fs::Permissions::from_mode(0o700))?;
    let words = ["setpriv", "--reuid=postgres", "--regid=postgres", "--init-groups", "--"];
    Ok(Some(words.map(str::to_owned).to_vec()))
}

fn free_port() -> Result<u16> {
    Ok(std::net::TcpListener::bind(("127.0.0.1", 0))?.local_addr()?.port())
}
