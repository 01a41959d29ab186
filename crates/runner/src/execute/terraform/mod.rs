//! Terraform and OpenTofu: makes a plan that people approve, carries out exactly that plan, and keeps the state, sealed.

mod apply;
pub(crate) mod backend;
mod initialized;
mod listen;
mod plan;
mod program;
mod variables;

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use api::terraform::{HolderRef, StateHead};
use fs_err as fs;
use model::spec::{JobSpec, Work};
use model::terraform::{Module, SealedFile, TerraformOperation, TerraformSpec};
use model::{Digest, Outcome, env};
use serde_json::{Map, Value};

use super::action::{StepFailure, base_environment};
use super::build::{PROVIDERS, remote};
use super::sealed::private_dir;
use super::stages::Stages;
use super::{Done, Run, archive, source, tool};
use crate::confine::process::{Child, Interrupt, Kept};
use crate::directory::{ExecutionDir, remove_tree};
use crate::oci::Descriptor;
use crate::seal::vault::{Keeper, SECRETS_MAX, Vault, VaultError};
use backend::Backend;
use listen::{Listener, Overheard};

const MODULE: usize = 0;
const INIT: usize = 1;
const WORK: usize = 2;
const KEEP: usize = 3;
/// Lays our backend over whatever the module names.
const BACKEND_FILE: &str = "ferry_backend_override.tf";
const BACKEND: &str = "terraform {\n  backend \"http\" {}\n}\n";
const ERROR_CHARS_MAX: usize = 300;
/// How long Terraform waits for another one's lock.
const LOCK_TIMEOUT: &str = "-lock-timeout=60s";

impl From<VaultError> for StepFailure {
    fn from(error: VaultError) -> Self {
        Self::new(error.code(), error.to_string())
    }
}

/// A workspace at the beginning of a job.
pub(super) struct Workspace {
    keeper: Arc<Keeper>,
    head: Option<StateHead>,
}

/// Looks at the state; returns its secrets, which must not be seen in any log.
pub(super) async fn open(
    vault: Vault,
    dir: &ExecutionDir,
    spec: &JobSpec,
    filled: Vec<String>,
) -> Result<(Workspace, Vec<String>), Done> {
    let job = job_of(spec).ok_or_else(|| Done::not_attempted("bad_spec", "that is no job of Terraform"))?;
    let assignment = dir.assignment().map_err(|e| Done::not_attempted("executor_error", e.to_string()))?;
    let holder = HolderRef { execution_id: assignment.execution_id, epoch: assignment.epoch };
    let secrets = spec.secrets.iter().chain(&filled).cloned().collect();
    let workspace = job.workspace_id.clone();
    let applies = matches!(job.operation, TerraformOperation::Apply { .. });
    let filled = applies.then_some(filled);
    let mut keeper = Keeper { vault, workspace, holder: Some(holder), person: String::new(), secrets, filled };
    let place = private_dir(dir).join("first.json");
    let head = keeper.load(&place).await?;
    let mut secrets = Vec::new();
    if head.is_some() {
        let read = tokio::task::spawn_blocking(move || read_state(&place)).await;
        let state = read.map_err(|e| Done::not_attempted("executor_error", e.to_string()))?;
        let state = state.map_err(|e| Done::not_attempted("sealed_file", e))?;
        secrets = state.secrets.values;
        secrets.truncate(SECRETS_MAX);
        keeper.secrets.extend(secrets.iter().cloned());
    }
    Ok((Workspace { keeper: Arc::new(keeper), head }, secrets))
}

pub(super) fn job_of(spec: &JobSpec) -> Option<&TerraformSpec> {
    match &spec.work {
        Work::TerraformDeploy(job) | Work::SandboxTerraform(job) => Some(job),
        _ => None,
    }
}

/// Reads a plain state and removes it.
fn read_state(file: &Path) -> Result<terraform::State, String> {
    let opened = fs::File::open(file).map_err(|e| e.to_string())?;
    let read = terraform::read_state(std::io::BufReader::with_capacity(256 << 10, opened), &|text| text.to_owned());
    let _ = fs::remove_file(file);
    read.map_err(|e| format!("the state can't be read: {e}"))
}

