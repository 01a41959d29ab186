//! Objects of one cluster: one watch for each kind and namespace, and a closer look at what is not well.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures::StreamExt as _;
use futures::stream::FuturesUnordered;
use kube::core::WatchEvent;
use kubernetes::{ObjectRef, observed_health_of};
use mask::Masks;
use model::health::Verdict;
use model::kubernetes::ClusterSpec;
use serde_json::Value;
use tokio::time::{Instant, timeout};

use super::board::{Board, Look, Place};
use crate::execute::kubernetes::api::{Api, ApiError, Kind, encoded};
use crate::execute::kubernetes::cluster;
use crate::execute::kubernetes::explain::why;
use crate::session::{now, random_u128};

const PAUSE_MIN: Duration = Duration::from_secs(1);
const PAUSE_MAX: Duration = Duration::from_secs(60);
/// An API server that is away for less than this says nothing of what it serves.
const GRACE: Duration = Duration::from_secs(20);
/// A watch that lasted for so long ended as watches do: the pauses do not grow.
const LASTED: Duration = Duration::from_secs(10);
/// Why something is not well is asked anew after this.
const EXPLAIN: Duration = Duration::from_secs(60);
const EXPLAIN_MAX: Duration = Duration::from_secs(15);
/// Explanations of a minute, of up to four requests each.
const EXPLAINED_MAX: usize = 10;

/// Pauses that grow, none like another.
struct Pauses(Duration);

impl Pauses {
    const fn new() -> Self {
        Self(PAUSE_MIN)
    }

    /// The pause after something that went on for so long.
    fn after(&mut self, lasted: Duration) -> Duration {
        if lasted >= LASTED {
            *self = Self::new();
        }
        let share = (random_u128() % 1000) as u32;
        let pause = self.0 / 2 + self.0 * share / 1000;
        self.0 = (self.0 * 2).min(PAUSE_MAX);
        pause
    }
}

fn now_s() -> i64 {
    now().micros() / 1_000_000
}

/// Observes the objects of a cluster for ever.
pub(super) async fn observe(board: &Board, at: usize, spec: &ClusterSpec, given: Option<&Path>, masks: &Arc<Masks>) {
    let mut kinds: BTreeMap<(String, String, Option<String>), Vec<ObjectRef>> = BTreeMap::new();
    for of in board.objects_in(at) {
        kinds.entry((of.api_version(), of.kind.clone(), of.namespace.clone())).or_default().push(of);
    }
    if kinds.is_empty() {
        return;
    }
    let (mut pauses, mut away_since) = (Pauses::new(), None::<Instant>);
    loop {
        let mut lasted = Duration::ZERO;
        match cluster::observe(given, spec).await {
            Ok((_, mut api)) => {
                api.hide(Arc::clone(masks));
                let connected = Instant::now();
                away_since = None;
                let api = Arc::new(api);
                board.set_way(at, Some(Arc::clone(&api)));
                let mut watches: FuturesUnordered<_> =
                    kinds.values().map(|objects| observe_kind(board, at, &api, objects)).collect();
                // One ends only when the credentials are not good any more: they are read anew.
                watches.next().await;
                board.set_way(at, None);
                lasted = connected.elapsed();
            }
            Err(failure) => {
                let since = *away_since.get_or_insert_with(Instant::now);
                if since.elapsed() >= GRACE {
                    let told = failure.sentence();
                    let unknown = |of| board.see(&(at, of), Look::new(Verdict::Unknown, told.clone()));
                    board.objects_in(at).into_iter().for_each(unknown);
                }
            }
        }
        tokio::time::sleep(pauses.after(lasted)).await;
    }
}

/// Where the watch of a kind is.
#[derive(Default)]
struct Course {
    /// What is to be known next; None reads everything anew.
    from: Option<String>,
    /// When the last watch began.
    begun: Option<Instant>,
}

