//! Brings a cluster to what was approved: in order, many at once, and waits until everything is ready.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use crash::crash_point;
use futures::StreamExt as _;
use kubernetes::{Entry, ObjectRef, Status, rank, status_of};
use model::deploy::{ResourceProgress, ResourceStatus, STALE_PLAN};
use model::{StepResult, Timestamp};
use serde_json::Value;

use super::super::action::{StepFailure, report};
use super::super::stages::Stages;
use super::super::{Run, now};
use super::api::{Api, Apply};
use super::compare::{Act, PlannedObject, digest};
use super::{AT_ONCE, explain};

/// How often what is not ready is looked at.
const LOOK: Duration = Duration::from_millis(500);
/// What is not ready is explained this often in the log.
const SAY: Duration = Duration::from_secs(20);
/// How long an object may be failing before it is given up.
const FAILING: Duration = Duration::from_secs(10);
/// How long the cluster may take to serve a kind that was just defined.
const ESTABLISH: Duration = Duration::from_secs(60);
/// How long an object that is replaced may take to go.
const REPLACE: Duration = Duration::from_secs(300);
/// How long containers without a readiness probe must run before they count as ready: one that crashes at once is ready for a moment.
const SETTLE: Duration = Duration::from_secs(2);
/// Objects that are named in an error.
const NAMED_MAX: usize = 5;

/// Progress of objects, as the step shows it.
pub(crate) struct Progress {
    steps: Vec<StepResult>,
    at: usize,
    objects: BTreeMap<String, ResourceProgress>,
}

impl Progress {
    pub(crate) fn new(stages: &Stages, at: usize) -> Self {
        Self { steps: stages.steps().to_vec(), at, objects: BTreeMap::new() }
    }

    pub(crate) fn set(&mut self, run: &Run<'_>, address: &str, action: &str, status: ResourceStatus) {
        let address = run.host.secrets.masks().mask_text(address);
        let entry = self.objects.entry(address.clone()).or_insert_with(|| ResourceProgress {
            address,
            action: action.to_owned(),
            status,
            started_at: Some(now()),
            took_s: None,
        });
        entry.status = status;
        if status != ResourceStatus::Started {
            let since = |at: Timestamp| now().since(at).as_secs();
            entry.took_s = entry.started_at.map(since);
        }
    }

    pub(crate) fn tell(&mut self, run: &Run<'_>) {
        self.steps[self.at].resources = self.shown();
        report(run, &self.steps);
    }

    pub(crate) fn shown(&self) -> Vec<ResourceProgress> {
        let lasting = self.objects.values().filter(|one| one.status == ResourceStatus::Started);
        let ended = self.objects.values().filter(|one| one.status != ResourceStatus::Started);
        lasting.chain(ended).take(100).cloned().collect()
    }
}

/// Checks that what is there is what the plan was made from.
pub(crate) async fn unchanged(api: &Api, objects: &[PlannedObject]) -> Result<(), StepFailure> {
    // What is left alone may be anything.
    let touched = objects.iter().filter(|planned| planned.act != Act::Forget);
    let looks = touched.map(|planned| async move {
        let live = api.get(&planned.of).await.map_err(|e| e.of("read", &planned.of.address()))?;
        let found = match &live {
            // It stays as it is, however that may be.
            Some(live) if planned.act == Act::Keep && live["metadata"]["uid"] == planned.uid.as_str() => {
                planned.found.clone()
            }
            live => live.as_ref().map(|live| digest(live, &planned.ignored)).unwrap_or_default(),
        };
        Ok::<_, StepFailure>((planned, found))
    });
    let found: Vec<_> = futures::stream::iter(looks).buffered(AT_ONCE).collect().await;
    for found in found {
        let (planned, found) = found?;
        if found != planned.found {
            let what = match (planned.found.is_empty(), found.is_empty()) {
                (true, _) => "was created",
                (_, true) => "was deleted",
                _ => "was changed",
            };
            return Err(StepFailure::new(
                STALE_PLAN,
                format!("{} {what} since the plan was made", planned.of.address()),
            ));
        }
    }
    Ok(())
}

