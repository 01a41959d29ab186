//! What the live view of a workflow shows, and what its keys mean. Pure: what is known goes in, a picture and commands come out.

use std::collections::VecDeque;

use api::control::{Workflow, WorkflowStep};
use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use model::Timestamp;
use ratatui::buffer::Buffer;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Paragraph, Widget as _};
use serde_json::Value;

use crate::commands::{plan_lines, plan_summary, plan_title};
use crate::output::{self, Tone, clean, one_line, short};

const SPINNER: [&str; 10] = ["⠋", "⠙", "⠹", "⠸", "⠼", "⠴", "⠦", "⠧", "⠇", "⠏"];
/// Lines of a log, and of a plan, that are kept.
const LOG_LINES_MAX: usize = 1_000;
/// Longest line that is kept of a log.
const LINE_CHARS_MAX: usize = 2_000;
/// From this width on a step says its status in a word.
const WIDE: u16 = 70;
/// How long a word about the last key stays.
const NOTICE_TICKS: usize = 50;
/// Fewer rows than this have no place for a second pane.
const TALL: u16 = 9;

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
    /// Asks before it is done.
    Sure(&'static str, Wish),
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

    // --- what is known ---

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

    // --- keys ---

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
                matches!(code, KeyCode::Char('y' | 'Y') | KeyCode::Enter).then_some(wish)
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
                self.mode = Mode::Sure("deny the plan? that ends the workflow", wish);
            }
            KeyCode::Char('A') => return self.unless_over(Wish::ApproveAll),
            KeyCode::Char('c') => {
                let wish = self.unless_over(Wish::Cancel)?;
                self.mode = Mode::Sure("cancel the workflow? what runs is interrupted", wish);
            }
            KeyCode::Char('p') | KeyCode::Enter => match self.plan_shown() {
                Some(_) => self.mode = Mode::Plan(0),
                None => self.complain("this step has no plan to show"),
            },
            KeyCode::Char('r') => match self.step().filter(|step| step.retryable) {
                Some(step) => return Some(Wish::Retry { step: step.id.clone() }),
                None => self.complain("this step can't be tried again"),
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
            self.complain("this step waits for no approval");
            return None;
        };
        match self.plan_shown().map(|plan| plan.approval.clone()) {
            Some(approval) => Some(Wish::Answer { step, approval, response }),
            None => {
                self.complain("its plan is not here yet");
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
            self.mode = Mode::Sure("go on without what this would change?", wish);
            return None;
        }
        self.complain("this step can't be skipped");
        None
    }

    fn unless_over(&mut self, wish: Wish) -> Option<Wish> {
        if self.workflow.as_ref().is_some_and(|workflow| !workflow.finished) {
            return Some(wish);
        }
        self.complain("the workflow is over");
        None
    }

    // --- the picture ---

    pub(crate) fn render(&mut self, area: Rect, buffer: &mut Buffer, now: Timestamp) {
        if area.width == 0 || area.height == 0 {
            return;
        }
        let rows = Constraint::Length;
        let [head, body, foot] = Layout::vertical([rows(1), Constraint::Min(0), rows(1)]).areas(area);
        self.head(head, buffer, now);
        if let Mode::Plan(from) = self.mode {
            self.whole_plan(body, buffer, from);
        } else {
            let (steps, detail) = self.split(body);
            self.list(steps, buffer, now);
            self.detail(detail, buffer);
        }
        self.foot(foot, buffer);
    }

    /// The steps get what they need, at most three fifths; a small terminal has steps alone.
    fn split(&self, body: Rect) -> (Rect, Rect) {
        if body.height < TALL {
            return (body, Rect { height: 0, ..body });
        }
        let wanted = u16::try_from(self.steps().len()).unwrap_or(u16::MAX);
        let steps = wanted.clamp(1, body.height * 3 / 5);
        let [steps, detail] = Layout::vertical([Constraint::Length(steps), Constraint::Min(0)]).areas(body);
        (steps, detail)
    }

    fn head(&self, area: Rect, buffer: &mut Buffer, now: Timestamp) {
        let Some(workflow) = &self.workflow else {
            let text = self.away.clone().unwrap_or_else(|| "looking at the workflow".into());
            return self.write(area, buffer, vec![self.span(Tone::Dim, text)]);
        };
        let title = format!("{} of {}", workflow.r#type.replace('_', " "), workflow.owner_name);
        let status = &workflow.status.status;
        let lasted = workflow.started_at.map(|from| short(workflow.finished_at.unwrap_or(now).since(from)));
        let all = if workflow.approval_option == "approve-all" { "  approves all" } else { "" };
        let version = match workflow.config_version {
            0 => String::new(),
            number => format!("  version {number}"),
        };
        let mut spans = vec![
            Span::styled(clean(&title), Style::new().add_modifier(Modifier::BOLD)),
            Span::raw("  "),
            self.span(tone(status), status.clone()),
            self.span(Tone::Dim, format!("  {}{version}{all}", lasted.unwrap_or_default())),
        ];
        if let Some(why) = &self.away {
            spans.push(self.span(Tone::Bad, format!("  {why}")));
        } else if status == "error" {
            spans.push(self.span(Tone::Bad, format!("  {}", clean(&workflow.status.status_human_description))));
        }
        self.write(area, buffer, spans);
    }

    fn list(&mut self, area: Rect, buffer: &mut Buffer, now: Timestamp) {
        let rows = usize::from(area.height);
        self.page_rows = rows.saturating_sub(1).max(1);
        let steps = self.steps();
        let at = steps.iter().position(|step| step.id == self.selected).unwrap_or_default();
        // The one that is selected stays in sight, with what is around it.
        let from = at.saturating_sub(rows / 2).min(steps.len().saturating_sub(rows));
        let widest = steps.iter().map(|step| Span::raw(clean(&step.name)).width()).max().unwrap_or_default();
        let names = widest.min(usize::from(area.width) / 2);
        for (row, step) in steps.into_iter().skip(from).take(rows).enumerate() {
            let line = Rect { y: area.y + row as u16, height: 1, ..area };
            self.row(line, buffer, step, names, now);
        }
    }

    fn row(&self, area: Rect, buffer: &mut Buffer, step: &WorkflowStep, names: usize, now: Timestamp) {
        let status = step.status.status.as_str();
        let tone = tone(status);
        let mark = if step.id == self.selected { "▸ " } else { "  " };
        let glyph = if status == "in-progress" { SPINNER[self.frame] } else { glyph(status) };
        let lasted = match (step.started_at, step.finished_at) {
            (Some(from), Some(to)) => short(to.since(from)),
            (Some(from), None) if status == "in-progress" => short(now.since(from)),
            _ => String::new(),
        };
        let note: Vec<String> = [plan_summary(step), step.status.status_human_description.clone()]
            .into_iter()
            .filter(|note| !note.is_empty())
            .collect();
        let name = if step.id == self.selected {
            Style::new().add_modifier(Modifier::BOLD)
        } else {
            self.style(if tone == Tone::Dim { Tone::Dim } else { Tone::Plain })
        };
        let mut spans = vec![
            Span::raw(mark),
            self.span(tone, format!("{glyph} ")),
            Span::styled(fit(&step.name, names), name),
            Span::raw("  "),
        ];
        if area.width >= WIDE {
            spans.push(self.span(tone, fit(status, 18)));
        }
        spans.push(self.span(Tone::Dim, format!("{lasted:>6}  ")));
        spans.push(self.span(Tone::Dim, one_line(&note.join("; "))));
        self.write(area, buffer, spans);
    }

    /// The plan of the step that is selected, or the end of its log.
    fn detail(&self, area: Rect, buffer: &mut Buffer) {
        let Some(step) = self.step().filter(|_| area.height > 1) else { return };
        let title = if step.approval.is_some() {
            plan_title(step)
        } else if self.log_of == step.id && !self.log.is_empty() {
            format!("log of {}", step.name)
        } else {
            step.name.clone()
        };
        let rule = format!("── {} ", one_line(&title));
        let rest = usize::from(area.width).saturating_sub(Span::raw(rule.as_str()).width());
        let rule = format!("{rule}{}", "─".repeat(rest));
        self.write(Rect { height: 1, ..area }, buffer, vec![self.span(Tone::Dim, rule)]);
        let inside = Rect { y: area.y + 1, height: area.height - 1, ..area };
        let rows = usize::from(inside.height);
        if let Some(plan) = self.plan_shown() {
            self.plan(inside, buffer, plan, 0);
        } else if step.approval.is_none() && self.log_of == step.id && !self.log.is_empty() {
            for (row, line) in self.log.iter().skip(self.log.len().saturating_sub(rows)).enumerate() {
                let at = Rect { y: inside.y + row as u16, height: 1, ..inside };
                self.write(at, buffer, vec![Span::raw(line.as_str())]);
            }
        } else if step.approval.is_none() {
            let why = &step.status.status_human_description;
            let tone = tone(&step.status.status);
            let text = Paragraph::new(clean(why)).style(self.style(if tone == Tone::Bad { tone } else { Tone::Dim }));
            text.wrap(ratatui::widgets::Wrap { trim: true }).render(inside, buffer);
        }
    }

    fn whole_plan(&mut self, area: Rect, buffer: &mut Buffer, from: usize) {
        self.page_rows = usize::from(area.height).saturating_sub(1).max(1);
        if let Some(plan) = self.plan_shown() {
            self.plan(area, buffer, plan, from);
        }
    }

    fn plan(&self, area: Rect, buffer: &mut Buffer, plan: &Plan, from: usize) {
        let rows = usize::from(area.height);
        let more = plan.lines.len().saturating_sub(from + rows);
        // The last row says that there is more.
        let shown = if more > 0 { rows.saturating_sub(1) } else { rows };
        for (row, (sign, text)) in plan.lines.iter().skip(from).take(shown).enumerate() {
            let at = Rect { y: area.y + row as u16, height: 1, ..area };
            let tone = match sign {
                '+' => Tone::Good,
                '-' | '!' => Tone::Bad,
                '~' => Tone::Busy,
                _ => Tone::Plain,
            };
            self.write(at, buffer, vec![self.span(tone, text.clone())]);
        }
        if more > 0 && rows > 0 {
            let at = Rect { y: area.y + area.height - 1, height: 1, ..area };
            let left = plan.lines.len() - from - shown;
            let how = if matches!(self.mode, Mode::Plan(_)) { "arrows scroll" } else { "p shows all" };
            self.write(at, buffer, vec![self.span(Tone::Dim, format!("… {left} more; {how}"))]);
        }
    }

    fn foot(&self, area: Rect, buffer: &mut Buffer) {
        let spans = match (&self.mode, &self.notice) {
            (Mode::Sure(question, _), _) => {
                vec![self.span(Tone::Busy, (*question).to_owned()), Span::raw("  y yes, any other key no")]
            }
            (_, Some((tone, text))) => vec![self.span(*tone, one_line(text))],
            (Mode::Plan(_), None) => vec![self.span(Tone::Dim, "↑↓ scroll  a approve  d deny  p back".to_owned())],
            (Mode::Steps, None) => vec![self.span(Tone::Dim, self.keys())],
        };
        self.write(area, buffer, spans);
    }

    /// The keys that do something now.
    fn keys(&self) -> String {
        let step = self.step();
        let waits = step.is_some_and(|step| step.status.status == "approval-awaiting");
        let over = self.workflow.as_ref().is_some_and(|workflow| workflow.finished);
        let keys = [
            ("a approve", waits),
            ("d deny", waits),
            ("A approve all", !over && self.workflow.is_some()),
            ("p plan", self.plan_shown().is_some()),
            ("r retry", step.is_some_and(|step| step.retryable)),
            ("s skip", waits || step.is_some_and(|step| step.skippable)),
            ("c cancel", !over && self.workflow.is_some()),
            ("q leave", true),
            ("↑↓ select", true),
        ];
        keys.iter().filter(|(_, on)| *on).map(|(key, _)| *key).collect::<Vec<_>>().join("  ")
    }

    fn write(&self, area: Rect, buffer: &mut Buffer, spans: Vec<Span<'_>>) {
        let area = area.intersection(buffer.area);
        if area.height > 0 {
            buffer.set_line(area.x, area.y, &Line::from(spans), area.width);
        }
    }

    fn style(&self, tone: Tone) -> Style {
        let style = Style::new();
        match tone {
            Tone::Dim => style.add_modifier(Modifier::DIM),
            _ if !self.color => style,
            Tone::Plain => style,
            Tone::Good => style.fg(Color::Green),
            Tone::Bad => style.fg(Color::Red),
            Tone::Busy => style.fg(Color::Yellow),
            Tone::Strong => style.add_modifier(Modifier::BOLD),
        }
    }

    fn span(&self, tone: Tone, text: String) -> Span<'static> {
        Span::styled(text, self.style(tone))
    }
}

