//! A plan: made, and read for people and policies.

use std::io::BufReader;
use std::path::{Path, PathBuf};

use crash::crash_point;
use fs_err as fs;
use mask::Masks;
use model::build::PolicySpec;
use policy::Subject;

use super::super::action::StepFailure;
use super::super::deploy::{Planned, judge};
use super::super::stages::Stages;
use super::super::{Run, tool};
use super::{LOCK_TIMEOUT, Ready, Site, WORK, failed, variables};
use crate::confine::process::Child;
use crate::seal::vault::SECRETS_MAX;

pub(super) async fn make(
    run: &mut Run<'_>,
    stages: &mut Stages,
    site: &Site<'_>,
    destroy: bool,
) -> Result<Planned, StepFailure> {
    let ready = site.prepare(run, stages).await?;
    stages.begin(run, WORK);
    crash_point!("executor.before_plan");
    let file = run.host.dir.work().join("tfplan");
    plan(run, stages, site, &ready, &file, destroy).await?;
    crash_point!("executor.planned");
    let shown = show(run, &ready, &file).await?;
    let asked = if destroy { &[][..] } else { &site.job.deploy.policies };
    let (model, report) = read(run, shown, asked).await?;
    Ok(Planned { file, model, report, ask: Vec::new() })
}

async fn plan(
    run: &mut Run<'_>,
    stages: &mut Stages,
    site: &Site<'_>,
    ready: &Ready,
    file: &Path,
    destroy: bool,
) -> Result<(), StepFailure> {
    let out = format!("-out={}", file.display());
    let mut words = vec!["plan".to_owned(), "-json".into(), "-input=false".into(), LOCK_TIMEOUT.into(), out];
    if destroy {
        words.push("-destroy".into());
    }
    for (n, text) in variables::files(&ready.dir, site.job)?.into_iter().enumerate() {
        // No HCL of values begins like an object.
        let json = if text.trim_start().starts_with('{') { ".json" } else { "" };
        let name = if n == 0 { "variables.tfvars.json".to_owned() } else { format!("variables-{n}.tfvars{json}") };
        let place = run.host.dir.work().join(name);
        tool::private(&place, &text)?;
        words.push(format!("-var-file={}", place.display()));
    }
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let (code, progress) = site.follow(run, stages, ready, &words).await?;
    match code {
        0 => Ok(()),
        code => Err(failed(code, ready.why(&progress).unwrap_or_else(|| "`plan` failed; the log says why".into()))),
    }
}

/// The plan as JSON, in a file: it may be large.
async fn show(run: &mut Run<'_>, ready: &Ready, plan: &Path) -> Result<PathBuf, StepFailure> {
    let place = run.host.dir.work().join("tmp/plan.json");
    let (to, plan) = (place.to_string_lossy().into_owned(), plan.to_string_lossy().into_owned());
    let mut argv: Vec<String> =
        ["/bin/sh", "-c", "out=$1; shift; umask 077; exec \"$@\" >\"$out\"", "sh", &to].map(str::to_owned).into();
    argv.extend(ready.argv(&["show", "-json", "-no-color", &plan]));
    let child = Child { kept: ready.kept.clone(), ..Child::new(argv, ready.dir.clone(), ready.env.clone(), WORK) };
    match tool::exit_code(run, &child).await? {
        0 => Ok(place),
        code => Err(failed(code, "`show` failed; the log says why")),
    }
}

/// Reads the plan: its secrets, then the model, a resource at a time; and as a whole for policies, which bound its size.
async fn read(
    run: &Run<'_>,
    file: PathBuf,
    asked: &[PolicySpec],
) -> Result<(terraform::Plan, policy::Report), StepFailure> {
    let open = |file: &Path| fs::File::open(file).map(|file| BufReader::with_capacity(256 << 10, file));
    let bad = |e: &dyn std::fmt::Display| StepFailure::new("terraform_failed", format!("the plan can't be read: {e}"));
    let mut secrets = terraform::secrets_of_plan(open(&file)?).map_err(|e| bad(&e))?.values;
    if secrets.len() > SECRETS_MAX {
        let text = format!(
            "the plan has {} sensitive values: they are hidden where they are marked, and {SECRETS_MAX} of them everywhere else",
            secrets.len()
        );
        run.host.log.borrow_mut().system(None, &text);
    }
    secrets.truncate(SECRETS_MAX);
    let more = Masks::new(&secrets);
    let masks = run.host.secrets.masks();
    let mask = |text: &str| more.mask_text(&masks.mask_text(text));
    let model = terraform::read_plan(open(&file)?, &mask, &terraform::Limits::default()).map_err(|e| bad(&e))?;
    let size = fs::metadata(&file).map_or(u64::MAX, |meta| meta.len());
    let whole = || -> Result<Subject, String> {
        let text = fs::read(&file).map_err(|e| e.to_string())?;
        Ok(Subject::Plan(serde_json::from_slice(&text).map_err(|e| e.to_string())?))
    };
    let report = judge(asked, size, whole).await;
    let _ = fs::remove_file(&file);
    for said in &report.verdicts {
        run.say(Some(WORK), &mask(&format!("policy {}: {}: {}", said.policy, said.severity.as_str(), said.message)));
    }
    Ok((model, report.masked(mask)))
}
