//! Ad-hoc actions: their steps travel in the request.

use std::collections::BTreeMap;
use std::io::Read as _;
use std::path::Path;

use api::client::{Client, LogFilter, LogFormat};
use api::control::{CreateActionRun, CreateActionWorkflowRun, Job, WorkflowStarted};
use futures::StreamExt as _;
use model::Digest;
use model::spec::{Limits, Source, StepSpec, check_env, check_steps, check_timeout};
use serde_json::json;

use super::action_file::{self, ActionFile};
use crate::args::{Actions, RunAction};
use crate::commands::{Kind, explain, jobs, suggestion, workflows};
use crate::error::{CliError, Result};
use crate::output::{Output, bytes, dim, id, status, strong};
use crate::progress::Progress;
use crate::watch::{Log, Watched, job_exit, watch};
use crate::{archive, error::Exit};

/// Name of the step of an action that has only one.
const ONLY_STEP: &str = "run";

pub(crate) async fn run(client: &Client, out: &Output, command: Actions) -> Result<u8> {
    let args = match command {
        Actions::Run(args) => args,
        Actions::List { install } => return list(client, out, &install).await,
    };
    if let Some(action) = &args.action {
        let (started, job) = synced(client, &args, action).await?;
        return match job {
            Some(job) => finish(client, out, &args, job).await,
            None if args.detach => {
                if out.json {
                    out.json(&started)?
                } else {
                    out.line(&started.workflow_id)?
                }
                Ok(0)
            }
            None => workflows::watch(client, out, &started.workflow_id).await,
        };
    }
    let text = match args.script.as_ref().or(args.file.as_ref()) {
        Some(path) => Some(read(path)?),
        None => None,
    };
    let packed = args.source_dir.as_deref().map(archive::pack).transpose()?;
    let body = request(&args, text.as_deref(), packed.as_ref().map(|(digest, _)| digest.clone()))?;
    if let Some((digest, tar)) = packed {
        let mut progress = Progress::new(out);
        if out.stderr_terminal {
            progress.set(&format!("uploading {}", bytes(tar.len() as u64)));
        }
        client.put_archive(&digest, tar.into()).await?;
    }
    let job = match client.create_action_run(&args.install, &body).await {
        Ok(job) => job,
        Err(error) => return Err(explain(client, Kind::Install, &args.install, error).await),
    };
    finish(client, out, &args, job).await
}

/// The actions of the install's app.
async fn list(client: &Client, out: &Output, install: &str) -> Result<u8> {
    let found = match client.install_actions(install).await {
        Ok(found) => found,
        Err(error) => return Err(explain(client, Kind::Install, install, error).await),
    };
    let headers = ["NAME", "?LAST RUN", "?WHEN", "?ID"];
    out.list(
        &found,
        "the app of this install has no actions; run `ferry apps sync DIR` to sync them",
        &headers,
        |action| {
            let name = action.action_workflow.as_ref().map(|a| a.name.clone()).unwrap_or_default();
            let last = action.runs.first();
            vec![
                strong(name),
                last.map_or_else(|| dim("never"), |run| status(&run.status)),
                last.map_or_else(|| dim("-"), |run| dim(out.time(run.created_at))),
                id(&action.action_workflow_id),
            ]
        },
    )?;
    Ok(0)
}

/// Starts an action of the synced app; returns its workflow and its job.
async fn synced(client: &Client, args: &RunAction, action: &str) -> Result<(WorkflowStarted, Option<Job>)> {
    let install = match client.install(&args.install).await {
        Ok(install) => install,
        Err(error) => return Err(explain(client, Kind::Install, &args.install, error).await),
    };
    let app = install.app_id.as_str();
    let found = match client.action(app, action).await {
        Ok(found) => found,
        Err(error) if error.status() == Some(404) => {
            let names: Vec<String> = client.actions(app).await?.into_iter().map(|a| a.name).collect();
            let told = CliError::new(
                Exit::NotFound,
                format!("the app of install `{}` has no action `{action}`", install.name),
            );
            let hint = suggestion(action, &names)
                .unwrap_or_else(|| "run `ferry actions list --install NAME` to list them".into());
            return Err(told.hint(hint));
        }
        Err(error) => return Err(error.into()),
    };
    let env = args.env.iter().chain(&args.secret_env).cloned().collect();
    let body = CreateActionWorkflowRun {
        action_workflow_config_id: String::new(),
        action: found.name,
        role: args.role.clone().unwrap_or_default(),
        run_env_vars: env,
        secrets: args.secret_env.iter().map(|(_, value)| value.clone()).filter(|v| !v.is_empty()).collect(),
    };
    let started = client.run_action(install.id.as_str(), &body).await?;
    match client.action_run(install.id.as_str(), &started.workflow_id).await {
        Ok(run) => Ok((started, run.job.map(|job| *job))),
        // A simulated org plays it: there is a workflow, and no job.
        Err(error) if error.status() == Some(404) => Ok((started, None)),
        Err(error) => Err(error.into()),
    }
}

