//! The syntax tree. Every place is a byte offset into the text.

use std::{collections::BTreeMap, sync::Arc};

#[derive(Debug)]
pub(crate) struct Tree {
    pub(crate) body: Vec<Node>,
    pub(crate) defines: BTreeMap<String, Vec<Node>>,
}

#[derive(Debug)]
pub(crate) enum Node {
    Text(String),
    Action(Pipe),
    Branch(Box<Branch>),
    Call(Call),
    Break,
    Continue,
}

/// `if`, `with` and `range`.
#[derive(Debug)]
pub(crate) struct Branch {
    pub(crate) pos: usize,
    pub(crate) kind: Kind,
    pub(crate) pipe: Pipe,
    pub(crate) body: Vec<Node>,
    pub(crate) otherwise: Vec<Node>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    If,
    With,
    Range,
}

impl Kind {
    pub(crate) fn word(self) -> &'static str {
        match self {
            Kind::If => "if",
            Kind::With => "with",
            Kind::Range => "range",
        }
    }
}

/// `template "name" pipeline`, and where a `block` stands.
#[derive(Debug)]
pub(crate) struct Call {
    pub(crate) pos: usize,
    pub(crate) name: String,
    pub(crate) pipe: Option<Pipe>,
}

#[derive(Debug)]
pub(crate) struct Pipe {
    pub(crate) vars: Vec<(usize, String)>,
    /// `=` instead of `:=`.
    pub(crate) assign: bool,
    /// At least one.
    pub(crate) commands: Vec<Command>,
}

#[derive(Debug)]
pub(crate) struct Command {
    /// At least one.
    pub(crate) args: Vec<Expr>,
}

#[derive(Debug)]
pub(crate) struct Expr {
    pub(crate) pos: usize,
    pub(crate) kind: ExprKind,
}

#[derive(Debug)]
pub(crate) enum ExprKind {
    Dot,
    Nil,
    Bool(bool),
    Int(i64),
    Float(f64),
    Str(Arc<str>),
    Variable(String),
    Function(String),
    Pipe(Box<Pipe>),
    /// `base.field.field`; for `.field` the base is the dot.
    Chain(Box<Expr>, Vec<(usize, String)>),
}

impl Expr {
    pub(crate) fn is_constant(&self) -> bool {
        matches!(
            self.kind,
            ExprKind::Dot
                | ExprKind::Nil
                | ExprKind::Bool(_)
                | ExprKind::Int(_)
                | ExprKind::Float(_)
                | ExprKind::Str(_)
        )
    }
}

pub(crate) fn is_blank(nodes: &[Node]) -> bool {
    nodes.iter().all(|node| matches!(node, Node::Text(text) if text.trim().is_empty()))
}
