//! The live view of a workflow on a terminal: the edge between [`view::View`] and the world. It draws on stdout while it is open,
//! and leaves the terminal as it was, whatever happens.

mod view;

use std::io::{self, Stdout};
use std::sync::Once;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant, SystemTime};

use api::client::{Client, ClientError, Tail};
use api::control::{CreateStepApprovalResponse, Workflow};
use crossterm::cursor::{MoveTo, Show};
use crossterm::event::{Event, EventStream, KeyEventKind};
use crossterm::execute;
use crossterm::terminal::{
    self, Clear, ClearType, EnterAlternateScreen, LeaveAlternateScreen, disable_raw_mode, enable_raw_mode,
};
use futures::StreamExt as _;
use futures::future::BoxFuture;
use futures::stream::BoxStream;
use model::{JobId, LogStreamId, Timestamp};
use ratatui::backend::CrosstermBackend;
use ratatui::layout::Rect;
use ratatui::{Terminal, TerminalOptions, Viewport};
use rustix::process::Signal;
use serde_json::Value;
use tokio::signal::unix::{SignalKind, signal};

use crate::error::{CliError, Result};
use crate::output::Output;
use view::{View, Wish};

/// How often the workflow is looked at, and the picture moves.
const LOOK: Duration = Duration::from_millis(200);
const TICK: Duration = Duration::from_millis(100);
/// How often a step is asked for its job while it has none.
const JOB_LOOK: Duration = Duration::from_secs(1);
/// How long a control plane may be away.
const AWAY_MAX: Duration = Duration::from_secs(300);

/// How a view ended.
#[derive(Debug)]
pub(crate) enum Seen {
    /// The workflow is over.
    Over(Box<Workflow>),
    /// The person left; the workflow goes on. As it was seen last.
    Left(Option<Box<Workflow>>),
}

type Answer<T> = BoxFuture<'static, std::result::Result<T, ClientError>>;

/// Shows a workflow until it is over or the person leaves. One that failed stays in sight as long as a step can be tried again.
pub(crate) async fn watch(client: &Client, out: &Output, id: &str) -> Result<Seen> {
    let mut ends = Ends::new()?;
    let mut screen = Screen::open()?;
    let mut keys = EventStream::new();
    let mut ticks = tokio::time::interval(TICK);
    let mut view = View::new(out.color_stdout);
    let mut look = look_after(client, id, Duration::ZERO);
    let mut wish: Option<Answer<String>> = None;
    let mut plan: Option<(String, Answer<Value>)> = None;
    let mut log = Log::default();
    let mut last: Option<Box<Workflow>> = None;
    let mut away_since: Option<Instant> = None;
    loop {
        tokio::select! {
            answer = &mut look => {
                look = look_after(client, id, LOOK);
                match answer {
                    Ok(workflow) => {
                        away_since = None;
                        if is_over(&workflow) && !can_go_on(&workflow) {
                            return Ok(Seen::Over(Box::new(workflow)));
                        }
                        last = Some(Box::new(workflow.clone()));
                        view.update(workflow);
                    }
                    Err(error) if error.is_transient() => {
                        view.away(&format!("{error}; retrying"));
                        if away_since.get_or_insert_with(Instant::now).elapsed() > AWAY_MAX {
                            return Err(error.into());
                        }
                    }
                    Err(error) => return Err(error.into()),
                }
                if plan.is_none() && let Some((step, approval)) = view.wanted_plan() {
                    plan = Some((approval.clone(), plan_of(client, step.workflow_id, step.id, approval)));
                }
                log.follow(client, &mut view);
            }
            event = keys.next() => match event {
                Some(Ok(Event::Key(key))) if key.kind != KeyEventKind::Release => match view.key(key) {
                    Some(Wish::Leave) => return Ok(left(last)),
                    Some(Wish::Stop) => screen.suspended()?,
                    Some(wanted) if wish.is_none() => wish = Some(perform(client, id, wanted)),
                    Some(_) => view.complain("still working on the last key"),
                    None => {}
                },
                Some(Ok(_)) => {}
                // Nobody can type any more.
                Some(Err(_)) | None => return Ok(left(last)),
            },
            answer = asked(&mut wish) => {
                wish = None;
                match answer {
                    Ok(text) => view.said(&text),
                    Err(error) => view.complain(&error.to_string()),
                }
                look = look_after(client, id, Duration::ZERO);
            }
            (approval, answer) = fetched(&mut plan) => {
                plan = None;
                match answer {
                    Ok(contents) => view.put_plan(&approval, &contents),
                    Err(error) => view.complain(&format!("can't load the plan: {error}")),
                }
            }
            () = log.next(&mut view) => {}
            end = ends.next() => match end {
                End::Stop => screen.suspended()?,
                End::Over => return Ok(left(last)),
            },
            _ = ticks.tick() => view.tick(),
        }
        screen.draw(&mut view)?;
    }
}