/// Observes objects of one kind in one namespace, until the cluster does not accept the credentials any more.
async fn observe_kind(board: &Board, at: usize, api: &Api, objects: &[ObjectRef]) {
    let (mut pauses, mut away_since) = (Pauses::new(), None::<Instant>);
    let mut course = Course::default();
    loop {
        let ended = follow(board, at, api, objects, &mut course).await;
        let pause = pauses.after(course.begun.take().map_or(Duration::ZERO, |begun| begun.elapsed()));
        let error = match ended {
            // What is to be known next is too old: everything is read anew.
            Err(error) if error.code() == 410 => {
                course.from = None;
                None
            }
            // The kind is not served any more, or in another version: it is looked up anew.
            Err(error) if error.is_missing() => {
                course.from = None;
                Some(error)
            }
            ended => ended.err(),
        };
        let Some(error) = error else {
            away_since = None;
            tokio::time::sleep(pause).await;
            continue;
        };
        let since = *away_since.get_or_insert_with(Instant::now);
        // One that is busy, or upgraded, is away as one that does not answer.
        let passes = matches!(error.code(), 0 | 404 | 429 | 500..=599);
        if !passes || since.elapsed() >= GRACE {
            let kind = &objects[0].kind;
            let told = match error.code() {
                403 => format!("the runner may not watch objects of kind {kind}: {}", error.message()),
                401 => "the cluster does not accept the runner's credentials".to_owned(),
                _ => error.message(),
            };
            let unknown = |of: &ObjectRef| {
                board.see(&(at, of.clone()), Look::new(Verdict::Unknown, format!("{}: {told}", of.address())));
            };
            objects.iter().for_each(unknown);
            course.from = None;
        }
        tokio::time::sleep(pause).await;
        if error.code() == 401 {
            return;
        }
    }
}

/// Finds out how the kind is served, and follows its objects until the watch ends.
async fn follow(
    board: &Board,
    at: usize,
    api: &Api,
    objects: &[ObjectRef],
    course: &mut Course,
) -> Result<(), ApiError> {
    let Some(kind) = api.served(&objects[0]).await? else {
        objects.iter().for_each(|of| board.see(&(at, of.clone()), gone(of)));
        // A definition that was deleted may come back.
        course.begun = Some(Instant::now());
        tokio::time::sleep(PAUSE_MAX).await;
        return Ok(());
    };
    let ended = follow_kind(board, at, (api, &kind), objects, course).await;
    if ended.as_ref().is_err_and(ApiError::is_missing) {
        api.forget(&kind.api_version);
    }
    ended
}

/// Reads everything where nothing is known yet, and follows what happens.
async fn follow_kind(
    board: &Board,
    at: usize,
    (api, kind): (&Api, &Kind),
    objects: &[ObjectRef],
    course: &mut Course,
) -> Result<(), ApiError> {
    let wanted: BTreeMap<&str, &ObjectRef> = objects.iter().map(|of| (of.name.as_str(), of)).collect();
    let namespace = objects[0].namespace.as_deref();
    let query = match objects {
        [one] => format!("&fieldSelector=metadata.name%3D{}", encoded(&one.name)),
        _ => String::new(),
    };
    let judge = |object: &Value| {
        if let Some(of) = object["metadata"]["name"].as_str().and_then(|name| wanted.get(name)) {
            board.see(&(at, (*of).clone()), judged(of, object));
        }
    };
    let begin = match course.from.clone() {
        Some(begin) => begin,
        None => {
            let mut left: BTreeSet<&str> = wanted.keys().copied().collect();
            let begin = api
                .each(kind, namespace, &query, |object| {
                    left.remove(object["metadata"]["name"].as_str().unwrap_or_default());
                    judge(&object);
                })
                .await?;
            left.iter().for_each(|name| board.see(&(at, wanted[name].clone()), gone(wanted[name])));
            begin
        }
    };
    course.from = Some(begin.clone());
    course.begun = Some(Instant::now());
    let mut events = Box::pin(api.watch(kind, namespace, &query, &begin).await?);
    let from = &mut course.from;
    while let Some(event) = events.next().await {
        match event? {
            WatchEvent::Added(object) | WatchEvent::Modified(object) => {
                judge(&object);
                *from = object["metadata"]["resourceVersion"].as_str().map(str::to_owned).or_else(|| from.take());
            }
            WatchEvent::Deleted(object) => {
                *from = object["metadata"]["resourceVersion"].as_str().map(str::to_owned).or_else(|| from.take());
                if let Some(of) = object["metadata"]["name"].as_str().and_then(|name| wanted.get(name)) {
                    board.see(&(at, (*of).clone()), gone(of));
                }
            }
            WatchEvent::Bookmark(bookmark) => *from = Some(bookmark.metadata.resource_version),
            WatchEvent::Error(status) => return Err(ApiError::Refused(status)),
        }
    }
    Ok(())
}

