//! Which file says what: finds the files of an app, decodes each by its table, and puts them together.

use std::sync::Arc;

use serde_json::{Map, Value};
use toml::Spanned;
use toml::de::DeTable;

use crate::decode::{Decoded, Decoder};
use crate::diagnostic::{Findings, did_you_mean, error, warning};
use crate::kinds::*;
use crate::source::Spot;
use crate::table::Table;
use crate::tree::{MAX_TOML_BYTES, MAX_TOML_FILES};
use crate::walk::fields;
use crate::{Code, Tree, get};

/// A file at the root of the app.
struct File {
    path: &'static str,
    table: &'static Table,
    into: Into,
}

enum Into {
    /// The file is this part of the config.
    Part(&'static str),
    /// The file is one element of this list.
    Element(&'static str),
    /// Keys of the file are, or are elements of, these lists.
    Lists(&'static [(&'static str, &'static str)]),
}

/// A directory: each TOML file below it is one element of a list.
struct Directory {
    path: &'static str,
    /// `None`: a component, whose `type` says the table.
    table: Option<&'static Table>,
    list: &'static str,
    /// The file that is the other way of saying the same.
    rival: Option<&'static str>,
}

const FILES: &[File] = &[
    File { path: "metadata.toml", table: &Metadata::TABLE, into: Into::Part("metadata") },
    File { path: "sandbox.toml", table: &Sandbox::TABLE, into: Into::Part("sandbox") },
    File { path: "runner.toml", table: &Runner::TABLE, into: Into::Part("runner") },
    File { path: "stack.toml", table: &Stack::TABLE, into: Into::Part("stack") },
    File { path: "operation_roles.toml", table: &OperationRoles::TABLE, into: Into::Part("operation_roles") },
    File { path: "installs.toml", table: &InstallsSource::TABLE, into: Into::Part("installs_source") },
    File { path: "customer_managed.toml", table: &CustomerManaged::TABLE, into: Into::Part("customer_managed") },
    File { path: "installer.toml", table: &Installer::TABLE, into: Into::Part("installer") },
    File { path: "branch.toml", table: &Branch::TABLE, into: Into::Element("branches") },
    File {
        path: "inputs.toml",
        table: &INPUTS_FILE,
        into: Into::Lists(&[("group", "input_groups"), ("input", "inputs")]),
    },
    File { path: "secrets.toml", table: &SECRETS_FILE, into: Into::Lists(&[("secret", "secrets")]) },
    File { path: "policies.toml", table: &POLICIES_FILE, into: Into::Lists(&[("policy", "policies")]) },
    File { path: "break_glass.toml", table: &BREAK_GLASS_FILE, into: Into::Lists(&[("role", "break_glass")]) },
    File {
        path: "permissions.toml",
        table: &PERMISSIONS_FILE,
        into: Into::Lists(&[
            ("provision_role", "roles"),
            ("maintenance_role", "roles"),
            ("deprovision_role", "roles"),
            ("custom_roles", "roles"),
            ("roles", "roles"),
            ("named_policies", "named_policies"),
        ]),
    },
    File {
        path: "kubernetes_contexts.toml",
        table: &KUBERNETES_CONTEXTS_FILE,
        into: Into::Lists(&[("kubernetes_context", "kubernetes_contexts")]),
    },
    File { path: "triggers.toml", table: &TRIGGERS_FILE, into: Into::Lists(&[("rules", "triggers")]) },
];

const DIRECTORIES: &[Directory] = &[
    Directory { path: "components", table: None, list: "components", rival: None },
    Directory { path: "actions", table: Some(&Action::TABLE), list: "actions", rival: None },
    Directory { path: "runbooks", table: Some(&Runbook::TABLE), list: "runbooks", rival: None },
    Directory { path: "installs", table: Some(&Install::TABLE), list: "installs", rival: None },
    Directory {
        path: "input_groups",
        table: Some(&InputGroup::TABLE),
        list: "input_groups",
        rival: Some("inputs.toml"),
    },
    Directory { path: "inputs", table: Some(&Input::TABLE), list: "inputs", rival: Some("inputs.toml") },
    Directory { path: "secrets", table: Some(&Secret::TABLE), list: "secrets", rival: Some("secrets.toml") },
    Directory { path: "policies", table: Some(&Policy::TABLE), list: "policies", rival: Some("policies.toml") },
    Directory { path: "permissions", table: Some(&Role::TABLE), list: "roles", rival: Some("permissions.toml") },
    Directory { path: "break_glass", table: Some(&Role::TABLE), list: "break_glass", rival: Some("break_glass.toml") },
    Directory { path: "branches", table: Some(&Branch::TABLE), list: "branches", rival: Some("branch.toml") },
];

/// Files that other programs read.
const NOT_OURS: &[&str] = &["lint.toml"];

/// Lists whose order means something.
pub(crate) const ORDERED: &[&str] = &["inputs", "input_groups", "triggers"];

/// Files that include each other.
const MAX_INCLUDES: usize = 16;

/// The file or directory that says a part of the config.
pub(crate) fn file_of(part: &str) -> &'static str {
    let file = FILES.iter().find(|file| match file.into {
        Into::Part(name) | Into::Element(name) => name == part,
        Into::Lists(lists) => lists.iter().any(|(_, list)| *list == part),
    });
    let directory = || DIRECTORIES.iter().find(|directory| directory.list == part).map(|directory| directory.path);
    directory().or_else(|| file.map(|file| file.path)).unwrap_or("metadata.toml")
}

/// A config in the making.
pub(crate) struct Layout<'a, 'f> {
    findings: &'f mut Findings<'a>,
    parts: Map<String, Value>,
    root: Spot,
    /// A file could not be read, so nobody can say what is missing.
    pub(crate) broken: bool,
}

impl<'a, 'f> Layout<'a, 'f> {
    pub(crate) fn new(findings: &'f mut Findings<'a>) -> Self {
        Layout { findings, parts: Map::new(), root: Spot::default(), broken: false }
    }

    /// Reads all files.
    pub(crate) fn read(mut self) -> (Value, Spot, bool) {
        let tree: &Tree = self.findings.tree;
        let mut paths: Vec<&str> =
            tree.files.keys().map(String::as_str).filter(|path| path.ends_with(".toml")).collect();
        // As a listing of each directory has it, with what is in a directory at the directory's place.
        paths.sort_by(|a, b| a.split('/').cmp(b.split('/')));
        paths.retain(|path| self.is_ours(path));
        if paths.len() > MAX_TOML_FILES {
            let said = error(
                Code::TooManyFiles,
                format!("there are {} TOML files; at most {MAX_TOML_FILES} can be read", paths.len()),
            );
            self.findings.say(said, paths[0], 0..0);
            paths.truncate(MAX_TOML_FILES);
        }
        for path in paths {
            if let Some(file) = FILES.iter().find(|file| file.path == path) {
                self.file(file);
            } else if let Some(directory) = directory_of(path) {
                self.element(directory, path);
            }
        }
        self.rivals();
        self.sort();
        (Value::Object(self.parts), self.root, self.broken)
    }

    /// Whether a TOML file is part of the format; one that nearly is deserves a word.
    fn is_ours(&mut self, path: &str) -> bool {
        if FILES.iter().any(|file| file.path == path) || directory_of(path).is_some() {
            return true;
        }
        let (first, inside) = path.split_once('/').map_or((path, false), |(first, _)| (first, true));
        let known = |known: &'static str| (first != known && !NOT_OURS.contains(&first)).then_some(known);
        let directories = DIRECTORIES.iter().filter_map(|directory| known(directory.path).filter(|_| inside));
        let files = FILES.iter().filter_map(|file| known(file.path).filter(|_| !inside));
        let hint = did_you_mean(first, directories.chain(files));
        if let Some(hint) = hint.filter(|_| !inside || path.matches('/').count() == 1) {
            self.findings.say(
                warning(Code::StrayFile, format!("`{path}` is not part of an app, and is not read")).hint(hint),
                path,
                0..0,
            );
        }
        false
    }

    fn file(&mut self, file: &'static File) {
        let Some((value, spot)) = self.decode(file.path, Some(file.table)) else { return };
        match &file.into {
            Into::Part(part) => self.put(part, value, spot),
            Into::Element(list) => self.push(list, value, spot),
            Into::Lists(lists) => {
                let (Value::Object(mut object), mut spot) = (value, spot) else { return };
                for (key, list) in *lists {
                    let Some(value) = object.remove(*key) else { continue };
                    let at = spot.parts.iter().position(|(part, _)| part == key).map(|at| spot.parts.swap_remove(at).1);
                    self.extend(key, list, value, at.unwrap_or_default());
                }
            }
        }
    }

    fn extend(&mut self, key: &str, list: &'static str, value: Value, spot: Spot) {
        let kind = key.strip_suffix("_role").or_else(|| key.strip_suffix("_roles"));
        let entries: Vec<Decoded> = match value {
            Value::Array(items) => items.into_iter().zip(spot.parts).map(|(item, (_, spot))| (item, spot)).collect(),
            Value::Null => return,
            single => vec![(single, spot)],
        };
        for (mut value, spot) in entries {
            if let (Some(kind), Value::Object(role)) = (kind, &mut value) {
                role.insert("type".into(), kind.into());
            }
            self.push(list, value, spot);
        }
    }

    fn element(&mut self, directory: &'static Directory, path: &str) {
        let Some((value, spot)) = self.decode(path, directory.table) else { return };
        self.push(directory.list, value, spot);
    }

    /// A file and a directory that say the same kind of thing.
    fn rivals(&mut self) {
        for directory in DIRECTORIES {
            let Some(rival) = directory.rival else { continue };
            let files =
                || self.root.parts.iter().flat_map(|(_, list)| &list.parts).map(|(_, thing)| thing.file.as_ref());
            let inside = files().find(|file| directory_of(file).is_some_and(|found| found.path == directory.path));
            if let Some(inside) = inside.filter(|_| files().any(|file| file == rival)) {
                let said = error(
                    Code::BothForms,
                    format!("`{rival}` and the directory `{}` both say the same kind of thing", directory.path),
                );
                let inside = inside.to_owned();
                self.findings.say(said.hint("move everything into one of the two"), &inside, 0..0);
            }
        }
    }

    fn put(&mut self, part: &'static str, value: Value, spot: Spot) {
        self.parts.insert(part.into(), value);
        self.root.parts.push((part.into(), spot));
    }

    fn push(&mut self, list: &'static str, mut value: Value, spot: Spot) {
        if let Value::Object(object) = &mut value {
            match list {
                "policies" => name_policy(object, &spot),
                // Break-glass roles are of no type.
                "break_glass" => {
                    object.remove("type");
                }
                _ => {}
            }
        }
        let values = self.parts.entry(list).or_insert_with(|| Value::Array(Vec::new()));
        if let Value::Array(values) = values {
            values.push(value);
        }
        match self.root.parts.iter_mut().find(|(part, _)| part == list) {
            Some((_, known)) => known.parts.push(("".into(), spot)),
            None => self.root.parts.push((
                list.into(),
                Spot { file: spot.file.clone(), parts: vec![("".into(), spot)], ..Spot::default() },
            )),
        }
    }

    /// Where order means nothing, it is that of names: how things are spread over files makes no difference.
    fn sort(&mut self) {
        for (list, spot) in self.root.parts.iter_mut().filter(|(list, _)| !ORDERED.contains(&list.as_ref())) {
            let Some(Value::Array(values)) = self.parts.get_mut(list.as_ref()) else { continue };
            let mut both: Vec<_> = std::mem::take(values).into_iter().zip(std::mem::take(&mut spot.parts)).collect();
            both.sort_by(|(a, _), (b, _)| name_of(a).cmp(name_of(b)));
            (*values, spot.parts) = both.into_iter().unzip();
        }
    }

    /// The contents of a file; `None` where there are none, or they can't be read.
    fn decode(&mut self, path: &str, table: Option<&'static Table>) -> Option<Decoded> {
        let (mut value, mut spot) = self.decode_one(path, table)?;
        let mut seen = vec![path.to_owned()];
        let mut waiting = includes(&value, &spot);
        while let Some((source, at)) = waiting.pop() {
            let file: Arc<str> = at.file.clone();
            let found = if seen.contains(&source) || seen.len() > MAX_INCLUDES {
                Err(error(Code::IncludeLoop, format!("`{source}` is included already")))
            } else {
                get::local(self.findings, "metadata.toml", &source)
            };
            match found {
                Err(said) => self.findings.say(said, &file, at.span),
                Ok((included, _)) => {
                    seen.push(source);
                    if let Some((more, more_spot)) = self.decode_one(&included, table) {
                        waiting.extend(includes(&more, &more_spot));
                        merge(&mut value, &mut spot, more, more_spot);
                    }
                }
            }
        }
        if let Value::Object(object) = &mut value {
            object.remove("source");
            object.remove("sources");
        }
        Some((value, spot))
    }

    fn decode_one(&mut self, path: &str, table: Option<&'static Table>) -> Option<Decoded> {
        let bytes = self.findings.tree.bytes(path)?;
        let read = match std::str::from_utf8(bytes) {
            _ if bytes.len() > MAX_TOML_BYTES => Err(error(
                Code::FileTooLarge,
                format!("`{path}` has {} bytes; a TOML file has at most {MAX_TOML_BYTES}", bytes.len()),
            )),
            Err(_) => Err(error(Code::NotText, format!("`{path}` is not UTF-8 text"))),
            Ok(text) => self.findings.take(text.len()).map(|()| text),
        };
        let text = match read {
            Ok(text) => text,
            Err(said) => {
                self.broken = true;
                self.findings.say(said, path, 0..0);
                return None;
            }
        };
        let (toml, errors) = DeTable::parse_recoverable(text);
        // The first mistake is one for certain; others may follow from it.
        if let Some(first) = errors.first() {
            self.broken = true;
            let span = first.span().unwrap_or_default();
            self.findings.say(error(Code::TomlSyntax, first.message()), path, span);
            return None;
        }
        self.decode_table(path, &toml, table)
    }

    fn decode_table(&mut self, path: &str, toml: &Spanned<DeTable>, table: Option<&'static Table>) -> Option<Decoded> {
        if toml.get_ref().is_empty() {
            return None;
        }
        if path.contains('/') && !belongs(toml.get_ref(), table) {
            let said = warning(Code::StrayFile, format!("`{path}` has no key that belongs here, and is not read"));
            self.findings.say(
                said.hint("move it to where no part of the app is looked for, such as `src`"),
                path,
                0..0,
            );
            return None;
        }
        let mut decoder = Decoder::new(self.findings, path);
        Some(match table {
            Some(table) => decoder.table(toml.get_ref(), 0..0, table, ""),
            None => decoder.component(toml.get_ref(), 0..0),
        })
    }
}

fn directory_of(path: &str) -> Option<&'static Directory> {
    let (first, _) = path.split_once('/')?;
    DIRECTORIES.iter().find(|directory| directory.path == first)
}

/// Whether a file is meant to be a table: it has one of its keys, with the right kind of value.
fn belongs(toml: &DeTable, table: Option<&'static Table>) -> bool {
    let kinds = COMPONENT_TYPES.iter().filter_map(|kind| component_table(kind));
    let tables: Vec<&'static Table> = table.map_or_else(|| kinds.collect(), |table| vec![table]);
    toml.iter().any(|(key, value)| {
        let known =
            tables.iter().flat_map(|table| fields(table)).filter(|field| field.key.eq_ignore_ascii_case(key.get_ref()));
        known.into_iter().any(|field| field.shape.is_table() == value.get_ref().is_table())
    })
}

pub(crate) fn name_of(value: &Value) -> &str {
    value.get("name").and_then(Value::as_str).unwrap_or_default()
}

/// The files that a table includes.
fn includes(value: &Value, spot: &Spot) -> Vec<(String, Spot)> {
    let one = value.get("source").and_then(Value::as_str).map(|source| (source.to_owned(), spot.part("source")));
    let many = value.get("sources").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str);
    let many = many.map(|source| (source.to_owned(), spot.part("sources")));
    one.into_iter().chain(many).map(|(source, at)| (source, at.unwrap_or(spot).clone())).collect()
}

