//! Wake-ups: an in-process notifier and, on PostgreSQL, `NOTIFY` to the other replicas. Losing one costs latency, never
//! correctness: whoever waits also looks by itself after a while.

use std::collections::{BTreeSet, HashMap};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use futures::StreamExt as _;
use tokio::sync::{Notify, mpsc};

use crate::Result;
use crate::crypto::random;
use crate::db::connect_plain;

/// Names of what can be waited for.
pub mod topic {
    pub fn runner(id: &model::RunnerId) -> String {
        format!("runner:{id}")
    }

    /// A job of this runner stands in the writer's queue: a write finds it, a read not yet.
    pub fn queued(id: &model::RunnerId) -> String {
        format!("queued:{id}")
    }

    /// The log and the state of a job.
    pub fn job(id: &model::JobId) -> String {
        format!("job:{id}")
    }

    /// What exporters sent in the name of a runner.
    pub fn telemetry(id: &model::RunnerId) -> String {
        format!("telemetry:{id}")
    }

    /// Workflows that are due.
    pub fn workflows() -> String {
        "workflows".to_owned()
    }

    pub fn org(id: &model::OrgId) -> String {
        format!("org:{id}")
    }

    /// A session, a token, a member or a role has changed.
    pub const PEOPLE: &str = "people";
}

const CHANNEL: &str = "ferry";
const QUEUE: usize = 10_000;
/// A payload of NOTIFY holds less than 8,000 bytes.
const TOPICS_PER_NOTIFY: usize = 150;

type Topics = Arc<Mutex<HashMap<String, Arc<Notify>>>>;

/// How often sessions, tokens, members and roles have changed, as far as is known here.
#[derive(Debug, Default)]
struct People {
    changes: AtomicU64,
    /// Nothing that other replicas change is heard of meanwhile.
    deaf: AtomicBool,
}

#[derive(Clone)]
pub struct Notifier {
    topics: Topics,
    people: Arc<People>,
    remote: Option<mpsc::Sender<String>>,
    _tasks: Arc<Tasks>,
}

/// The connections to the other replicas end with the last notifier.
#[derive(Default)]
struct Tasks(Vec<tokio::task::AbortHandle>);

impl Drop for Tasks {
    fn drop(&mut self) {
        self.0.iter().for_each(tokio::task::AbortHandle::abort);
    }
}

/// Waits for one topic; forgets it when dropped.
pub struct Subscription {
    topic: String,
    notify: Arc<Notify>,
    topics: Topics,
}

impl Subscription {
    /// Take this *before* looking, `enable` it, look, then await it: no wake-up falls in between.
    pub fn notified(&self) -> tokio::sync::futures::Notified<'_> {
        self.notify.notified()
    }
}

impl Drop for Subscription {
    fn drop(&mut self) {
        let mut topics = self.topics.lock().unwrap_or_else(PoisonError::into_inner);
        // This one, and the one in the map.
        if Arc::strong_count(&self.notify) <= 2 {
            topics.remove(&self.topic);
        }
    }
}

impl Notifier {
    pub(crate) async fn start(database_url: &str) -> Result<Self> {
        let (topics, people) = (Topics::default(), Arc::new(People::default()));
        let (mut remote, mut tasks) = (None, Tasks::default());
        if database_url.starts_with("postgres") {
            let (send, receive) = mpsc::channel(QUEUE);
            let own: Arc<str> = format!("from:{:016x}", u64::from_be_bytes(random())).into();
            tasks.0.push(tokio::spawn(speak(database_url.to_owned(), Arc::clone(&own), receive)).abort_handle());
            people.deaf.store(true, Ordering::SeqCst);
            let heard = Heard { topics: Arc::clone(&topics), people: Arc::clone(&people) };
            tasks.0.push(tokio::spawn(listen(database_url.to_owned(), own, heard)).abort_handle());
            remote = Some(send);
        }
        Ok(Self { topics, people, remote, _tasks: Arc::new(tasks) })
    }

    /// A number that rises whenever a session, a token, a member or a role changes anywhere; none while changes of other replicas are
    /// not heard of.
    pub fn people_changes(&self) -> Option<u64> {
        let heard = !self.people.deaf.load(Ordering::SeqCst);
        heard.then(|| self.people.changes.load(Ordering::SeqCst))
    }

