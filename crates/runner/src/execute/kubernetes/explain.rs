//! Why an object does not become ready, in one sentence that an engineer can act on.

use std::time::Duration;

use kubernetes::ObjectRef;
use model::Timestamp;
use serde_json::Value;

use super::super::now;
use super::api::{Api, encoded, selector};

/// Last lines of a container that crashed.
const LINES: usize = 3;
const LINE_CHARS_MAX: usize = 300;
const LOG_BYTES_MAX: usize = 64 << 10;
/// What is older than this was tried more than once: a pull, a start.
const RECENT: Duration = Duration::from_secs(10);
/// What Linux says of a program for another processor.
const WRONG_ARCHITECTURE: &str = "exec format error";

/// What keeps an object from being ready: for a workload, what is wrong with its pods.
pub(crate) async fn why(api: &Api, of: &ObjectRef, live: Option<&Value>, status: &str) -> Why {
    let own = format!("{} is not ready: {status}", of.address());
    let Some(live) = live else { return Why::open(own) };
    let pods = match (of.kind.as_str(), of.namespace.as_deref()) {
        ("Pod", _) => vec![live.clone()],
        (_, Some(namespace)) => match selector(&live["spec"]["selector"]["matchLabels"]) {
            Some(query) => api.list("v1", "pods", namespace, &query).await.unwrap_or_default(),
            None => Vec::new(),
        },
        (_, None) => Vec::new(),
    };
    // The youngest pod belongs to what is rolled out now.
    let mut pods: Vec<&Value> = pods.iter().collect();
    pods.sort_by_key(|pod| {
        std::cmp::Reverse(pod["metadata"]["creationTimestamp"].as_str().unwrap_or_default().to_owned())
    });
    for pod in pods {
        if let Some(found) = of_pod(api, pod).await {
            return Why { text: format!("{}: {}", of.address(), found.text), stuck: found.stuck };
        }
    }
    if let Some(namespace) = &of.namespace
        && let Some(event) = warning(api, namespace, &of.kind, &of.name).await
    {
        return Why::open(format!("{own} ({event})"));
    }
    Why::open(own)
}

/// What keeps an object from being ready.
#[derive(Debug)]
pub(crate) struct Why {
    pub(crate) text: String,
    /// It has been so more than once, and does not get better by waiting.
    pub(crate) stuck: bool,
}

impl Why {
    const fn open(text: String) -> Self {
        Self { text, stuck: false }
    }
}

/// What is wrong with a pod, and whether waiting helps.
pub(crate) struct Trouble {
    pub(crate) text: String,
    pub(crate) outlook: Outlook,
    pub(crate) stuck: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Outlook {
    /// No other pod would fare better.
    Hopeless,
    /// It may pass. If it lasts, it does not.
    Lasting,
    /// Another pod may succeed, or this one later.
    Open,
}

/// What is wrong with a pod; None where nothing is seen.
pub(crate) async fn of_pod(api: &Api, pod: &Value) -> Option<Trouble> {
    let trouble = |text: String, outlook| Some(Trouble { text, outlook, stuck: false });
    let (name, namespace) = (text(&pod["metadata"]["name"]), text(&pod["metadata"]["namespace"]));
    let conditions = pod["status"]["conditions"].as_array().into_iter().flatten();
    if let Some(unplaced) = conditions.clone().find(|it| it["type"] == "PodScheduled" && it["status"] == "False") {
        let why = text(&unplaced["message"]);
        // Whoever brings nodes says so; that takes minutes.
        let comes = event(api, &namespace, "Pod", &name, "reason%3DTriggeredScaleUp").await.is_some()
            || event(api, &namespace, "Pod", &name, "reason%3DNominated").await.is_some();
        return match comes {
            true => trouble(
                format!("no node can take the pod {name} yet, and a new one is on its way: {why}"),
                Outlook::Open,
            ),
            false => trouble(
                format!("no node can take the pod {name}: {}: add a node, or ask for less", why.trim_end_matches('.')),
                Outlook::Lasting,
            ),
        };
    }
    if pod["status"]["reason"] == "Evicted" {
        return trouble(
            format!("the node evicted the pod {name}: {}", shortened(&text(&pod["status"]["message"]))),
            Outlook::Open,
        );
    }
    let all = ["initContainerStatuses", "containerStatuses"];
    for container in all.iter().flat_map(|of| pod["status"][of].as_array().into_iter().flatten()) {
        // What it died of before it came up says nothing of now, unless it came up only just now.
        if container["ready"] == true && is_older(&container["state"]["running"]["startedAt"], RECENT) {
            continue;
        }
        let of = Container { api, pod, namespace: &namespace, name: &name, container };
        if let Some(found) = of.trouble().await {
            return Some(found);
        }
    }
    None
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

/// A container of a pod, as its status tells of it.
struct Container<'p> {
    api: &'p Api,
    pod: &'p Value,
    namespace: &'p str,
    name: &'p str,
    container: &'p Value,
}

impl Container<'_> {
    async fn trouble(&self) -> Option<Trouble> {
        let own = text(&self.container["name"]);
        let state = &self.container["state"];
        if let Some(found) = self.waits(&own, &state["waiting"]).await {
            return Some(found);
        }
        let ended = if state["terminated"].is_object() {
            &state["terminated"]
        } else {
            &self.container["lastState"]["terminated"]
        };
        if let Some(found) = self.ended(&own, ended).await {
            return Some(found);
        }
        if state["running"].is_object() && self.container["ready"] == false {
            let said = warning(self.api, self.namespace, "Pod", self.name)
                .await
                .unwrap_or_else(|| "its readiness probe does not pass".to_owned());
            let text = format!("container `{own}` of pod {} runs and is not ready: {}", self.name, shortened(&said));
            return Some(Trouble { text, outlook: Outlook::Open, stuck: false });
        }
        None
    }

