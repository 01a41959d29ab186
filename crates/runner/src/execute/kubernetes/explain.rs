//! Why an object does not become ready, in one sentence that an engineer can act on.

use kubernetes::ObjectRef;
use serde_json::Value;

use super::api::{Api, selector};

/// Last lines of a container that crashed.
const LINES: usize = 3;
const LINE_CHARS_MAX: usize = 300;

/// What keeps an object from being ready: for a workload, what is wrong with its pods.
pub(crate) async fn why(api: &Api, of: &ObjectRef, live: Option<&Value>, status: &str) -> String {
    let own = format!("{} is not ready: {status}", of.address());
    let Some(live) = live else { return own };
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
        if let Some(why) = of_pod(api, pod).await {
            return format!("{}: {why}", of.address());
        }
    }
    if let Some(namespace) = &of.namespace
        && let Some(event) = warning(api, namespace, &of.kind, &of.name).await
    {
        return format!("{own} ({event})");
    }
    own
}

async fn of_pod(api: &Api, pod: &Value) -> Option<String> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let (name, namespace) = (text(&pod["metadata"]["name"]), text(&pod["metadata"]["namespace"]));
    let conditions = pod["status"]["conditions"].as_array().into_iter().flatten();
    if let Some(unplaced) = conditions.clone().find(|it| it["type"] == "PodScheduled" && it["status"] == "False") {
        return Some(format!("no node can take the pod {name}: {}", text(&unplaced["message"])));
    }
    let all = ["initContainerStatuses", "containerStatuses"];
    for container in all.iter().flat_map(|of| pod["status"][of].as_array().into_iter().flatten()) {
        let (own, image) = (text(&container["name"]), text(&container["image"]));
        let waiting = &container["state"]["waiting"];
        let ended = if container["state"]["terminated"].is_object() {
            &container["state"]["terminated"]
        } else {
            &container["lastState"]["terminated"]
        };
        match waiting["reason"].as_str() {
            Some("ErrImagePull" | "ImagePullBackOff" | "InvalidImageName" | "ErrImageNeverPull") => {
                let said = match warning(api, &namespace, "Pod", &name).await {
                    Some(event) => event,
                    None => text(&waiting["message"]),
                };
                return Some(format!("the image {image} of container `{own}` can't be pulled: {}", shortened(&said)));
            }
            Some("CreateContainerConfigError" | "CreateContainerError" | "RunContainerError") => {
                return Some(format!(
                    "container `{own}` of pod {name} can't be started: {}",
                    shortened(&text(&waiting["message"]))
                ));
            }
            _ => {}
        }
        if ended["reason"] == "OOMKilled" {
            return Some(format!(
                "container `{own}` of pod {name} was killed because it used more memory than its limit: raise `resources.limits.memory`, or let it use less"
            ));
        }
        if ended.is_object() && ended["exitCode"].as_i64().unwrap_or_default() != 0 {
            let path = format!("/api/v1/namespaces/{namespace}/pods/{name}/log?container={own}&tailLines={LINES}");
            let previous = container["state"]["running"].is_object() || waiting.is_object();
            let log = api.text(&format!("{path}&previous={previous}")).await.unwrap_or_default();
            let log: Vec<&str> = log.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
            let said = if log.is_empty() {
                "it printed nothing".to_owned()
            } else {
                format!("its last lines: {}", shortened(&log.join(" | ")))
            };
            let hint = if said.contains("exec format error") {
                " (the image is for another architecture than the node)"
            } else {
                ""
            };
            return Some(format!(
                "container `{own}` of pod {name} crashes with exit code {}; {said}{hint}",
                ended["exitCode"]
            ));
        }
        if container["state"]["running"].is_object() && container["ready"] == false {
            let said = warning(api, &namespace, "Pod", &name)
                .await
                .unwrap_or_else(|| "its readiness probe does not pass".to_owned());
            return Some(format!("container `{own}` of pod {name} runs and is not ready: {}", shortened(&said)));
        }
    }
    None
}

/// The newest warning about an object.
async fn warning(api: &Api, namespace: &str, kind: &str, name: &str) -> Option<String> {
    let query = format!("&fieldSelector=involvedObject.kind%3D{kind}%2CinvolvedObject.name%3D{name}%2Ctype%3DWarning");
    let events = api.list("v1", "events", namespace, &query).await.ok()?;
    // Some only repeat the reason that the pod names itself.
    let tells = |event: &&Value| {
        event["reason"] != "BackOff" && !event["message"].as_str().is_some_and(|text| text.starts_with("Error: "))
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