pub(super) async fn run(
    run: &mut Run<'_>,
    job: &TerraformSpec,
    workspace: Workspace,
    spec_digest: Digest,
    disk_bytes: u64,
) -> Done {
    let names: &[&str] = match &job.operation {
        TerraformOperation::Plan { .. } => &["module", "init", "plan", "keep"],
        TerraformOperation::Apply { .. } => &["module", "init", "apply", "outputs"],
        TerraformOperation::Restore { .. } => &["state"],
    };
    let mut stages = Stages::new(names);
    let site = Site { job, workspace, disk_bytes };
    let done = match &job.operation {
        TerraformOperation::Plan { destroy } => {
            Box::pin(plan::make(run, &mut stages, &site, *destroy, spec_digest)).await
        }
        TerraformOperation::Apply { plan, destroy } => {
            Box::pin(apply::carry_out(run, &mut stages, &site, plan, *destroy)).await
        }
        TerraformOperation::Restore { file, over_serial, .. } => {
            Box::pin(restore(run, &mut stages, &site, file, *over_serial)).await
        }
    };
    match done {
        Ok(outputs) => {
            let steps = stages.finish(run);
            Done { outcome: Outcome::Finished, error: None, steps, outputs }
        }
        Err(failure) => stages.fail(run, failure),
    }
}

/// What a job of Terraform works with.
struct Site<'j> {
    job: &'j TerraformSpec,
    workspace: Workspace,
    disk_bytes: u64,
}

/// A module that was initialized.
struct Ready {
    program: PathBuf,
    dir: PathBuf,
    env: BTreeMap<String, String>,
    kept: Kept,
    backend: Backend,
    /// What `init` made of it for an earlier execution, where that was taken.
    initialized: Option<PathBuf>,
}

impl Ready {
    fn argv(&self, words: &[&str]) -> Vec<String> {
        let program = self.program.to_string_lossy().into_owned();
        std::iter::once(program).chain(words.iter().map(|word| (*word).to_owned())).collect()
    }

    /// Why Terraform failed, as far as it is known.
    fn why(&self, progress: &terraform::Progress) -> Option<String> {
        self.backend.in_the_way().or_else(|| progress.first_error().map(str::to_owned))
    }
}