    /// Why a container does not start.
    async fn waits(&self, own: &str, waiting: &Value) -> Option<Trouble> {
        let message = text(&waiting["message"]);
        let warned = async || warning(self.api, self.namespace, "Pod", self.name).await;
        let reason = waiting["reason"].as_str()?;
        let (text, outlook, stuck) = match reason {
            "ErrImagePull" | "ImagePullBackOff" | "InvalidImageName" | "ErrImageNeverPull" => {
                let said = warned().await.unwrap_or(message);
                let image = text(&self.container["image"]);
                let hint = self.pull_hint(&said).await;
                let text =
                    format!("the image {image} of container `{own}` can't be pulled: {}{hint}", shortened(&said));
                // Between two tries the first reason is there again.
                (
                    text,
                    Outlook::Lasting,
                    reason != "ErrImagePull" || is_older(&self.pod["metadata"]["creationTimestamp"], RECENT),
                )
            }
            "CreateContainerConfigError" | "CreateContainerError" | "RunContainerError" => {
                (self.not_started(own, &message).await, Outlook::Lasting, true)
            }
            "ContainerCreating" | "PodInitializing" => {
                let said = warned().await?;
                let text = format!("container `{own}` of pod {} can't be created yet: {}", self.name, shortened(&said));
                (text, Outlook::Open, false)
            }
            _ => return None,
        };
        Some(Trouble { text, outlook, stuck })
    }

    /// Why a container ended, where it did not end well.
    async fn ended(&self, own: &str, ended: &Value) -> Option<Trouble> {
        let name = self.name;
        let again = self.container["restartCount"].as_i64().unwrap_or_default() > 1;
        let loops = again || self.container["state"]["waiting"]["reason"] == "CrashLoopBackOff";
        if ended["reason"] == "OOMKilled" {
            let containers = ["initContainers", "containers"].into_iter();
            let mut containers = containers.flat_map(|of| self.pod["spec"][of].as_array().into_iter().flatten());
            let spec = containers.find(|it| it["name"] == own);
            let limit = spec.and_then(|spec| spec["resources"]["limits"]["memory"].as_str());
            let text = match limit {
                Some(limit) => format!(
                    "container `{own}` of pod {name} was killed because it used more memory than its limit of {limit}: raise `resources.limits.memory` (a LimitRange of the namespace may set it), or let it use less"
                ),
                None => format!(
                    "container `{own}` of pod {name} was killed because its node ran out of memory: let it use less, or use larger nodes"
                ),
            };
            return Some(Trouble { text, outlook: Outlook::Open, stuck: loops });
        }
        let code = ended["exitCode"].as_i64().filter(|code| *code != 0)?;
        if matches!(ended["reason"].as_str(), Some("StartError" | "ContainerCannotRun")) {
            let text = self.not_started(own, &text(&ended["message"])).await;
            return Some(Trouble { text, outlook: Outlook::Hopeless, stuck: true });
        }
        let state = &self.container["state"];
        let path = format!(
            "/api/v1/namespaces/{}/pods/{name}/log?container={own}&tailLines={LINES}&limitBytes={LOG_BYTES_MAX}",
            self.namespace
        );
        let previous = state["running"].is_object() || state["waiting"].is_object();
        let log = self.api.text(&format!("{path}&previous={previous}")).await.unwrap_or_default();
        let log: Vec<&str> = log.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
        let log = log.join(" | ");
        if log.contains(WRONG_ARCHITECTURE) {
            return Some(Trouble { text: self.not_started(own, &log).await, outlook: Outlook::Hopeless, stuck: true });
        }
        let said = match log.is_empty() {
            true => "it printed nothing".to_owned(),
            false => format!("its last lines: {}", shortened(&log)),
        };
        let text = format!("container `{own}` of pod {name} crashes with exit code {code}; {said}");
        Some(Trouble { text, outlook: Outlook::Open, stuck: loops })
    }

