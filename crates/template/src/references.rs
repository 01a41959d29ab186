//! Which paths a template may read: an evaluation of the syntax tree without data, in which a value is what it may be.
//!
//! It may name too much (both branches of an `if`, every element of a loop), never too little.

use std::collections::{BTreeMap, BTreeSet};

use crate::parse::{Branch, Call, Command, Expr, ExprKind, Kind, Node, Pipe, Tree};

/// A path below the data that a template may read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reference {
    pub path: Vec<Segment>,
    pub line: usize,
    pub column: usize,
    /// The template can do without it: a key of `index`, `dig` or `get`, an element of a loop.
    pub optional: bool,
    /// The value itself is used, so everything under the path may be read; otherwise it is only looked at, or looked into.
    pub whole: bool,
}

/// One step of a path.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Segment {
    /// A key that stands in the template.
    Key(String),
    /// Any key or element: of a loop, or computed.
    Any,
}

const MAX_PATH_SEGMENTS: usize = 32;
const MAX_VALUE_PARTS: usize = 128;
const MAX_VISITS: usize = 200_000;
const MAX_LEVELS: usize = 200;
const MAX_LOOP_ROUNDS: usize = 8;
const MAX_CALLS: usize = 256;

/// What these give is, or is made of, what they are given.
const GIVE_BACK: [&str; 18] = [
    "default",
    "coalesce",
    "or",
    "and",
    "merge",
    "mergeOverwrite",
    "concat",
    "deepCopy",
    "pick",
    "omit",
    "unset",
    "rest",
    "initial",
    "reverse",
    "uniq",
    "without",
    "compact",
    "slice",
];

/// These look at what they are given, not into it.
const LOOK_AT: [&str; 11] =
    ["len", "typeIsLike", "not", "empty", "all", "any", "kindOf", "kindIs", "typeOf", "typeIs", "keys"];

pub(crate) fn find(text: &str, tree: &Tree) -> Vec<Reference> {
    let root = May { paths: BTreeSet::from([(Vec::new(), false)]), other: true, ..May::default() };
    let mut finder = Finder {
        tree,
        found: BTreeMap::new(),
        vars: vec![("$".into(), root.clone())],
        called: Vec::new(),
        visits: 0,
        levels: 0,
    };
    finder.nodes(&tree.body, &root);
    let mut place = LineCounter { text, pos: 0, line: 1, column: 1 };
    let reference = |((pos, path), (optional, whole))| {
        let (line, column) = place.advance(pos);
        Reference { path, line, column, optional, whole }
    };
    finder.found.into_iter().map(reference).collect()
}

/// Line and column of places in rising order; each character is counted once.
struct LineCounter<'a> {
    text: &'a str,
    pos: usize,
    line: usize,
    column: usize,
}

impl LineCounter<'_> {
    fn advance(&mut self, pos: usize) -> (usize, usize) {
        for c in self.text[self.pos..pos].chars() {
            (self.line, self.column) = if c == '\n' { (self.line + 1, 1) } else { (self.line, self.column + 1) };
        }
        self.pos = pos;
        (self.line, self.column)
    }
}

/// What a value may be.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord)]
struct May {
    /// What lies at these paths; the flag says that they may be missing.
    paths: BTreeSet<(Vec<Segment>, bool)>,
    /// These texts.
    texts: BTreeSet<String>,
    /// A list or map with these parts.
    parts: BTreeMap<Segment, May>,
    /// Something else.
    other: bool,
}

impl May {
    fn unknown() -> May {
        May { other: true, ..May::default() }
    }

    fn join(&mut self, other: May) {
        self.paths.extend(other.paths);
        self.texts.extend(other.texts);
        self.other |= other.other;
        for (segment, may) in other.parts {
            self.parts.entry(segment).or_default().join(may);
        }
    }

    fn with_part(mut self, segment: Segment, may: May) -> May {
        self.parts.entry(segment).or_default().join(may);
        self
    }

