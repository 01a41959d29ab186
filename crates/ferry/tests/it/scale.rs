//! An app far larger than any that we know, from its files to an install that is torn down: every step ends, every list is whole, and
//! the server's memory stays small. Ten times as large in `make soak PART=scale`.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use api::control::Workflow;
use testkit::rehearsal::{Rehearsal, component};
use testkit::system::{System, shown};

use crate::options;

/// Components beside each other; each needs two of the row before.
const WIDTH: usize = 20;
/// Steps of a provisioning beside those of its components, and of its end.
const OTHER_STEPS: usize = 9;
const OTHER_STEPS_OF_END: usize = 4;

/// What the server may need at most: a base, and for every component what it has in the files, in memory and in an answer.
fn memory_mib_max(components: usize) -> f64 {
    200.0 + components as f64 * 0.06
}

/// The most memory that a process has had.
fn peak_mib(pid: i32) -> f64 {
    let status = fs_err::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    line.trim().trim_end_matches(" kB").trim().parse::<f64>().unwrap() / 1024.0
}

/// A number that the environment names.
fn wanted(name: &str, otherwise: usize) -> usize {
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(otherwise)
}

async fn ferry(system: &System, rehearsal: &Rehearsal, words: &[&str]) -> String {
    let output = system.ferry(&[&["--org", rehearsal.org.as_str()], words].concat()).await;
    assert!(output.status.success(), "{}", shown(&output));
    String::from_utf8(output.stdout).unwrap()
}

/// Every step is over, and every way to see them shows all of them.
async fn assert_whole(system: &System, rehearsal: &Rehearsal, workflow: &Workflow, verb: &str, components: usize) {
    let open: Vec<&str> = workflow.steps.iter().filter(|step| !step.finished).map(|step| step.name.as_str()).collect();
    assert_eq!(open, [""; 0], "steps that have not ended");
    let applied = workflow.steps.iter().filter(|step| step.name.starts_with(verb) && step.status.status == "success");
    let applied: BTreeSet<&str> = applied.map(|step| step.name.as_str()).collect();
    let names: Vec<String> = (0..components).map(|n| format!("{verb}{}", component(n))).collect();
    assert_eq!(applied, names.iter().map(String::as_str).collect(), "what was done to every component");
    let paged = rehearsal.client.workflow_steps(&workflow.id, usize::MAX).await.unwrap();
    let ids = |steps: &[api::control::WorkflowStep]| steps.iter().map(|step| step.id.clone()).collect::<Vec<_>>();
    assert_eq!(ids(&paged), ids(&workflow.steps), "page by page they are the same");
    let shown = ferry(system, rehearsal, &["workflows", "get", &workflow.id]).await;
    let missing: Vec<&String> = names.iter().filter(|name| !shown.contains(name.as_str())).collect();
    assert!(missing.is_empty(), "`workflows get` does not show {missing:?}");
}

#[tokio::test]
async fn a_large_app_lives_and_ends() {
    let components = wanted("FERRY_SCALE_COMPONENTS", 500);
    let bound = Duration::from_secs(wanted("FERRY_SCALE_S", 60) as u64);
    let system = System::start(options()).await;
    let pid = system.server().pid();
    let mut at = Instant::now();
    let mut told = |what: &str| {
        eprintln!("{components} components {what} in {:.1} s, {:.0} MiB", at.elapsed().as_secs_f64(), peak_mib(pid));
        at = Instant::now();
    };
    let rehearsal = Rehearsal::new(&system, &[("step_ms", 10)], components, WIDTH).await.unwrap();
    told("synced");
    assert_eq!(rehearsal.client.all_components().await.unwrap().len(), components);

    let id = rehearsal.install("one").await.unwrap().workflow_id;
    ferry(&system, &rehearsal, &["workflows", "approve-all", &id]).await;
    let up = rehearsal.until(&id, "success", bound).await.unwrap();
    told("provisioned");
    assert_eq!(up.steps.len(), 2 * components + OTHER_STEPS);
    assert_whole(&system, &rehearsal, &up, "apply ", components).await;
    told("looked at");

    let words = ["--json", "installs", "deprovision", "one", "--approve-all", "--detach"];
    let started: serde_json::Value = serde_json::from_str(&ferry(&system, &rehearsal, &words).await).unwrap();
    let over = rehearsal.until(started["workflow_id"].as_str().unwrap(), "success", bound).await.unwrap();
    told("torn down");
    assert_eq!(over.steps.len(), 2 * components + OTHER_STEPS_OF_END);
    assert_whole(&system, &rehearsal, &over, "teardown ", components).await;
    let state = rehearsal.client.install_state("one", None).await.unwrap().state;
    let left = state["components"].as_object().unwrap().values().filter(|part| part["status"] == "active");
    assert_eq!(left.count(), 0, "components that are still there");
    let memory_mib = peak_mib(pid);
    assert!(memory_mib < memory_mib_max(components), "the server took {memory_mib:.0} MiB");
}
