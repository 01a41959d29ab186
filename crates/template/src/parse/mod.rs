//! From text to a syntax tree, with the rules of Go's `text/template`: what it rejects is rejected here, at the same place.

mod lex;
mod tree;

use std::collections::BTreeMap;

use crate::{Fault, functions};
pub(crate) use lex::integer;
use lex::{Lexer, Token};
pub(crate) use tree::*;

/// How deep blocks and parentheses may be nested.
const MAX_NESTING_LEVELS: usize = 100;

/// How many variables may be known at one place.
const MAX_VARIABLES: usize = 1000;

pub(crate) fn parse(text: &str) -> Result<Tree, Fault> {
    let mut parser = Parser {
        lexer: Lexer::new(text),
        peeked: Vec::new(),
        defines: BTreeMap::new(),
        vars: vec!["$".into()],
        ranges: 0,
        levels: 0,
    };
    let (body, end) = parser.list(true)?;
    match end {
        Ending::Eof => Ok(Tree { body, defines: parser.defines }),
        Ending::End(pos) => {
            Err(Fault::new(pos, "unexpected {{end}}").hint("there is no open if, with, range, define or block here"))
        }
        Ending::Else(pos) => {
            Err(Fault::new(pos, "unexpected {{else}}").hint("there is no open if, with or range here"))
        }
    }
}

/// What ended a list of nodes.
enum Ending {
    Eof,
    End(usize),
    Else(usize),
}

struct Parser<'a> {
    lexer: Lexer<'a>,
    peeked: Vec<(usize, Token)>,
    defines: BTreeMap<String, Vec<Node>>,
    vars: Vec<String>,
    /// Open ranges around the current place: `break` needs one.
    ranges: usize,
    levels: usize,
}

