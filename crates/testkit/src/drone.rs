//! Drones: runners without executors. The session is the real state machine with the real client; what a job does, and what is
//! kept of it, is said by a `Work`.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use api::client::Client;
use api::runner::{Assignment, JoinAnswer};
use model::papers::Signatory;
use model::runner::RunnerReport;
use model::{ExecutionId, ExecutionResult, Outcome, RunnerId};
use runner::session::{About, CallError, Core, Effect, Ending, Event, SessionClient, Unjoined, now, random_hex};
use tokio::sync::mpsc;
use tokio::task::{AbortHandle, JoinSet};

/// Between two tries of something that must be taken in the end.
pub(crate) const RETRY: Duration = Duration::from_millis(200);
/// A disk that is never full.
const ROOM: Event = Event::Tick { disk_free_bytes: u64::MAX >> 1 };

/// What a drone's jobs do, and who hears of it.
pub trait Work: Clone + Send + Sync + 'static {
    /// A poll is sent.
    fn polls(&self) {}

    /// A job was given.
    fn held(&self, _work: &Assignment) {}

    /// Its start was granted.
    fn started(&self, _work: &Assignment) {}

    /// Carries it out; returns how many log chunks were sent.
    fn carry_out(
        &self,
        _client: &SessionClient,
        _work: &Assignment,
    ) -> impl Future<Output = Result<u64, CallError>> + Send {
        std::future::ready(Ok(0))
    }

    /// Its result was taken, or something was refused for good.
    fn delivered(&self, _work: &Assignment, _outcome: Result<(), CallError>) {}

    /// The drone itself ends, which it should not.
    fn ended(&self, _ending: Ending) {}
}

pub fn about(work: &Assignment) -> About<'_> {
    About { id: &work.execution_id, token: &work.execution_token }
}

/// Sends again for as long as that may help.
pub async fn patiently<T, F>(send: impl Fn() -> F) -> Result<T, CallError>
where
    F: Future<Output = Result<T, CallError>>,
{
    loop {
        match send().await {
            Err(error) if error.is_transient() => tokio::time::sleep(RETRY).await,
            answer => return answer,
        }
    }
}

/// The result of a job that did nothing but log.
pub fn finished(log_chunks: u64) -> ExecutionResult {
    let time = now();
    ExecutionResult {
        outcome: Outcome::Finished,
        error: None,
        steps: Vec::new(),
        outputs: serde_json::Map::new(),
        log_chunks,
        started_at: time,
        finished_at: time,
    }
}

/// A runner that has joined.
#[derive(Clone)]
pub struct Drone {
    pub client: SessionClient,
    pub joined: JoinAnswer,
}

impl Drone {
    /// Joins as this runner, with a key of its own.
    pub async fn join(control: &Client, http: &reqwest::Client, url: &str, runner: &RunnerId) -> anyhow::Result<Self> {
        let command = control.create_join_command(runner.as_str()).await?;
        let mut seed = [0; 32];
        seed.copy_from_slice(&random_hex::<16>().as_bytes()[..32]);
        let key = Signatory::from_seed(&seed);
        let joined = Unjoined { http, url }.join(&command.credential, &key, "drone").await?;
        let client = SessionClient::new(http.clone(), url, joined.runner_id.clone(), joined.generation, key)
            .with_hold(joined.timing.hold_s);
        Ok(Self { client, joined })
    }

    /// Flies for ever.
    pub async fn fly<W: Work>(self, work: W) {
        let Self { client, joined } = self;
        let jitter = u64::from_str_radix(&random_hex::<8>(), 16).unwrap_or(1);
        let report = RunnerReport { disk_free_bytes: u64::MAX >> 1, ..RunnerReport::default() };
        let (events, inbox) = mpsc::channel(1024);
        let flight = Flight {
            client,
            hold_s: joined.timing.hold_s,
            lease_s: joined.timing.lease_s,
            core: Core::new(joined.timing, joined.settings, report, 1, jitter),
            work,
            given: BTreeMap::new(),
            events,
            inbox,
            poll: None,
            tasks: JoinSet::new(),
        };
        flight.run().await;
    }
}

