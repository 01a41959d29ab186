//! Watches a Job until it is over: its pods one after the other, their logs, and what keeps them from running.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

use crash::crash_point;
use kubernetes::ObjectRef;
use mask::Masker;
use model::JobError;
use model::log::Pipe;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tokio::sync::mpsc;

use super::super::Run;
use super::super::action::StepFailure;
use super::super::kubernetes::api::{Api, selector};
use super::super::kubernetes::explain::{self, Outlook};
use super::super::kubernetes::plan;
use super::follow::{Piece, follow, state};
use super::object::{self, State};
use crate::logs::spool::whole_characters;

const FAILED: &str = "job_failed";
/// How often the Job is looked at.
const LOOK: Duration = Duration::from_millis(500);
/// How often it is found out what a pod waits for.
const EXPLAIN: Duration = Duration::from_secs(2);
/// What the Job waits for is said this often.
const SAY: Duration = Duration::from_secs(20);
/// How long what keeps a pod from starting may last.
const STUCK: Duration = Duration::from_secs(40);
/// How long a log that does not come may keep the end of a Job, or the next pod, waiting.
const LATE: Duration = Duration::from_secs(30);

/// A run that ended well.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Ran {
    pub(super) of: ObjectRef,
    pub(super) uid: String,
    /// Names what ran.
    pub(super) content: String,
    pub(super) run: u64,
    pub(super) attempts: u64,
    pub(super) started_at: Option<String>,
    pub(super) finished_at: Option<String>,
}

impl Ran {
    /// From a Job that is complete.
    pub(super) fn of(live: &object::Live) -> Self {
        let status = &live.object["status"];
        let text = |key: &str| status[key].as_str().map(str::to_owned);
        Self {
            of: live.of.clone(),
            uid: live.uid.clone(),
            content: live.content.clone(),
            run: live.run,
            attempts: attempts(status),
            started_at: text("startTime"),
            finished_at: text("completionTime"),
        }
    }
}

/// Pods that have run to an end, of the status of a Job.
fn attempts(status: &Value) -> u64 {
    status["succeeded"].as_u64().unwrap_or_default() + status["failed"].as_u64().unwrap_or_default()
}

/// A Job that is watched.
pub(super) struct Watch<'w> {
    pub(super) run: &'w Run<'w>,
    pub(super) api: Arc<Api>,
    pub(super) of: &'w ObjectRef,
    pub(super) uid: &'w str,
    pub(super) stage: usize,
    pub(super) until: Instant,
    pub(super) timeout_s: u64,
}

/// How a Job that is watched ended, if it did not end well.
pub(super) enum Over {
    /// By itself.
    Failed(StepFailure),
    /// It goes on, or is stuck: it must be deleted.
    GivenUp(StepFailure),
    /// It goes on, and nobody may look at it.
    Unseen(StepFailure),
}

impl From<StepFailure> for Over {
    fn from(failure: StepFailure) -> Self {
        Self::Failed(failure)
    }
}

