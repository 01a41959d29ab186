//! Pages of documentation whose console blocks are run.
//!
//! A block (` ```console `, ` ```sh ` or ` ```bash `) is run, in the order of the page and in one shell, unless a comment above it
//! says that it is an illustration. These comments are directives; a reader of the rendered page does not see them:
//!
//! | directive | meaning |
//! |---|---|
//! | `<!-- illustration: WHY -->` | directly above a block: it is not run, because … |
//! | `<!-- exit N: COMMAND -->` | directly above a block: its command that starts with COMMAND exits with N |
//! | `<!-- background: COMMAND -->` | directly above a block: its command that starts with COMMAND is started and not waited for |
//! | `<!-- run: COMMANDS -->` | anywhere, over several lines if need be: run here, must succeed |
//! | `<!-- let NAME: COMMAND -->` | anywhere: in the commands below, the word NAME stands for what COMMAND prints |
//!
//! Where a block shows output, it is compared with the real one, line by line: a line `…` stands for any number of lines, `…` in a
//! line for any text. Blank lines, widths of columns, ids, times, durations, sizes, digests, ports and process ids don't count. An id that
//! is shown, whole or shortened as in a table (`wfl…li0m7b36`), stands for the real one in the commands below it.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::LazyLock;
use std::time::{Duration, Instant};

use regex_lite::Regex;

use crate::system;

/// Longest time that a command of a page may take.
const COMMAND_BOUND: Duration = Duration::from_secs(120);
const LANGUAGES: [&str; 4] = ["console", "sh", "bash", "shell"];
const ANY: &str = "…";