/// Applies, replaces and deletes what a plan says. Returns the uids of what is there.
pub(crate) async fn carry_out(
    run: &Run<'_>,
    api: &Api,
    objects: &[PlannedObject],
    progress: &mut Progress,
    until: Instant,
) -> Result<BTreeMap<String, String>, StepFailure> {
    let mut uids: BTreeMap<String, String> =
        objects.iter().filter(|it| it.act == Act::Keep).map(|it| (it.of.address(), it.uid.clone())).collect();
    let mut applied: Vec<&PlannedObject> =
        objects.iter().filter(|it| matches!(it.act, Act::Apply | Act::Replace)).collect();
    applied.sort_by_key(|it| rank(&it.of));
    for group in applied.chunk_by(|a, b| rank(&a.of) == rank(&b.of)) {
        for planned in group {
            progress.set(run, &planned.of.address(), verb(planned), ResourceStatus::Started);
        }
        progress.tell(run);
        let writes = group.iter().map(|planned| async move { (*planned, write(api, planned).await) });
        let mut writes = futures::stream::iter(writes).buffer_unordered(AT_ONCE);
        let mut failed = None;
        while let Some((planned, written)) = writes.next().await {
            let address = planned.of.address();
            match written {
                Ok(object) => {
                    crash_point!("executor.object_applied");
                    progress.set(run, &address, verb(planned), ResourceStatus::Done);
                    uids.insert(address, object["metadata"]["uid"].as_str().unwrap_or_default().to_owned());
                }
                Err(failure) => {
                    progress.set(run, &address, verb(planned), ResourceStatus::Failed);
                    failed = failed.or(Some(failure));
                }
            }
        }
        progress.tell(run);
        if let Some(failure) = failed {
            return Err(failure);
        }
        for planned in group.iter().filter(|it| it.of.is_crd()) {
            established(api, planned).await?;
        }
    }
    let gone: Vec<&PlannedObject> = objects.iter().filter(|it| it.act == Act::Delete).collect();
    delete(run, api, &gone, progress, until).await?;
    Ok(uids)
}

const fn verb(planned: &PlannedObject) -> &'static str {
    match (planned.act, planned.found.is_empty()) {
        (Act::Replace, _) => "replace",
        (Act::Delete, _) => "delete",
        (_, true) => "create",
        _ => "update",
    }
}

async fn write(api: &Api, planned: &PlannedObject) -> Result<Value, StepFailure> {
    let address = planned.of.address();
    if planned.act == Act::Replace {
        let removed = api.delete(&planned.of, &planned.uid, "Foreground").await;
        removed.map_err(|e| e.of("delete", &address))?;
        wait_gone(api, &planned.of, &planned.uid, Instant::now() + REPLACE).await?;
    }
    let until = Instant::now() + ESTABLISH;
    let kind = loop {
        match api.kind(&planned.of).await.map_err(|e| e.of("look up the kind of", &address))? {
            Some(kind) => break kind,
            None if Instant::now() > until => {
                return Err(StepFailure::new(
                    "unknown_kind",
                    format!("the cluster does not serve the kind of {address}"),
                ));
            }
            None => tokio::time::sleep(LOOK).await,
        }
    };
    let mut object = planned.object.clone();
    if planned.act == Act::Apply
        && !planned.ignored.is_empty()
        && let Some(live) = api.get(&planned.of).await.map_err(|e| e.of("read", &address))?
    {
        planned.ignored.iter().for_each(|path| kubernetes::keep(&mut object, &live, path));
    }
    // What is taken over from others stood in the plan.
    let how = Apply { dry_run: false, force: true };
    loop {
        match api.apply(&planned.of, &kind, &object, how).await {
            Ok(object) => return Ok(object),
            // A kind that was just defined, or a namespace that was just created, is not known everywhere at once.
            Err(error) if error.is_missing() && planned.found.is_empty() && Instant::now() < until => {
                api.forget(&planned.of.api_version());
                tokio::time::sleep(LOOK).await;
            }
            Err(error) => return Err(error.of("apply", &address)),
        }
    }
}

/// Waits until the cluster serves a kind.
async fn established(api: &Api, planned: &PlannedObject) -> Result<(), StepFailure> {
    let until = Instant::now() + ESTABLISH;
    let address = planned.of.address();
    loop {
        let object = api.get(&planned.of).await.map_err(|e| e.of("read", &address))?.unwrap_or_default();
        match status_of(&object, now().micros() / 1_000_000) {
            Status::Ready => return Ok(()),
            Status::Failed(why) => return Err(StepFailure::new("not_ready", format!("{address}: {why}"))),
            Status::Progressing(why) | Status::Terminating(why) if Instant::now() > until => {
                return Err(StepFailure::new("not_ready", format!("{address}: {why}")));
            }
            Status::Progressing(_) | Status::Terminating(_) => tokio::time::sleep(Duration::from_millis(100)).await,
        }
    }
}