    async fn not_started(&self, own: &str, said: &str) -> String {
        let hint = match said {
            said if said.contains(WRONG_ARCHITECTURE) => self.other_architecture().await,
            said if said.contains("executable file not found") || said.contains("no such file or directory") => {
                ": its command is not in the image".to_owned()
            }
            _ => String::new(),
        };
        format!("container `{own}` of pod {} can't be started: {}{hint}", self.name, shortened(said))
    }

    async fn pull_hint(&self, said: &str) -> String {
        let said = said.to_lowercase();
        let has = |parts: &[&str]| parts.iter().any(|part| said.contains(part));
        if has(&["no match for platform"]) {
            self.other_architecture().await
        } else if has(&["not found", "manifest unknown", "does not exist"]) {
            ": there is no such image; check its name and its tag".to_owned()
        } else if has(&["unauthorized", "forbidden", "denied", "authentication", "no basic auth"]) {
            ": the registry does not let the cluster in; check its name, and the credentials for pulls".to_owned()
        } else if has(&["no such host", "connection refused", "timeout", "i/o timeout", "dial tcp"]) {
            ": the registry can't be reached from the node; check its name and the network".to_owned()
        } else {
            String::new()
        }
    }

    async fn other_architecture(&self) -> String {
        let node = text(&self.pod["spec"]["nodeName"]);
        // Who may not read nodes does without.
        let live = self.api.get_path(&format!("/api/v1/nodes/{}", encoded(&node))).await.ok().flatten();
        let info = live.map(|node| node["status"]["nodeInfo"].clone()).unwrap_or_default();
        match (info["operatingSystem"].as_str(), info["architecture"].as_str()) {
            (Some(system), Some(architecture)) => format!(
                " (the image is for another architecture than the node, which is {system}/{architecture}: build it for that platform)"
            ),
            _ => " (the image is for another architecture than the node: build it for the node's platform)".to_owned(),
        }
    }
}

fn is_older(since: &Value, than: Duration) -> bool {
    let since = since.as_str().and_then(|text| Timestamp::try_from(text.to_owned()).ok());
    since.is_some_and(|at| now().since(at) > than)
}

/// The newest warning about an object.
pub(crate) async fn warning(api: &Api, namespace: &str, kind: &str, name: &str) -> Option<String> {
    event(api, namespace, kind, name, "type%3DWarning").await
}

/// The newest event about an object that has a field so.
async fn event(api: &Api, namespace: &str, kind: &str, name: &str, field: &str) -> Option<String> {
    let query = format!("&fieldSelector=involvedObject.kind%3D{kind}%2CinvolvedObject.name%3D{name}%2C{field}");
    let events = api.list("v1", "events", namespace, &query).await.ok()?;
    // Some only repeat the reason that the pod names itself, and some keep nothing from starting.
    let tells = |event: &&Value| {
        let beside = ["BackOff", "MissingClusterDNS", "DNSConfigForming"];
        !beside.iter().any(|reason| event["reason"] == *reason)
            && !event["message"].as_str().is_some_and(|text| text.starts_with("Error: "))
    };
    let newest = events.iter().filter(tells).max_by_key(|event| {
        event["lastTimestamp"].as_str().or_else(|| event["eventTime"].as_str()).unwrap_or_default().to_owned()
    })?;
    Some(newest["message"].as_str()?.to_owned())
}

fn shortened(text: &str) -> String {
    let text = text.replace('\n', " ");
    match text.char_indices().nth(LINE_CHARS_MAX) {
        Some((at, _)) => format!("{}…", &text[..at]),
        None => text,
    }
}
