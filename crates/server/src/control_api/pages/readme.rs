//! A README as blocks: what a page shows as text, headings, lists and tables, whatever somebody wrote into it. There is no HTML in it, so
//! nothing in it can act.

use api::control::{ReadmeBlock, ReadmeCell, ReadmeItem, ReadmeRow, ReadmeText};
use pulldown_cmark::{Alignment, CodeBlockKind, Event, HeadingLevel, Options, Parser, Tag, TagEnd};

/// Longer pages are cut.
const BYTES_MAX: usize = 256 << 10;
/// Lists and quotes within each other; what is deeper is shown at this depth.
const DEPTH_MAX: usize = 8;
const BLOCKS_MAX: usize = 5_000;

pub(super) fn blocks(markdown: &str) -> Vec<ReadmeBlock> {
    let mut end = markdown.len().min(BYTES_MAX);
    while !markdown.is_char_boundary(end) {
        end -= 1;
    }
    let options = Options::ENABLE_TABLES | Options::ENABLE_STRIKETHROUGH | Options::ENABLE_TASKLISTS;
    let (mut reading, mut cut) = (Reading::default(), end < markdown.len());
    for event in Parser::new_ext(&markdown[..end], options) {
        reading.take(event);
        if reading.made > BLOCKS_MAX {
            cut = true;
            break;
        }
    }
    while reading.open.len() > 1 {
        reading.close();
    }
    reading.flush();
    let mut blocks = reading.open.pop().map(|open| open.blocks).unwrap_or_default();
    if cut {
        blocks.push(text_block("paragraph", vec![plain("The rest of this page is too long to show.")]));
    }
    blocks
}

fn block(kind: &str) -> ReadmeBlock {
    ReadmeBlock {
        r#type: kind.to_owned(),
        level: 0,
        text: Vec::new(),
        language: String::new(),
        code: String::new(),
        ordered: false,
        start: 0,
        items: Vec::new(),
        header: Vec::new(),
        rows: Vec::new(),
    }
}

fn text_block(kind: &str, text: Vec<ReadmeText>) -> ReadmeBlock {
    ReadmeBlock { text, ..block(kind) }
}

fn plain(text: &str) -> ReadmeText {
    ReadmeText {
        text: text.to_owned(),
        strong: false,
        emphasis: false,
        code: false,
        strike: false,
        href: String::new(),
    }
}

/// Something that holds blocks: the page, an item of a list, a quote.
#[derive(Default)]
struct Open {
    kind: Kind,
    blocks: Vec<ReadmeBlock>,
    /// Of a list.
    items: Vec<ReadmeItem>,
    ordered: bool,
    start: u64,
    checked: Option<bool>,
}

#[derive(Default, PartialEq, Eq, Clone, Copy)]
enum Kind {
    #[default]
    Page,
    List,
    Item,
    Quote,
}

struct Reading {
    open: Vec<Open>,
    /// Opened below the deepest level: closed without a trace.
    hidden: usize,
    text: Vec<ReadmeText>,
    heading: Option<u64>,
    code: Option<(String, String)>,
    table: Option<ReadmeBlock>,
    strong: usize,
    emphasis: usize,
    strike: usize,
    links: Vec<String>,
    made: usize,
}

impl Default for Reading {
    fn default() -> Self {
        Self {
            open: vec![Open::default()],
            hidden: 0,
            text: Vec::new(),
            heading: None,
            code: None,
            table: None,
            strong: 0,
            emphasis: 0,
            strike: 0,
            links: Vec::new(),
            made: 0,
        }
    }
}

/// Where a link may lead: anything else is text.
fn safe(href: &str) -> Option<String> {
    let is_ours = |scheme: &&&str| href.get(..scheme.len()).is_some_and(|start| start.eq_ignore_ascii_case(scheme));
    ["http://", "https://", "mailto:"].iter().find(is_ours)?;
    (href.len() <= 2048 && !href.chars().any(char::is_control)).then(|| href.to_owned())
}

