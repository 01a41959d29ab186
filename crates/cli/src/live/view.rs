//! What the live view of a workflow knows, and what its keys mean; `picture` draws it. Pure: what is known goes in, a picture and
//! commands come out.

mod picture;

use std::collections::VecDeque;

use api::control::{Workflow, WorkflowStep};
use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use serde_json::Value;

use crate::commands::plan_lines;
use crate::output::{Tone, clean};

const SPINNER: [&str; 10] = ["⠋", "⠙", "⠹", "⠸", "⠼", "⠴", "⠦", "⠧", "⠇", "⠏"];
/// Lines of a log, and of a plan, that are kept.
const LOG_LINES_MAX: usize = 1_000;
/// Longest line that is kept of a log.
const LINE_CHARS_MAX: usize = 2_000;
/// How long a word about the last key stays.
const NOTICE_TICKS: usize = 50;

/// What a person wants.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Wish {
    /// Of this step, with this plan.
    Answer {
        step: String,
        approval: String,
        response: &'static str,
    },
    ApproveAll,
    Retry {
        step: String,
    },
    Skip {
        step: String,
    },
    Cancel,
    Leave,
    /// Go into the background of the shell.
    Stop,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Mode {
    Steps,
    /// The whole plan, from this line on.
    Plan(usize),
    /// Asks before it is done; only `y` is a yes.
    Sure(String, Wish),
}

/// A plan, as lines, each with the sign of what it is about.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Plan {
    approval: String,
    lines: Vec<(char, String)>,
}

#[derive(Debug)]
pub(crate) struct View {
    color: bool,
    workflow: Option<Workflow>,
    /// Id of the step that is selected.
    selected: String,
    /// A person has selected it: it stays.
    held: bool,
    mode: Mode,
    plan: Option<Plan>,
    log: VecDeque<String>,
    /// The step whose log it is, and whether its last line has ended.
    log_of: String,
    log_open: bool,
    notice: Option<(Tone, String)>,
    /// For how long it is there.
    notice_ticks: usize,
    away: Option<String>,
    frame: usize,
    /// Rows of the last picture that a page has.
    page_rows: usize,
}

impl View {
    pub(crate) fn new(color: bool) -> Self {
        Self {
            color,
            workflow: None,
            selected: String::new(),
            held: false,
            mode: Mode::Steps,
            plan: None,
            log: VecDeque::new(),
            log_of: String::new(),
            log_open: false,
            notice: None,
            notice_ticks: 0,
            away: None,
            frame: 0,
            page_rows: 10,
        }
    }

    pub(crate) fn update(&mut self, workflow: Workflow) {
        self.away = None;
        self.workflow = Some(workflow);
        let steps = self.steps();
        let there = steps.iter().any(|step| step.id == self.selected);
        let stays = there && (self.held || self.step().is_some_and(|step| weight(step) >= WORTH_STAYING));
        if !stays {
            // The first of those that matter most.
            let best = steps.iter().rev().max_by_key(|step| weight(step)).map(|step| step.id.clone());
            self.selected = best.unwrap_or_default();
            self.held = false;
        }
        if matches!(self.mode, Mode::Plan(_)) && self.plan_shown().is_none() {
            self.mode = Mode::Steps;
        }
    }

    pub(crate) fn away(&mut self, why: &str) {
        self.away = Some(clean(why));
    }

    pub(crate) fn tick(&mut self) {
        self.frame = (self.frame + 1) % SPINNER.len();
        self.notice_ticks += 1;
        if self.notice_ticks > NOTICE_TICKS {
            self.notice = None;
        }
    }

    pub(crate) fn said(&mut self, text: &str) {
        self.notice = Some((Tone::Good, clean(text)));
        self.notice_ticks = 0;
    }

    pub(crate) fn complain(&mut self, text: &str) {
        self.notice = Some((Tone::Bad, clean(text)));
        self.notice_ticks = 0;
    }

    /// The plan that should be at hand, and is not: of which step, and its id.
    pub(crate) fn wanted_plan(&self) -> Option<(WorkflowStep, String)> {
        let step = self.step()?;
        let approval = &step.approval.as_ref()?.id;
        let known = self.plan.as_ref().is_some_and(|plan| plan.approval == *approval);
        (!known).then(|| (step.clone(), approval.clone()))
    }