/// A page, as far as it is run.
#[derive(Debug)]
pub struct Page {
    /// From the root of the repository.
    pub name: String,
    pub items: Vec<Item>,
    /// What is wrong with its directives, as `page:line: …`.
    pub problems: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Item {
    /// Of the page, from 1.
    pub line: usize,
    pub command: String,
    pub what: What,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum What {
    /// A directive `run`.
    Hidden,
    /// A directive `let`, with the name.
    Let(String),
    /// A command of a block; `shown` are the lines below it.
    Shown { exit: i32, background: bool, shown: Vec<String> },
}

/// Directives that belong to the next block.
#[derive(Debug, Default)]
struct Above {
    line: usize,
    illustration: Option<String>,
    exits: Vec<(usize, i32, String)>,
    background: Vec<(usize, String)>,
}

impl Page {
    pub fn parse(name: &str, text: &str) -> Self {
        let mut page = Self { name: name.to_owned(), items: Vec::new(), problems: Vec::new() };
        let mut above = Above::default();
        let mut lines = text.lines().enumerate().map(|(n, line)| (n + 1, line));
        while let Some((number, line)) = lines.next() {
            let trimmed = line.trim();
            if let Some(language) = trimmed.strip_prefix("```") {
                let indent = line.len() - line.trim_start().len();
                let inside: Vec<(usize, &str)> = lines
                    .by_ref()
                    .take_while(|(_, line)| line.trim() != "```")
                    .map(|(n, line)| (n, line.get(indent..).unwrap_or_else(|| line.trim_start())))
                    .collect();
                let above = std::mem::take(&mut above);
                if LANGUAGES.contains(&language) {
                    page.block(number, language, &inside, above);
                } else {
                    page.unused(&above);
                }
            } else if trimmed.starts_with("<!--") {
                let mut comment = trimmed.to_owned();
                while !comment.ends_with("-->")
                    && let Some((_, line)) = lines.next()
                {
                    comment.push('\n');
                    comment.push_str(line.trim_end());
                }
                page.directive(number, &comment, &mut above);
            } else if !trimmed.is_empty() {
                page.unused(&above);
                above = Above::default();
                if line.starts_with("    ") && ["$ ", "ferry ", "ferry-runner "].iter().any(|c| trimmed.starts_with(c))
                {
                    page.problem(number, "commands belong into a ```console block, each behind `$ `");
                }
            }
        }
        page.unused(&above);
        page
    }

    /// Whether something of it is run.
    pub fn is_run(&self) -> bool {
        self.items.iter().any(|item| matches!(item.what, What::Shown { .. }))
    }

    fn problem(&mut self, line: usize, what: &str) {
        self.problems.push(format!("{}:{line}: {what}", self.name));
    }

    fn unused(&mut self, above: &Above) {
        if above.line > 0 {
            self.problem(above.line, "this directive belongs directly above a console block, and there is none");
        }
    }

    fn directive(&mut self, line: usize, comment: &str, above: &mut Above) {
        let inner = comment.trim_start_matches("<!--").trim_end_matches("-->").trim();
        let (head, rest) = inner.split_once([':', '\n']).unwrap_or((inner, ""));
        let rest = rest.trim();
        match head.split_whitespace().collect::<Vec<_>>()[..] {
            ["illustration"] if rest.is_empty() => {
                self.problem(line, "say why this block can't be run: `<!-- illustration: WHY -->`");
            }
            ["illustration"] => {
                above.line = line;
                above.illustration = Some(rest.to_owned());
            }
            ["exit", code] if code.parse::<i32>().is_ok() => {
                above.line = line;
                above.exits.push((line, code.parse().unwrap_or_default(), rest.to_owned()));
            }
            ["background"] => {
                above.line = line;
                above.background.push((line, rest.to_owned()));
            }
            ["run"] => self.items.push(Item { line, command: rest.to_owned(), what: What::Hidden }),
            ["let", name] => {
                self.items.push(Item { line, command: rest.to_owned(), what: What::Let(name.to_owned()) });
            }
            ["exit" | "illustration" | "background" | "run" | "let", ..] => {
                self.problem(line, "this directive can't be read; crates/testkit/src/pages.rs has them all");
            }
            _ => {}
        }
    }

    fn block(&mut self, line: usize, language: &str, inside: &[(usize, &str)], above: Above) {
        if above.illustration.is_some() {
            return;
        }
        let mut commands: Vec<(usize, String, Vec<String>)> = Vec::new();
        if language == "console" {
            let mut goes_on = false;
            for (number, text) in inside {
                if let Some(command) = text.strip_prefix("$ ") {
                    commands.push((*number, command.to_owned(), Vec::new()));
                } else if let Some((_, command, shown)) = commands.last_mut() {
                    if goes_on {
                        command.push('\n');
                        command.push_str(text);
                    } else {
                        shown.push((*text).to_owned());
                    }
                } else {
                    self.problem(*number, "commands of a console block begin with `$ `");
                }
                goes_on = text.ends_with('\\') && (goes_on || text.starts_with("$ "));
            }
        } else {
            let script = inside.iter().fold(String::new(), |all, (_, text)| all + text + "\n");
            commands.push((line + 1, script, Vec::new()));
        }
        if commands.is_empty() {
            self.problem(line, "this block has no command: begin it with `$ `, or make it a ```text block");
        }
        // A directive that has the whole command means no other one that begins like it.
        let whole: Vec<String> = commands.iter().map(|(_, command, _)| command.clone()).collect();
        let is = |command: &str, start: &str| {
            if whole.iter().any(|command| command == start) { command == start } else { command.starts_with(start) }
        };
        for (number, start) in
            above.exits.iter().map(|(n, _, s)| (n, s)).chain(above.background.iter().map(|(n, s)| (n, s)))
        {
            if start.is_empty() || !commands.iter().any(|(_, command, _)| is(command, start)) {
                self.problem(*number, "no command of the block below starts like this");
            }
        }
        for (number, command, shown) in commands {
            let exit = above.exits.iter().find(|(_, _, start)| is(&command, start)).map_or(0, |(_, code, _)| *code);
            let background = above.background.iter().any(|(_, start)| is(&command, start));
            self.items.push(Item { line: number, command, what: What::Shown { exit, background, shown } });
        }
    }
}

/// Every page with blocks: README.md, CONTRIBUTING.md and docs, in the order of their names.
pub fn all(repository: &Path) -> Vec<Page> {
    let mut files = vec![repository.join("README.md"), repository.join("CONTRIBUTING.md")];
    let mut folders = vec![repository.join("docs")];
    while let Some(folder) = folders.pop() {
        for entry in fs_err::read_dir(folder).expect("a directory").flatten() {
            let path = entry.path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|e| e == "md") {
                files.push(path);
            }
        }
    }
    files.sort();
    let name = |path: &Path| path.strip_prefix(repository).unwrap_or(path).to_string_lossy().into_owned();
    files.iter().map(|path| Page::parse(&name(path), &fs_err::read_to_string(path).expect("a page"))).collect()
}

// --- comparing ---

/// An id, whole or as tables shorten it.
static ID: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r"\b[a-z]{3}([0-9a-z]{23}|…[0-9a-z]{8})\b").expect("a pattern"));
/// What differs from one run to the next, and what stands for it. The order matters.
static UNSTABLE: LazyLock<Vec<(Regex, &str)>> = LazyLock::new(|| {
    [
        (r"\b[a-z]{3}[0-9a-z]{23}\b", "<id>"),
        // Before a line is split at its `…`.
        (r"\b[a-z]{3}…[0-9a-z]{8}\b", "<short id>"),
        (r"\d{4}-\d\d-\d\d[T ][0-9:.]+Z", "<when>"),
        // `now` is a time where it is alone in a column or in brackets, not in a sentence.
        (r"\b\d+ (s|min|h|days) ago\b|\bin \d+ (s|min|h|days)\b", "<when>"),
        (r"(^|\s\s|\()now\b", "${1}<when>"),
        (r"\b(fk|fry|fjc)_[0-9a-z]+", "${1}_…"),
        (r"\b[0-9a-f]{12,64}\b", "<digest>"),
        (r"127\.0\.0\.1:\d+", "127.0.0.1:<port>"),
        (r"\b(port|pid|process) \d+", "$1 <number>"),
        (r"\b\d+(\.\d+)? (B|KiB|MiB|GiB)\b", "<size>"),
        (r"\b\d+(\.\d+)? ?(ms|s|min|h)\b( \d+ ?(s|min)\b)?|\b\d+m(\d+s)?\b", "<duration>"),
        (r"\s+", " "),
    ]
    .map(|(pattern, with)| (Regex::new(pattern).expect("a pattern"), with))
    .into()
});

