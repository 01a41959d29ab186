//! Brings an execution's log and result to the server, as the runner's `session/deliver.rs` does: the log in order as it
//! grows, the result when all of it is in.

use bytes::Bytes;
use model::ExecutionId;

use crate::machine::UPLOAD_MS;
use crate::network::{Reply, Request};
use crate::world::World;

/// How far one delivery is.
pub(crate) struct Delivery {
    /// The next chunk to send; the server is asked where it is not known.
    next: Option<u64>,
    /// The server takes the log.
    open: bool,
    /// Nothing more comes from the executor.
    ended: bool,
    /// A request is under way, or a pause.
    busy: bool,
    pause_ms: u64,
}

const RETRY_FIRST_MS: u64 = 200;
const RETRY_LAST_MS: u64 = 2_000;
/// Chunks in one upload.
const BATCH: usize = 3;

impl Delivery {
    pub(crate) fn fresh() -> Self {
        Self { next: Some(0), open: true, ended: false, busy: false, pause_ms: RETRY_FIRST_MS }
    }

    pub(crate) fn adopted() -> Self {
        Self { next: None, ..Self::fresh() }
    }
}

impl World {
    fn delivery(&mut self, uid: u64, id: &ExecutionId) -> Option<&mut Delivery> {
        self.processes.get_mut(&uid)?.deliveries.get_mut(id)
    }

    pub(crate) fn delivery_ended(&mut self, uid: u64, id: &ExecutionId) {
        if let Some(delivery) = self.delivery(uid, id) {
            delivery.ended = true;
        }
        self.deliver(uid, id);
    }

    /// Sends what is next, unless something is under way.
    pub(crate) fn deliver(&mut self, uid: u64, id: &ExecutionId) {
        let frozen = self.processes.get(&uid).and_then(|p| self.frozen_ms(p.machine));
        if let Some(ms) = frozen {
            let id = id.clone();
            return self.after(ms, move |w| w.deliver(uid, &id));
        }
        let Some(Delivery { next, open, ended, busy: false, .. }) = self.delivery(uid, id) else { return };
        let (next, open, ended) = (*next, *open, *ended);
        let Some(dir) = self.dir(uid, id) else { return };
        let (token, epoch) = (dir.assignment.execution_token.clone(), dir.assignment.epoch);
        let batch = match next {
            _ if !open => None,
            // An empty one asks for the place.
            None => Some(Bytes::new()),
            Some(next) => {
                let chunks: Vec<_> = dir.spool.iter().skip(next as usize).take(BATCH).cloned().collect();
                (!chunks.is_empty()).then(|| pack(&chunks.concat()))
            }
        };
        let result = dir.result.clone();
        let Some(delivery) = self.delivery(uid, id) else { return };
        let id = id.clone();
        if let Some(batch) = batch {
            delivery.busy = true;
            let request = Request::Log { id: id.clone(), token, batch };
            self.send(uid, request, UPLOAD_MS, move |w, uid, outcome| w.log_answered(uid, &id, outcome));
        } else if ended {
            delivery.busy = true;
            match result {
                Some(result) => self.send_result(uid, id, token, epoch, result, RETRY_FIRST_MS),
                None => self.tell(uid, runner::session::Event::Delivered(id)),
            }
        }
    }

    fn log_answered(&mut self, uid: u64, id: &ExecutionId, outcome: crate::network::Outcome) {
        let Some(delivery) = self.delivery(uid, id) else { return };
        match outcome {
            Ok(Reply::Log(answer)) => {
                delivery.next = Some(answer.next_seq);
                delivery.pause_ms = RETRY_FIRST_MS;
            }
            Err(error) if error.is_transient() => {
                let pause = delivery.pause_ms;
                delivery.pause_ms = (pause * 2).min(RETRY_LAST_MS);
                let id = id.clone();
                return self.after(pause, move |w| w.deliver_on(uid, &id));
            }
            Ok(_) | Err(_) => delivery.open = false,
        }
        self.deliver_on(uid, id);
    }

    fn deliver_on(&mut self, uid: u64, id: &ExecutionId) {
        if let Some(delivery) = self.delivery(uid, id) {
            delivery.busy = false;
            self.deliver(uid, id);
        }
    }
}

fn pack(frames: &[u8]) -> Bytes {
    zstd::bulk::compress(frames, 1).map(Bytes::from).unwrap_or_default()
}
