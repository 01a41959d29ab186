//! The picture of the live view: head, steps, the plan or log of the step that is selected, and the keys.

use api::control::WorkflowStep;
use model::Timestamp;
use ratatui::buffer::Buffer;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Paragraph, Widget as _};

use super::{Mode, Plan, SPINNER, View};
use crate::commands::{plan_summary, plan_title};
use crate::output::{self, Tone, clean, one_line, short};

/// From this width on a step says its status in a word.
const WIDE: u16 = 70;
/// Fewer rows than this have no place for a second pane.
const TALL: u16 = 9;

impl View {
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
            let text = self.away.clone().unwrap_or_else(|| "loading the workflow".into());
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
                vec![self.span(Tone::Busy, question.clone()), Span::raw(" y/N")]
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