    pub fn subscribe(&self, topic: String) -> Subscription {
        let mut topics = self.topics.lock().unwrap_or_else(PoisonError::into_inner);
        let notify = Arc::clone(topics.entry(topic.clone()).or_default());
        Subscription { topic, notify, topics: Arc::clone(&self.topics) }
    }

    /// Wakes whoever waits for the topic, here and on the other replicas. Call it after the commit.
    pub fn wake(&self, topic: String) {
        if topic == topic::PEOPLE {
            self.people.changes.fetch_add(1, Ordering::SeqCst);
        }
        wake_local(&self.topics, &topic);
        if let Some(remote) = &self.remote {
            // A full queue loses a wake-up: that costs latency only.
            let _ = remote.try_send(topic);
        }
    }
}

fn wake_local(topics: &Topics, topic: &str) {
    // Under the lock, without a clone: `Subscription::drop` counts the owners.
    if let Some(notify) = topics.lock().unwrap_or_else(PoisonError::into_inner).get(topic) {
        notify.notify_waiters();
    }
}

/// Sends topics to the other replicas, many in one statement. The first word says who speaks: they come back to us too, who
/// have woken everybody already.
async fn speak(url: String, own: Arc<str>, mut topics: mpsc::Receiver<String>) {
    let pause = std::time::Duration::from_secs(1);
    while let Some(first) = topics.recv().await {
        let Ok((client, connection)) = connect_plain(&url).await else {
            tokio::time::sleep(pause).await;
            continue;
        };
        let driver = tokio::spawn(connection);
        let Ok(notify) = client.prepare("SELECT pg_notify($1, $2)").await else {
            driver.abort();
            continue;
        };
        let mut next = Some(first);
        while let Some(first) = next {
            let mut batch = BTreeSet::from([first]);
            while batch.len() < TOPICS_PER_NOTIFY {
                let Ok(more) = topics.try_recv() else { break };
                batch.insert(more);
            }
            let words: Vec<&str> = std::iter::once(&*own).chain(batch.iter().map(String::as_str)).collect();
            let payload = words.join(" ");
            if client.execute(&notify, &[&CHANNEL, &payload]).await.is_err() {
                break;
            }
            next = topics.recv().await;
        }
        driver.abort();
    }
}

/// Who is told of what other replicas say.
#[derive(Clone)]
struct Heard {
    topics: Topics,
    people: Arc<People>,
}

async fn listen(url: String, own: Arc<str>, heard: Heard) {
    loop {
        if let Err(error) = listen_once(&url, &own, &heard).await {
            tracing::debug!(%error, "the wake-up connection is made anew");
        }
        heard.people.deaf.store(true, Ordering::SeqCst);
        tokio::time::sleep(std::time::Duration::from_secs(1)).await;
    }
}

async fn listen_once(url: &str, own: &Arc<str>, heard: &Heard) -> Result<()> {
    let (client, mut connection) = connect_plain(url).await?;
    let (own, woken) = (Arc::clone(own), heard.clone());
    let driver = tokio::spawn(async move {
        let mut messages = futures::stream::poll_fn(move |cx| connection.poll_message(cx));
        while let Some(Ok(message)) = messages.next().await {
            if let tokio_postgres::AsyncMessage::Notification(note) = message {
                // An earlier version does not say who speaks: its first word is a topic.
                if !note.payload().starts_with(&*own) {
                    for topic in note.payload().split(' ') {
                        if topic == topic::PEOPLE {
                            woken.people.changes.fetch_add(1, Ordering::SeqCst);
                        }
                        wake_local(&woken.topics, topic);
                    }
                }
            }
        }
    });
    client.batch_execute(&format!("LISTEN {CHANNEL}")).await?;
    // Whatever was missed while it was down is looked for again.
    heard.people.changes.fetch_add(1, Ordering::SeqCst);
    heard.people.deaf.store(false, Ordering::SeqCst);
    heard.topics.lock().unwrap_or_else(PoisonError::into_inner).values().for_each(|notify| notify.notify_waiters());
    // The client must live as long as the connection.
    let _ = driver.await;
    drop(client);
    Ok(())
}