impl Site<'_> {
    /// Brings the module, finds the program, and initializes.
    async fn prepare(&self, run: &mut Run<'_>, stages: &mut Stages) -> Result<Ready, StepFailure> {
        stages.begin(run, MODULE);
        let work = run.host.dir.work();
        for folder in ["tmp", "sources", "module"] {
            fs::create_dir_all(work.join(folder))?;
        }
        let dir = self.module(run, &work).await?;
        let program = program::find(run, MODULE, self.job.program, &self.job.version).await?;
        stages.begin(run, INIT);
        let providers = program::cache(run).join("providers");
        fs::create_dir_all(&providers)?;
        let backend = Backend::of_execution(Arc::clone(&self.workspace.keeper), run.host.dir).await?;
        let mut open = vec![providers.clone()];
        open.extend(program.parent().map(Path::to_owned).filter(|place| place.starts_with(program::cache(run))));
        let env = self.environment(run, &work, &providers)?;
        let kept = Kept::InSandboxWith(open);
        let mut ready = Ready { program, dir, env, kept, backend, initialized: None };
        fs::write(ready.dir.join(BACKEND_FILE), BACKEND)?;
        // Terraform's own cache of providers is not made for two at once.
        let lock = std::fs::File::create(program::cache(run).join("providers.lock"))?;
        let lock = tokio::task::spawn_blocking(move || lock.lock().map(|()| lock));
        let _lock = tokio::select! {
            lock = lock => lock.map_err(std::io::Error::other)??,
            stop = run.stopped() => return Err(StepFailure::Stopped(stop)),
        };
        let place = initialized::place(run, self, &ready);
        // What an approved plan was made with is what it is carried out with.
        let of_plan = match (&place, &self.job.operation) {
            (Some(place), TerraformOperation::Apply { plan, .. }) => Some(initialized::of_plan(place, &plan.job_id)),
            _ => None,
        };
        let there = of_plan.into_iter().chain(place.clone()).find(|place| initialized::take(place, &ready.dir));
        if there.is_some() {
            run.say(Some(INIT), "this module was initialized before: `init` need not do it again");
            ready.initialized = there;
            return Ok(ready);
        }
        let locked = initialized::is_locked(&ready.dir);
        self.init(run, &ready, &work).await?;
        if let Some(place) = place {
            let settled = initialized::is_settled(&ready.dir, locked);
            let own = run.host.dir.assignment()?.job_id;
            let place = if settled { place } else { initialized::of_plan(&place, &own) };
            if let Err(error) = initialized::keep(&place, &ready.dir) {
                tracing::debug!(%error, "what `init` made is not kept");
            }
        }
        Ok(ready)
    }

    async fn module(&self, run: &mut Run<'_>, work: &Path) -> Result<PathBuf, StepFailure> {
        let place = work.join("module");
        match &self.job.module {
            Module::Source { source } => source::prepare(run, MODULE, source, &place, self.disk_bytes).await,
            Module::Artifact { repository, digest } => {
                let from = remote(run, repository).await?;
                let manifest = from.manifest(digest.as_str()).await?.value()?;
                let layer: Option<Descriptor> = serde_json::from_value(manifest["layers"][0].clone()).ok();
                let layer = layer.ok_or_else(|| StepFailure::new("source_failed", "the artifact has no layer"))?;
                let file = work.join("sources/module.tar.gz");
                tokio::select! {
                    fetched = from.fetch_blob(&layer, &file) => fetched?,
                    stop = run.stopped() => return Err(StepFailure::Stopped(stop)),
                }
                archive::unpack_file(file, layer.digest, place.clone(), self.disk_bytes).await?;
                Ok(place)
            }
            Module::Nothing {} => Err(StepFailure::new("bad_spec", "the job names no module")),
        }
    }

    fn environment(
        &self,
        run: &Run<'_>,
        work: &Path,
        providers: &Path,
    ) -> Result<BTreeMap<String, String>, StepFailure> {
        let mut env = base_environment(|name| std::env::var(name).ok(), work);
        let is_ours = |name: &str| env::TERRAFORM_RESERVED.iter().any(|prefix| name.starts_with(prefix));
        let given = self.job.env.iter().filter(|(name, _)| !is_ours(name));
        env.extend(given.map(|(name, value)| (name.clone(), value.clone())));
        let config = match &run.context.tools.terraform_config {
            Some(file) => file.clone(),
            None => {
                let file = work.join("terraform.tfrc");
                tool::private(&file, "disable_checkpoint = true\n")?;
                file
            }
        };
        for (name, value) in [
            (env::TF_CLI_CONFIG_FILE, config.to_string_lossy().into_owned()),
            (env::TF_PLUGIN_CACHE_DIR, providers.to_string_lossy().into_owned()),
            // Without it an `init` may put a package into the cache anew, away from under a run that uses it.
            (env::TF_PLUGIN_CACHE_MAY_BREAK_DEPENDENCY_LOCK_FILE, "1".into()),
            (env::TF_IN_AUTOMATION, "1".into()),
            (env::TF_INPUT, "0".into()),
            (env::CHECKPOINT_DISABLE, "1".into()),
        ] {
            env.insert(name.to_owned(), value);
        }
        Ok(env)
    }

    async fn init(&self, run: &mut Run<'_>, ready: &Ready, work: &Path) -> Result<(), StepFailure> {
        let config = work.join("backend.hcl");
        tool::private(&config, &ready.backend.config())?;
        let config = format!("-backend-config={}", config.display());
        let vendored = format!("-plugin-dir={}", ready.dir.join(PROVIDERS).display());
        let mut words = vec!["init", "-input=false", "-no-color", &config];
        if ready.dir.join(PROVIDERS).is_dir() {
            words.push(&vendored);
        }
        let heard = RefCell::new(Overheard::default());
        let child = Child {
            kept: ready.kept.clone(),
            hear_errors: Some(&heard),
            ..Child::new(ready.argv(&words), ready.dir.clone(), ready.env.clone(), INIT)
        };
        match tool::exit_code(run, &child).await? {
            0 => Ok(()),
            code => Err(failed(
                code,
                match heard.borrow().first_error() {
                    Some(why) => format!("`init` failed: {why}"),
                    None => "`init` failed; the log says why".to_owned(),
                },
            )),
        }
    }

    /// Runs Terraform and follows what it says.
    async fn follow(
        &self,
        run: &mut Run<'_>,
        stages: &mut Stages,
        ready: &Ready,
        words: &[&str],
    ) -> Result<(i32, terraform::Progress), StepFailure> {
        let heard = RefCell::new(Listener::new(run.host.secrets, run.host.dir, stages.steps().to_vec(), WORK));
        let child = Child {
            kept: ready.kept.clone(),
            interrupt: Interrupt::Leader,
            hear: Some(&heard),
            ..Child::new(ready.argv(words), ready.dir.clone(), ready.env.clone(), WORK)
        };
        let ended = tool::exit_code(run, &child).await;
        drop(child);
        let heard = heard.into_inner();
        stages.set_resources(WORK, heard.shown());
        let code = ended?;
        if let Some(place) = ready.initialized.as_ref().filter(|_| code != 0) {
            // It may be that: the next try begins with `init`.
            let _ = remove_tree(place);
        }
        Ok((code, heard.progress().clone()))
    }
}

