//! What a policy calls and reads, found in its syntax tree before it runs: functions that there are not would only be missed where
//! a rule comes across them, and functions that call themselves would not end.

use std::collections::{BTreeMap, BTreeSet};

use regorus::unstable::{BUILTINS, Expr, Literal, Module, Parser, Query, Ref, Rule, RuleAssign, RuleHead, Span};

use crate::check::PolicyError;

/// Functions of Rego's that policies do not have: they would let them differ from run to run, or make one value fill the memory.
const UNAVAILABLE: [&str; 5] =
    ["rand.intn", "bits.lsh", "net.cidr_expand", "numbers.range_step", "graph.reachable_paths"];

/// A name and its place.
struct Named<'a> {
    path: String,
    span: &'a Span,
}

/// What one rule mentions.
#[derive(Default)]
struct Mentions<'a> {
    calls: Vec<Named<'a>>,
    /// What `with` puts in the place of something else: a function, perhaps.
    stand_ins: Vec<Named<'a>>,
    /// First names below `data`.
    data: Vec<Named<'a>>,
}

/// Refuses calls of functions that there are not, functions that call themselves, and data that is not there.
pub(crate) fn check(modules: &[Ref<Module>]) -> Result<(), PolicyError> {
    let packages: Vec<String> = modules.iter().map(|module| package(module)).collect();
    let mut functions = BTreeSet::new();
    for (module, package) in modules.iter().zip(&packages) {
        functions
            .extend(module.policy.iter().filter_map(|rule| function(rule)).map(|name| format!("{package}.{name}")));
    }
    let mut graph: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for (module, package) in modules.iter().zip(&packages) {
        let aliases = aliases(module, &packages)?;
        let known = |path: &str| {
            let whole = path.strip_prefix("data.").map_or_else(|| format!("{package}.{path}"), str::to_owned);
            functions.get(&whole).cloned()
        };
        for rule in &module.policy {
            let mut mentions = Mentions::default();
            mentions.rule(rule);
            let edges = function(rule).map(|name| graph.entry(format!("{package}.{name}")).or_default());
            let mut called = Vec::new();
            for call in &mentions.calls {
                match known(&call.path) {
                    Some(function) => called.push(function),
                    None => match aliases.get(first(&call.path)) {
                        // The engine knows values by such a name, and no functions.
                        Some(whole) => return Err(by_whole_name(call, whole)),
                        None => available(call)?,
                    },
                }
            }
            for stand_in in &mentions.stand_ins {
                match known(&stand_in.path) {
                    Some(function) => called.push(function),
                    None if UNAVAILABLE.contains(&stand_in.path.as_str()) => available(stand_in)?,
                    None => {}
                }
            }
            if let Some(edges) = edges {
                edges.extend(called);
            }
            let missing = mentions.data.iter().find(|named| !packages.iter().any(|p| first(p) == named.path));
            if let Some(named) = missing {
                return Err(PolicyError::at(named.span, format!("there is no `data.{}` here", named.path)));
            }
        }
    }
    match circle(&graph) {
        Some(name) => {
            let short = name.rsplit('.').next().unwrap_or(&name);
            let spans = modules.iter().flat_map(|m| &m.policy).filter(|rule| function(rule).as_deref() == Some(short));
            let message = format!("the function `{short}` calls itself");
            Err(spans.map(|rule| PolicyError::at(rule.span(), message.clone())).next().unwrap_or_else(|| PolicyError {
                message: message.clone(),
                line: 1,
                column: 1,
            }))
        }
        None => Ok(()),
    }
}

/// `nuon`, of `package nuon`.
pub(crate) fn package(module: &Module) -> String {
    path(&module.package.refr).unwrap_or_default()
}

/// The name of a rule: `deny`, of all forms of it.
pub(crate) fn rule_name(rule: &Rule) -> Option<String> {
    let mut refr = match rule {
        Rule::Spec { head: RuleHead::Compr { refr, .. }, .. } => refr,
        Rule::Spec { head: RuleHead::Set { refr, .. }, .. } => refr,
        Rule::Spec { head: RuleHead::Func { refr, .. }, .. } => refr,
        Rule::Default { refr, .. } => refr,
    };
    loop {
        match refr.as_ref() {
            Expr::RefBrack { refr: inner, .. } => refr = inner,
            Expr::Var { span, .. } => return Some(span.text().to_owned()),
            _ => return None,
        }
    }
}

fn function(rule: &Rule) -> Option<String> {
    match rule {
        Rule::Spec { head: RuleHead::Func { refr, .. }, .. } => path(refr),
        Rule::Default { refr, args, .. } if !args.is_empty() => path(refr),
        _ => None,
    }
}

fn path(refr: &Ref<Expr>) -> Option<String> {
    let parts = Parser::get_path_ref_components(refr).ok()?;
    Some(parts.iter().map(|span| span.text().trim_matches('"')).collect::<Vec<_>>().join("."))
}

fn first(path: &str) -> &str {
    path.split('.').next().unwrap_or(path)
}

/// What the imports call parts of other packages. There are no packages but those given.
fn aliases(module: &Module, packages: &[String]) -> Result<BTreeMap<String, String>, PolicyError> {
    let mut aliases = BTreeMap::new();
    for import in &module.imports {
        let Some(whole) = path(&import.refr) else { continue };
        let Some(rest) = whole.strip_prefix("data.") else { continue };
        if !packages.iter().any(|package| first(package) == first(rest)) {
            return Err(PolicyError::at(&import.span, format!("there is no `{whole}` here: a policy stands alone")));
        }
        let last = rest.rsplit('.').next().unwrap_or(rest);
        let alias = import.r#as.as_ref().map_or(last, |span| span.text());
        aliases.insert(alias.to_owned(), rest.to_owned());
    }
    Ok(aliases)
}