/// What it means that an object is not there. A Job is over some time, and is cleaned up.
fn gone(of: &ObjectRef) -> Look {
    match (of.group.as_str(), of.kind.as_str()) {
        ("batch", "Job") => Look::new(Verdict::NotApplicable, ""),
        _ => Look { by_change: true, ..Look::new(Verdict::Unhealthy, format!("{} is not there", of.address())) },
    }
}

fn judged(of: &ObjectRef, object: &Value) -> Look {
    let (health, by_change) = observed_health_of(object, now_s());
    let reason = match health.verdict.is_good() {
        true => String::new(),
        false => format!("{}: {}", of.address(), health.reason),
    };
    Look { by_change, ..Look::new(health.verdict, reason) }
}

/// When explanations were asked for lately: they cost requests.
static ASKED: Mutex<Vec<Instant>> = Mutex::new(Vec::new());

/// May one more explanation be asked for?
fn afford() -> bool {
    let mut asked = ASKED.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    asked.retain(|at| at.elapsed() < EXPLAIN);
    let affords = asked.len() < EXPLAINED_MAX;
    if affords {
        asked.push(Instant::now());
    }
    affords
}

/// Finds out why objects are not well.
pub(super) async fn explain(board: &Board) {
    for (place, look) in board.unwell() {
        // What may still become well is looked at each time.
        let lasts = if look.verdict == Verdict::Progressing { Duration::ZERO } else { EXPLAIN };
        let recent = !look.asks && look.explained_at.is_some_and(|at| at.elapsed() < lasts);
        let Some(api) = board.way(place.0).filter(|_| !recent && afford()) else { continue };
        if let Ok(Some(look)) = timeout(EXPLAIN_MAX, explained(&api, &place)).await {
            board.see(&place, look);
        }
    }
}

async fn explained(api: &Api, (_, of): &Place) -> Option<Look> {
    let live = api.get(of).await.ok()?;
    let Some(live) = live else {
        return Some(Look { explained_at: Some(Instant::now()), ..gone(of) });
    };
    let mut look = judged(of, &live);
    if look.verdict.is_good() {
        return Some(look);
    }
    let (health, _) = observed_health_of(&live, now_s());
    let found = why(api, of, Some(&live), &health.reason).await;
    look.reason = found.text;
    look.stuck = found.stuck;
    look.by_change &= !found.stuck;
    if found.stuck && look.verdict == Verdict::Progressing {
        look.verdict = if serves(&live) { Verdict::Degraded } else { Verdict::Unhealthy };
    }
    look.explained_at = Some(Instant::now());
    Some(look)
}

