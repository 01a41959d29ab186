//! Hosts build runners: one per org, started when there is something to build, stopped when there was nothing for a while.
//!
//! Each has a directory of its own, where its keys, caches and workspaces lie, and nobody else may look; with
//! `builds.users_from`, a user of its own too. A server that dies takes its runners' sessions with it, never their
//! executors: the next session takes those over.

use std::collections::HashMap;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, Instant};

use anyhow::Context as _;
use model::waiting::Presence;
use model::{OrgId, RunnerId, env};
use tokio::process::{Child, Command};
use tokio_util::sync::CancellationToken;

use crate::AppState;
use crate::config::Builds;

/// What a build runner inherits from the server's environment; nothing else.
const INHERITED: [&str; 15] = [
    "PATH",
    "LANG",
    "TZ",
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
    "HTTP_PROXY",
    "HTTPS_PROXY",
    "NO_PROXY",
    "http_proxy",
    "https_proxy",
    "no_proxy",
    "REGISTRY_AUTH_FILE",
    "DOCKER_CONFIG",
    env::CRASH_FILE,
    env::RUNNER_LOG,
];
/// How often open builds are looked for.
const LOOK: Duration = Duration::from_millis(500);
/// Whoever brings a runner of their own has this long before one is started here.
const PATIENCE: Duration = Duration::from_secs(3);
/// Who ends before this has failed.
const LASTS: Duration = Duration::from_secs(10);
/// After so many failures its session is given up for a new one: it may have been fenced.
const FAILURES_OF_A_SESSION: u32 = 2;
/// A log that has grown over this begins anew with the next start.
const LOG_BYTES: u64 = 16 << 20;
const PAUSE_MAX: Duration = Duration::from_secs(60);

struct Hosted {
    child: Child,
    started_at: Instant,
    needed_at: Instant,
    runner: RunnerId,
    /// When we last said that it is ours.
    claimed_at: Instant,
    stopping: bool,
}

/// A runner that ended soon after its start is left alone for a while, longer every time.
#[derive(Default)]
struct Failures {
    count: u32,
    until: Option<Instant>,
}

struct Launcher {
    state: AppState,
    settings: Builds,
    program: PathBuf,
    dir: PathBuf,
    /// Who we are to the other servers of this database.
    host: String,
    hosted: HashMap<OrgId, Hosted>,
    /// Since when an org has builds and no runner.
    waiting: HashMap<OrgId, Instant>,
    failures: HashMap<OrgId, Failures>,
}

/// Hosts build runners until told to stop, then stops them.
pub(crate) async fn run(state: AppState, stop: CancellationToken) {
    let settings = state.config.builds.clone();
    if settings.launcher != "process" {
        return;
    }
    let program = program(&settings);
    if let Some(missing) = missing(&program) {
        tracing::warn!("{missing}; or host build runners elsewhere and set builds.launcher to `none`");
    }
    let dir = state.config.data_dir.join("build-runners");
    let host = match host_name(&state, &dir) {
        Ok(host) => host,
        Err(error) => {
            tracing::error!(error = format!("{error:#}"), "this server hosts no build runners");
            return;
        }
    };
    let mut launcher = Launcher {
        state,
        settings,
        program,
        dir,
        host,
        hosted: HashMap::new(),
        waiting: HashMap::new(),
        failures: HashMap::new(),
    };
    loop {
        tokio::select! {
            () = stop.cancelled() => break,
            () = tokio::time::sleep(LOOK) => {}
        }
        if let Err(error) = launcher.look().await {
            tracing::warn!(error = format!("{error:#}"), "build runners can't be looked after; will look again");
        }
    }
    for hosted in launcher.hosted.values_mut() {
        interrupt(&hosted.child);
    }
    for hosted in launcher.hosted.values_mut() {
        let _ = tokio::time::timeout(Duration::from_secs(5), hosted.child.wait()).await;
        // It is anybody's at once.
        let conductor = &launcher.state.conductor;
        let _ = conductor.host_runner(&hosted.runner, &launcher.host, conductor.now()).await;
    }
}

/// The program of the runners.
pub(crate) fn program(settings: &Builds) -> PathBuf {
    match settings.runner_program.as_str() {
        "" => std::env::current_exe().map(|exe| exe.with_file_name("ferry-runner")).unwrap_or_default(),
        path => PathBuf::from(path),
    }
}

/// Says that it is not there; a bare name is looked for on PATH.
pub(crate) fn missing(program: &Path) -> Option<String> {
    let there = program.components().count() == 1 || program.exists();
    (!there).then(|| format!("{} is missing: the server can't start build runners without it", program.display()))
}