fn left(last: Option<Box<Workflow>>) -> Seen {
    match last {
        Some(workflow) if is_over(&workflow) => Seen::Over(workflow),
        last => Seen::Left(last),
    }
}

fn is_over(workflow: &Workflow) -> bool {
    workflow.finished && workflow.status.status != "in-progress"
}

fn can_go_on(workflow: &Workflow) -> bool {
    workflow.status.status == "error" && workflow.steps.iter().any(|step| step.retryable)
}

fn look_after(client: &Client, id: &str, pause: Duration) -> Answer<Workflow> {
    let (client, id) = (client.clone(), id.to_owned());
    Box::pin(async move {
        tokio::time::sleep(pause).await;
        client.workflow(&id).await
    })
}

fn plan_of(client: &Client, workflow: String, step: String, approval: String) -> Answer<Value> {
    let client = client.clone();
    Box::pin(async move { client.step_plan(&workflow, &step, &approval).await })
}

/// Does what a key asked for; says what was done.
fn perform(client: &Client, id: &str, wish: Wish) -> Answer<String> {
    let (client, id) = (client.clone(), id.to_owned());
    Box::pin(async move {
        Ok(match wish {
            Wish::Answer { step, approval, response } => {
                let body = CreateStepApprovalResponse { response_type: response.into(), note: String::new() };
                client.answer_step(&id, &step, &approval, &body).await?;
                if response == "approve" { "approved".into() } else { "denied".into() }
            }
            Wish::ApproveAll => {
                client.approve_all(&id).await?;
                "all plans are approved from now on".into()
            }
            Wish::Retry { step } => {
                client.retry_step(&id, &step).await?;
                "retrying".into()
            }
            Wish::Skip { step } => {
                client.skip_step(&id, &step).await?;
                "skipped".into()
            }
            Wish::Cancel => {
                client.cancel_workflow(&id).await?;
                "cancelling".into()
            }
            Wish::Leave | Wish::Stop => String::new(),
        })
    })
}

async fn asked<T>(answer: &mut Option<Answer<T>>) -> std::result::Result<T, ClientError> {
    match answer {
        Some(answer) => answer.await,
        None => std::future::pending().await,
    }
}

async fn fetched(plan: &mut Option<(String, Answer<Value>)>) -> (String, std::result::Result<Value, ClientError>) {
    match plan {
        Some((approval, answer)) => (approval.clone(), answer.await),
        None => std::future::pending().await,
    }
}

/// The log of the step that is shown, where it has a job.
#[derive(Default)]
struct Log {
    step: String,
    asking: Option<Answer<Option<LogStreamId>>>,
    tail: Option<BoxStream<'static, std::result::Result<Tail, ClientError>>>,
    /// It has one, or will have none any more.
    settled: bool,
    client: Option<Client>,
}

impl Log {
    /// Turns to the step that is shown.
    fn follow(&mut self, client: &Client, view: &mut View) {
        let Some(step) = view.wanted_log() else { return };
        let (id, open) = (step.id.clone(), !step.finished);
        let first = id != self.step;
        if first {
            *self = Self { step: id.clone(), ..Self::default() };
            view.begin_log(&id);
        }
        if self.settled || self.asking.is_some() {
            return;
        }
        self.settled = !open;
        self.client = Some(client.clone());
        let client = client.clone();
        let pause = if first { Duration::ZERO } else { JOB_LOOK };
        self.asking = Some(Box::pin(async move {
            tokio::time::sleep(pause).await;
            match client.step(&id).await?.runner_job_id.parse::<JobId>() {
                Ok(job) => Ok(Some(client.job(&job).await?.log_stream_id)),
                Err(_) => Ok(None),
            }
        }));
    }