    pub(crate) fn put_plan(&mut self, approval: &str, contents: &Value) {
        self.plan = Some(Plan { approval: approval.to_owned(), lines: plan_lines(contents) });
    }

    /// The step whose log is shown; none, where its plan is.
    pub(crate) fn wanted_log(&self) -> Option<&WorkflowStep> {
        self.step().filter(|step| step.started_at.is_some() && step.approval.is_none())
    }

    pub(crate) fn begin_log(&mut self, step: &str) {
        if self.log_of != step {
            self.log.clear();
            self.log_open = false;
            step.clone_into(&mut self.log_of);
        }
    }

    pub(crate) fn put_log(&mut self, text: &str) {
        for piece in text.split_inclusive('\n') {
            let line = visible(piece);
            match self.log.back_mut() {
                Some(last) if self.log_open => {
                    if last.chars().count() < LINE_CHARS_MAX {
                        last.push_str(&line);
                    }
                }
                _ => self.log.push_back(line),
            }
            self.log_open = !piece.ends_with('\n');
            if self.log.len() > LOG_LINES_MAX {
                self.log.pop_front();
            }
        }
    }

    fn steps(&self) -> Vec<&WorkflowStep> {
        let steps = self.workflow.iter().flat_map(|workflow| &workflow.steps);
        steps.filter(|step| step.execution_type != "hidden").collect()
    }

    pub(crate) fn step(&self) -> Option<&WorkflowStep> {
        self.steps().into_iter().find(|step| step.id == self.selected)
    }

    fn plan_shown(&self) -> Option<&Plan> {
        let approval = self.step()?.approval.as_ref()?;
        self.plan.as_ref().filter(|plan| plan.approval == approval.id)
    }

    pub(crate) fn key(&mut self, key: KeyEvent) -> Option<Wish> {
        if key.modifiers.contains(KeyModifiers::CONTROL) {
            return match key.code {
                KeyCode::Char('c' | 'd') => Some(Wish::Leave),
                KeyCode::Char('z') => Some(Wish::Stop),
                _ => None,
            };
        }
        self.notice = None;
        match (self.mode.clone(), key.code) {
            (Mode::Sure(_, wish), code) => {
                self.mode = Mode::Steps;
                matches!(code, KeyCode::Char('y' | 'Y')).then_some(wish)
            }
            (Mode::Plan(from), code) => {
                self.scroll(from, code);
                // A plan that is read can be answered where it is read.
                matches!(code, KeyCode::Char('a' | 'd')).then(|| self.steps_key(code)).flatten()
            }
            (Mode::Steps, code) => self.steps_key(code),
        }
    }

    fn scroll(&mut self, from: usize, code: KeyCode) {
        let lines = self.plan_shown().map_or(0, |plan| plan.lines.len());
        let last = lines.saturating_sub(1);
        let to = match code {
            KeyCode::Up | KeyCode::Char('k') => from.saturating_sub(1),
            KeyCode::Down | KeyCode::Char('j') => from + 1,
            KeyCode::PageUp => from.saturating_sub(self.page_rows),
            KeyCode::PageDown | KeyCode::Char(' ') => from + self.page_rows,
            KeyCode::Home | KeyCode::Char('g') => 0,
            KeyCode::End | KeyCode::Char('G') => last,
            KeyCode::Esc | KeyCode::Char('q' | 'p') | KeyCode::Enter => {
                self.mode = Mode::Steps;
                return;
            }
            _ => from,
        };
        self.mode = Mode::Plan(to.min(last));
    }

    fn steps_key(&mut self, code: KeyCode) -> Option<Wish> {
        match code {
            KeyCode::Up | KeyCode::Char('k') => self.select(-1),
            KeyCode::Down | KeyCode::Char('j') => self.select(1),
            KeyCode::PageUp => self.select(-(self.page_rows as isize)),
            KeyCode::PageDown => self.select(self.page_rows as isize),
            KeyCode::Home => self.select(isize::MIN / 2),
            KeyCode::End => self.select(isize::MAX / 2),
            KeyCode::Esc => self.held = false,
            KeyCode::Char('q') => return Some(Wish::Leave),
            KeyCode::Char('a') => return self.answer("approve"),
            KeyCode::Char('d') => {
                let wish = self.answer("deny")?;
                self.mode = Mode::Sure("deny the plan and end the workflow?".into(), wish);
            }
            KeyCode::Char('A') => {
                let wish = self.unless_over(Wish::ApproveAll)?;
                self.mode = Mode::Sure(self.approve_all_question(), wish);
            }
            KeyCode::Char('c') => {
                let wish = self.unless_over(Wish::Cancel)?;
                self.mode = Mode::Sure("cancel the workflow and interrupt its running jobs?".into(), wish);
            }
            KeyCode::Char('p') | KeyCode::Enter => match self.plan_shown() {
                Some(_) => self.mode = Mode::Plan(0),
                None => self.complain("this step has no plan to show"),
            },
            KeyCode::Char('r') => match self.step().filter(|step| step.retryable) {
                Some(step) => return Some(Wish::Retry { step: step.id.clone() }),
                None => self.complain("this step can't be retried"),
            },
            KeyCode::Char('s') => return self.skip(),
            _ => {}
        }
        None
    }