/// Whether a workload whose rollout can't go on has pods that serve.
fn serves(live: &Value) -> bool {
    let count = |key: &str| live["status"][key].as_i64().unwrap_or_default();
    let is_workload = live["spec"]["template"].is_object() && live["kind"] != "Job";
    !is_workload || count("readyReplicas").max(count("numberReady")).max(count("availableReplicas")) > 0
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use model::kubernetes::ClusterSpec;
    use serde_json::json;
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::net::TcpListener;

    use super::super::board::Component;
    use super::*;

    /// What an API server says to lists and watches, in turn; and what it was asked.
    struct Script {
        answers: VecDeque<(u16, String)>,
        asked: Vec<String>,
        /// After the first answer that is a 404.
        unserved: bool,
    }

    async fn serve(listener: TcpListener, script: Arc<Mutex<Script>>) {
        while let Ok((mut stream, _)) = listener.accept().await {
            let script = Arc::clone(&script);
            tokio::spawn(async move {
                let mut head = Vec::new();
                while !head.windows(4).any(|end| end == b"\r\n\r\n") {
                    let mut byte = [0; 1024];
                    match stream.read(&mut byte).await {
                        Ok(count) if count > 0 => head.extend_from_slice(&byte[..count]),
                        _ => return,
                    }
                }
                let head = String::from_utf8_lossy(&head).into_owned();
                let path = head.split(' ').nth(1).unwrap_or_default().to_owned();
                let over = |code: u16| (code, json!({ "kind": "Status", "code": code }).to_string());
                let unserved = script.lock().expect("a script").unserved;
                let (code, body) = match path.as_str() {
                    "/apis/apps/v1" | "/apis/apps" if unserved => over(404),
                    "/api/v1/namespaces/kube-system" => (200, json!({ "metadata": { "uid": "u" } }).to_string()),
                    "/apis/apps/v1" => {
                        let kind = json!({ "name": "deployments", "kind": "Deployment", "namespaced": true });
                        (200, json!({ "resources": [kind] }).to_string())
                    }
                    _ => {
                        let mut script = script.lock().expect("a script");
                        script.asked.push(path);
                        let answer = script.answers.pop_front().unwrap_or_else(|| over(503));
                        script.unserved |= answer.0 == 404;
                        answer
                    }
                };
                let head = format!("HTTP/1.1 {code} X\r\ncontent-type: application/json\r\nconnection: close\r\n\r\n");
                let _ = stream.write_all(head.as_bytes()).await;
                let _ = stream.write_all(body.as_bytes()).await;
            });
        }
    }

    fn deployment(available: u64, version: &str) -> Value {
        json!({
            "apiVersion": "apps/v1", "kind": "Deployment",
            "metadata": { "name": "web", "namespace": "shop", "generation": 1, "resourceVersion": version },
            "spec": { "replicas": 1 },
            "status": {
                "observedGeneration": 1, "replicas": 1, "updatedReplicas": 1, "readyReplicas": available,
                "availableReplicas": available,
                "conditions": [{ "type": "Progressing", "status": "True", "reason": "NewReplicaSetAvailable" },
                    { "type": "Available", "status": if available > 0 { "True" } else { "False" } }],
            },
        })
    }

    /// Observes a deployment through an API server that gives these answers.
    async fn watched(
        answers: VecDeque<(u16, String)>,
    ) -> (Arc<Board>, Arc<Mutex<Script>>, tokio::task::JoinHandle<()>) {
        let script = Arc::new(Mutex::new(Script { answers, asked: Vec::new(), unserved: false }));
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let server = format!("http://{}", listener.local_addr().expect("an address"));
        tokio::spawn(serve(listener, Arc::clone(&script)));

        let of = ObjectRef {
            group: "apps".into(),
            version: "v1".into(),
            kind: "Deployment".into(),
            namespace: Some("shop".into()),
            name: "web".into(),
        };
        let component = Component {
            name: "web".into(),
            generation: 1,
            objects: vec![(0, of)],
            probes: Vec::new(),
            unknown: String::new(),
        };
        let board = Arc::new(Board::new(vec![component], 1));
        let spec = ClusterSpec::Output {
            origin: "the test".into(),
            kubeconfig: None,
            endpoint: server,
            certificate_authority_data: String::new(),
            token: Some("t".into()),
        };
        let observed = Arc::clone(&board);
        let task = tokio::spawn(async move { observe(&observed, 0, &spec, None, &Arc::new(Masks::new(&[]))).await });
        (board, script, task)
    }

    fn list(items: &[Value], version: &str) -> (u16, String) {
        (200, json!({ "metadata": { "resourceVersion": version }, "items": items }).to_string())
    }

    #[test]
    fn pauses_grow_until_a_watch_has_lasted() {
        let mut pauses = Pauses::new();
        // As one that connects, and whose credentials are refused at once, again and again.
        let all: Duration = (0..8).map(|_| pauses.after(Duration::from_secs(1))).sum();
        assert!(all > Duration::from_secs(80), "{all:?}");
        assert!(pauses.after(LASTED) < Duration::from_secs(2));
    }

    #[tokio::test]
    async fn a_watch_that_ends_at_once_is_not_opened_without_a_pause() {
        let expired = json!({ "type": "ERROR", "object": { "kind": "Status", "status": "Failure", "code": 410, "reason": "Expired", "message": "too old" } });
        let ends = (0..500).map(|_| (200, String::new()));
        let expires = (0..500).flat_map(|_| [list(&[deployment(1, "9")], "10"), (200, format!("{expired}\n"))]);
        let (_, ended, first) = watched([list(&[deployment(1, "9")], "10")].into_iter().chain(ends).collect()).await;
        let (_, expired, second) = watched(expires.collect()).await;
        tokio::time::sleep(Duration::from_secs(3)).await;
        first.abort();
        second.abort();
        for script in [ended, expired] {
            let asked = script.lock().expect("a script").asked.len();
            assert!((2..=10).contains(&asked), "{asked} requests in three seconds");
        }
    }

    #[tokio::test]
    async fn a_busy_server_says_nothing_and_a_kind_that_is_not_served_any_more_is_gone() {
        let status = |code: u16| (code, json!({ "kind": "Status", "status": "Failure", "code": code }).to_string());
        let well = || list(&[deployment(1, "9")], "10");
        let (busy, script, first) = watched(VecDeque::from([well(), status(503), status(429)])).await;
        let (gone, _, second) = watched(VecDeque::from([well(), status(404)])).await;
        let masks = mask::Masks::new(&[]);
        let mut seen = [Vec::new(), Vec::new()];
        for _ in 0..400 {
            for (board, seen) in [&busy, &gone].into_iter().zip(&mut seen) {
                let told = board.observations(&masks).remove(0).verdict;
                if board.is_read() && seen.last() != Some(&told) {
                    seen.push(told);
                }
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        first.abort();
        second.abort();
        assert_eq!(seen[0], [Verdict::Healthy]);
        assert_eq!(seen[1], [Verdict::Healthy, Verdict::Unhealthy], "it is not there, and nobody doubts it");
        let asked = script.lock().expect("a script").asked.len();
        assert!(asked > 2, "it was asked again: {asked}");
    }

    #[test]
    fn a_job_that_was_cleaned_up_is_not_missed() {
        let look = |group: &str, kind: &str| {
            let of = |text: &str| text.to_owned();
            let namespace = Some(of("shop"));
            gone(&ObjectRef { group: of(group), version: of("v1"), kind: of(kind), namespace, name: of("x") }).verdict
        };
        assert_eq!(look("batch", "Job"), Verdict::NotApplicable);
        assert_eq!(look("batch", "CronJob"), Verdict::Unhealthy);
        assert_eq!(look("example.com", "Job"), Verdict::Unhealthy, "somebody's own kind");
    }

    #[tokio::test]
    async fn a_watch_that_is_too_old_reads_anew_and_a_forbidden_one_is_unknown() {
        let bookmark = json!({ "type": "BOOKMARK", "object": { "apiVersion": "apps/v1", "kind": "Deployment", "metadata": { "resourceVersion": "12" } } });
        let modified = json!({ "type": "MODIFIED", "object": deployment(0, "11") });
        let expired = json!({ "type": "ERROR", "object": { "kind": "Status", "status": "Failure", "code": 410, "reason": "Expired", "message": "too old" } });
        let forbidden =
            json!({ "kind": "Status", "status": "Failure", "code": 403, "reason": "Forbidden", "message": "no way" });
        let answers = VecDeque::from([
            list(&[deployment(1, "9")], "10"),
            (200, format!("{modified}\n{bookmark}\n")),
            (200, format!("{expired}\n")),
            list(&[], "20"),
            (403, forbidden.to_string()),
        ]);
        let (board, script, task) = watched(answers).await;
        let masks = mask::Masks::new(&[]);
        let mut seen = Vec::new();
        for _ in 0..1000 {
            let told = board.observations(&masks).remove(0);
            if seen.last() != Some(&told.verdict) {
                seen.push(told.verdict);
            }
            if told.reason.contains("may not watch") {
                assert!(
                    told.reason.contains("Deployment/shop/web") && told.reason.contains("no way"),
                    "{}",
                    told.reason
                );
                break;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        task.abort();
        assert_eq!(seen.last(), Some(&Verdict::Unknown), "{seen:?}");
        let asked = script.lock().expect("a script").asked.clone();
        let version = |at: usize| asked[at].split("resourceVersion=").nth(1).and_then(|rest| rest.split('&').next());
        assert!(asked[0].contains("limit=") && asked[0].contains("fieldSelector=metadata.name%3Dweb"), "{asked:?}");
        let versions: Vec<_> = (0..5).map(version).collect();
        assert_eq!(versions, [None, Some("10"), Some("12"), None, Some("20")], "{asked:?}");
    }
}
