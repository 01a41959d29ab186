//! Requests between runners and the control plane: lost, late, doubled, out of order.

use api::runner::{
    Held as HeldExecution, JoinAnswer, JoinRequest, LogAnswer, PollAnswer, PollRequest, RenewAnswer, RenewRequest,
    ResultRequest,
};
use bytes::Bytes;
use model::{ExecutionId, ExecutionResult};
use runner::session::CallError;
use server::Caller;

use crate::Fault;
use crate::founding::ready;
use crate::world::World;

#[derive(Debug, Clone)]
pub(crate) enum Request {
    Join(JoinRequest),
    Poll(Box<PollRequest>),
    Renew(Vec<HeldExecution>),
    Start { id: ExecutionId, token: String },
    Log { id: ExecutionId, token: String, batch: Bytes },
    Result { id: ExecutionId, token: String, epoch: u64, result: Box<ExecutionResult> },
    Leave,
}

#[derive(Debug)]
pub(crate) enum Reply {
    Join(Box<JoinAnswer>),
    Poll(Box<PollAnswer>),
    Renew(RenewAnswer),
    Log(LogAnswer),
    Done,
}

pub(crate) type Outcome = Result<Reply, CallError>;
type Then = Box<dyn FnOnce(&mut World, u64, Outcome)>;

/// A request whose answer a process waits for.
pub(crate) struct Call {
    process: u64,
    then: Then,
}

fn lost() -> CallError {
    CallError::Transport("the connection broke".into())
}

impl World {
    /// Sends a request; `then` hears the answer, or that there was none within `bound_ms`.
    pub(crate) fn send(
        &mut self,
        process: u64,
        request: Request,
        bound_ms: u64,
        then: impl FnOnce(&mut World, u64, Outcome) + 'static,
    ) -> u64 {
        let call = self.fresh();
        let Some(machine) = self.processes.get(&process).map(|p| p.machine) else { return call };
        self.calls.insert(call, Call { process, then: Box::new(then) });
        self.after(bound_ms, move |w| w.answered(call, Err(lost())));
        let caller = self.caller(machine);
        if self.is_lost(machine) {
            // Some find out at once, others wait in vain.
            if self.chance.one_in(2) {
                let at = self.chance.between(1, 200);
                self.after(at, move |w| w.answered(call, Err(lost())));
            }
            return call;
        }
        if self.may(Fault::Duplicate) && self.chance.one_in(25) {
            self.count("requests doubled");
            let (caller, request, late) = (caller.clone(), request.clone(), self.chance.spread(5, 60_000));
            self.after(late, move |w| w.arrive(machine, caller, request, None));
        }
        let late = self.delay();
        self.after(late, move |w| w.arrive(machine, caller, request, Some(call)));
        call
    }

    /// Who speaks, by what lies in the state directory.
    fn caller(&self, machine: usize) -> Option<Caller> {
        let m = &self.machines[machine];
        let state = m.state.as_ref()?;
        let runner_id = self.server.runners[m.runner].0.id.clone();
        Some(Caller { runner_id, generation: state.generation, time: self.wall(machine) })
    }

    fn is_lost(&mut self, machine: usize) -> bool {
        if self.now < self.machines[machine].cut_until {
            return true;
        }
        let lost = self.may(Fault::Network) && self.chance.one_in(40);
        if lost {
            self.count("messages lost");
        }
        lost
    }

    fn delay(&mut self) -> u64 {
        if self.may(Fault::Network) && self.chance.one_in(30) {
            self.count("messages late");
            return self.chance.spread(50, 40_000);
        }
        self.chance.between(1, 15)
    }

    /// Gives up waiting; the server may or may not notice.
    pub(crate) fn abort(&mut self, call: u64) {
        if self.calls.remove(&call).is_some() && !self.chance.one_in(3) {
            let late = self.delay();
            self.after(late, move |w| w.hang_up(call));
        }
    }