/// Deletes objects in the order given, and waits until they are gone.
pub(crate) async fn delete(
    run: &Run<'_>,
    api: &Api,
    objects: &[&PlannedObject],
    progress: &mut Progress,
    until: Instant,
) -> Result<(), StepFailure> {
    for group in objects.chunk_by(|a, b| rank(&a.of) == rank(&b.of)) {
        for planned in group {
            progress.set(run, &planned.of.address(), "delete", ResourceStatus::Started);
        }
        progress.tell(run);
        let deletions = group.iter().map(|planned| async move {
            let removed = api.delete(&planned.of, &planned.uid, "Background").await;
            (*planned, removed.map_err(|e| e.of("delete", &planned.of.address())))
        });
        let mut deletions = futures::stream::iter(deletions).buffer_unordered(AT_ONCE);
        while let Some((planned, removed)) = deletions.next().await {
            crash_point!("executor.object_deleted");
            if let Err(failure) = removed {
                progress.set(run, &planned.of.address(), "delete", ResourceStatus::Failed);
                progress.tell(run);
                return Err(failure);
            }
        }
        for planned in group {
            if let Err(failure) = wait_gone(api, &planned.of, &planned.uid, until).await {
                progress.set(run, &planned.of.address(), "delete", ResourceStatus::Failed);
                progress.tell(run);
                return Err(failure);
            }
            progress.set(run, &planned.of.address(), "delete", ResourceStatus::Done);
        }
        progress.tell(run);
    }
    Ok(())
}

/// Waits until an object is gone. What keeps it is said in the failure.
pub(crate) async fn wait_gone(api: &Api, of: &ObjectRef, uid: &str, until: Instant) -> Result<(), StepFailure> {
    let begun = Instant::now();
    // A kind that was deleted takes its objects along.
    loop {
        let live = api.get(of).await.map_err(|e| e.of("read", &of.address()))?;
        let Some(live) = live.filter(|live| uid.is_empty() || live["metadata"]["uid"] == uid) else { return Ok(()) };
        if Instant::now() > until {
            return Err(StepFailure::new("object_terminating", still_there(of, &live)));
        }
        tokio::time::sleep(if begun.elapsed() < Duration::from_secs(2) { Duration::from_millis(100) } else { LOOK })
            .await;
    }
}

/// Why an object is still there after it was deleted.
pub(crate) fn still_there(of: &ObjectRef, live: &Value) -> String {
    let holders: Vec<&str> =
        live["metadata"]["finalizers"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    let conditions = live["status"]["conditions"].as_array().into_iter().flatten();
    let left: Vec<&str> = conditions
        .filter(|it| it["status"] == "True" && it["type"].as_str().is_some_and(|kind| kind.starts_with("Namespace")))
        .filter_map(|it| it["message"].as_str())
        .collect();
    match (holders.is_empty(), left.is_empty()) {
        (_, false) => format!("{} is still there: {}", of.address(), left.join("; ")),
        (false, true) => format!("{} is still there: it waits for the finalizers {}", of.address(), holders.join(", ")),
        (true, true) => format!("{} is still there", of.address()),
    }
}

/// Whether an object runs containers that say nothing of their readiness.
fn has_no_probe(live: &Value) -> bool {
    let pod = match live["kind"].as_str() {
        Some("Deployment" | "StatefulSet" | "DaemonSet" | "ReplicaSet") => &live["spec"]["template"]["spec"],
        Some("Pod") if live["status"]["phase"] == "Running" => &live["spec"],
        _ => return false,
    };
    let containers = pod["containers"].as_array();
    containers.is_some_and(|all| all.iter().any(|container| container["readinessProbe"].is_null()))
}

/// Whether an object is a workload that goes on running.
pub(crate) fn keeps_running(of: &ObjectRef) -> bool {
    matches!((of.group.as_str(), of.kind.as_str()), ("apps", "Deployment" | "StatefulSet" | "DaemonSet"))
}

/// An object that is not ready, and why.
struct Waiting<'e> {
    entry: &'e Entry,
    live: Option<Value>,
    why: String,
    failed: bool,
}