/// A name that stays the same over restarts, so that a server need not wait for its own claims to end.
fn host_name(state: &AppState, dir: &Path) -> anyhow::Result<String> {
    let path = dir.join("host");
    if !path.exists() {
        crate::make_private(dir)?;
        crate::write_private(&path, &format!("{:032x}", state.conductor.random_u128()))?;
    }
    Ok(fs_err::read_to_string(&path)?)
}

fn interrupt(child: &Child) {
    if let Some(pid) = child.id().and_then(|pid| rustix::process::Pid::from_raw(pid.cast_signed())) {
        let _ = rustix::process::kill_process(pid, rustix::process::Signal::TERM);
    }
}

impl Launcher {
    async fn look(&mut self) -> anyhow::Result<()> {
        let mut ended = Vec::new();
        for (org, hosted) in &mut self.hosted {
            if let Some(status) = hosted.child.try_wait()? {
                tracing::info!(%org, %status, "a build runner has ended");
                ended.push((org.clone(), hosted.started_at.elapsed() < LASTS && !hosted.stopping));
            }
        }
        for (org, failed) in ended {
            self.hosted.remove(&org);
            if failed {
                self.note_failure(&org);
            } else {
                self.failures.remove(&org);
            }
        }
        self.renew_claims().await?;
        let now = Instant::now();
        let wanted = self.state.store().orgs_with_open_builds().await?;
        self.waiting.retain(|org, _| wanted.contains(org));
        for org in wanted {
            match self.hosted.get_mut(&org) {
                Some(hosted) => hosted.needed_at = now,
                None => {
                    if let Err(error) = self.host(&org, now).await {
                        tracing::warn!(%org, error = format!("{error:#}"), "its build runner can't be started");
                        self.note_failure(&org);
                    }
                }
            }
        }
        let idle = Duration::from_secs(self.settings.idle_s);
        for (org, hosted) in &mut self.hosted {
            if now.duration_since(hosted.needed_at) > idle && !hosted.stopping {
                tracing::info!(%org, "the build runner had nothing to do and is stopped");
                hosted.stopping = true;
                interrupt(&hosted.child);
            }
        }
        Ok(())
    }

    /// How long a runner is ours when nothing more is heard of us: as long as one counts as there that is not heard of.
    fn claim(&self) -> Duration {
        Duration::from_secs(self.state.config.timing.silent_offline_s)
    }

    async fn claimed(&self, runner: &RunnerId) -> anyhow::Result<bool> {
        let conductor = &self.state.conductor;
        let until = conductor.now().plus_s(self.claim().as_secs().cast_signed());
        Ok(conductor.host_runner(runner, &self.host, until).await?)
    }

    async fn renew_claims(&mut self) -> anyhow::Result<()> {
        let due = |hosted: &Hosted| hosted.claimed_at.elapsed() > self.claim() / 3 && !hosted.stopping;
        let due: Vec<_> =
            self.hosted.iter().filter(|(_, h)| due(h)).map(|(o, h)| (o.clone(), h.runner.clone())).collect();
        for (org, runner) in due {
            let still_ours = self.claimed(&runner).await?;
            let Some(hosted) = self.hosted.get_mut(&org) else { continue };
            hosted.claimed_at = Instant::now();
            if !still_ours {
                tracing::info!(%org, "the build runner is hosted elsewhere now; the one here is stopped");
                hosted.stopping = true;
                interrupt(&hosted.child);
            }
        }
        Ok(())
    }

    fn note_failure(&mut self, org: &OrgId) {
        let failures = self.failures.entry(org.clone()).or_default();
        failures.count += 1;
        let pause = Duration::from_secs(1 << failures.count.min(6)).min(PAUSE_MAX);
        failures.until = Some(Instant::now() + pause);
        tracing::warn!(%org, failures = failures.count, ?pause, "the build runner is left alone for a while; its runner.log says why");
    }

