//! The Runner API without a socket: the handlers as the simulator calls them. Only what proves who speaks is left out; the
//! caller is believed.

use std::sync::Arc;

use api::ErrorBody;
use api::runner::{
    JoinAnswer, JoinRequest, LogAnswer, PollAnswer, PollRequest, RenewAnswer, RenewRequest, ResultAnswer,
    ResultRequest, StartAnswer,
};
use axum::body::Bytes;
use axum::extract::{Path, State};
use conductor::Conductor;
use model::{ExecutionId, RunnerId, Timestamp};

use super::session::{OnExecution, Signed, check_time};
use super::{executions, join, poll};
use crate::error::ApiResult;
use crate::{AppState, presence};

/// The Runner API without HTTP: the simulator calls the same functions as the handlers. It holds what a server has in memory, and
/// loses when it dies.
#[derive(Clone)]
pub struct RunnerApi {
    state: AppState,
}

/// Who calls, and what time it is there.
#[derive(Debug, Clone)]
pub struct Caller {
    pub runner_id: RunnerId,
    pub generation: u64,
    pub time: Timestamp,
}

type Answer<T> = Result<T, Box<ErrorBody>>;

fn told<T>(outcome: ApiResult<T>) -> Answer<T> {
    outcome.map_err(|e| Box::new(e.body("")))
}

fn json<T: serde::Serialize>(body: &T) -> Bytes {
    serde_json::to_vec(body).map(Bytes::from).unwrap_or_default()
}

impl RunnerApi {
    pub fn new(conductor: Conductor) -> Self {
        let told = (crate::metrics::Metrics::new(), crate::telemetry::Spans::default());
        Self {
            state: AppState::new(conductor, Arc::default(), ("".into(), Arc::default()), told, gate::Gate::default()),
        }
    }

    pub fn conductor(&self) -> &Conductor {
        &self.state.conductor
    }

    /// Held polls are answered, as when a server is told to stop.
    pub fn stop(&self) {
        self.state.gate.cancel();
    }

    /// Writes down who was seen.
    pub async fn flush(&self) -> conductor::Result<()> {
        presence::flush(&self.state).await
    }

    async fn signed(&self, caller: &Caller, body: Bytes) -> ApiResult<Signed> {
        let session = self.state.sessions.get(&self.state, &caller.runner_id, caller.generation).await?;
        check_time(&caller.time.to_string(), self.state.conductor.now())?;
        Ok(Signed { session, nonce: String::new(), body })
    }

    async fn on(&self, caller: &Caller, about: (&ExecutionId, &str), body: Bytes) -> ApiResult<OnExecution> {
        let signed = self.signed(caller, body).await?;
        OnExecution::find(&self.state, signed, about.0, about.1, None).await
    }

    fn runner(&self, caller: &Caller) -> (State<AppState>, Path<String>) {
        (State(self.state.clone()), Path(caller.runner_id.to_string()))
    }

    pub async fn join(&self, wanted: &JoinRequest) -> Answer<JoinAnswer> {
        told(join::open_session(&self.state, wanted).await)
    }

    /// Ready when there is something to say, or when the time to hold it is `over`.
    pub async fn poll(
        &self,
        caller: &Caller,
        wanted: &PollRequest,
        over: impl Future<Output = ()>,
    ) -> Answer<PollAnswer> {
        let signed = match self.signed(caller, Bytes::new()).await {
            Ok(signed) => signed,
            Err(error) => return told(Err(error)),
        };
        told(poll::answer_poll(&self.state, &signed.session, wanted, over).await)
    }

    pub async fn renew(&self, caller: &Caller, wanted: &RenewRequest) -> Answer<RenewAnswer> {
        let (state, runner) = self.runner(caller);
        let call = async { executions::renew(state, runner, self.signed(caller, json(wanted)).await?).await };
        told(call.await.map(|answer| answer.0))
    }

    pub async fn leave(&self, caller: &Caller) -> Answer<()> {
        let (state, runner) = self.runner(caller);
        let call = async { executions::leave(state, runner, self.signed(caller, Bytes::new()).await?).await };
        told(call.await.map(|_| ()))
    }

    pub async fn start(&self, caller: &Caller, about: (&ExecutionId, &str)) -> Answer<StartAnswer> {
        let call =
            async { executions::start(State(self.state.clone()), self.on(caller, about, Bytes::new()).await?).await };
        told(call.await.map(|answer| answer.0))
    }

    pub async fn append_log(&self, caller: &Caller, about: (&ExecutionId, &str), batch: Bytes) -> Answer<LogAnswer> {
        let call =
            async { executions::append_log(State(self.state.clone()), self.on(caller, about, batch).await?).await };
        told(call.await.map(|answer| answer.0))
    }

    pub async fn result(
        &self,
        caller: &Caller,
        about: (&ExecutionId, &str),
        wanted: &ResultRequest,
    ) -> Answer<ResultAnswer> {
        let call =
            async { executions::result(State(self.state.clone()), self.on(caller, about, json(wanted)).await?).await };
        told(call.await.map(|answer| answer.0))
    }
}