/// Waits for the job, unless that was not wanted.
async fn finish(client: &Client, out: &Output, args: &RunAction, job: Job) -> Result<u8> {
    if args.detach {
        return detached(out, &job);
    }
    if !out.json {
        out.note(&format!("job {}", job.id));
    }
    let log = if out.json { Log::Await } else { Log::Show };
    match Box::pin(watch(client, out, job, log)).await? {
        Watched::Left => Ok(130),
        Watched::Ended(job) if out.json => {
            let log = whole_log(client, &job).await?;
            let exit_code = job_exit(&job);
            out.json(&json!({ "job": job, "outputs": job.outputs, "exit_code": exit_code, "log": log }))?;
            Ok(exit_code)
        }
        Watched::Ended(job) => {
            jobs::summary(out, &job)?;
            Ok(job_exit(&job))
        }
    }
}

/// For commands that do not wait.
pub(crate) fn detached(out: &Output, job: &Job) -> Result<u8> {
    if out.json {
        out.json(job)?;
    } else {
        out.line(job.id.as_str())?;
        out.hint(&format!("run `ferry logs -f {0}` to follow its log, `ferry jobs wait {0}` to wait for it", job.id));
    }
    Ok(0)
}

async fn whole_log(client: &Client, job: &Job) -> Result<String> {
    let mut chunks = client.log_bytes(&job.log_stream_id, LogFormat::Raw, &LogFilter::default(), false).await?;
    let mut log = Vec::new();
    while let Some(chunk) = chunks.next().await {
        log.extend_from_slice(&chunk?);
    }
    Ok(String::from_utf8_lossy(&log).into_owned())
}

fn read(path: &Path) -> Result<String> {
    let mut text = String::new();
    if path == Path::new("-") {
        std::io::stdin().lock().read_to_string(&mut text)?;
    } else {
        fs_err::File::open(path)?.read_to_string(&mut text)?;
    }
    Ok(text)
}

/// The request that the flags ask for; `text` is what the script or the file holds.
fn request(args: &RunAction, text: Option<&str>, archive: Option<Digest>) -> Result<CreateActionRun> {
    let mut file = action(args, text)?;
    add_source(args, &mut file.steps, archive)?;
    let mut env = file.env;
    env.extend(args.env.iter().cloned());
    env.extend(args.secret_env.iter().cloned());
    let secrets = args.secret_env.iter().map(|(_, value)| value.clone()).filter(|v| !v.is_empty()).collect();
    let timeout = match (&args.timeout, &file.timeout) {
        (Some(given), _) => Some(*given),
        (None, Some(text)) => Some(model::time::parse_duration(text).map_err(CliError::usage)?),
        (None, None) => None,
    };
    let timeout_s = timeout.map(|t| t.as_secs().max(u64::from(t.subsec_nanos() > 0)));

    check_steps(&file.steps).map_err(CliError::usage)?;
    check_env(&env).map_err(CliError::usage)?;
    timeout_s.map_or(Ok(()), check_timeout).map_err(|e| CliError::new(Exit::Usage, e))?;
    Ok(CreateActionRun {
        name: args.name.clone().or(file.name),
        steps: file.steps,
        run_env_vars: env,
        timeout_s,
        secrets,
        limits: Limits {
            memory_bytes: args.memory,
            processes: args.processes,
            cpu_millis: args.cpus,
            disk_bytes: args.disk,
        },
        target: args.target.clone(),
        priority: args.priority,
    })
}