    fn hang_up(&mut self, call: u64) {
        self.server.held.retain(|_, held| held.call != Some(call));
        self.touched = true;
    }

    fn arrive(&mut self, machine: usize, caller: Option<Caller>, request: Request, call: Option<u64>) {
        let Some(api) = self.server.api.clone() else {
            return self.reply(machine, call, Err(lost()));
        };
        self.touched = true;
        self.requests += 1;
        if let Request::Join(wanted) = &request {
            let answer = ready(api.join(wanted));
            let outcome = answer.map(|a| Reply::Join(Box::new(a))).map_err(CallError::Refused);
            return self.reply(machine, call, outcome);
        }
        let Some(caller) = caller else { return };
        let outcome = match request {
            Request::Poll(wanted) => {
                let id = self.fresh();
                self.server.hold(id, caller, *wanted, call, machine);
                let hold_ms = self.server.timing.hold_s * 1000;
                self.after(hold_ms, move |w| w.look(id, true));
                return self.look(id, false);
            }
            Request::Renew(executions) => ready(api.renew(&caller, &RenewRequest { executions })).map(Reply::Renew),
            Request::Start { id, token } => ready(api.start(&caller, (&id, &token))).map(|_| Reply::Done),
            Request::Log { id, token, batch } => ready(api.append_log(&caller, (&id, &token), batch)).map(Reply::Log),
            Request::Result { id, token, epoch, result } => {
                let wanted = ResultRequest { epoch, result: *result };
                ready(api.result(&caller, (&id, &token), &wanted)).map(|_| Reply::Done)
            }
            Request::Leave | Request::Join(_) => ready(api.leave(&caller)).map(|()| Reply::Done),
        };
        self.reply(machine, call, outcome.map_err(CallError::Refused));
    }

    /// Looks at a held poll, because it was woken or because its time is over.
    pub(crate) fn look(&mut self, held: u64, over: bool) {
        self.touched = true;
        if let Some((held, answer)) = self.server.look(held, over) {
            let outcome = answer.map(|a| Reply::Poll(Box::new(a))).map_err(CallError::Refused);
            self.reply(held.machine, held.call, outcome);
        }
    }

    /// Held polls that were woken are looked at, unless the wake-up is lost.
    pub(crate) fn wake_held(&mut self) {
        for held in self.server.rung() {
            if self.may(Fault::Wakeup) && self.chance.one_in(5) {
                self.count("wake-ups lost");
            } else {
                self.after(0, move |w| w.look(held, false));
            }
        }
    }

    fn reply(&mut self, machine: usize, call: Option<u64>, outcome: Outcome) {
        let Some(call) = call else { return };
        if !self.is_lost(machine) {
            let late = self.delay();
            self.after(late, move |w| w.answered(call, outcome));
        }
    }

    fn answered(&mut self, call: u64, outcome: Outcome) {
        let Some(Call { process, then }) = self.calls.remove(&call) else { return };
        if self.processes.contains_key(&process) {
            then(self, process, outcome);
        }
    }

    /// The server is gone: whatever lay on it breaks off. Stopped in good order, it answers what it holds.
    pub(crate) fn server_down(&mut self, in_order: bool) {
        self.say(None, || format!("the server {}", if in_order { "is stopped" } else { "dies" }));
        if in_order && let Some(api) = self.server.api.clone() {
            api.stop();
            for held in self.server.held.keys().copied().collect::<Vec<_>>() {
                self.look(held, false);
            }
        }
        self.server.api = None;
        for (_, held) in std::mem::take(&mut self.server.held) {
            self.reply(held.machine, held.call, Err(lost()));
        }
        self.server.rung();
    }

    pub(crate) fn server_up(&mut self) {
        if self.server.api.is_some() {
            return;
        }
        self.touched = true;
        match self.server.up() {
            Ok(()) => self.say(None, || "a server starts".into()),
            // It did not come up; whoever starts servers tries again.
            Err(_) => self.after(500, World::server_up),
        }
    }
}
