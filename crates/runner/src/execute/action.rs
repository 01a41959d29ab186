//! An action: its steps one after the other, in one workspace.
//!
//! `work/` holds `root/` (the workspace), `tmp/`, and for step N `sources/N/`, `scripts/N` and `outputs/N`.

use std::collections::BTreeMap;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::ExitStatus;

use crash::crash_point;
use fs_err as fs;
use model::constants::OUTPUTS_BYTES;
use model::kubernetes::ClusterSpec;
use model::spec::{ActionSpec, StepSpec};
use model::{JobError, Outcome, StepResult, StepStatus, env};
use serde_json::{Map, Value};

use super::{Done, Run, kubernetes, now, outputs, source};
use crate::confine::process::{self, Child, Ended, Stop};

/// What a script inherits from the runner's own environment; nothing else.
const INHERITED: [&str; 25] = [
    "PATH",
    "HOME",
    "USER",
    "LANG",
    "LC_ALL",
    "TZ",
    "HTTP_PROXY",
    "HTTPS_PROXY",
    "NO_PROXY",
    "ALL_PROXY",
    "http_proxy",
    "https_proxy",
    "no_proxy",
    "all_proxy",
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
    "CURL_CA_BUNDLE",
    "REQUESTS_CA_BUNDLE",
    "NODE_EXTRA_CA_CERTS",
    "GIT_SSL_CAINFO",
    "GIT_SSL_CAPATH",
    "AWS_CA_BUNDLE",
    "PIP_CERT",
    "CARGO_HTTP_CAINFO",
    "DENO_CERT",
];
const DEFAULT_PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
/// Never handed to a script, whatever a spec says.
const API_TOKENS: [&str; 2] = [env::DIALECT_API_TOKEN, env::API_TOKEN];

/// Why a step did not finish.
#[derive(Debug)]
pub(crate) enum StepFailure {
    Stopped(Stop),
    Failed { error: JobError, exit_code: Option<i32> },
}

impl StepFailure {
    pub(super) fn new(code: &str, message: impl Into<String>) -> Self {
        Self::Failed { error: JobError::new(code, message), exit_code: None }
    }

    /// As people read it.
    pub(crate) fn sentence(self) -> String {
        match self {
            Self::Stopped(stop) => stop.error().message,
            Self::Failed { error, .. } => error.message,
        }
    }
}

impl From<std::io::Error> for StepFailure {
    fn from(error: std::io::Error) -> Self {
        Self::new("executor_error", error.to_string())
    }
}

pub(super) async fn run(
    run: &mut Run<'_>,
    action: &ActionSpec,
    cluster: Option<&ClusterSpec>,
    disk_bytes: u64,
) -> Done {
    let mut steps: Vec<StepResult> = action.steps.iter().map(|s| StepResult::pending(&s.name)).collect();
    let (mut merged, mut by_step) = (Map::new(), Map::new());
    let mut end = (Outcome::Finished, None);
    for (index, step) in action.steps.iter().enumerate() {
        if index > 0 {
            crash_point!("executor.between_steps");
        }
        if end.0 != Outcome::Finished {
            steps[index].status = StepStatus::NotAttempted;
            continue;
        }
        steps[index].status = StepStatus::InProgress;
        steps[index].started_at = Some(now());
        report(run, &steps);
        run.say(Some(index), &format!("step {}/{} `{}`", index + 1, action.steps.len(), step.name));
        let outcome = Box::pin(run_step(run, action, cluster, index, step, disk_bytes)).await;
        let result = &mut steps[index];
        result.finished_at = Some(now());
        match outcome {
            Ok(outputs) => {
                result.status = StepStatus::Finished;
                result.exit_code = Some(0);
                merged.extend(outputs.clone());
                by_step.insert(step.name.clone(), Value::Object(outputs));
            }
            Err(StepFailure::Stopped(stop)) => {
                result.status = stop.step_status();
                end = (stop.outcome(), Some(stop.error()));
            }
            Err(StepFailure::Failed { error, exit_code }) => {
                result.status = StepStatus::Error;
                result.exit_code = exit_code;
                end = (
                    Outcome::Failed,
                    Some(JobError { message: format!("step `{}`: {}", step.name, error.message), ..error }),
                );
            }
        }
        if let Some(error) = &end.1 {
            result.error = Some(error.message.clone());
            run.say(Some(index), &error.message);
        }
    }
    report(run, &steps);
    if !by_step.is_empty() {
        merged.insert("steps".into(), Value::Object(by_step));
    }
    Done { outcome: end.0, error: end.1, steps, outputs: merged }
}

