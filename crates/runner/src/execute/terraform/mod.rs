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

use fs_err as fs;
use model::deploy::{ApprovedPlan, Deploy, DeployOperation};
use model::env;
use model::kubernetes::ClusterSpec;
use model::terraform::{Module, TerraformSpec};
use serde_json::{Map, Value};

use super::action::{StepFailure, base_environment};
use super::build::PROVIDERS;
use super::deploy::{Deployer, Planned, Workspace};
use super::kubernetes::cluster;
use super::stages::Stages;
use super::{Run, artifact, source, tool};
use crate::confine::process::{Child, Interrupt, Kept};
use crate::directory::remove_tree;
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

/// What a job of Terraform works with.
pub(super) struct Site<'j> {
    pub(super) job: &'j TerraformSpec,
    pub(super) workspace: Workspace,
    pub(super) disk_bytes: u64,
    /// What its providers may reach.
    pub(super) cluster: Option<&'j ClusterSpec>,
}

impl Deployer for Site<'_> {
    const PLAN_STAGES: &'static [&'static str] = &["module", "init", "plan", "keep"];
    const APPLY_STAGES: &'static [&'static str] = &["module", "init", "apply", "outputs"];

    fn deploy(&self) -> &Deploy {
        &self.job.deploy
    }

    fn workspace(&self) -> &Workspace {
        &self.workspace
    }

    async fn plan(&self, run: &mut Run<'_>, stages: &mut Stages, destroy: bool) -> Result<Planned, StepFailure> {
        plan::make(run, stages, self, destroy).await
    }

    async fn apply(
        &self,
        run: &mut Run<'_>,
        stages: &mut Stages,
        plan: &ApprovedPlan,
        destroy: bool,
    ) -> Result<Map<String, Value>, StepFailure> {
        apply::carry_out(run, stages, self, plan, destroy).await
    }
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
        let of_plan = match (&place, &self.job.deploy.operation) {
            (Some(place), DeployOperation::Apply { plan, .. }) => Some(initialized::of_plan(place, &plan.job_id)),
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
                artifact::unpacked(run, repository, digest, &place, self.disk_bytes).await?;
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
        if let Some(file) = cluster::for_programs(run, self.cluster)? {
            // Its providers know it under their own name.
            for name in [env::KUBECONFIG, "KUBE_CONFIG_PATH"] {
                env.entry(name.to_owned()).or_insert_with(|| file.to_string_lossy().into_owned());
            }
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