fn failed(code: i32, message: impl Into<String>) -> StepFailure {
    let message = shortened(message.into());
    StepFailure::Failed { error: model::JobError::new("terraform_failed", message), exit_code: Some(code) }
}

/// An error in one line that fits; the log has all of it.
fn shortened(message: String) -> String {
    match message.char_indices().nth(ERROR_CHARS_MAX) {
        Some((at, _)) => format!("{}…", &message[..at]),
        None => message,
    }
}

/// Makes an earlier state the state again: the same content under the next serial.
async fn restore(
    run: &mut Run<'_>,
    stages: &mut Stages,
    site: &Site<'_>,
    file: &SealedFile,
    over_serial: Option<u64>,
) -> Result<Map<String, Value>, StepFailure> {
    stages.begin(run, 0);
    let keeper = &site.workspace.keeper;
    let now = site.workspace.head.as_ref().map(|head| head.serial);
    if over_serial.is_some() && now != over_serial {
        let (asked, now) = (over_serial.unwrap_or_default(), now.unwrap_or_default());
        let text = format!(
            "the state had serial {asked} when this was asked for, and has {now} now: nothing is restored; look at it again"
        );
        return Err(StepFailure::new("state_changed", text));
    }
    let place = private_dir(run.host.dir).join("restored.json");
    keeper.vault.fetch(file, &place).await?;
    let serial = site.workspace.head.as_ref().map_or(0, |head| head.serial) + 1;
    let path = place.clone();
    let rewritten = tokio::task::spawn_blocking(move || set_serial(&path, serial)).await;
    rewritten.map_err(std::io::Error::other)??;
    let saved = keeper.push(&place, model::terraform::RESTORED).await?;
    let _ = fs::remove_file(&place);
    if saved.quarantined {
        return Err(StepFailure::new("lease_lost", "the lease was lost: nothing was restored"));
    }
    run.say(Some(0), &format!("restored as serial {serial}, revision {}", saved.revision_id));
    Ok(Map::from_iter([
        ("serial".to_owned(), serial.into()),
        ("revision_id".to_owned(), saved.revision_id.to_string().into()),
    ]))
}

/// Gives a state another serial, which stands near its beginning; the rest is copied as it is.
pub(crate) fn set_serial(file: &Path, serial: u64) -> std::io::Result<()> {
    use std::io::{Read as _, Seek as _};
    let bad = || std::io::Error::other("the state's serial can't be found");
    let mut source = fs::File::open(file)?;
    let mut head = Vec::new();
    (&mut source).take(64 << 10).read_to_end(&mut head)?;
    let text = String::from_utf8_lossy(&head);
    let at = text.find("\"serial\"").ok_or_else(bad)?;
    let rest = &text[at + 8..];
    let digits = rest.find(|c: char| c.is_ascii_digit()).ok_or_else(bad)?;
    let length = rest[digits..].find(|c: char| !c.is_ascii_digit()).ok_or_else(bad)?;
    let (from, to) = (at + 8 + digits, at + 8 + digits + length);
    let new = file.with_extension("new");
    let mut target = crate::seal::vault::private_file(&new)?;
    source.rewind()?;
    std::io::copy(&mut (&mut source).take(from as u64), &mut target)?;
    std::io::Write::write_all(&mut target, serial.to_string().as_bytes())?;
    source.seek(std::io::SeekFrom::Start(to as u64))?;
    std::io::copy(&mut source, &mut target)?;
    let told =
        terraform::read_state_head(std::io::BufReader::new(fs::File::open(&new)?)).map_err(std::io::Error::other)?;
    if told.serial != serial {
        return Err(bad());
    }
    fs::rename(&new, file)
}