impl Parser<'_> {
    fn next(&mut self) -> Result<(usize, Token), Fault> {
        match self.peeked.pop() {
            Some(token) => Ok(token),
            None => self.lexer.token(),
        }
    }

    fn back(&mut self, token: (usize, Token)) {
        self.peeked.push(token);
    }

    fn next_word(&mut self) -> Result<(usize, Token), Fault> {
        loop {
            let token = self.next()?;
            if token.1 != Token::Space {
                return Ok(token);
            }
        }
    }

    fn enter(&mut self, pos: usize) -> Result<(), Fault> {
        self.levels += 1;
        if self.levels > MAX_NESTING_LEVELS {
            return Err(Fault::new(pos, format!("nested deeper than {MAX_NESTING_LEVELS} levels")));
        }
        Ok(())
    }

    fn list(&mut self, top: bool) -> Result<(Vec<Node>, Ending), Fault> {
        let mut nodes = Vec::new();
        loop {
            let (pos, token) = self.next()?;
            match token {
                Token::Eof => return Ok((nodes, Ending::Eof)),
                Token::Text(text) => nodes.push(Node::Text(text)),
                Token::Open => match self.action(top)? {
                    Action::Node(node) => nodes.push(node),
                    Action::Nothing => {}
                    Action::Ending(ending) => return Ok((nodes, ending)),
                },
                other => return Err(Fault::new(pos, format!("unexpected {other}"))),
            }
        }
    }

    /// What stands between two delimiters; the opening one is read.
    fn action(&mut self, top: bool) -> Result<Action, Fault> {
        let (pos, token) = self.next_word()?;
        let Token::Keyword(word) = token else {
            self.back((pos, token));
            let pipe = self.pipeline(pos, "command", false, Token::Close)?;
            return Ok(Action::Node(Node::Action(pipe)));
        };
        Ok(match word {
            "end" => {
                self.close("end")?;
                Action::Ending(Ending::End(pos))
            }
            // The rest of it, up to the delimiter, is read by whoever waits for it.
            "else" => Action::Ending(Ending::Else(pos)),
            "if" => Action::Node(self.branch(pos, Kind::If)?),
            "with" => Action::Node(self.branch(pos, Kind::With)?),
            "range" => Action::Node(self.branch(pos, Kind::Range)?),
            "template" => Action::Node(self.call(pos)?),
            "block" => Action::Node(self.block(pos)?),
            "define" if top => {
                self.define(pos)?;
                Action::Nothing
            }
            "define" => {
                return Err(Fault::new(pos, "unexpected {{define}}")
                    .hint("a template is defined at the top level, outside of blocks"));
            }
            "break" | "continue" if self.ranges == 0 => {
                return Err(Fault::new(pos, format!("{{{{{word}}}}} outside {{{{range}}}}")));
            }
            "break" => {
                self.close("break")?;
                Action::Node(Node::Break)
            }
            "continue" => {
                self.close("continue")?;
                Action::Node(Node::Continue)
            }
            _ => {
                self.back((pos, Token::Keyword(word)));
                let pipe = self.pipeline(pos, "command", false, Token::Close)?;
                Action::Node(Node::Action(pipe))
            }
        })
    }

    fn close(&mut self, context: &str) -> Result<(), Fault> {
        match self.next_word()? {
            (_, Token::Close) => Ok(()),
            (pos, token) => Err(Fault::new(pos, format!("unexpected {token} in {context}"))),
        }
    }

    fn branch(&mut self, pos: usize, kind: Kind) -> Result<Node, Fault> {
        self.enter(pos)?;
        let scope = self.vars.len();
        let pipe = self.pipeline(pos, kind.word(), kind == Kind::Range, Token::Close)?;
        let inner = self.vars.len();
        self.ranges += usize::from(kind == Kind::Range);
        let (body, mut ending) = self.list(false)?;
        self.ranges -= usize::from(kind == Kind::Range);
        self.vars.truncate(inner);
        let mut otherwise = Vec::new();
        if let Ending::Else(at) = ending {
            (otherwise, ending) = self.otherwise(at, kind)?;
        }
        self.vars.truncate(scope);
        self.levels -= 1;
        match ending {
            Ending::End(_) => Ok(Node::Branch(Box::new(Branch { pos, kind, pipe, body, otherwise }))),
            Ending::Else(at) => Err(Fault::new(at, "expected end; found {{else}}")),
            Ending::Eof => {
                Err(Fault::new(pos, format!("{{{{{}}}}} is never closed", kind.word())).hint("add `{{ end }}`"))
            }
        }
    }

    /// After `else`: nothing more, or another `if` or `with` whose `end` is ours too.
    fn otherwise(&mut self, at: usize, kind: Kind) -> Result<(Vec<Node>, Ending), Fault> {
        match self.next_word()? {
            (_, Token::Close) => self.list(false),
            (pos, Token::Keyword("if")) if kind == Kind::If => {
                Ok((vec![self.branch(pos, Kind::If)?], Ending::End(pos)))
            }
            (pos, Token::Keyword("with")) if kind == Kind::With => {
                Ok((vec![self.branch(pos, Kind::With)?], Ending::End(pos)))
            }
            (pos, token) => Err(Fault::new(pos.max(at), format!("unexpected {token} after else"))),
        }
    }

    fn name(&mut self, context: &str) -> Result<String, Fault> {
        match self.next_word()? {
            (_, Token::Str(name)) => Ok(name),
            (pos, token) => {
                Err(Fault::new(pos, format!("unexpected {token} in {context}")).hint("a name in quotes is expected"))
            }
        }
    }

    fn call(&mut self, pos: usize) -> Result<Node, Fault> {
        let name = self.name("template clause")?;
        let pipe = match self.next_word()? {
            (_, Token::Close) => None,
            token => {
                self.back(token);
                Some(self.pipeline(pos, "template clause", false, Token::Close)?)
            }
        };
        Ok(Node::Call(Call { pos, name, pipe }))
    }

    fn block(&mut self, pos: usize) -> Result<Node, Fault> {
        let name = self.name("block clause")?;
        let pipe = self.pipeline(pos, "block clause", false, Token::Close)?;
        self.definition(pos, name.clone())?;
        Ok(Node::Call(Call { pos, name, pipe: Some(pipe) }))
    }

    fn define(&mut self, pos: usize) -> Result<(), Fault> {
        let name = self.name("define clause")?;
        self.close("define clause")?;
        self.definition(pos, name)
    }

    fn definition(&mut self, pos: usize, name: String) -> Result<(), Fault> {
        self.enter(pos)?;
        let outer = std::mem::replace(&mut self.vars, vec!["$".into()]);
        let ranges = std::mem::take(&mut self.ranges);
        let (body, ending) = self.list(false)?;
        self.vars = outer;
        self.ranges = ranges;
        self.levels -= 1;
        match ending {
            Ending::End(_) => {}
            Ending::Else(at) => return Err(Fault::new(at, "unexpected {{else}} in define clause")),
            Ending::Eof => {
                return Err(
                    Fault::new(pos, format!("the definition of {name:?} is never closed")).hint("add `{{ end }}`")
                );
            }
        }
        if is_blank(&body) && self.defines.contains_key(&name) {
            return Ok(());
        }
        if self.defines.get(&name).is_some_and(|old| !is_blank(old)) {
            return Err(Fault::new(pos, format!("multiple definition of template {name:?}")));
        }
        self.defines.insert(name, body);
        Ok(())
    }

    /// A pipeline up to and with `end`. `pos` is where its action begins.
    fn pipeline(&mut self, pos: usize, context: &str, range: bool, end: Token) -> Result<Pipe, Fault> {
        let mut pipe = Pipe { vars: Vec::new(), assign: false, commands: Vec::new() };
        self.declarations(&mut pipe, context, range)?;
        // Variables come into being after the pipeline that gives their value.
        loop {
            let token = self.next_word()?;
            if token.1 == end {
                break;
            }
            match token.1 {
                Token::Pipe if !pipe.commands.is_empty() => {}
                Token::Pipe | Token::Close | Token::RightParen | Token::Eof => {
                    return Err(Fault::new(token.0, format!("unexpected {} in {context}", token.1)));
                }
                _ => self.back(token),
            }
            let stage = pipe.commands.len() + 1;
            let command = self.command(&end)?;
            if stage > 1 && command.args[0].is_constant() {
                return Err(Fault::new(
                    command.args[0].pos,
                    format!("non executable command in pipeline stage {stage}"),
                )
                .hint("after `|` comes a function: `value | function`"));
            }
            pipe.commands.push(command);
        }
        if pipe.commands.is_empty() {
            return Err(Fault::new(pos, format!("missing value for {context}")));
        }
        if self.vars.len() > MAX_VARIABLES {
            return Err(Fault::new(pos, format!("more than {MAX_VARIABLES} variables at one place")));
        }
        if !pipe.assign {
            self.vars.extend(pipe.vars.iter().map(|(_, name)| name.clone()));
        }
        Ok(pipe)
    }

    fn declarations(&mut self, pipe: &mut Pipe, context: &str, range: bool) -> Result<(), Fault> {
        loop {
            let first = self.next_word()?;
            let Token::Variable(name) = &first.1 else {
                self.back(first);
                return Ok(());
            };
            let after = self.next()?;
            let sign = match after.1 {
                Token::Space => self.next_word()?,
                _ => after.clone(),
            };
            match sign.1 {
                Token::Declare | Token::Assign => {
                    pipe.vars.push((first.0, name.clone()));
                    pipe.assign = sign.1 == Token::Assign;
                    return self.check_assigned(pipe);
                }
                Token::Comma if range && pipe.vars.is_empty() => pipe.vars.push((first.0, name.clone())),
                Token::Comma => return Err(Fault::new(sign.0, format!("too many declarations in {context}"))),
                _ if !pipe.vars.is_empty() => return Err(Fault::new(sign.0, "range can only initialize variables")),
                _ => {
                    self.back(sign);
                    if after.1 == Token::Space {
                        self.back(after);
                    }
                    self.back(first);
                    return Ok(());
                }
            }
        }
    }

    fn check_assigned(&self, pipe: &Pipe) -> Result<(), Fault> {
        for (pos, name) in pipe.vars.iter().filter(|_| pipe.assign) {
            self.check_variable(*pos, name)?;
        }
        Ok(())
    }

    fn check_variable(&self, pos: usize, name: &str) -> Result<(), Fault> {
        if self.vars.iter().any(|known| known == name) {
            return Ok(());
        }
        let fault = Fault::new(pos, format!("undefined variable \"{name}\""));
        Err(match crate::nearest(name, self.vars.iter().map(String::as_str)) {
            Some(near) => fault.hint(format!("did you mean `{near}`?")),
            None => fault.hint("a variable lives until the `end` of the block that declares it"),
        })
    }

    fn command(&mut self, end: &Token) -> Result<Command, Fault> {
        let mut args = Vec::new();
        loop {
            let token = self.next_word()?;
            let start = token.0;
            self.back(token);
            if let Some(operand) = self.operand()? {
                args.push(operand);
            }
            let token = self.next()?;
            match &token.1 {
                Token::Space => continue,
                Token::Pipe if !args.is_empty() => self.back(token),
                other if other == end && !args.is_empty() => self.back(token),
                Token::Close | Token::RightParen | Token::Pipe if args.is_empty() => {
                    return Err(Fault::new(start, "missing value for command"));
                }
                other => {
                    return Err(Fault::new(token.0, format!("unexpected {other} in operand"))
                        .hint("arguments are separated by blanks"));
                }
            }
            return Ok(Command { args });
        }
    }

    fn operand(&mut self) -> Result<Option<Expr>, Fault> {
        let Some(base) = self.term()? else { return Ok(None) };
        let mut fields = Vec::new();
        loop {
            match self.next()? {
                (pos, Token::Field(name)) => fields.push((pos, name)),
                token => {
                    self.back(token);
                    break;
                }
            }
        }
        let Some((at, _)) = fields.first() else { return Ok(Some(base)) };
        if base.is_constant() && !matches!(base.kind, ExprKind::Dot) {
            return Err(Fault::new(*at, "unexpected . after term").hint("a constant has no fields"));
        }
        Ok(Some(Expr { pos: base.pos, kind: ExprKind::Chain(Box::new(base), fields) }))
    }

    fn term(&mut self) -> Result<Option<Expr>, Fault> {
        let (pos, token) = self.next_word()?;
        let kind = match token {
            Token::Dot => match self.next()? {
                (at, Token::Field(_)) => return Err(Fault::new(at, "unexpected . after term \".\"")),
                token => {
                    self.back(token);
                    ExprKind::Dot
                }
            },
            // A leading field belongs to the dot.
            Token::Field(name) => {
                self.back((pos, Token::Field(name)));
                ExprKind::Dot
            }
            Token::Keyword("nil") => ExprKind::Nil,
            Token::Keyword("true") => ExprKind::Bool(true),
            Token::Keyword("false") => ExprKind::Bool(false),
            Token::Str(text) => ExprKind::Str(text.into()),
            Token::Int(n) => ExprKind::Int(n),
            Token::Float(n) => ExprKind::Float(n),
            Token::Variable(name) => {
                self.check_variable(pos, &name)?;
                ExprKind::Variable(name)
            }
            Token::Word(name) => {
                functions::check_name(pos, &name)?;
                ExprKind::Function(name)
            }
            Token::LeftParen => {
                self.enter(pos)?;
                let pipe = self.pipeline(pos, "parenthesized pipeline", false, Token::RightParen)?;
                self.levels -= 1;
                ExprKind::Pipe(Box::new(pipe))
            }
            token => {
                self.back((pos, token));
                return Ok(None);
            }
        };
        Ok(Some(Expr { pos, kind }))
    }
}

enum Action {
    Node(Node),
    Ending(Ending),
    /// A definition: it is kept apart.
    Nothing,
}