/// A line without what differs from run to run.
fn stable(line: &str) -> String {
    let mut line = line.trim().replace("✓ ", "ok: ");
    for (pattern, with) in UNSTABLE.iter() {
        line = pattern.replace_all(&line, *with).into_owned();
    }
    line
}

fn line_matches(shown: &str, real: &str) -> bool {
    let (shown, real) = (stable(shown), stable(real));
    let parts: Vec<&str> = shown.split(ANY).map(str::trim).collect();
    let [first, middle @ .., last] = &parts[..] else { return shown == real };
    let Some(mut rest) = real.strip_prefix(first) else { return false };
    for part in middle {
        let Some(at) = rest.find(part) else { return false };
        rest = &rest[at + part.len()..];
    }
    rest.ends_with(last)
}

/// Compares what a page shows with what was printed; on success, the ids of the page and the real ones.
///
/// # Errors
/// The first line of the page that is not there.
pub fn compare(shown: &[String], real: &str) -> Result<Vec<(String, String)>, String> {
    let shown: Vec<&str> = shown.iter().map(|l| l.trim()).filter(|l| !l.is_empty()).collect();
    let real: Vec<&str> = real.lines().map(str::trim).filter(|l| !l.is_empty()).collect();
    let mut ids = Vec::new();
    let mut at = 0;
    let mut skipping = false;
    for line in &shown {
        if *line == ANY {
            skipping = true;
            continue;
        }
        let found = (at..real.len()).find(|n| line_matches(line, real[*n]));
        let Some(found) = found.filter(|n| skipping || *n == at) else {
            return Err(match (found, real.get(at)) {
                (Some(_), Some(next)) => format!("before `{line}` the command prints `{next}`"),
                (_, Some(next)) if !skipping => format!("the page shows `{line}`, the command prints `{next}`"),
                _ => format!("the command does not print `{line}`"),
            });
        };
        ids.extend(
            ID.find_iter(line)
                .zip(ID.find_iter(real[found]))
                .map(|(a, b)| (a.as_str().to_owned(), b.as_str().to_owned())),
        );
        at = found + 1;
        skipping = false;
    }
    match real.get(at) {
        Some(next) if !skipping => Err(format!("the command also prints `{next}`; `…` stands for what is left out")),
        _ => Ok(ids),
    }
}

// --- running ---