struct Flight<W> {
    client: SessionClient,
    core: Core,
    hold_s: u64,
    lease_s: u64,
    work: W,
    given: BTreeMap<ExecutionId, Assignment>,
    events: mpsc::Sender<Event>,
    inbox: mpsc::Receiver<Event>,
    poll: Option<AbortHandle>,
    tasks: JoinSet<()>,
}

impl<W: Work> Flight<W> {
    async fn run(mut self) {
        let started = Instant::now();
        let mut event = ROOM;
        loop {
            for effect in self.core.handle(event, started.elapsed().as_millis() as u64) {
                self.perform(effect);
            }
            while self.tasks.try_join_next().is_some() {}
            // Where nothing is due it waits; a time in the past would have it turn for ever.
            let due_ms = self.core.next_due_ms().unwrap_or(u64::MAX);
            let pause_ms = due_ms.saturating_sub(started.elapsed().as_millis() as u64).min(60_000);
            event = tokio::select! {
                Some(event) = self.inbox.recv() => event,
                () = tokio::time::sleep(Duration::from_millis(pause_ms)) => ROOM,
            };
        }
    }

    fn perform(&mut self, effect: Effect) {
        let (client, work) = (self.client.clone(), self.work.clone());
        match effect {
            Effect::Poll(mut request) => {
                if let Some(older) = self.poll.take() {
                    older.abort();
                }
                request.nonce = random_hex::<16>();
                let (hold_s, seq) = (self.hold_s, request.seq);
                work.polls();
                self.poll = Some(self.aside(async move {
                    match client.poll(&request, hold_s).await {
                        Ok(answer) => Event::PollAnswered { seq, nonce: request.nonce, answer: Box::new(answer) },
                        Err(error) => Event::PollFailed { seq, over: error.over() },
                    }
                }));
            }
            Effect::Prepare { assignment, .. } => {
                work.held(&assignment);
                let id = assignment.execution_id.clone();
                self.given.insert(id.clone(), *assignment);
                self.aside(std::future::ready(Event::Prepared(id)));
            }
            Effect::Start(id) => {
                let Some(given) = self.given.get(&id).cloned() else { return };
                self.aside(async move {
                    match client.start(about(&given)).await {
                        Ok(_) => {
                            work.started(&given);
                            Event::Started(id)
                        }
                        Err(error) if error.is_transient() => Event::StartFailed(id),
                        Err(_) => Event::StartRefused(id),
                    }
                });
            }
            Effect::Spawn(id) => {
                let Some(given) = self.given.get(&id).cloned() else { return };
                let events = self.events.clone();
                self.aside(async move {
                    let outcome = carry_out(&client, &work, &given, &events).await;
                    work.delivered(&given, outcome);
                    Event::Delivered(id)
                });
            }
            Effect::Renew(held) => {
                let bound = Duration::from_secs((self.lease_s / 3).max(1));
                self.aside(async move {
                    match client.renew(held, bound).await {
                        Ok(answer) => Event::Renewed(Box::new(answer)),
                        Err(error) => Event::RenewFailed { over: error.over() },
                    }
                });
            }
            Effect::Remove(id) => drop(self.given.remove(&id)),
            Effect::Observe(_) => {}
            Effect::Exit(ending) => work.ended(ending),
            Effect::Refuse(_)
            | Effect::RefuseUnreadable(_)
            | Effect::Cancel { .. }
            | Effect::Touch(_)
            | Effect::Finish(_)
            | Effect::Keep(_)
            | Effect::Learn(_) => {}
        }
    }

    fn aside(&mut self, work: impl Future<Output = Event> + Send + 'static) -> AbortHandle {
        let events = self.events.clone();
        self.tasks.spawn(async move {
            let event = work.await;
            let _ = events.send(event).await;
        })
    }
}

async fn carry_out<W: Work>(
    client: &SessionClient,
    work: &W,
    given: &Assignment,
    events: &mpsc::Sender<Event>,
) -> Result<(), CallError> {
    let log_chunks = work.carry_out(client, given).await?;
    let _ = events.send(Event::Ended { id: given.execution_id.clone(), has_result: true }).await;
    let result = finished(log_chunks);
    patiently(|| client.result(about(given), given.epoch, &result)).await.map(|_| ())
}