/// From here on a step that is selected stays selected while others move.
const WORTH_STAYING: u8 = 2;

/// How much a step matters to who looks.
fn weight(step: &WorkflowStep) -> u8 {
    match step.status.status.as_str() {
        "approval-awaiting" => 4,
        _ if step.retryable => 3,
        "in-progress" => 2,
        "pending" | "not-attempted" | "discarded" => 0,
        _ => 1,
    }
}

/// What has not begun is most of a long list: it stays in the background.
fn tone(status: &str) -> Tone {
    if status == "pending" { Tone::Dim } else { output::tone(status) }
}

fn glyph(status: &str) -> &'static str {
    match status {
        "success" | "approved" | "no-drift" => "✓",
        "error" | "unknown" | "warning" | "approval-denied" | "approval-expired" => "✗",
        "approval-awaiting" => "?",
        "drifted" => "≠",
        "cancelled" => "×",
        "auto-skipped" | "user-skipped" => "-",
        "discarded" => "↻",
        _ => "·",
    }
}

/// A text of exactly this width.
fn fit(text: &str, width: usize) -> String {
    let text = one_line(text);
    let mut out = String::new();
    let mut used = 0;
    let whole = Span::raw(text.as_str()).width() <= width;
    let room = if whole { width } else { width.saturating_sub(1) };
    for c in text.chars() {
        let wide = Span::raw(c.to_string()).width();
        if used + wide > room {
            break;
        }
        out.push(c);
        used += wide;
    }
    if !whole && width > 0 {
        out.push('…');
        used += 1;
    }
    out.push_str(&" ".repeat(width.saturating_sub(used)));
    out
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