    /// Starts the runner of an org, unless it is there, or may be on its way.
    async fn host(&mut self, org: &OrgId, now: Instant) -> anyhow::Result<()> {
        if missing(&self.program).is_some() {
            return Ok(());
        }
        let runner = self.state.conductor.build_runner(org).await?;
        if self.state.conductor.presence(&runner) == Presence::Online {
            self.waiting.remove(org);
            return Ok(());
        }
        let dir = self.dir.join(org.as_str());
        let state_dir = dir.join("state");
        if let Some(failures) = self.failures.get(org) {
            if failures.until.is_some_and(|until| now < until) {
                return Ok(());
            }
            if failures.count.is_multiple_of(FAILURES_OF_A_SESSION) && state_dir.join("session.json").exists() {
                tracing::info!(%org, "the build runner's session is given up for a new one");
                fs_err::remove_dir_all(&state_dir)?;
            }
        }
        // One that was hosted here before is nobody else's.
        let ours = state_dir.join("session.json").exists();
        let since = *self.waiting.entry(org.clone()).or_insert(now);
        if !ours && now.saturating_duration_since(since) < PATIENCE {
            return Ok(());
        }
        if !self.claimed(&runner.id).await? {
            return Ok(());
        }
        self.waiting.remove(org);
        let user = self.make_home(&dir)?;
        let mut command = match user {
            None => Command::new(&self.program),
            Some(user) => {
                let mut command = Command::new("setpriv");
                command.arg(format!("--reuid={user}")).arg(format!("--regid={user}")).arg("--clear-groups");
                command.arg(&self.program);
                command
            }
        };
        command.arg("build").arg("--state-dir").arg(&state_dir).arg("--url").arg(&*self.state.runner_url);
        command.env_clear();
        command.envs(INHERITED.iter().filter_map(|name| Some((name, std::env::var_os(name)?))));
        // Scripts of a build see nothing of the server's data, nor of another org's runner.
        let hidden = fs_err::canonicalize(&self.state.config.data_dir)?;
        command.env(env::RUNNER_HIDE, hidden);
        command.env("HOME", dir.join("home")).env(env::PARENT_DEATH, std::process::id().to_string());
        if !ours {
            let conductor = &self.state.conductor;
            let (_, credential) = conductor.join_credential(org, &runner.id, store::SERVER).await?;
            command.env(env::RUNNER_JOIN, credential);
            command.env(env::RUNNER_TRUST_KEY, conductor.signing_keys().fingerprint());
        }
        let log = dir.join("runner.log");
        let long = fs_err::metadata(&log).is_ok_and(|meta| meta.len() > LOG_BYTES);
        let mut options = fs_err::OpenOptions::new();
        let log = options.create(true).append(!long).write(true).truncate(long).open(log)?.into_parts().0;
        command.stdin(Stdio::null()).stdout(Stdio::from(log.try_clone()?)).stderr(Stdio::from(log));
        command.process_group(0).kill_on_drop(false);
        let child = command.spawn().with_context(|| format!("{} can't be started", self.program.display()))?;
        tracing::info!(%org, pid = child.id(), "a build runner is started");
        let hosted =
            Hosted { child, started_at: now, needed_at: now, runner: runner.id, claimed_at: now, stopping: false };
        self.hosted.insert(org.clone(), hosted);
        Ok(())
    }

    /// The org's directory, and its user where each org has one.
    fn make_home(&self, dir: &Path) -> anyhow::Result<Option<u32>> {
        crate::make_private(&self.dir)?;
        fs_err::create_dir_all(dir.join("home"))?;
        fs_err::create_dir_all(dir.join("state"))?;
        if self.settings.users_from == 0 {
            fs_err::set_permissions(dir, std::fs::Permissions::from_mode(0o700))?;
            return Ok(None);
        }
        // The first that nobody has; noted beside the directory, so that it stays the same.
        let note = dir.with_extension("user");
        let user = match fs_err::read_to_string(&note).ok().and_then(|text| text.trim().parse::<u32>().ok()) {
            Some(user) => user,
            None => {
                let taken = fs_err::read_dir(&self.dir)?.flatten().map(|entry| entry.path());
                let taken = taken.filter(|path| path.extension().is_some_and(|e| e == "user"));
                let highest =
                    taken.filter_map(|path| fs_err::read_to_string(path).ok()?.trim().parse::<u32>().ok()).max();
                let user = highest.map_or(self.settings.users_from, |last| last + 1);
                crate::write_private(&note, &user.to_string())?;
                user
            }
        };
        for path in [dir.to_owned(), dir.join("home"), dir.join("state")] {
            std::os::unix::fs::chown(&path, Some(user), Some(user)).with_context(|| {
                format!("{} can't be given to user {user}; builds.users_from needs root", path.display())
            })?;
            fs_err::set_permissions(&path, std::fs::Permissions::from_mode(0o700))?;
        }
        // They pass through, and see nothing; what lies there is for the server's eyes alone.
        for path in [&self.dir, &self.state.config.data_dir] {
            fs_err::set_permissions(path, std::fs::Permissions::from_mode(0o711))?;
        }
        Ok(Some(user))
    }
}