    fn select(&mut self, by: isize) {
        let ids: Vec<String> = self.steps().iter().map(|step| step.id.clone()).collect();
        let at = ids.iter().position(|id| *id == self.selected).unwrap_or_default();
        let to = at.saturating_add_signed(by).min(ids.len().saturating_sub(1));
        if let Some(id) = ids.get(to) {
            self.selected.clone_from(id);
            self.held = true;
        }
    }

    /// Only what is in sight is answered: a plan that nobody has seen yet can't be approved by a key that came too early.
    fn answer(&mut self, response: &'static str) -> Option<Wish> {
        let waits = self.step().filter(|step| step.status.status == "approval-awaiting");
        let Some(step) = waits.map(|step| step.id.clone()) else {
            self.complain("this step is not waiting for an approval");
            return None;
        };
        match self.plan_shown().map(|plan| plan.approval.clone()) {
            Some(approval) => Some(Wish::Answer { step, approval, response }),
            None => {
                self.complain("the plan is still loading");
                None
            }
        }
    }

    /// A failed step is left out; a plan that waits, with what it would have changed.
    fn skip(&mut self) -> Option<Wish> {
        if let Some(step) = self.step().filter(|step| step.skippable && step.status.status != "approval-awaiting") {
            return Some(Wish::Skip { step: step.id.clone() });
        }
        if self.step().is_some_and(|step| step.status.status == "approval-awaiting") {
            let wish = self.answer("deny-skip-current")?;
            self.mode = Mode::Sure("deny the plan and continue without it?".into(), wish);
            return None;
        }
        self.complain("this step can't be skipped");
        None
    }

    fn approve_all_question(&self) -> String {
        match self.steps().iter().filter(|step| step.status.status == "approval-awaiting").count() {
            0 => "approve all steps to come?".into(),
            1 => "approve the waiting step and those to come?".into(),
            waiting => format!("approve all {waiting} waiting steps and those to come?"),
        }
    }

    fn unless_over(&mut self, wish: Wish) -> Option<Wish> {
        if self.workflow.as_ref().is_some_and(|workflow| !workflow.finished) {
            return Some(wish);
        }
        self.complain("the workflow has ended");
        None
    }
}

/// From here on a step that is selected stays selected while others move.
const WORTH_STAYING: u8 = 2;

/// How much a step matters to who looks.
fn weight(step: &WorkflowStep) -> u8 {
    match step.status.status.as_str() {
        "approval-awaiting" => 4,
        // A plan that only waited when another step failed.
        "not-attempted" if step.retryable => 1,
        _ if step.retryable => 3,
        "in-progress" => 2,
        "pending" | "not-attempted" | "discarded" => 0,
        _ => 1,
    }
}

/// A piece of a log without what would steer the terminal: escape sequences go, what a carriage return has overwritten too.
fn visible(piece: &str) -> String {
    let piece = piece.trim_end_matches(['\n', '\r']);
    let piece = piece.rsplit('\r').next().unwrap_or(piece);
    let mut out = String::new();
    let mut chars = piece.chars();
    while let Some(c) = chars.next() {
        match c {
            '\u{1b}' => {
                // `ESC [ … letter`; of others the next character alone.
                if chars.next() == Some('[') {
                    chars.by_ref().find(|c| ('@'..='~').contains(c));
                }
            }
            '\t' => out.push_str("    "),
            c if c.is_control() => {}
            c => out.push(c),
        }
    }
    out.chars().take(LINE_CHARS_MAX).collect()
}

#[cfg(test)]
mod tests;