/// A shell beside a system that `ferry dev` has brought up, in a directory with the examples.
#[derive(Debug)]
struct Session {
    dir: Option<tempfile::TempDir>,
    root: PathBuf,
    dev: Child,
    shell: Child,
    input: Option<ChildStdin>,
    ran: usize,
    /// Words of the page and what they stand for.
    words: BTreeMap<String, String>,
}

impl Session {
    fn start(ferry: &Path, repository: &Path) -> Self {
        let dir = system::temporary();
        let root = fs_err::canonicalize(dir.path()).expect("a path");
        for folder in ["home", "here", "ran"] {
            fs_err::create_dir(root.join(folder)).expect("a directory");
        }
        copy(&repository.join("examples"), &root.join("here/examples"));
        if std::env::var(model::env::TEST_PROGRAM).is_ok_and(|program| program == "tofu") {
            use_tofu(&root.join("here/examples"));
        }
        let bin = ferry.parent().expect("a directory");
        let path = std::env::join_paths(
            std::iter::once(bin.to_owned()).chain(std::env::split_paths(&std::env::var_os("PATH").unwrap_or_default())),
        )
        .expect("a search path");
        let clean = |program: &Path| {
            let mut command = Command::new(program);
            system::clean(&mut command, &root);
            command.env_remove("TF_CLI_CONFIG_FILE").env("PATH", &path).current_dir(root.join("here"));
            command
        };
        let log = std::fs::File::create(root.join("dev.log")).expect("a file");
        let mut dev = clean(ferry);
        dev.args(["dev", "--data-dir", ".ferry"]).arg("--allow-path").arg(root.join("here"));
        dev.stdin(Stdio::null()).stdout(log.try_clone().expect("a handle")).stderr(log);
        let dev = dev.spawn().expect("`ferry dev` starts");
        let mut shell = clean(Path::new("bash"));
        shell.args(["--noprofile", "--norc"]).stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
        let mut shell = shell.spawn().expect("a shell");
        let input = shell.stdin.take();
        let mut session = Self { dir: Some(dir), root, dev, shell, input, ran: 0, words: BTreeMap::new() };
        session.wait_for_dev();
        session
    }