/// The action that the flags describe, or its file.
fn action(args: &RunAction, text: Option<&str>) -> Result<ActionFile> {
    let step = |name: &str| StepSpec {
        name: name.to_owned(),
        inline_contents: None,
        command: None,
        source: None,
        env: BTreeMap::new(),
    };
    let steps = match (&args.command, &args.script, &args.file) {
        (Some(command), _, _) => vec![StepSpec { command: Some(command.clone()), ..step(ONLY_STEP) }],
        (_, Some(_), _) => vec![StepSpec { inline_contents: text.map(str::to_owned), ..step(ONLY_STEP) }],
        (_, _, Some(path)) => return action_file::parse(path, text.unwrap_or_default()),
        (None, None, None) => {
            args.step.iter().map(|(name, line)| StepSpec { command: Some(line.clone()), ..step(name) }).collect()
        }
    };
    Ok(ActionFile { steps, ..ActionFile::default() })
}

/// Commands run in the source that the flags name, unless the file names another one.
fn add_source(args: &RunAction, steps: &mut [StepSpec], archive: Option<Digest>) -> Result<()> {
    let source = match (archive, &args.git) {
        (Some(digest), _) => Source::Archive { digest, directory: None },
        (None, Some(url)) => Source::Git {
            url: url.clone(),
            reference: args.git_ref.clone(),
            directory: args.git_dir.clone(),
            submodules: false,
            credentials: None,
        },
        (None, None) => return Ok(()),
    };
    if steps.iter().all(|s| s.command.is_none()) {
        return Err(CliError::usage("a script does not run in a source directory")
            .hint("put the script into the source and name it with `--command`, like `--command ./deploy.sh`"));
    }
    for step in steps.iter_mut().filter(|s| s.command.is_some() && s.source.is_none()) {
        step.source = Some(source.clone());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Debug, Parser)]
    struct Line {
        #[command(flatten)]
        run: RunAction,
    }

    fn args(line: &[&str]) -> RunAction {
        Line::try_parse_from(["run", "--install", "i"].iter().chain(line)).expect("a command line").run
    }

    #[test]
    fn one_command_is_one_step() {
        let line =
            args(&["--command", "make", "--env", "A=1", "--secret-env", "P=hush", "--timeout", "90s", "--cpus", "0.5"]);
        let body = request(&line, None, None).expect("request");
        assert_eq!(body.steps.len(), 1);
        assert_eq!((body.steps[0].name.as_str(), body.steps[0].command.as_deref()), ("run", Some("make")));
        assert_eq!(body.run_env_vars, BTreeMap::from([("A".into(), "1".into()), ("P".into(), "hush".into())]));
        assert_eq!(body.secrets, ["hush"]);
        assert_eq!((body.timeout_s, body.limits.cpu_millis), (Some(90), Some(500)));
    }

    #[test]
    fn a_file_holds_several_steps_and_flags_win() {
        let text = r#"
            name = "deploy"
            timeout = "5m"
            [env]
            A = "file"
            B = "file"
            [[steps]]
            name = "one"
            command = "./one.sh"
            [[steps]]
            name = "two"
            inline_contents = "echo two"
            [steps.env]
            C = "3"
        "#;
        let line = args(&["--file", "a.toml", "--env", "A=flag", "--git", "https://g/r", "--git-ref", "main"]);
        let body = request(&line, Some(text), None).expect("request");
        assert_eq!((body.name.as_deref(), body.timeout_s), (Some("deploy"), Some(300)));
        assert_eq!(body.run_env_vars["A"], "flag");
        assert_eq!(body.run_env_vars["B"], "file");
        assert_eq!(body.steps[1].env["C"], "3");
        let git = Source::Git {
            url: "https://g/r".into(),
            reference: Some("main".into()),
            directory: None,
            submodules: false,
            credentials: None,
        };
        assert_eq!(
            (&body.steps[0].source, &body.steps[1].source),
            (&Some(git), &None),
            "only commands run in a source"
        );
    }

    #[test]
    fn what_can_not_work_is_refused_before_it_is_sent() {
        let cases: [(&[&str], Option<&str>, &str); 6] = [
            (&["--file", "a.toml"], Some("name = 1"), "a.toml"),
            (&["--file", "a.toml"], Some("[[steps]]\nname = \"x\"\ncomand = \"y\""), "comand"),
            (&["--file", "a.toml"], Some(""), "at least one step"),
            (&["--step", "a=x", "--step", "a=y"], None, "two steps are named `a`"),
            (&["--command", "x", "--timeout", "2h"], None, "out of range"),
            (&["--script", "s.sh", "--git", "u"], Some("echo"), "does not run in a source"),
        ];
        for (line, text, part) in cases {
            let error = request(&args(line), text, None).expect_err(part);
            assert_eq!(error.exit, Exit::Usage);
            assert!(error.message.contains(part), "{error}");
        }
    }
}
