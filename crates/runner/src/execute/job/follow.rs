//! Follows the log of a pod in a task of its own, whatever is cut on the way, and hands on what is new.

use std::sync::Arc;
use std::time::{Duration, Instant};

use futures::AsyncReadExt as _;
use kubernetes::ObjectRef;
use model::constants::CHUNK_BYTES;
use serde_json::Value;
use tokio::sync::mpsc;

use super::super::kubernetes::api::{Api, ApiError, encoded};
use super::object::CONTAINER;
use super::tail::Tail;

/// Pieces that wait to be written down. A log that comes faster waits in the cluster.
const PIECES: usize = 16;
/// Between two tries to read.
const PAUSE: Duration = Duration::from_millis(300);
/// How long a log that is there to its end may refuse to be read.
const REFUSED: Duration = Duration::from_secs(10);

/// What comes of a log.
pub(super) enum Piece {
    Bytes(Vec<u8>),
    /// It was read to its end.
    End,
    /// The rest can't be read, and why.
    Lost(String),
}

/// How far the container of a pod is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Container {
    Waiting,
    Running,
    Ended,
    /// It never ran, and never will.
    NeverRan,
}

impl Container {
    fn of(pod: &Value) -> Self {
        let state = state(pod);
        if state["terminated"].is_object() {
            return Self::Ended;
        }
        let is_over = matches!(pod["status"]["phase"].as_str(), Some("Succeeded" | "Failed"));
        match (state["running"].is_object(), is_over) {
            (true, false) => Self::Running,
            // Its node is gone, or it was evicted before it began.
            (true, true) => Self::Ended,
            (false, true) => Self::NeverRan,
            (false, false) => Self::Waiting,
        }
    }
}

/// The state of the component's container.
pub(super) fn state(pod: &Value) -> &Value {
    let all = pod["status"]["containerStatuses"].as_array();
    all.and_then(|all| all.iter().find(|it| it["name"] == CONTAINER)).map_or(&Value::Null, |it| &it["state"])
}

/// Begins to read. The task ends with its receiver.
pub(super) fn follow(api: Arc<Api>, pod: ObjectRef, uid: String) -> mpsc::Receiver<Piece> {
    let (sender, receiver) = mpsc::channel(PIECES);
    tokio::spawn(async move {
        let mut reader = Reader { api, pod, uid, tail: Tail::default(), sender: sender.clone() };
        let last = tokio::select! {
            last = reader.read() => last,
            () = sender.closed() => return,
        };
        let _ = sender.send(last).await;
    });
    receiver
}

struct Reader {
    api: Arc<Api>,
    pod: ObjectRef,
    uid: String,
    tail: Tail,
    sender: mpsc::Sender<Piece>,
}

impl Reader {
    async fn read(&mut self) -> Piece {
        let mut refused_since: Option<Instant> = None;
        loop {
            let was = match self.api.get(&self.pod).await {
                Ok(Some(pod)) if pod["metadata"]["uid"] == self.uid.as_str() => Container::of(&pod),
                Ok(_) => return Piece::Lost("the pod was deleted before its log was read to the end".to_owned()),
                Err(_) => Container::Waiting,
            };
            match was {
                Container::NeverRan => return Piece::End,
                Container::Waiting => {}
                Container::Running | Container::Ended => match self.once().await {
                    // What had ended before the log was opened is in it.
                    Ok(true) if was == Container::Ended => return Piece::End,
                    Ok(_) => refused_since = None,
                    Err(error) if was == Container::Ended && error.code() != 0 => {
                        if refused_since.get_or_insert_with(Instant::now).elapsed() > REFUSED {
                            return Piece::Lost(format!("its log can't be read: {}", error.message()));
                        }
                    }
                    Err(_) => {}
                },
            }
            tokio::time::sleep(PAUSE).await;
        }
    }

    /// Reads until the stream ends; whether it came to its end, and was not cut.
    async fn once(&mut self) -> Result<bool, ApiError> {
        let since = self.tail.reopen().map(|since| format!("&sinceTime={}", encoded(&since))).unwrap_or_default();
        let namespace = encoded(self.pod.namespace.as_deref().unwrap_or_default());
        let path = format!(
            "/api/v1/namespaces/{namespace}/pods/{}/log?container={CONTAINER}&follow=true&timestamps=true{since}",
            encoded(&self.pod.name)
        );
        let mut stream = self.api.stream(&path).await?;
        let mut buffer = vec![0; CHUNK_BYTES];
        loop {
            let read = match stream.read(&mut buffer).await {
                Ok(0) => return Ok(true),
                Ok(read) => read,
                Err(_) => return Ok(false),
            };
            let mut new = Vec::with_capacity(read);
            self.tail.take(&buffer[..read], &mut new);
            if !new.is_empty() && self.sender.send(Piece::Bytes(new)).await.is_err() {
                return Ok(false);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_container_is_as_its_pod_says() {
        let pod = |phase: &str, state: Value| json!({ "status": { "phase": phase, "containerStatuses": [{ "name": CONTAINER, "state": state }] } });
        for (phase, state, expected) in [
            ("Pending", json!({ "waiting": {} }), Container::Waiting),
            ("Running", json!({ "running": {} }), Container::Running),
            ("Running", json!({ "terminated": {} }), Container::Ended),
            ("Failed", json!({ "running": {} }), Container::Ended),
            ("Failed", Value::Null, Container::NeverRan),
            ("Failed", json!({ "waiting": {} }), Container::NeverRan),
        ] {
            assert_eq!(Container::of(&pod(phase, state.clone())), expected, "{phase} {state}");
        }
    }
}