impl Watch<'_> {
    pub(super) async fn until_over(&self) -> Result<object::Live, Over> {
        let mut logs = Logs::new(self);
        let (mut told, mut stuck) = (Told::default(), Stuck::default());
        let (mut over_since, mut refused_since): (Option<Instant>, Option<Instant>) = (None, None);
        loop {
            logs.write_for(LOOK).await;
            let is_out_of_time = Instant::now() > self.until;
            let seen = match self.see().await {
                // Rights that are changed are away for moments.
                Err(Over::Unseen(_)) if refused_since.get_or_insert_with(Instant::now).elapsed() < STUCK => continue,
                seen => seen?,
            };
            refused_since = None;
            let (live, pods) = match seen {
                // What is over by now was not too late.
                (Some(live), Some(pods)) if !is_out_of_time || live.state != State::Running => (live, pods),
                _ if is_out_of_time => {
                    logs.flush();
                    return Err(Over::GivenUp(self.too_long()));
                }
                _ => continue,
            };
            told.attempts(self, &pods);
            if !pods.is_empty() {
                crash_point!("executor.job_pod_seen");
            }
            logs.pick(&pods);
            let hopeless = told.failures(self, &pods, &logs).await;
            if live.state == State::Running {
                let hopeless = match hopeless {
                    None => stuck.look(self, &pods).await,
                    hopeless => hopeless,
                };
                if let Some(why) = hopeless {
                    logs.flush();
                    return Err(Over::GivenUp(self.hopeless(&why, &pods)));
                }
                continue;
            }
            let since = *over_since.get_or_insert_with(Instant::now);
            let is_late = is_out_of_time || (since.elapsed() > LATE && logs.is_silent_for(LATE));
            if is_late {
                logs.give_up();
            }
            if is_late || logs.is_whole(&pods) {
                told.failures(self, &pods, &logs).await;
                return match live.state {
                    State::Complete => Ok(live),
                    State::Failed | State::Running => Err(Over::Failed(self.failed(&live, &pods).await)),
                };
            }
        }
    }

    async fn see(&self) -> Result<(Option<object::Live>, Option<Vec<Value>>), Over> {
        Ok((self.look().await?, self.pods().await?))
    }

    /// The Job, or None where the API server does not answer.
    async fn look(&self) -> Result<Option<object::Live>, Over> {
        let address = self.of.address();
        match self.api.get(self.of).await {
            Ok(Some(live)) if live["metadata"]["uid"] == self.uid => match object::Live::read(live) {
                Some(live) => Ok(Some(live)),
                None => Err(StepFailure::new(FAILED, format!("{address} can't be read")).into()),
            },
            Ok(_) => {
                let text = format!("{address} was deleted while it ran: deploy again to run it once more");
                Err(StepFailure::new(FAILED, text).into())
            }
            Err(error) if error.code() == 403 => Err(self.unseen(error.of("read", &address))),
            Err(_) => Ok(None),
        }
    }

    /// The pods of the Job, the oldest first.
    async fn pods(&self) -> Result<Option<Vec<Value>>, Over> {
        let namespace = self.of.namespace.as_deref().unwrap_or_default();
        let query = selector(&object::pods(&self.of.name)).unwrap_or_default();
        match self.api.list("v1", "pods", namespace, &query).await {
            Ok(mut pods) => {
                pods.retain(|pod| pod["metadata"]["ownerReferences"][0]["uid"] == self.uid);
                let made = |pod: &Value| pod["metadata"]["creationTimestamp"].as_str().unwrap_or_default().to_owned();
                pods.sort_by_cached_key(|pod| (made(pod), name(pod)));
                Ok(Some(pods))
            }
            Err(error) if error.code() == 403 => {
                Err(self.unseen(error.of("list", &format!("the pods of {}", self.of.address()))))
            }
            Err(_) => Ok(None),
        }
    }

    /// What is wrong with the youngest pod; or why there is none.
    async fn trouble(&self, pods: &[Value]) -> Option<(String, Outlook)> {
        match pods.last() {
            Some(pod) => explain::of_pod(&self.api, pod).await.map(|it| (it.text, it.outlook)),
            None => {
                let namespace = self.of.namespace.as_deref().unwrap_or_default();
                let why = explain::warning(&self.api, namespace, "Job", &self.of.name).await?;
                let hint = match why.as_str() {
                    why if why.contains("serviceaccount") => ": create it, or change `service_account`",
                    why if why.contains("exceeded quota") => ": raise the quota of the namespace",
                    _ => "",
                };
                Some((format!("its pod can't be created: {why}{hint}"), Outlook::Lasting))
            }
        }
    }

    async fn failed(&self, live: &object::Live, pods: &[Value]) -> StepFailure {
        let conditions = live.object["status"]["conditions"].as_array().into_iter().flatten();
        let failed = conditions.clone().find(|it| it["type"] == "Failed" && it["status"] == "True");
        if failed.is_some_and(|it| it["reason"] == "DeadlineExceeded") {
            return self.too_long();
        }
        let why = match pods.last() {
            Some(pod) => explain::of_pod(&self.api, pod).await.map(|it| it.text),
            None => None,
        };
        let why = why.or_else(|| failed.and_then(|it| it["message"].as_str().map(str::to_owned))).unwrap_or_default();
        let attempts = usize::try_from(attempts(&live.object["status"])).unwrap_or_default();
        let attempts = plan::count(attempts, "attempt");
        let text = format!("{} failed after {attempts}: {why}. Correct the cause and deploy again", self.of.address());
        StepFailure::Failed { error: JobError::new(FAILED, text), exit_code: exit_code(pods) }
    }

    fn hopeless(&self, why: &str, pods: &[Value]) -> StepFailure {
        let text = format!("{} can't run: {why}", self.of.address());
        StepFailure::Failed { error: JobError::new(FAILED, text), exit_code: exit_code(pods) }
    }

    fn unseen(&self, failure: StepFailure) -> Over {
        Over::Unseen(super::also(
            failure,
            &format!("{} may still run: the next deploy waits for it", self.of.address()),
        ))
    }

    fn too_long(&self) -> StepFailure {
        StepFailure::new(
            "timed_out",
            format!(
                "{} did not end within {} s, which is what `deploy_timeout` leaves it: raise `deploy_timeout`, or let it do less",
                self.of.address(),
                self.timeout_s
            ),
        )
    }

    fn say(&self, text: &str) {
        self.run.say(Some(self.stage), text);
    }
}