impl Reading {
    fn take(&mut self, event: Event<'_>) {
        match event {
            Event::Start(tag) => self.start(tag),
            Event::End(tag) => self.end(tag),
            Event::Text(text) => match &mut self.code {
                Some((_, code)) => code.push_str(&text),
                None => self.say(&text, false),
            },
            Event::Code(text) => self.say(&text, true),
            // What would be markup in a page is text here.
            Event::Html(text) | Event::InlineHtml(text) => self.say(&text, false),
            Event::SoftBreak => self.say(" ", false),
            Event::HardBreak => self.say("\n", false),
            Event::Rule => {
                self.flush();
                self.push(block("rule"));
            }
            Event::TaskListMarker(checked) => {
                if let Some(open) = self.open.last_mut() {
                    open.checked = Some(checked);
                }
            }
            Event::FootnoteReference(text) | Event::InlineMath(text) | Event::DisplayMath(text) => {
                self.say(&text, false);
            }
        }
    }

    fn say(&mut self, text: &str, code: bool) {
        let said = ReadmeText {
            code,
            strong: self.strong > 0,
            emphasis: self.emphasis > 0,
            strike: self.strike > 0,
            href: self.links.last().cloned().unwrap_or_default(),
            ..plain(text)
        };
        match self.text.last_mut() {
            Some(last)
                if ReadmeText { text: String::new(), ..last.clone() }
                    == ReadmeText { text: String::new(), ..said.clone() } =>
            {
                last.text.push_str(text);
            }
            _ => self.text.push(said),
        }
    }

    fn push(&mut self, block: ReadmeBlock) {
        self.made += 1;
        if let Some(open) = self.open.last_mut() {
            open.blocks.push(block);
        }
    }

    /// Text that stands alone is a paragraph.
    fn flush(&mut self) {
        let text = std::mem::take(&mut self.text);
        if !text.is_empty() {
            self.push(text_block("paragraph", text));
        }
    }

    fn start(&mut self, tag: Tag<'_>) {
        match tag {
            Tag::Paragraph | Tag::HtmlBlock => self.flush(),
            Tag::Heading { level, .. } => {
                self.flush();
                self.heading = Some(match level {
                    HeadingLevel::H1 => 1,
                    HeadingLevel::H2 => 2,
                    HeadingLevel::H3 => 3,
                    HeadingLevel::H4 => 4,
                    HeadingLevel::H5 => 5,
                    HeadingLevel::H6 => 6,
                });
            }
            Tag::CodeBlock(kind) => {
                self.flush();
                let language = match kind {
                    CodeBlockKind::Fenced(info) => info.split_whitespace().next().unwrap_or_default().to_owned(),
                    CodeBlockKind::Indented => String::new(),
                };
                self.code = Some((language, String::new()));
            }
            Tag::List(start) => {
                self.flush();
                self.begin(Open {
                    kind: Kind::List,
                    ordered: start.is_some(),
                    start: start.unwrap_or(1),
                    ..Open::default()
                });
            }
            Tag::Item => {
                self.flush();
                self.begin(Open { kind: Kind::Item, ..Open::default() });
            }
            Tag::BlockQuote(_) => {
                self.flush();
                self.begin(Open { kind: Kind::Quote, ..Open::default() });
            }
            Tag::Table(columns) => {
                self.flush();
                let columns: Vec<Alignment> = columns;
                let mut table = block("table");
                table.header.reserve(columns.len());
                self.table = Some(table);
            }
            Tag::TableRow => {
                if let Some(table) = &mut self.table {
                    table.rows.push(ReadmeRow { cells: Vec::new() });
                }
            }
            Tag::TableCell => self.text.clear(),
            Tag::Emphasis => self.emphasis += 1,
            Tag::Strong => self.strong += 1,
            Tag::Strikethrough => self.strike += 1,
            // An image is its text: a page fetches nothing from elsewhere.
            Tag::Link { dest_url, .. } | Tag::Image { dest_url, .. } => {
                self.links.push(safe(&dest_url).unwrap_or_default());
            }
            _ => {}
        }
    }

