//! A plan as lines of text.

use serde::{Deserialize, Serialize};

use crate::model::{
    Action, AttributeChange, Changes, Omitted, OutputAction, OutputChange, Plan, ResourceChange, Shown,
};

/// How wide the lines are that hold several attributes.
const COMPACT_CHARS: usize = 110;
/// How many resources are named in the warning; all of them are marked below it.
const WARNED_OF: usize = 20;

/// One line, and what it is about. The text is readable without the tone.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Line {
    pub tone: Tone,
    pub text: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Tone {
    Create,
    Update,
    Replace,
    Destroy,
    Note,
    Warn,
    Plain,
}

/// The whole plan, ending with its summary.
pub fn draw(plan: &Plan) -> Vec<Line> {
    let mut drawing = Drawing::default();
    drawing.warnings(plan);
    drawing.section("", &plan.resources, Drawing::resource);
    drawing.section("Outputs:", &plan.outputs, Drawing::output);
    drawing.section("Changed outside of terraform:", &plan.drift, Drawing::drifted);
    drawing.notes(plan);
    drawing.push(Tone::Plain, summary(&plan.changes));
    drawing.0
}

/// The counts in one line: `3 to create, 1 to replace`.
pub fn summary(changes: &Changes) -> String {
    let counts = [
        (changes.create, "to create"),
        (changes.update, "to update"),
        (changes.replace, "to replace"),
        (changes.destroy, "to destroy"),
        (changes.import, "to import"),
        (changes.moved, "moved"),
        (changes.forget, "to forget"),
        (changes.invoke, "actions to invoke"),
        (changes.deferred, "deferred"),
        (changes.outputs, if changes.outputs == 1 { "output changes" } else { "outputs change" }),
        (changes.read, "to read"),
    ];
    let mut parts = Vec::new();
    if changes.is_noop() {
        parts.push("No changes".to_owned());
    }
    parts.extend(counts.iter().filter(|(count, _)| *count > 0).map(|(count, what)| format!("{count} {what}")));
    parts.join(", ")
}

#[derive(Default)]
struct Drawing(Vec<Line>);

impl Drawing {
    /// Characters that would act on a terminal, or turn the direction of the text, are not drawn.
    fn push(&mut self, tone: Tone, text: String) {
        let acts = |c: char| c.is_control() || matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
        let text = if text.contains(acts) { text.replace(acts, "\u{fffd}") } else { text };
        self.0.push(Line { tone, text });
    }

    /// A heading, each item, and an empty line; nothing at all when there are no items.
    fn section<T>(&mut self, heading: &str, items: &[T], draw: fn(&mut Self, &T)) {
        if items.is_empty() {
            return;
        }
        if !heading.is_empty() {
            self.push(Tone::Plain, heading.to_owned());
        }
        items.iter().for_each(|item| draw(self, item));
        self.push(Tone::Plain, String::new());
    }

    fn warnings(&mut self, plan: &Plan) {
        if plan.errored == Some(true) {
            self.push(Tone::Warn, "The plan ended with an error: it does not show everything".to_owned());
        }
        if plan.stateful > 0 {
            self.push(Tone::Warn, data_warning(&plan.changes, plan.stateful));
            let mut named = 0;
            for resource in plan.data_at_risk().take(WARNED_OF) {
                self.push(Tone::Warn, format!("  ! {} {}", verb(resource), resource.address));
                named += 1;
            }
            if plan.stateful > named {
                self.push(Tone::Warn, format!("  ! … and {} more", plan.stateful - named));
            }
        }
        if !self.0.is_empty() {
            self.push(Tone::Plain, String::new());
        }
    }

    fn resource(&mut self, resource: &ResourceChange) {
        self.push(tone(resource.action), headline(resource));
        match resource.action {
            Action::Create => self.compact(&resource.attributes),
            Action::Update | Action::ReplaceDestroyFirst | Action::ReplaceCreateFirst | Action::ReplaceForget => {
                resource.attributes.iter().for_each(|attribute| self.attribute("      ", attribute));
            }
            Action::Destroy | Action::Read | Action::Forget | Action::Noop => return,
        }
        self.more("      ", resource.attributes_omitted);
    }

    fn output(&mut self, output: &OutputChange) {
        if output.values.is_empty() {
            let (tone, symbol) = match output.action {
                OutputAction::Create => (Tone::Create, '+'),
                OutputAction::Update => (Tone::Update, '~'),
                OutputAction::Destroy => (Tone::Destroy, '-'),
            };
            self.push(tone, format!("  {symbol} {}", output.name));
        }
        output.values.iter().for_each(|value| self.attribute("  ", value));
        self.more("  ", output.values_omitted);
    }

    fn drifted(&mut self, resource: &ResourceChange) {
        let what = if resource.action == Action::Destroy { "is gone" } else { "was changed" };
        self.push(Tone::Note, format!("  {} {what}", resource.address));
        if resource.action != Action::Destroy {
            resource.attributes.iter().for_each(|attribute| self.attribute("      ", attribute));
            self.more("      ", resource.attributes_omitted);
        }
    }

    fn attribute(&mut self, indent: &str, attribute: &AttributeChange) {
        let AttributeChange { path, before, after, replaces } = attribute;
        let (tone, text) = match (before, after) {
            (Shown::Absent, after) => (Tone::Create, format!("+ {path}: {}", value(after))),
            (before, Shown::Absent) => (Tone::Destroy, format!("- {path}: {}", value(before))),
            (before, after) => (Tone::Update, format!("~ {path}: {} -> {}", value(before), value(after))),
        };
        let (tone, end) = if *replaces { (Tone::Replace, "   forces replacement") } else { (tone, "") };
        self.push(tone, format!("{indent}{text}{end}"));
    }