    fn wait_for_dev(&mut self) {
        let until = Instant::now() + system::SOON;
        loop {
            let log = fs_err::read_to_string(self.root.join("dev.log")).unwrap_or_default();
            if log.lines().any(|line| line.starts_with("Stop: ")) {
                return;
            }
            let ended = self.dev.try_wait().expect("a child can be waited for");
            assert!(ended.is_none() && Instant::now() < until, "`ferry dev` does not come up:\n{log}");
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Runs a command in the shell; its exit code and what it printed.
    fn run(&mut self, command: &str) -> Result<(i32, String), String> {
        self.ran += 1;
        let (out, code) =
            (self.root.join(format!("ran/{}", self.ran)), self.root.join(format!("ran/{}.code", self.ran)));
        let quoted = command.replace('\'', r"'\''");
        let line = format!(
            "eval '{quoted}' </dev/null >{out} 2>&1; echo $? >{code}.new; mv {code}.new {code}\n",
            out = out.display(),
            code = code.display()
        );
        let input = self.input.as_mut().expect("the shell's input");
        input
            .write_all(line.as_bytes())
            .and_then(|()| input.flush())
            .map_err(|e| format!("the shell has ended: {e}"))?;
        let until = Instant::now() + COMMAND_BOUND;
        loop {
            let printed = || String::from_utf8_lossy(&fs_err::read(&out).unwrap_or_default()).into_owned();
            if let Ok(code) = fs_err::read_to_string(&code) {
                return Ok((code.trim().parse().unwrap_or(-1), printed()));
            }
            if self.shell.try_wait().is_ok_and(|ended| ended.is_some()) || Instant::now() > until {
                return Err(format!("it does not end within {COMMAND_BOUND:?}\n{}", printed()));
            }
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// A command of the page with everything put in that stands for something else.
    fn resolved(&self, command: &str) -> String {
        self.words.iter().fold(command.to_owned(), |command, (word, value)| {
            let word = Regex::new(&format!(r"\b{word}\b")).expect("a pattern");
            word.replace_all(&command, regex_lite::NoExpand(value)).into_owned()
        })
    }

    /// Runs one item; what is wrong with it, and whether the rest of the page can be run.
    fn item(&mut self, item: &Item) -> Result<(), String> {
        let command = self.resolved(&item.command);
        let background = matches!(item.what, What::Shown { background: true, .. });
        let (code, printed) = if background {
            // A comment at the end of the line would swallow the `&`; `wait` must not wait for it.
            self.run(&format!("( {{ {command}\n}} & )"))
        } else {
            self.run(&command)
        }?;
        let said = |what: &str| format!("`{command}`: {what}\n--- printed\n{printed}---");
        match &item.what {
            What::Hidden if code != 0 => Err(said(&format!("exits with {code}"))),
            What::Hidden => Ok(()),
            What::Let(name) => {
                let value = printed.trim();
                if code != 0 || value.is_empty() || value.contains('\n') {
                    return Err(said(&format!("exits with {code}; it must print one line")));
                }
                self.words.insert(name.clone(), value.to_owned());
                Ok(())
            }
            What::Shown { exit, .. } if code != *exit => Err(said(&format!(
                "exits with {code}, not {exit} (`<!-- exit {code}: … -->` above the block says that it should)"
            ))),
            What::Shown { shown, .. } if background || shown.iter().all(|line| line.trim().is_empty()) => Ok(()),
            What::Shown { shown, .. } => {
                self.words.extend(compare(shown, &printed).map_err(|e| said(&e))?);
                Ok(())
            }
        }
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        self.input = None;
        let _ = self.shell.kill();
        let _ = self.shell.wait();
        system::send(self.dev.id() as i32, rustix::process::Signal::TERM);
        let until = Instant::now() + Duration::from_secs(5);
        while self.dev.try_wait().is_ok_and(|ended| ended.is_none()) && Instant::now() < until {
            std::thread::sleep(Duration::from_millis(10));
        }
        let _ = self.dev.kill();
        let _ = self.dev.wait();
        system::end_all(&self.root, Duration::ZERO, &std::collections::BTreeSet::new());
        if std::thread::panicking()
            && let Some(dir) = self.dir.take()
        {
            let _ = writeln!(std::io::stderr(), "kept for a look: {}", dir.keep().display());
        }
    }
}

/// Runs every command of a page, also after one that is not as the page says, but not after one that does not end.
///
/// # Panics
/// When something is not as the page says: with each place, and what was printed.
pub fn run(ferry: &Path, repository: &Path, page: &Page) {
    let mut session = Session::start(ferry, repository);
    let mut wrong = String::new();
    let mut count = 0;
    for item in &page.items {
        let started = Instant::now();
        if let Err(what) = session.item(item) {
            count += 1;
            let _ = writeln!(wrong, "{}:{}: {what}", page.name, item.line);
            if started.elapsed() > COMMAND_BOUND {
                break;
            }
        }
        let took = started.elapsed();
        if took > Duration::from_millis(500) {
            let _ = writeln!(std::io::stderr(), "{}:{} took {took:.1?}", page.name, item.line);
        }
    }
    assert!(count == 0, "{} does not say what is so ({count} places):\n{wrong}", page.name);
}

fn copy(from: &Path, to: &Path) {
    fs_err::create_dir(to).expect("a directory");
    for entry in fs_err::read_dir(from).expect("a directory").flatten() {
        let to = to.join(entry.file_name());
        if entry.path().is_dir() {
            copy(&entry.path(), &to);
        } else {
            fs_err::copy(entry.path(), to).expect("a copy");
        }
    }
}

/// Without Terraform the suite runs with OpenTofu, and so do the examples.
fn use_tofu(folder: &Path) {
    for entry in fs_err::read_dir(folder).expect("a directory").flatten() {
        let path = entry.path();
        if path.is_dir() {
            use_tofu(&path);
        } else if path.extension().is_some_and(|e| e == "toml") {
            let text = fs_err::read_to_string(&path).expect("a file");
            let text = text.replace("terraform_version = \"latest\"", "terraform_version = \"tofu-latest\"");
            fs_err::write(&path, text).expect("a file");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(text: &str) -> Vec<String> {
        text.lines().map(str::to_owned).collect()
    }

    #[test]
    fn a_page_is_read_with_its_directives() {
        let text = "# T\n\n<!-- run\ncd a\ncd b\n-->\n<!-- let JOB: ferry jobs -->\n<!-- exit 1: b -->\n<!-- background: c -->\n```console\n$ a \\\n  -x\nshown\n$ b\n$ c  # stays\n```\n\n- in a list:\n  ```sh\n  d\n  e\n  ```\n<!-- illustration: needs a cloud -->\n```console\n$ f\n```\n```text\n$ g\n```\n";
        let page = Page::parse("docs/t.md", text);
        assert_eq!(page.problems, Vec::<String>::new());
        let shown = |exit, background, shown: &[&str]| What::Shown {
            exit,
            background,
            shown: shown.iter().map(|l| (*l).to_owned()).collect(),
        };
        let item = |line, command: &str, what| Item { line, command: command.to_owned(), what };
        assert_eq!(
            page.items,
            [
                item(3, "cd a\ncd b", What::Hidden),
                item(7, "ferry jobs", What::Let("JOB".into())),
                item(11, "a \\\n  -x", shown(0, false, &["shown"])),
                item(14, "b", shown(1, false, &[])),
                item(15, "c  # stays", shown(0, true, &[])),
                item(20, "d\ne\n", shown(0, false, &[])),
            ]
        );
    }

    #[test]
    fn commands_outside_of_a_block_are_named() {
        let problems = Page::parse("p.md", "text:\n\n    ferry jobs list\n").problems;
        assert_eq!(problems.len(), 1, "{problems:?}");
        assert!(problems[0].starts_with("p.md:3: "), "{problems:?}");
    }

    #[test]
    fn wrong_directives_are_named_with_their_place() {
        let text = "<!-- illustration: -->\n```console\n$ a\n```\n<!-- exit 2: b -->\n```console\n$ a\n```\n<!-- illustration: why -->\ntext\n```console\nno prompt\n```\n";
        let problems = Page::parse("p.md", text).problems;
        let places: Vec<&str> = problems.iter().map(|p| &p[..p.find(": ").unwrap()]).collect();
        assert_eq!(places, ["p.md:1", "p.md:5", "p.md:9", "p.md:12", "p.md:11"], "{problems:#?}");
    }

    #[test]
    fn what_is_shown_must_be_printed_in_order() {
        let real = "job jobho6l4qcfimfamh54ydmxxrz\nhello from vm\n\nSTEP    TOOK\nlook    49ms\nok: finished in 1s\n";
        let ok = |shown: &str| compare(&lines(shown), real);
        assert_eq!(
            ok("job jobho6l50c5zyfdu4p2k182fyj\nhello from …\n…\n✓ finished in 67ms"),
            Ok(vec![("jobho6l50c5zyfdu4p2k182fyj".into(), "jobho6l4qcfimfamh54ydmxxrz".into())])
        );
        assert!(ok("…\nlook  1.2s\n…").is_ok());
        for wrong in [
            "hello from vm\n…",
            "…\nhello from vm",
            "…\nlook 3ms\nhello from vm\n…",
            "…\nbye\n…",
            "job …\nSTEP TOOK\n…",
        ] {
            assert!(ok(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn short_ids_and_relative_times_differ_from_run_to_run() {
        let real = "ID            CREATED    NOTE\nwfl…152gbqa6  now        synced\nwfl…9w6acqd0  12 min ago\n";
        assert_eq!(
            compare(&lines("ID CREATED NOTE\nwfl…li0m7b36  3 s ago  synced\nwfl…pnfq0bq9  2026-11-18 16:21:24Z"), real),
            Ok(vec![("wfl…li0m7b36".into(), "wfl…152gbqa6".into()), ("wfl…pnfq0bq9".into(), "wfl…9w6acqd0".into())])
        );
        for (shown, real) in [
            ("next  in 58 min", "next  now"),
            ("created  2026-11-18 16:21:24Z (now)", "created  2026-11-18 18:02:35Z (3 h ago)"),
            ("done in 8s", "done in 1m30s"),
        ] {
            assert!(line_matches(shown, real), "{shown} / {real}");
        }
        for (shown, real) in [
            ("wflho74z7yiryfnfi7li0m7b36  done", "wfl…li0m7b36  done"),
            ("it runs now", "it runs 3 s ago"),
            ("wfl…li0m7b36  done", "wfl…152gbqa6  open"),
        ] {
            assert!(!line_matches(shown, real), "{shown} / {real}");
        }
    }
}