    fn end(&mut self, tag: TagEnd) {
        match tag {
            TagEnd::Paragraph | TagEnd::HtmlBlock => self.flush(),
            TagEnd::Heading(_) => {
                let (text, level) = (std::mem::take(&mut self.text), self.heading.take().unwrap_or(1));
                self.push(ReadmeBlock { level, ..text_block("heading", text) });
            }
            TagEnd::CodeBlock => {
                if let Some((language, code)) = self.code.take() {
                    self.push(ReadmeBlock { language, code, ..block("code") });
                }
            }
            TagEnd::List(_) | TagEnd::Item | TagEnd::BlockQuote(_) => {
                self.flush();
                self.close();
            }
            TagEnd::TableCell => {
                let cell = ReadmeCell { text: std::mem::take(&mut self.text) };
                if let Some(table) = &mut self.table {
                    match table.rows.last_mut() {
                        Some(row) => row.cells.push(cell),
                        None => table.header.push(cell),
                    }
                }
            }
            TagEnd::Table => {
                if let Some(table) = self.table.take() {
                    self.push(table);
                }
            }
            TagEnd::Emphasis => self.emphasis = self.emphasis.saturating_sub(1),
            TagEnd::Strong => self.strong = self.strong.saturating_sub(1),
            TagEnd::Strikethrough => self.strike = self.strike.saturating_sub(1),
            TagEnd::Link | TagEnd::Image => drop(self.links.pop()),
            _ => {}
        }
    }

    fn begin(&mut self, open: Open) {
        if self.hidden > 0 || self.open.len() > 2 * DEPTH_MAX {
            self.hidden += 1;
        } else {
            self.open.push(open);
        }
    }

    fn close(&mut self) {
        if self.hidden > 0 {
            self.hidden -= 1;
            return;
        }
        if self.open.len() < 2 {
            return;
        }
        let Some(open) = self.open.pop() else { return };
        match open.kind {
            Kind::Item => {
                let item = ReadmeItem { blocks: open.blocks, checked: open.checked };
                if let Some(list) = self.open.last_mut() {
                    list.items.push(item);
                }
            }
            Kind::List => {
                let (ordered, start) = (open.ordered, open.start);
                self.push(ReadmeBlock { items: open.items, ordered, start, ..block("list") });
            }
            Kind::Quote | Kind::Page => {
                let items = vec![ReadmeItem { blocks: open.blocks, checked: None }];
                self.push(ReadmeBlock { items, ..block("quote") });
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(blocks: &[ReadmeBlock]) -> String {
        let text = |text: &[ReadmeText]| text.iter().map(|it| it.text.as_str()).collect::<String>();
        let mut all = String::new();
        for block in blocks {
            all += &format!("[{}]{}{}", block.r#type, text(&block.text), block.code);
            for item in &block.items {
                all += &words(&item.blocks);
            }
            for cell in block.header.iter().chain(block.rows.iter().flat_map(|row| &row.cells)) {
                all += &format!("|{}", text(&cell.text));
            }
        }
        all
    }

    #[test]
    fn a_page_becomes_blocks() {
        let made = blocks(
            "# Shop\n\nHello *you*.\n\n- one\n- two\n  - deep\n\n> said\n\n| a | b |\n|---|---|\n| 1 | 2 |\n\n```mermaid\ngraph\n```\n---\n1. x\n",
        );
        assert_eq!(
            words(&made),
            "[heading]Shop[paragraph]Hello you.[list][paragraph]one[paragraph]two[list][paragraph]deep[quote][paragraph]said[table]|a|b|1|2[code]graph\n[rule][list][paragraph]x"
        );
        assert_eq!(made[0].level, 1);
        assert_eq!(made.iter().find(|it| it.r#type == "code").map(|it| it.language.as_str()), Some("mermaid"));
    }

    #[test]
    fn nothing_in_it_can_act() {
        let made = blocks(
            "<script>alert(1)</script>\n\n[x](javascript:alert(1)) [y](https://example.com) ![z](data:text/html,1) <b onclick=x>t</b>",
        );
        let all = words(&made);
        assert!(all.contains("<script>alert(1)</script>"), "markup is text: {all}");
        let hrefs: Vec<&str> =
            made.iter().flat_map(|it| &it.text).map(|it| it.href.as_str()).filter(|it| !it.is_empty()).collect();
        assert_eq!(hrefs, ["https://example.com"]);
    }

    #[test]
    fn depth_and_length_are_bounded() {
        let deep = (0..500).map(|n| format!("{}- x\n", "  ".repeat(n))).collect::<String>();
        assert!(words(&blocks(&deep)).len() < 1 << 20);
        assert!(words(&blocks(&"> ".repeat(20_000))).len() < 1 << 20);
        assert!(words(&blocks(&"word ".repeat(200_000))).ends_with("too long to show."));
    }
}