fn by_whole_name(call: &Named, whole: &str) -> PolicyError {
    let rest = &call.path[first(&call.path).len()..];
    PolicyError::at(call.span, format!("write `data.{whole}{rest}`: a function is called by its whole name"))
}

fn available(call: &Named) -> Result<(), PolicyError> {
    let path = call.path.as_str();
    if path == "print" || BUILTINS.contains_key(path) && !UNAVAILABLE.contains(&path) {
        return Ok(());
    }
    let reason = match first(path) {
        "http" | "net" | "opa" | "rand" | "time" | "uuid" => ": policies have no network, no clock and no randomness",
        _ => "",
    };
    Err(PolicyError::at(call.span, format!("there is no function `{path}`{reason}")))
}

/// A function from which there is a way back to itself.
fn circle(graph: &BTreeMap<String, BTreeSet<String>>) -> Option<String> {
    graph
        .keys()
        .find(|start| {
            let mut seen = BTreeSet::new();
            let mut next: Vec<&String> = graph[*start].iter().collect();
            while let Some(name) = next.pop() {
                if name == *start {
                    return true;
                }
                if seen.insert(name) {
                    next.extend(graph.get(name).into_iter().flatten());
                }
            }
            false
        })
        .cloned()
}

impl<'a> Mentions<'a> {
    fn rule(&mut self, rule: &'a Rule) {
        match rule {
            Rule::Spec { head, bodies, .. } => {
                match head {
                    RuleHead::Compr { refr, assign, .. } => {
                        self.expr(refr);
                        self.assign(assign);
                    }
                    RuleHead::Set { refr, key, .. } => self.exprs([refr].into_iter().chain(key)),
                    RuleHead::Func { refr, args, assign, .. } => {
                        self.exprs([refr].into_iter().chain(args));
                        self.assign(assign);
                    }
                }
                for body in bodies {
                    self.assign(&body.assign);
                    self.query(&body.query);
                }
            }
            Rule::Default { value, args, .. } => self.exprs(args.iter().chain([value])),
        }
    }

    fn assign(&mut self, assign: &'a Option<RuleAssign>) {
        if let Some(assign) = assign {
            self.expr(&assign.value);
        }
    }

    fn query(&mut self, query: &'a Query) {
        for statement in &query.stmts {
            match &statement.literal {
                Literal::SomeVars { .. } => {}
                Literal::SomeIn { key, value, collection, .. } => self.exprs(key.iter().chain([value, collection])),
                Literal::Expr { expr, .. } | Literal::NotExpr { expr, .. } => self.expr(expr),
                Literal::Every { domain, query, .. } => {
                    self.expr(domain);
                    self.query(query);
                }
            }
            for with in &statement.with_mods {
                self.expr(&with.r#as);
                if let Some(path) = path(&with.r#as) {
                    self.stand_ins.push(Named { path, span: &with.span });
                }
            }
        }
    }

    fn exprs(&mut self, exprs: impl IntoIterator<Item = &'a Ref<Expr>>) {
        for expr in exprs {
            self.expr(expr);
        }
    }

    fn expr(&mut self, expr: &'a Expr) {
        match expr {
            Expr::String { .. }
            | Expr::RawString { .. }
            | Expr::Number { .. }
            | Expr::Bool { .. }
            | Expr::Null { .. }
            | Expr::Var { .. } => {}
            Expr::Array { items, .. } | Expr::Set { items, .. } => self.exprs(items),
            Expr::Object { fields, .. } => self.exprs(fields.iter().flat_map(|(_, key, value)| [key, value])),
            Expr::ArrayCompr { term, query, .. } | Expr::SetCompr { term, query, .. } => {
                self.expr(term);
                self.query(query);
            }
            Expr::ObjectCompr { key, value, query, .. } => {
                self.exprs([key, value]);
                self.query(query);
            }
            Expr::Call { span, fcn, params, .. } => {
                if let Some(path) = path(fcn) {
                    self.calls.push(Named { path, span });
                }
                self.exprs(params);
            }
            Expr::UnaryExpr { expr, .. } => self.expr(expr),
            Expr::RefDot { refr, field, .. } => {
                self.below_data(refr, &field.0);
                self.expr(refr);
            }
            Expr::RefBrack { refr, index, .. } => {
                if let Expr::String { span, .. } = index.as_ref() {
                    self.below_data(refr, span);
                }
                self.exprs([refr, index]);
            }
            Expr::BinExpr { lhs, rhs, .. }
            | Expr::BoolExpr { lhs, rhs, .. }
            | Expr::ArithExpr { lhs, rhs, .. }
            | Expr::AssignExpr { lhs, rhs, .. } => self.exprs([lhs, rhs]),
            Expr::Membership { key, value, collection, .. } => self.exprs(key.iter().chain([value, collection])),
        }
    }

    fn below_data(&mut self, refr: &Expr, field: &'a Span) {
        if matches!(refr, Expr::Var { span, .. } if span.text() == "data") {
            self.data.push(Named { path: field.text().trim_matches('"').to_owned(), span: field });
        }
    }
}