/// Progress is worth a try, not a failure.
pub(super) fn report(run: &Run<'_>, steps: &[StepResult]) {
    let masks = run.host.secrets.masks();
    let masked: Vec<StepResult> = steps
        .iter()
        .map(|step| StepResult { error: step.error.as_ref().map(|e| masks.mask_text(e)), ..step.clone() })
        .collect();
    if let Err(error) = run.host.dir.write_steps(&masked) {
        tracing::warn!(%error, "the progress can't be written");
    }
}

async fn run_step(
    run: &mut Run<'_>,
    action: &ActionSpec,
    cluster: Option<&ClusterSpec>,
    index: usize,
    step: &StepSpec,
    disk_bytes: u64,
) -> Result<Map<String, Value>, StepFailure> {
    let work = run.host.dir.work();
    let place = |folder: &str| work.join(folder).join(index.to_string());
    let root = work.join("root");
    for folder in ["root", "tmp", "outputs", "scripts", "sources"] {
        fs::create_dir_all(work.join(folder))?;
    }
    let cwd = match &step.source {
        Some(source) => source::prepare(run, index, source, &place("sources"), disk_bytes).await?,
        None => root.clone(),
    };
    let outputs_file = place("outputs");
    fs::write(&outputs_file, "")?;
    let argv = match (&step.inline_contents, &step.command) {
        (Some(script), _) => vec![path_text(&write_script(&place("scripts"), script)?)],
        (None, Some(command)) => vec!["/bin/sh".into(), "-c".into(), local_command(&cwd, command)],
        (None, None) => return Err(StepFailure::new("bad_spec", "the step has nothing to run")),
    };
    let kubeconfig = kubernetes::cluster::for_programs(run, cluster)?;
    let env = environment(|name| std::env::var(name).ok(), action, step, &work, &outputs_file, kubeconfig.as_deref());
    let child = Child::new(argv, cwd, env, index);
    match process::run(&child, &run.host, &mut run.stop).await? {
        Ended::Stopped(stop) => Err(StepFailure::Stopped(stop)),
        Ended::Exited(status) if status.success() => read_outputs(&outputs_file),
        Ended::Exited(status) => Err(failed(run, status)),
    }
}

fn failed(run: &Run<'_>, status: ExitStatus) -> StepFailure {
    let mut message = match (status.code(), status.signal()) {
        (Some(code), _) => format!("exit code {code}"),
        (None, Some(signal)) => format!("killed by signal {signal}"),
        (None, None) => "it ended in an unknown way".to_owned(),
    };
    if run.host.cgroups.memory_limit_hit() {
        message.push_str("; it went over its memory limit");
    }
    StepFailure::Failed { error: JobError::new("step_failed", message), exit_code: status.code() }
}

fn read_outputs(file: &Path) -> Result<Map<String, Value>, StepFailure> {
    use std::io::Read as _;
    let bad = |message: String| StepFailure::new("bad_outputs", message);
    // The script may have put anything there; only a plain file is read, and never more than the cap.
    let meta = fs::symlink_metadata(file).map_err(|e| bad(format!("the outputs file is gone: {e}")))?;
    if !meta.is_file() {
        return Err(bad("the outputs file was replaced by something else".into()));
    }
    let mut bytes = Vec::new();
    fs::File::open(file)
        .and_then(|f| f.take(OUTPUTS_BYTES + 1).read_to_end(&mut bytes))
        .map_err(|e| bad(format!("the outputs file can't be read: {e}")))?;
    if meta.len() > OUTPUTS_BYTES {
        return Err(bad(outputs::too_large(meta.len())));
    }
    outputs::parse(&bytes).map_err(bad)
}

fn write_script(path: &Path, script: &str) -> Result<PathBuf, StepFailure> {
    let head = if script.starts_with("#!") { "" } else { "#!/bin/sh\n" };
    fs::write(path, format!("{head}{script}"))?;
    fs::set_permissions(path, PermissionsExt::from_mode(0o755))?;
    Ok(path.to_owned())
}

/// A first word that is an executable file in the directory means that file.
fn local_command(cwd: &Path, command: &str) -> String {
    let command = command.trim_start();
    let word = command.split_whitespace().next().unwrap_or_default();
    let plain = !word.is_empty() && word.chars().all(|c| c.is_alphanumeric() || "_-./".contains(c));
    let local = plain
        && !word.starts_with(['/', '.'])
        && fs::metadata(cwd.join(word)).is_ok_and(|m| m.is_file() && m.permissions().mode() & 0o111 != 0);
    if local { format!("./{command}") } else { command.to_owned() }
}

fn path_text(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}