    fn step(&self, segment: &Segment, optional: bool) -> May {
        let mut next = May { other: self.other, ..May::default() };
        for (path, missing) in &self.paths {
            let mut path = path.clone();
            // A path of that length stands for everything under it.
            if path.len() < MAX_PATH_SEGMENTS {
                path.push(segment.clone());
            }
            next.paths.insert((path, *missing || optional));
        }
        let matching = |key: &Segment| *segment == Segment::Any || *key == Segment::Any || key == segment;
        for (_, may) in self.parts.iter().filter(|(key, _)| matching(key)) {
            next.join(may.clone());
        }
        next
    }

    fn size(&self) -> usize {
        self.paths.len() + self.texts.len() + self.parts.values().map(|part| 1 + part.size()).sum::<usize>()
    }

    /// As a key of a map.
    fn segments(&self) -> Vec<Segment> {
        if self.other || !self.paths.is_empty() || !self.parts.is_empty() {
            return vec![Segment::Any];
        }
        self.texts.iter().cloned().map(Segment::Key).collect()
    }
}

struct Finder<'a> {
    tree: &'a Tree,
    /// (optional, whole) of each path at each place.
    found: BTreeMap<(usize, Vec<Segment>), (bool, bool)>,
    vars: Vec<(String, May)>,
    /// Templates that were walked through, with their dot.
    called: Vec<(String, May)>,
    visits: usize,
    levels: usize,
}