    /// The attributes of something new, several on a line. Those that are not known yet are only counted.
    fn compact(&mut self, attributes: &[AttributeChange]) {
        let (unknown, known): (Vec<_>, Vec<_>) = attributes.iter().partition(|one| one.after == Shown::Unknown);
        let mut parts: Vec<String> = known.iter().map(|one| format!("{}: {}", one.path, value(&one.after))).collect();
        if !unknown.is_empty() {
            parts.push(format!("{} known after apply", unknown.len()));
        }
        let mut line = String::new();
        for part in parts {
            if !line.is_empty() && line.chars().count() + part.chars().count() > COMPACT_CHARS {
                self.push(Tone::Create, format!("      {}", std::mem::take(&mut line)));
            }
            if !line.is_empty() {
                line.push_str(", ");
            }
            line.push_str(&part);
        }
        if !line.is_empty() {
            self.push(Tone::Create, format!("      {line}"));
        }
    }

    fn more(&mut self, indent: &str, omitted: u64) {
        if omitted > 0 {
            self.push(Tone::Note, format!("{indent}… and {omitted} more"));
        }
    }

    fn notes(&mut self, plan: &Plan) {
        let Omitted { resources, drift, outputs, attributes } = plan.omitted;
        let left_out =
            [(resources, "resources"), (drift, "drifted resources"), (outputs, "outputs"), (attributes, "attributes")];
        let parts: Vec<String> =
            left_out.iter().filter(|(count, _)| *count > 0).map(|(count, what)| format!("{count} {what}")).collect();
        if !parts.is_empty() {
            self.push(Tone::Note, format!("Too large to list all of it. Not listed: {}", parts.join(", ")));
        }
        if plan.changes.is_noop() && !plan.is_noop() && plan.errored != Some(true) {
            self.push(Tone::Note, "Only the state is brought up to date".to_owned());
        }
        if plan.complete == Some(false) && plan.errored != Some(true) {
            self.push(Tone::Note, "This does not do everything: another plan is needed afterwards".to_owned());
        }
    }
}

fn headline(resource: &ResourceChange) -> String {
    let mut line = format!("{:>3} {:<7} {}", symbol(resource.action), verb(resource), resource.address);
    let mut note = |text: String| {
        line.push_str("  ");
        line.push_str(&text);
    };
    if let Some(key) = &resource.deposed {
        note(format!("(left behind by a replacement: {key})"));
    }
    if resource.stateful {
        note("holds data".to_owned());
    }
    if let Some(reason) = &resource.reason {
        note(reason.clone());
    }
    match resource.import_id.as_deref() {
        None => {}
        Some("") => note("imported from an id that is known after apply".to_owned()),
        Some(id) => note(format!("imported from {id:?}")),
    }
    if let Some(previous) = &resource.previous_address {
        note(format!("moved from {previous}"));
    }
    if matches!(resource.action, Action::Forget | Action::ReplaceForget) {
        note("it stays where it is, no longer managed".to_owned());
    }
    line
}

fn data_warning(changes: &Changes, stateful: u64) -> String {
    let what = match stateful {
        1 => "1 resource that usually holds data".to_owned(),
        _ => format!("{stateful} resources that usually hold data"),
    };
    let fate = match (changes.destroy, changes.replace) {
        (0, _) => "replaced",
        (_, 0) => "destroyed",
        _ => "destroyed or replaced",
    };
    format!("Data may be lost: {what} would be {fate}")
}

fn value(shown: &Shown) -> String {
    match shown {
        Shown::Absent => "(absent)".to_owned(),
        Shown::Value { text, cut_chars: 0 } => text.clone(),
        Shown::Value { text, cut_chars } => format!("{text} ({cut_chars} characters cut)"),
        Shown::Sensitive => "(sensitive)".to_owned(),
        Shown::Unknown => "(known after apply)".to_owned(),
    }
}

fn symbol(action: Action) -> &'static str {
    match action {
        Action::Create => "+",
        Action::Update => "~",
        Action::ReplaceDestroyFirst => "-/+",
        Action::ReplaceCreateFirst | Action::ReplaceForget => "+/-",
        Action::Destroy => "-",
        Action::Read => "<=",
        Action::Forget => ".",
        Action::Noop => ">",
    }
}

fn verb(resource: &ResourceChange) -> &'static str {
    match resource.action {
        Action::Create => "create",
        Action::Update => "update",
        Action::ReplaceDestroyFirst | Action::ReplaceCreateFirst | Action::ReplaceForget => "replace",
        Action::Destroy => "destroy",
        Action::Read => "read",
        Action::Forget => "forget",
        Action::Noop if resource.import_id.is_some() => "import",
        Action::Noop => "move",
    }
}

fn tone(action: Action) -> Tone {
    match action {
        Action::Create => Tone::Create,
        Action::Update => Tone::Update,
        Action::ReplaceDestroyFirst | Action::ReplaceCreateFirst | Action::ReplaceForget => Tone::Replace,
        Action::Destroy => Tone::Destroy,
        Action::Read | Action::Forget | Action::Noop => Tone::Note,
    }
}
