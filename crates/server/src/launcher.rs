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
use model::{CredentialId, OrgId};
use tokio::process::{Child, Command};
use tokio_util::sync::CancellationToken;

use crate::AppState;
use crate::config::Builds;

/// How often open builds are looked for.
const LOOK: Duration = Duration::from_millis(500);
/// A runner that someone else hosts has this long to come back before one is started here.
const PATIENCE: Duration = Duration::from_secs(3);
/// How long a runner that keeps ending is left alone.
const RESTART: Duration = Duration::from_secs(2);
/// In a child's environment: the process it must not outlive.
const PARENT: &str = "FERRY_PARENT_DEATH";

struct Hosted {
    child: Child,
    needed_at: Instant,
}

struct Launcher {
    state: AppState,
    settings: Builds,
    program: PathBuf,
    dir: PathBuf,
    hosted: HashMap<OrgId, Hosted>,
    /// Since when an org has builds and no runner.
    waiting: HashMap<OrgId, Instant>,
}

/// Hosts build runners until told to stop, then stops them.
pub(crate) async fn run(state: AppState, stop: CancellationToken) {
    let settings = state.config.builds.clone();
    if settings.launcher != "process" {
        return;
    }
    let program = match settings.runner_program.as_str() {
        "" => std::env::current_exe().map(|exe| exe.with_file_name("ferry-runner")).unwrap_or_default(),
        path => PathBuf::from(path),
    };
    let dir = state.config.data_dir.join("build-runners");
    let mut launcher = Launcher { state, settings, program, dir, hosted: HashMap::new(), waiting: HashMap::new() };
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
    for (_, mut hosted) in launcher.hosted {
        let _ = tokio::time::timeout(Duration::from_secs(5), hosted.child.wait()).await;
    }
}

fn interrupt(child: &Child) {
    if let Some(pid) = child.id().and_then(|pid| rustix::process::Pid::from_raw(pid.cast_signed())) {
        let _ = rustix::process::kill_process(pid, rustix::process::Signal::TERM);
    }
}

impl Launcher {
    async fn look(&mut self) -> anyhow::Result<()> {
        self.hosted.retain(|org, hosted| match hosted.child.try_wait() {
            Ok(None) => true,
            Ok(Some(status)) => {
                tracing::info!(%org, %status, "a build runner has ended");
                false
            }
            Err(error) => {
                tracing::warn!(%org, %error, "a build runner can't be watched");
                false
            }
        });
        let now = Instant::now();
        let wanted = self.state.store().orgs_with_open_builds().await?;
        self.waiting.retain(|org, _| wanted.contains(org));
        for org in wanted {
            match self.hosted.get_mut(&org) {
                Some(hosted) => hosted.needed_at = now,
                None => {
                    if let Err(error) = self.host(&org, now).await {
                        tracing::warn!(%org, error = format!("{error:#}"), "its build runner can't be started");
                        self.waiting.insert(org, now + RESTART);
                    }
                }
            }
        }
        let idle = Duration::from_secs(self.settings.idle_s);
        for (org, hosted) in &self.hosted {
            if now.duration_since(hosted.needed_at) > idle {
                tracing::info!(%org, "the build runner had nothing to do and is stopped");
                interrupt(&hosted.child);
            }
        }
        Ok(())
    }

    /// Starts the runner of an org, unless it is there, or may be on its way.
    async fn host(&mut self, org: &OrgId, now: Instant) -> anyhow::Result<()> {
        let runner = self.state.conductor.build_runner(org).await?;
        if self.state.conductor.presence(&runner) == Presence::Online {
            self.waiting.remove(org);
            return Ok(());
        }
        let dir = self.dir.join(org.as_str());
        let state_dir = dir.join("state");
        // One that was hosted here before is nobody else's.
        let ours = state_dir.join("session.json").exists();
        let since = *self.waiting.entry(org.clone()).or_insert(now);
        if !ours && now.saturating_duration_since(since) < PATIENCE || since > now {
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
        for name in ["PATH", "LANG", "TZ", "SSL_CERT_FILE", "SSL_CERT_DIR", "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY"]
            .into_iter()
            .chain([
                "http_proxy",
                "https_proxy",
                "no_proxy",
                "REGISTRY_AUTH_FILE",
                "DOCKER_CONFIG",
                "FERRY_CRASH_FILE",
                "FERRY_RUNNER_LOG",
            ])
        {
            if let Some(value) = std::env::var_os(name) {
                command.env(name, value);
            }
        }
        command.env("HOME", dir.join("home")).env(PARENT, std::process::id().to_string());
        if !ours {
            let conductor = &self.state.conductor;
            let credential = conductor.secret("fjc");
            let id = CredentialId::new(conductor.now(), conductor.random_u128());
            let (store, at) = (self.state.store(), conductor.now());
            store.add_credential(org, &runner.id, id, &credential, "ferry", at).await?;
            command.env("FERRY_RUNNER_JOIN", credential);
            command.env("FERRY_RUNNER_TRUST_KEY", conductor.signing_keys().fingerprint());
        }
        let log = fs_err::OpenOptions::new().create(true).append(true).open(dir.join("runner.log"))?.into_parts().0;
        command.stdin(Stdio::null()).stdout(Stdio::from(log.try_clone()?)).stderr(Stdio::from(log));
        command.process_group(0).kill_on_drop(false);
        let child = command.spawn().with_context(|| format!("{} can't be started", self.program.display()))?;
        tracing::info!(%org, pid = child.id(), "a build runner is started");
        self.hosted.insert(org.clone(), Hosted { child, needed_at: now });
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
        // Others pass through, and see nothing.
        fs_err::set_permissions(&self.dir, std::fs::Permissions::from_mode(0o711))?;
        Ok(Some(user))
    }
}