impl Finder<'_> {
    fn note(&mut self, pos: usize, may: &May, whole: bool) {
        for (path, missing) in may.paths.iter().filter(|(path, _)| whole || !path.is_empty()) {
            let entry = self.found.entry((pos, path.clone())).or_insert((true, false));
            *entry = (entry.0 && *missing, entry.1 || whole || path.len() == MAX_PATH_SEGMENTS);
        }
    }

    /// The value is used as it is, with all that is in it.
    fn used(&mut self, pos: usize, may: &May) {
        self.note(pos, may, true);
        for part in may.parts.values() {
            self.used(pos, part);
        }
    }

    /// Gives up on values that grow too large: all of it is used here.
    fn bounded(&mut self, pos: usize, may: May) -> May {
        if may.size() <= MAX_VALUE_PARTS {
            return may;
        }
        self.used(pos, &may);
        May::unknown()
    }

    /// Whether to go on; where a template is too intricate, it may read everything.
    fn visit(&mut self, cost: usize) -> bool {
        self.visits += cost;
        if self.visits >= MAX_VISITS || self.levels > MAX_LEVELS {
            self.visits = MAX_VISITS;
            self.found.insert((0, Vec::new()), (false, true));
            return false;
        }
        true
    }

    fn nodes(&mut self, nodes: &[Node], dot: &May) {
        self.levels += 1;
        for node in nodes {
            if !self.visit(1) {
                break;
            }
            match node {
                Node::Action(pipe) => {
                    let value = self.pipe(pipe, dot);
                    if pipe.vars.is_empty() {
                        self.used(pipe.commands[0].args[0].pos, &value);
                    }
                }
                Node::Branch(branch) => self.branch(branch, dot),
                Node::Call(call) => self.call(call, dot),
                Node::Text(_) | Node::Break | Node::Continue => {}
            }
        }
        self.levels -= 1;
    }

    fn branch(&mut self, branch: &Branch, dot: &May) {
        let scope = self.vars.len();
        let pos = branch.pipe.commands[0].args[0].pos;
        match branch.kind {
            Kind::Range => self.range(branch, pos, dot),
            kind => {
                let value = self.pipe(&branch.pipe, dot);
                self.note(pos, &value, false);
                let inner = self.vars.len();
                self.nodes(&branch.body, if kind == Kind::With { &value } else { dot });
                self.vars.truncate(inner);
            }
        }
        self.nodes(&branch.otherwise, dot);
        self.vars.truncate(scope);
    }

    /// A body may see what a round before it has assigned, so it is walked until nothing new comes.
    fn range(&mut self, branch: &Branch, pos: usize, dot: &May) {
        let value = self.commands(&branch.pipe, dot);
        let element = value.step(&Segment::Any, true);
        self.note(pos, &element, false);
        let scope = self.vars.len();
        for _ in 0..MAX_LOOP_ROUNDS {
            if !self.visit(1 + self.vars.len()) {
                return;
            }
            let before = self.vars.clone();
            match branch.pipe.vars.as_slice() {
                [(_, one)] => self.set(branch.pipe.assign, pos, one, element.clone()),
                [(_, key), (_, one)] => {
                    self.set(branch.pipe.assign, pos, key, May::unknown());
                    self.set(branch.pipe.assign, pos, one, element.clone());
                }
                _ => {}
            }
            self.nodes(&branch.body, &element);
            self.vars.truncate(scope);
            if self.vars == before {
                return;
            }
        }
        // Each round brings more: then it may be anything under what it was.
        for (_, may) in self.vars.clone() {
            self.used(pos, &may);
        }
    }

    /// An assignment adds: the one before may still hold, where a branch was not taken.
    fn set(&mut self, assign: bool, pos: usize, name: &str, may: May) {
        let at = self.vars.iter().rposition(|(known, _)| assign && known == name);
        let Some(at) = at else {
            self.vars.push((name.into(), may));
            return;
        };
        let mut joined = self.vars[at].1.clone();
        joined.join(may);
        self.vars[at].1 = self.bounded(pos, joined);
    }

    fn call(&mut self, call: &Call, dot: &May) {
        let dot = match &call.pipe {
            Some(pipe) => self.pipe(pipe, dot),
            None => May::unknown(),
        };
        let Some(body) = self.tree.defines.get(&call.name) else { return };
        let entry = (call.name.clone(), dot.clone());
        if !self.visit(1 + self.called.len()) || self.called.contains(&entry) {
            return;
        }
        if self.called.len() == MAX_CALLS {
            return self.used(call.pos, &dot);
        }
        self.called.push(entry);
        let outer = std::mem::replace(&mut self.vars, vec![("$".into(), dot.clone())]);
        self.nodes(body, &dot);
        self.vars = outer;
    }

    fn pipe(&mut self, pipe: &Pipe, dot: &May) -> May {
        let value = self.commands(pipe, dot);
        for (pos, name) in &pipe.vars {
            self.set(pipe.assign, *pos, name, value.clone());
        }
        value
    }

    fn commands(&mut self, pipe: &Pipe, dot: &May) -> May {
        let mut last = None;
        for command in &pipe.commands {
            last = Some(self.command(command, last, dot));
        }
        last.map_or_else(May::unknown, |(_, may)| may)
    }

    fn command(&mut self, command: &Command, last: Option<(usize, May)>, dot: &May) -> (usize, May) {
        let first = &command.args[0];
        let (name, fields) = match &first.kind {
            ExprKind::Function(name) => (name, [].as_slice()),
            ExprKind::Chain(base, fields) => match &base.kind {
                ExprKind::Function(name) => (name, fields.as_slice()),
                _ => return (first.pos, self.value(first, dot)),
            },
            _ => return (first.pos, self.value(first, dot)),
        };
        let mut args: Vec<(usize, May)> = command.args[1..].iter().map(|arg| (arg.pos, self.value(arg, dot))).collect();
        args.extend(last);
        let result = self.function(first.pos, name, &args);
        if crate::functions::changes_its_map(name)
            && let Some(ExprKind::Variable(variable)) = command.args.get(1).map(|arg| &arg.kind)
        {
            self.set(true, first.pos, variable, result.clone());
        }
        (first.pos, self.fields(first.pos, result, fields))
    }

    fn value(&mut self, expr: &Expr, dot: &May) -> May {
        if !self.visit(1) {
            return May::unknown();
        }
        match &expr.kind {
            ExprKind::Dot => dot.clone(),
            ExprKind::Nil | ExprKind::Bool(_) | ExprKind::Int(_) | ExprKind::Float(_) => May::unknown(),
            ExprKind::Str(text) => May { texts: BTreeSet::from([text.to_string()]), ..May::default() },
            ExprKind::Variable(name) => match self.vars.iter().rev().find(|(known, _)| known == name) {
                Some((_, may)) => may.clone(),
                None => May::unknown(),
            },
            ExprKind::Function(name) => self.function(expr.pos, name, &[]),
            ExprKind::Pipe(pipe) => {
                self.levels += 1;
                let value = self.pipe(pipe, dot);
                self.levels -= 1;
                value
            }
            ExprKind::Chain(base, fields) => {
                let base = self.value(base, dot);
                self.fields(expr.pos, base, fields)
            }
        }
    }

    fn fields(&mut self, pos: usize, mut may: May, fields: &[(usize, String)]) -> May {
        for (_, name) in fields {
            may = may.step(&Segment::Key(name.clone()), false);
        }
        if !fields.is_empty() {
            self.note(pos, &may, false);
        }
        may
    }

    /// One step by each key that `key` may be.
    fn entry(&mut self, pos: usize, base: &May, key: &(usize, May)) -> May {
        self.used(key.0, &key.1);
        let mut found = May::default();
        for segment in key.1.segments() {
            found.join(base.step(&segment, true));
        }
        let found = self.bounded(pos, found);
        self.note(pos, &found, false);
        found
    }

    fn function(&mut self, pos: usize, name: &str, args: &[(usize, May)]) -> May {
        let result = match self.looked_up(name, args) {
            Some(found) => found,
            None => match self.built(name, args) {
                Some(built) => built,
                None => self.taken(name, args),
            },
        };
        self.bounded(pos, result)
    }

    /// Functions that go into what they are given.
    fn looked_up(&mut self, name: &str, args: &[(usize, May)]) -> Option<May> {
        Some(match (name, args) {
            ("index", [(at, base), keys @ ..]) => keys.iter().fold(base.clone(), |may, key| self.entry(*at, &may, key)),
            ("dig", [keys @ .., (_, default), (at, base)]) => {
                let mut found = keys.iter().fold(base.clone(), |may, key| self.entry(*at, &may, key));
                found.join(default.clone());
                found
            }
            ("get", [(at, base), key]) => self.entry(*at, base, key),
            ("hasKey", [(at, base), key]) => {
                self.entry(*at, base, key);
                May::unknown()
            }
            ("pluck", [key, bases @ ..]) => bases.iter().fold(May::default(), |may, (at, base)| {
                let found = self.entry(*at, base, key);
                may.with_part(Segment::Any, found)
            }),
            ("first" | "last", [(_, base)]) => base.step(&Segment::Any, true),
            ("values", [(_, base)]) => May::default().with_part(Segment::Any, base.step(&Segment::Any, true)),
            ("ternary", [(_, yes), (_, no), (at, test)]) => {
                self.used(*at, test);
                let mut either = yes.clone();
                either.join(no.clone());
                either
            }
            _ => return None,
        })
    }

    /// Functions that put what they are given into a list or a map.
    fn built(&mut self, name: &str, args: &[(usize, May)]) -> Option<May> {
        Some(match (name, args) {
            ("set", [(_, base), key, (_, value)]) => self.with_entry(base.clone(), key, value),
            ("dict", args) => args.chunks(2).fold(May::default(), |may, pair| match pair {
                [key, (_, value)] => self.with_entry(may, key, value),
                _ => may,
            }),
            ("list" | "tuple", args) => {
                args.iter().fold(May::default(), |may, (_, item)| may.with_part(Segment::Any, item.clone()))
            }
            ("append" | "push" | "prepend", [(_, base), (_, item)]) => {
                base.clone().with_part(Segment::Any, item.clone())
            }
            _ => return None,
        })
    }

    fn with_entry(&mut self, mut may: May, key: &(usize, May), value: &May) -> May {
        self.used(key.0, &key.1);
        for segment in key.1.segments() {
            may = may.with_part(segment, value.clone());
        }
        may
    }

    /// All others: they give back what they are given, look at it, or use it up.
    fn taken(&mut self, name: &str, args: &[(usize, May)]) -> May {
        let (gives_back, looks_at) = (GIVE_BACK.contains(&name), LOOK_AT.contains(&name));
        let mut result = May { other: !gives_back, ..May::default() };
        for (at, arg) in args {
            match gives_back || looks_at {
                true => self.note(*at, arg, false),
                false => self.used(*at, arg),
            }
            if gives_back {
                result.join(arg.clone());
            }
        }
        result
    }
}