    /// Takes what comes next; a log that can't be had is none.
    async fn next(&mut self, view: &mut View) {
        if let Some(asking) = &mut self.asking {
            let found = asking.await;
            self.asking = None;
            if let (Ok(Some(stream)), Some(client)) = (found, &self.client) {
                self.settled = true;
                self.tail = Some(client.tail(&stream, None));
            }
            return;
        }
        let Some(tail) = &mut self.tail else { return std::future::pending().await };
        match tail.next().await {
            Some(Ok(Tail::Chunk(chunk))) => view.put_log(&chunk.text),
            Some(Ok(Tail::End { .. }) | Err(_)) | None => self.tail = None,
        }
    }
}

/// Whether a view may still be open, for whoever has to close it.
static OPEN: AtomicBool = AtomicBool::new(false);
static HOOK: Once = Once::new();

/// The terminal, while it is ours.
struct Screen {
    terminal: Terminal<CrosstermBackend<Stdout>>,
    /// Columns and rows.
    size: (u16, u16),
}

/// A picture of a fixed size: one that follows the terminal by itself asks it where the cursor is, and not every terminal answers.
fn canvas(size: (u16, u16)) -> Result<Terminal<CrosstermBackend<Stdout>>> {
    execute!(io::stdout(), Clear(ClearType::All))?;
    let viewport = Viewport::Fixed(Rect::new(0, 0, size.0, size.1));
    Ok(Terminal::with_options(CrosstermBackend::new(io::stdout()), TerminalOptions { viewport })?)
}

impl Screen {
    fn open() -> Result<Self> {
        HOOK.call_once(|| {
            let before = std::panic::take_hook();
            std::panic::set_hook(Box::new(move |panic| {
                restore();
                before(panic);
            }));
        });
        enter()?;
        let size = terminal::size()?;
        match canvas(size) {
            Ok(terminal) => Ok(Self { terminal, size }),
            Err(error) => {
                restore();
                Err(error)
            }
        }
    }

    fn draw(&mut self, view: &mut View) -> Result<()> {
        let size = terminal::size()?;
        if size != self.size {
            self.size = size;
            self.terminal = canvas(size)?;
        }
        let now = Timestamp::from_system(SystemTime::now());
        self.terminal.draw(|frame| view.render(frame.area(), frame.buffer_mut(), now))?;
        Ok(())
    }

    /// Gives the terminal back, stops, and takes it again when the shell says so.
    fn suspended(&mut self) -> Result<()> {
        restore();
        let stopped = rustix::process::kill_process(rustix::process::getpid(), Signal::STOP);
        stopped.map_err(|e| CliError::failed(format!("can't stop: {e}")))?;
        enter()?;
        self.terminal = canvas(self.size)?;
        Ok(())
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        restore();
    }
}

fn enter() -> Result<()> {
    OPEN.store(true, Ordering::SeqCst);
    let entered = enable_raw_mode().and_then(|()| execute!(io::stdout(), EnterAlternateScreen));
    entered.map_err(|error| {
        restore();
        error.into()
    })
}

/// Nobody can be told where this fails.
fn restore() {
    if OPEN.swap(false, Ordering::SeqCst) {
        // A terminal without a second screen is left empty at least.
        let _ = execute!(io::stdout(), Clear(ClearType::All), MoveTo(0, 0), LeaveAlternateScreen, Show);
        let _ = disable_raw_mode();
    }
}

enum End {
    Stop,
    Over,
}

/// Signals that others may send.
struct Ends {
    interrupt: tokio::signal::unix::Signal,
    terminate: tokio::signal::unix::Signal,
    hangup: tokio::signal::unix::Signal,
    stop: tokio::signal::unix::Signal,
}

impl Ends {
    fn new() -> Result<Self> {
        Ok(Self {
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
            hangup: signal(SignalKind::hangup())?,
            stop: signal(SignalKind::from_raw(Signal::TSTP.as_raw()))?,
        })
    }

    async fn next(&mut self) -> End {
        tokio::select! {
            _ = self.interrupt.recv() => End::Over,
            _ = self.terminate.recv() => End::Over,
            _ = self.hangup.recv() => End::Over,
            _ = self.stop.recv() => End::Stop,
        }
    }
}