/// Lays a table under another: its own keys win, lists of the two follow each other.
fn merge(value: &mut Value, spot: &mut Spot, more: Value, mut more_spot: Spot) {
    let (Value::Object(object), Value::Object(more)) = (value, more) else { return };
    for (key, value) in more {
        let at = more_spot.parts.iter().position(|(part, _)| *part == key).map(|at| more_spot.parts.swap_remove(at));
        match object.get_mut(&key) {
            None => {
                object.insert(key, value);
                spot.parts.extend(at);
            }
            Some(Value::Array(known)) => {
                let known_spot = spot.parts.iter_mut().find(|(part, _)| *part == key);
                if let (Value::Array(values), Some((_, known_spot)), Some((_, at))) = (value, known_spot, at) {
                    known.extend(values);
                    known_spot.parts.extend(at.parts);
                }
            }
            Some(_) => {}
        }
    }
}

/// A policy without a name is called after its file, or after that of its contents.
fn name_policy(policy: &mut Map<String, Value>, spot: &Spot) {
    if crate::table::is_set(policy.get("name")) {
        return;
    }
    let contents = spot.part("contents").and_then(|contents| contents.content.as_deref());
    let file = if spot.file.starts_with("policies/") { Some(spot.file.as_ref()) } else { contents };
    if let Some(file) = file {
        let name = file.rsplit('/').next().unwrap_or(file);
        policy.insert("name".into(), name.split('.').next().unwrap_or(name).into());
    }
}