/// What every child gets, from the lowest precedence to the highest; see `ActionSpec`.
fn environment(
    inherited: impl Fn(&str) -> Option<String>,
    action: &ActionSpec,
    step: &StepSpec,
    work: &Path,
    outputs_file: &Path,
    kubeconfig: Option<&Path>,
) -> BTreeMap<String, String> {
    let mut env = base_environment(inherited, work);
    let mut builtin = action.builtin_env.clone();
    builtin.retain(|name, _| !API_TOKENS.contains(&name.as_str()));
    builtin.insert(env::ACTIONS_OUTPUT_FILEPATH.into(), path_text(outputs_file));
    builtin.insert(env::ACTIONS_ROOT.into(), path_text(&work.join("root")));
    builtin.insert(env::KUBECONFIG_ENABLED.into(), kubeconfig.is_some().to_string());
    if let Some(file) = kubeconfig {
        builtin.insert(env::KUBECONFIG.into(), path_text(file));
    }
    // Each under both names; a name that is given itself stands.
    for (name, value) in builtin.clone() {
        for (from, to) in [(env::DIALECT_PREFIX, env::PREFIX), (env::PREFIX, env::DIALECT_PREFIX)] {
            if let Some(rest) = name.strip_prefix(from) {
                builtin.entry(format!("{to}{rest}")).or_insert_with(|| value.clone());
            }
        }
    }
    for layer in [&builtin, &action.run_env, &step.env, &action.override_env] {
        env.extend(layer.iter().map(|(k, v)| (k.clone(), v.clone())));
    }
    env.insert("COLUMNS".into(), "500".into());
    env
}

/// In the work directory: a line that a step adds to it is a secret from then on.
pub(super) const MASK_FILE: &str = "mask";

/// The part of the environment that does not come from the spec.
pub(super) fn base_environment(inherited: impl Fn(&str) -> Option<String>, work: &Path) -> BTreeMap<String, String> {
    let mut env: BTreeMap<String, String> =
        INHERITED.iter().filter_map(|name| Some(((*name).to_owned(), inherited(name)?))).collect();
    env.entry("PATH".into()).or_insert_with(|| DEFAULT_PATH.into());
    env.insert("TMPDIR".into(), path_text(&work.join("tmp")));
    env.insert(env::MASK_FILE.into(), path_text(&work.join(MASK_FILE)));
    env
}

#[cfg(test)]
mod tests {
    use super::*;

    fn vars(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
        pairs.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect()
    }

    #[test]
    fn later_layers_win_and_no_token_gets_through() {
        let step = StepSpec {
            name: "s".into(),
            inline_contents: None,
            command: None,
            source: None,
            env: vars(&[("B", "step"), ("C", "step"), ("COLUMNS", "80")]),
        };
        let action = ActionSpec {
            steps: vec![],
            builtin_env: vars(&[("NUON_ORG_ID", "org"), ("NUON_API_TOKEN", "t"), ("A", "builtin"), ("PATH", "/b")]),
            run_env: vars(&[("A", "run"), ("B", "run")]),
            override_env: vars(&[("C", "override")]),
        };
        let own = vars(&[("PATH", "/p"), ("TZ", "UTC"), ("AWS_SECRET_ACCESS_KEY", "x"), ("FERRY_RUNNER_KEY", "x")]);
        let env =
            environment(|n| own.get(n).cloned(), &action, &step, Path::new("/w"), Path::new("/w/outputs/0"), None);
        let want = vars(&[
            ("A", "run"),
            ("B", "step"),
            ("C", "override"),
            ("COLUMNS", "500"),
            ("FERRY_ACTIONS_OUTPUT_FILEPATH", "/w/outputs/0"),
            ("FERRY_ACTIONS_ROOT", "/w/root"),
            ("FERRY_KUBECONFIG_ENABLED", "false"),
            ("FERRY_MASK_FILE", "/w/mask"),
            ("FERRY_ORG_ID", "org"),
            ("NUON_ACTIONS_OUTPUT_FILEPATH", "/w/outputs/0"),
            ("NUON_ACTIONS_ROOT", "/w/root"),
            ("NUON_KUBECONFIG_ENABLED", "false"),
            ("NUON_ORG_ID", "org"),
            ("PATH", "/b"),
            ("TMPDIR", "/w/tmp"),
            ("TZ", "UTC"),
        ]);
        assert_eq!(env, want);
    }

    #[test]
    fn a_file_of_the_source_comes_before_the_path() {
        let dir = tempfile::tempdir().expect("dir");
        write_script(&dir.path().join("run.sh"), "true").expect("script");
        fs::write(dir.path().join("plain"), "").expect("file");
        let cases = [
            ("run.sh a b", "./run.sh a b"),
            ("./run.sh", "./run.sh"),
            ("plain x", "plain x"),
            ("ls | wc", "ls | wc"),
            (" run.sh", "./run.sh"),
            ("", ""),
        ];
        for (command, want) in cases {
            assert_eq!(local_command(dir.path(), command), want);
        }
    }
}
