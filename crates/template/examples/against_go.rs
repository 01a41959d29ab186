//! Compares this crate with real Go, `text/template` and sprig: everything that is recorded, and templates that are made up from a
//! grammar. `make soak PART=templates` builds the Go program and runs this.
#![allow(clippy::print_stdout, clippy::disallowed_methods)]

use std::{
    collections::BTreeMap,
    io::{BufRead, BufReader, Write},
    process::{Command, Stdio},
};

use anyhow::{Context, bail};
use serde_json::{Value, json};
use template::{Bounds, Template};

const GRAMMAR: &str = include_str!("../tests/go/grammar.txt");
const RECORDED: &str = include_str!("../tests/go/recorded.json");

fn main() -> anyhow::Result<()> {
    let mut args = std::env::args().skip(1);
    let program = args.next().context("usage: against_go PROGRAM [COUNT] [SEED] [FILE]")?;
    let count = args.next().map_or(Ok(10_000), |count| count.parse())?;
    let seed = args.next().map_or(Ok(1), |seed| seed.parse())?;

    let mut tasks = Vec::new();
    let recorded: Value = serde_json::from_str(RECORDED)?;
    for case in recorded["cases"].as_array().context("no cases")? {
        tasks.push(json!({"template": case[0], "data": recorded["data"]}));
    }
    let data = json!({
        "l": ["a", "b", "c"], "m": {"k": "v", "z": 1}, "mm": {"k": {"d": "deep", "n": 2}, "d": {"x": "y"}},
        "s": "Hello World", "nul": null, "n": 3, "e": "", "h": 0.5, "t": true,
    });
    let mut grammar = Grammar::new(seed);
    for round in 0..count {
        tasks.push(json!({"template": grammar.make('T', 1 + round % 4), "data": data}));
    }
    let answers = answers(&program, &tasks)?;
    compare(&tasks, &answers)?;
    // What is made up, with Go's results, for tests where there is no Go.
    if let Some(file) = args.next() {
        let known = recorded["cases"].as_array().map_or(0, Vec::len);
        let made_up = tasks.iter().zip(&answers).skip(known);
        let result = |go: &Value| if go["ok"] == true { go["text"].clone() } else { Value::Null };
        let cases: Vec<Value> = made_up.map(|(task, go)| json!([task["template"], result(go)])).collect();
        let lines: Vec<String> = cases.iter().map(ToString::to_string).collect();
        fs_err::write(file, format!("{{\"data\":{data},\"cases\":[\n{}\n]}}\n", lines.join(",\n")))?;
    }
    Ok(())
}

/// What Go says to each task.
fn answers(program: &str, tasks: &[Value]) -> anyhow::Result<Vec<Value>> {
    let mut go =
        Command::new(program).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().context(program.to_string())?;
    let (mut input, output) = (go.stdin.take().context("no stdin")?, go.stdout.take().context("no stdout")?);
    let lines: Vec<String> = tasks.iter().map(ToString::to_string).collect();
    let writer = std::thread::spawn(move || lines.iter().try_for_each(|line| writeln!(input, "{line}")));
    let mut answers = Vec::new();
    for line in BufReader::new(output).lines() {
        answers.push(serde_json::from_str(&line?)?);
    }
    writer.join().map_err(|_| anyhow::anyhow!("the writer panicked"))??;
    if !go.wait()?.success() || answers.len() != tasks.len() {
        bail!("{program} answered {} of {} tasks", answers.len(), tasks.len());
    }
    Ok(answers)
}

fn compare(tasks: &[Value], answers: &[Value]) -> anyhow::Result<()> {
    let (mut rendered, mut cut, mut different) = (0, 0, 0);
    for (task, go) in tasks.iter().zip(answers) {
        let text = task["template"].as_str().context("no template")?;
        let theirs = go["text"].as_str().filter(|_| go["ok"] == true);
        let ours = Template::parse(text).and_then(|template| template.render(&task["data"], &Bounds::default()));
        // Go cuts a character in two, which is an error here.
        if ours.as_ref().is_err_and(|error| error.message.ends_with("cuts a character")) {
            cut += 1;
            continue;
        }
        rendered += usize::from(theirs.is_some());
        if ours.as_deref().ok() != theirs {
            different += 1;
            if different <= 20 {
                println!("{text}\n  Go:   {}\n  ours: {ours:?}", go["text"]);
            }
        }
    }
    println!("{} templates: {rendered} with a result, {cut} not compared, {different} different", tasks.len());
    match different {
        0 => Ok(()),
        _ => bail!("{different} templates give another result than in Go"),
    }
}

/// Lines `K production`; `<K>` in a production stands for any production of that kind.
struct Grammar {
    rules: BTreeMap<char, Vec<&'static str>>,
    random: u64,
}

impl Grammar {
    fn new(seed: u64) -> Self {
        let mut rules: BTreeMap<char, Vec<&str>> = BTreeMap::new();
        for line in GRAMMAR.lines() {
            rules.entry(line.chars().next().unwrap_or(' ')).or_default().push(line.get(2..).unwrap_or(""));
        }
        Grammar { rules, random: seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1 }
    }

    fn draw(&mut self, bound: usize) -> usize {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        (self.random % bound as u64) as usize
    }

    fn make(&mut self, kind: char, depth: usize) -> String {
        let mut choices = self.rules.get(&kind).cloned().unwrap_or_default();
        // At the end of the depth the first of a kind leads to a leaf.
        if depth == 0 {
            let leaves: Vec<&str> = choices.iter().copied().filter(|choice| next_kind(choice).is_none()).collect();
            choices = if leaves.is_empty() { choices[..1].to_vec() } else { leaves };
        }
        let production = choices[self.draw(choices.len())];
        let mut made = String::new();
        let mut rest = production;
        while let Some((at, kind)) = next_kind(rest) {
            made.push_str(&rest[..at]);
            made.push_str(&self.make(kind, depth.saturating_sub(1)));
            rest = &rest[at + 3..];
        }
        made.push_str(rest);
        match kind != 'T' && production.contains(' ') && !production.starts_with(['"', '`']) {
            true => format!("({made})"),
            false => made,
        }
    }
}

/// The first `<K>`, and where it stands.
fn next_kind(production: &str) -> Option<(usize, char)> {
    production.match_indices('<').find_map(|(at, _)| match production.as_bytes().get(at + 1..at + 3) {
        Some([kind, b'>']) if kind.is_ascii_uppercase() => Some((at, char::from(*kind))),
        _ => None,
    })
}