impl Waiting<'_> {
    async fn explained(&self, api: &Api) -> String {
        explain::why(api, &self.entry.of, self.live.as_ref(), &self.why).await.text
    }
}

/// Since when an object is as it was seen, by its address.
type Since = BTreeMap<String, Instant>;

/// Waits until objects are ready. What is not, and why, is in the log while it lasts and in the failure at the end.
pub(crate) async fn wait_ready(
    run: &Run<'_>,
    api: &Api,
    entries: &[Entry],
    progress: &mut Progress,
    stage: usize,
    until: Instant,
) -> Result<(), StepFailure> {
    let (begun, mut said) = (Instant::now(), Instant::now());
    let mut left: Vec<&Entry> = entries.iter().collect();
    let (mut failing_since, mut ready_since) = (Since::new(), Since::new());
    loop {
        let waiting = not_ready(run, api, &left, progress, &mut ready_since).await?;
        for one in &waiting {
            let address = one.entry.of.address();
            progress.set(run, &address, "wait", ResourceStatus::Started);
            match one.failed {
                true => drop(failing_since.entry(address).or_insert_with(Instant::now)),
                false => drop(failing_since.remove(&address)),
            }
        }
        progress.tell(run);
        if waiting.is_empty() {
            return Ok(());
        }
        // A failure that lasts does not get better by waiting.
        let given_up = failing_since.values().any(|since| since.elapsed() > FAILING);
        if Instant::now() > until || given_up {
            return Err(given_up_on(run, api, &waiting, progress, begun).await);
        }
        if said.elapsed() > SAY {
            said = Instant::now();
            for one in waiting.iter().take(NAMED_MAX) {
                run.say(Some(stage), &format!("waits: {}", one.explained(api).await));
            }
        }
        left = waiting.into_iter().map(|one| one.entry).collect();
        tokio::time::sleep(LOOK).await;
    }
}

/// Looks at each object once.
async fn not_ready<'e>(
    run: &Run<'_>,
    api: &Api,
    left: &[&'e Entry],
    progress: &mut Progress,
    ready_since: &mut Since,
) -> Result<Vec<Waiting<'e>>, StepFailure> {
    let looks = left.iter().map(|entry| async move { (*entry, api.get(&entry.of).await) });
    let found: Vec<_> = futures::stream::iter(looks).buffered(AT_ONCE).collect().await;
    let mut waiting = Vec::new();
    for (entry, live) in found {
        let address = entry.of.address();
        let mut wait = |live, why: String, failed| waiting.push(Waiting { entry, live, why, failed });
        let live = match live {
            Ok(live) => live,
            Err(error) if error.code() == 403 => return Err(error.of("read", &address)),
            // It is asked again; how long is bounded by who waits.
            Err(_) => {
                wait(None, "the API server does not answer".to_owned(), false);
                continue;
            }
        };
        let status = match &live {
            None => Status::Failed("it is gone".to_owned()),
            Some(live) => status_of(live, now().micros() / 1_000_000),
        };
        if status != Status::Ready {
            ready_since.remove(&address);
        }
        match status {
            Status::Ready => {
                let since = ready_since.entry(address.clone()).or_insert_with(Instant::now);
                if live.as_ref().is_some_and(has_no_probe) && since.elapsed() < SETTLE {
                    wait(live, "its containers have only just started".to_owned(), false);
                } else {
                    progress.set(run, &address, "wait", ResourceStatus::Done);
                }
            }
            Status::Progressing(why) | Status::Terminating(why) => wait(live, why, false),
            Status::Failed(why) => wait(live, why, true),
        }
    }
    Ok(waiting)
}

/// The failure that names what did not become ready, and why.
async fn given_up_on(
    run: &Run<'_>,
    api: &Api,
    waiting: &[Waiting<'_>],
    progress: &mut Progress,
    begun: Instant,
) -> StepFailure {
    let mut told = Vec::new();
    for one in waiting.iter().take(NAMED_MAX) {
        progress.set(run, &one.entry.of.address(), "wait", ResourceStatus::Failed);
        told.push(one.explained(api).await);
    }
    progress.tell(run);
    let more = waiting.len().saturating_sub(NAMED_MAX);
    let more = if more > 0 { format!("; and {more} more") } else { String::new() };
    let after = format!("after {} s", begun.elapsed().as_secs());
    StepFailure::new("not_ready", format!("not ready {after}: {}{more}", told.join("; ")))
}