/// Of the youngest pod.
fn exit_code(pods: &[Value]) -> Option<i32> {
    let code = state(pods.last()?)["terminated"]["exitCode"].as_i64()?;
    i32::try_from(code).ok()
}

fn name(pod: &Value) -> String {
    pod["metadata"]["name"].as_str().unwrap_or_default().to_owned()
}

fn uid(pod: &Value) -> String {
    pod["metadata"]["uid"].as_str().unwrap_or_default().to_owned()
}

/// What was said of pods.
#[derive(Default)]
struct Told {
    begun: BTreeMap<String, usize>,
    failed: BTreeSet<String>,
}

impl Told {
    /// Each pod is an attempt.
    fn attempts(&mut self, watch: &Watch<'_>, pods: &[Value]) {
        for pod in pods {
            let next = self.begun.len() + 1;
            if let std::collections::btree_map::Entry::Vacant(new) = self.begun.entry(uid(pod)) {
                new.insert(next);
                watch.say(&format!("attempt {next}: pod {}", name(pod)));
            }
        }
    }

    /// Says why an attempt failed, after its log. Returns why no other attempt would fare better, if that is so.
    async fn failures(&mut self, watch: &Watch<'_>, pods: &[Value], logs: &Logs<'_>) -> Option<String> {
        let mut hopeless = None;
        for pod in pods.iter().filter(|pod| pod["status"]["phase"] == "Failed") {
            let uid = uid(pod);
            if !logs.done.contains(&uid) || !self.failed.insert(uid.clone()) {
                continue;
            }
            let trouble = explain::of_pod(&watch.api, pod).await;
            let why = match &trouble {
                Some(trouble) => trouble.text.clone(),
                None => pod["status"]["message"].as_str().unwrap_or("its pod failed").to_owned(),
            };
            watch.say(&format!("attempt {} failed: {why}", self.begun.get(&uid).copied().unwrap_or_default()));
            if trouble.is_some_and(|it| it.outlook == Outlook::Hopeless) {
                hopeless = Some(why);
            }
        }
        hopeless
    }
}

/// What keeps the youngest pod from starting.
#[derive(Default)]
struct Stuck {
    looked: Option<Instant>,
    said: Option<Instant>,
    /// Since when something is wrong.
    since: Option<Instant>,
    /// Since when it is something that should pass.
    lasts_since: Option<Instant>,
}

impl Stuck {
    /// Returns why waiting does not help, once that is so.
    async fn look(&mut self, watch: &Watch<'_>, pods: &[Value]) -> Option<String> {
        if self.looked.is_some_and(|at| at.elapsed() < EXPLAIN) {
            return None;
        }
        self.looked = Some(Instant::now());
        let trouble = match pods.last() {
            Some(pod) if pod["status"]["phase"] == "Failed" => None,
            _ => watch.trouble(pods).await,
        };
        let Some((text, outlook)) = trouble else {
            (self.since, self.lasts_since) = (None, None);
            return None;
        };
        let since = *self.since.get_or_insert_with(Instant::now);
        // What passes within moments is not worth a line.
        if since.elapsed() > EXPLAIN && self.said.is_none_or(|at| at.elapsed() > SAY) {
            self.said = Some(Instant::now());
            watch.say(&format!("waits: {text}"));
        }
        match outlook {
            Outlook::Hopeless => Some(text),
            Outlook::Lasting => (self.lasts_since.get_or_insert_with(Instant::now).elapsed() > STUCK).then_some(text),
            Outlook::Open => {
                self.lasts_since = None;
                None
            }
        }
    }
}

/// Logs of pods, read one after the other.
struct Logs<'l> {
    run: &'l Run<'l>,
    api: Arc<Api>,
    stage: usize,
    current: Option<Current>,
    done: BTreeSet<String>,
    /// When something came last.
    came: Instant,
}

struct Current {
    uid: String,
    name: String,
    pieces: mpsc::Receiver<Piece>,
    masker: Masker,
    pending: Vec<u8>,
}

impl<'l> Logs<'l> {
    fn new(watch: &Watch<'l>) -> Self {
        let (run, api, stage) = (watch.run, Arc::clone(&watch.api), watch.stage);
        Self { run, api, stage, current: None, done: BTreeSet::new(), came: Instant::now() }
    }

    /// Goes on to the oldest pod whose log was not read. One that is silent does not hold up the next one for ever.
    fn pick(&mut self, pods: &[Value]) {
        if let Some(current) = &self.current {
            let is_last = pods.last().is_some_and(|pod| uid(pod) == current.uid);
            if is_last || !self.is_silent_for(LATE) {
                return;
            }
            self.give_up();
        }
        let Some(pod) = pods.iter().find(|pod| !self.done.contains(&uid(pod))) else { return };
        let of = ObjectRef {
            group: String::new(),
            version: "v1".into(),
            kind: "Pod".into(),
            namespace: pod["metadata"]["namespace"].as_str().map(str::to_owned),
            name: name(pod),
        };
        let pieces = follow(Arc::clone(&self.api), of, uid(pod));
        let (masker, pending) = (Masker::default(), Vec::new());
        self.current = Some(Current { uid: uid(pod), name: name(pod), pieces, masker, pending });
        self.came = Instant::now();
    }

    /// Writes down what comes, for a while.
    async fn write_for(&mut self, while_: Duration) {
        let pause = tokio::time::sleep(while_);
        tokio::pin!(pause);
        loop {
            let Some(current) = &mut self.current else { return pause.await };
            let piece = tokio::select! {
                piece = current.pieces.recv() => piece,
                () = &mut pause => break,
            };
            self.came = Instant::now();
            match piece {
                Some(Piece::Bytes(bytes)) => {
                    current.masker.push(&self.run.host.secrets.masks(), &bytes, &mut current.pending);
                    let end = current.pending.iter().rposition(|b| *b == b'\n').map_or(0, |at| at + 1);
                    write(self.run, self.stage, &mut current.pending, end);
                }
                Some(Piece::End) => self.close(None),
                Some(Piece::Lost(why)) => self.close(Some(&why)),
                None => self.close(Some("its reader has ended")),
            }
        }
        // A line that is on its way is shown, too.
        if let Some(current) = &mut self.current {
            let end = whole_characters(&current.pending, current.pending.len());
            write(self.run, self.stage, &mut current.pending, end);
        }
    }

    fn close(&mut self, lost: Option<&str>) {
        let Some(mut current) = self.current.take() else { return };
        current.masker.flush(&self.run.host.secrets.masks(), &mut current.pending);
        let end = current.pending.len();
        write(self.run, self.stage, &mut current.pending, end);
        self.run.host.log.borrow_mut().end_line(Pipe::Stdout);
        if let Some(why) = lost {
            self.run.say(Some(self.stage), &format!("the log of pod {} is incomplete: {why}", current.name));
        }
        self.done.insert(current.uid);
    }

    /// What was read is written; the rest is not waited for.
    fn flush(&mut self) {
        while let Some(Piece::Bytes(bytes)) = self.current.as_mut().and_then(|it| it.pieces.try_recv().ok()) {
            if let Some(current) = &mut self.current {
                current.masker.push(&self.run.host.secrets.masks(), &bytes, &mut current.pending);
            }
        }
        self.close(None);
    }

    /// The log that is read now does not come any more.
    fn give_up(&mut self) {
        if self.current.is_some() {
            self.close(Some("the cluster did not give the rest of it in time"));
        }
    }

    fn is_whole(&self, pods: &[Value]) -> bool {
        self.current.is_none() && pods.iter().all(|pod| self.done.contains(&uid(pod)))
    }

    fn is_silent_for(&self, time: Duration) -> bool {
        self.came.elapsed() > time
    }
}

fn write(run: &Run<'_>, stage: usize, pending: &mut Vec<u8>, length: usize) {
    if length > 0 {
        run.host.log.borrow_mut().write(Pipe::Stdout, u32::try_from(stage).unwrap_or_default(), &pending[..length]);
        pending.drain(..length);
    }
}

/// What is put out of a run.
pub(super) fn outputs(ran: &Ran) -> Vec<(String, kubernetes::Output)> {
    let open = |value: Value| kubernetes::Output { value, sensitive: false };
    vec![
        ("job".into(), open(json!({ "name": ran.of.name, "namespace": ran.of.namespace }))),
        // A Job that is complete ended with this.
        ("exit_code".into(), open(json!(0))),
        ("attempts".into(), open(json!(ran.attempts))),
        ("started_at".into(), open(json!(ran.started_at))),
        ("finished_at".into(), open(json!(ran.finished_at))),
    ]
}
