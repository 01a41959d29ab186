//! Rendering: a walk over the syntax tree, with a stack of variables.

use crate::{
    Bounds, Fault, functions,
    out::{Budget, Out, Wrong},
    parse::{Branch, Call, Command, Expr, ExprKind, Kind, Node, Pipe, Tree},
    value::Value,
};

pub(crate) fn render(tree: &Tree, data: &Value, bounds: &Bounds) -> Result<String, Fault> {
    let budget = Budget::new(*bounds);
    let data = budget.check(data.clone()).map_err(|wrong| place(0, wrong))?;
    let mut machine = Machine { tree, out: budget.out(), budget, vars: vec![("$".into(), data.clone())], levels: 0 };
    machine.nodes(&tree.body, &data)?;
    Ok(machine.out.text)
}

struct Machine<'a> {
    tree: &'a Tree,
    out: Out,
    budget: Budget,
    vars: Vec<(String, Value)>,
    levels: usize,
}

#[derive(PartialEq, Eq)]
enum Flow {
    Next,
    Break,
    Continue,
}

fn place(pos: usize, wrong: Wrong) -> Fault {
    Fault { pos, message: wrong.message, hint: wrong.hint }
}

impl Machine<'_> {
    fn enter(&mut self, pos: usize) -> Result<(), Fault> {
        self.levels += 1;
        if self.levels > self.budget.bounds.max_depth_levels {
            let message =
                format!("blocks and templates are nested deeper than {} levels", self.budget.bounds.max_depth_levels);
            return Err(Fault::new(pos, message));
        }
        self.budget.spend(1).map_err(|wrong| place(pos, wrong))
    }

    fn nodes(&mut self, nodes: &[Node], dot: &Value) -> Result<Flow, Fault> {
        for node in nodes {
            match node {
                Node::Text(text) => self.out.push(text).map_err(|wrong| place(0, wrong))?,
                Node::Action(pipe) => self.action(pipe, dot)?,
                Node::Branch(branch) => match self.branch(branch, dot)? {
                    Flow::Next => {}
                    flow => return Ok(flow),
                },
                Node::Call(call) => self.call(call, dot)?,
                Node::Break => return Ok(Flow::Break),
                Node::Continue => return Ok(Flow::Continue),
            }
        }
        Ok(Flow::Next)
    }

    fn action(&mut self, pipe: &Pipe, dot: &Value) -> Result<(), Fault> {
        let value = self.pipe(pipe, dot)?;
        if !pipe.vars.is_empty() {
            return Ok(());
        }
        let pos = pipe.commands[0].args[0].pos;
        let text = match value {
            Value::Nil => "<no value>".into(),
            value => value.text(&mut self.budget).map_err(|wrong| place(pos, wrong))?,
        };
        self.out.push(&text).map_err(|wrong| place(pos, wrong))
    }

    fn branch(&mut self, branch: &Branch, dot: &Value) -> Result<Flow, Fault> {
        self.enter(branch.pos)?;
        let scope = self.vars.len();
        let flow = match branch.kind {
            Kind::Range => self.range(branch, dot),
            kind => {
                let value = self.pipe(&branch.pipe, dot)?;
                match (value.is_true(), kind) {
                    (true, Kind::With) => self.nodes(&branch.body, &value),
                    (true, _) => self.nodes(&branch.body, dot),
                    (false, _) => self.nodes(&branch.otherwise, dot),
                }
            }
        }?;
        self.vars.truncate(scope);
        self.levels -= 1;
        Ok(flow)
    }

    fn range(&mut self, branch: &Branch, dot: &Value) -> Result<Flow, Fault> {
        let pos = branch.pipe.commands[0].args[0].pos;
        let value = self.commands(&branch.pipe, dot)?;
        let rounds: Box<dyn Iterator<Item = (Value, Value)>> = match &value {
            Value::Nil => Box::new(std::iter::empty()),
            Value::List(items, _) => {
                Box::new(items.iter().enumerate().map(|(at, item)| (Value::Int(at as i64), item.clone())))
            }
            Value::Map(entries, _) => {
                Box::new(entries.iter().map(|(key, value)| (Value::Str(key.clone()), value.clone())))
            }
            Value::Int(_) | Value::Int64(_) if branch.pipe.vars.len() == 2 => {
                return Err(Fault::new(pos, "a number gives range one variable, not two"));
            }
            Value::Int(n) => Box::new((0..*n).map(|n| (Value::Int(n), Value::Int(n)))),
            Value::Int64(n) => Box::new((0..*n).map(|n| (Value::Int64(n), Value::Int64(n)))),
            other => {
                return Err(Fault::new(pos, format!("range can't iterate over a {}", other.kind()))
                    .hint("range takes a list, a map or a number"));
            }
        };
        let mut rounds = rounds.peekable();
        if rounds.peek().is_none() {
            return self.nodes(&branch.otherwise, dot);
        }
        let scope = self.vars.len();
        for (key, item) in rounds {
            self.budget.spend(1).map_err(|wrong| place(pos, wrong))?;
            self.bind(&branch.pipe, key, &item);
            let flow = self.nodes(&branch.body, &item)?;
            self.vars.truncate(scope);
            if flow == Flow::Break {
                break;
            }
        }
        Ok(Flow::Next)
    }

    /// One variable takes the element; of two, the first takes the key.
    fn bind(&mut self, pipe: &Pipe, key: Value, item: &Value) {
        let values = if pipe.vars.len() == 2 { vec![key, item.clone()] } else { vec![item.clone()] };
        for ((_, name), value) in pipe.vars.iter().zip(values) {
            self.set(pipe.assign, name, value);
        }
    }

    fn set(&mut self, assign: bool, name: &str, value: Value) {
        match self.vars.iter_mut().rev().find(|(known, _)| assign && known == name) {
            Some((_, old)) => *old = value,
            None => self.vars.push((name.into(), value)),
        }
    }

    fn call(&mut self, call: &Call, dot: &Value) -> Result<(), Fault> {
        self.enter(call.pos)?;
        let Some(body) = self.tree.defines.get(&call.name) else {
            let fault = Fault::new(call.pos, format!("template {:?} not defined", call.name));
            return Err(match crate::nearest(&call.name, self.tree.defines.keys().map(String::as_str)) {
                Some(near) => fault.hint(format!("did you mean {near:?}?")),
                None => fault,
            });
        };
        let dot = match &call.pipe {
            Some(pipe) => self.pipe(pipe, dot)?,
            None => Value::Nil,
        };
        let outer = std::mem::replace(&mut self.vars, vec![("$".into(), dot.clone())]);
        self.nodes(body, &dot)?;
        self.vars = outer;
        self.levels -= 1;
        Ok(())
    }

    fn pipe(&mut self, pipe: &Pipe, dot: &Value) -> Result<Value, Fault> {
        let value = self.commands(pipe, dot)?;
        for (_, name) in &pipe.vars {
            self.set(pipe.assign, name, value.clone());
        }
        Ok(value)
    }

    fn commands(&mut self, pipe: &Pipe, dot: &Value) -> Result<Value, Fault> {
        self.enter(pipe.commands[0].args[0].pos)?;
        let mut last = None;
        for command in &pipe.commands {
            last = Some(self.command(command, last, dot)?);
        }
        self.levels -= 1;
        Ok(last.unwrap_or(Value::Nil))
    }

    fn command(&mut self, command: &Command, last: Option<Value>, dot: &Value) -> Result<Value, Fault> {
        let first = &command.args[0];
        let arguments = &command.args[1..];
        match &first.kind {
            ExprKind::Function(name) => self.function(first.pos, name, arguments, last, dot),
            ExprKind::Chain(base, fields) => match &base.kind {
                ExprKind::Function(name) => {
                    let value = self.function(base.pos, name, arguments, last, dot)?;
                    fields_of(value, fields)
                }
                _ => self.alone(first, arguments, &last).and_then(|()| self.value(first, dot)),
            },
            ExprKind::Nil => Err(Fault::new(first.pos, "nil is not a command")),
            _ => self.alone(first, arguments, &last).and_then(|()| self.value(first, dot)),
        }
    }

    fn alone(&self, first: &Expr, arguments: &[Expr], last: &Option<Value>) -> Result<(), Fault> {
        match (arguments, last) {
            ([], None) => Ok(()),
            _ => Err(Fault::new(first.pos, "can't give argument to non-function")
                .hint("only a function takes arguments; it stands first")),
        }
    }

    fn function(
        &mut self,
        pos: usize,
        name: &str,
        arguments: &[Expr],
        last: Option<Value>,
        dot: &Value,
    ) -> Result<Value, Fault> {
        self.budget.spend(1).map_err(|wrong| place(pos, wrong))?;
        let mut values = Vec::with_capacity(arguments.len() + 1);
        // `and` and `or` look at no more arguments than they need.
        let decided = |value: &Value| (name == "or" && value.is_true()) || (name == "and" && !value.is_true());
        for argument in arguments {
            let value = self.value(argument, dot)?;
            if decided(&value) {
                return Ok(value);
            }
            values.push(value);
        }
        values.extend(last);
        let result = functions::call(name, &values, &mut self.budget).map_err(|wrong| place(pos, wrong))?;
        if functions::changes_its_map(name)
            && let Some(ExprKind::Variable(variable)) = arguments.first().map(|argument| &argument.kind)
        {
            self.set(true, variable, result.clone());
        }
        Ok(result)
    }

    fn value(&mut self, expr: &Expr, dot: &Value) -> Result<Value, Fault> {
        Ok(match &expr.kind {
            ExprKind::Dot => dot.clone(),
            ExprKind::Nil => Value::Nil,
            ExprKind::Bool(b) => Value::Bool(*b),
            ExprKind::Int(n) => Value::Int(*n),
            ExprKind::Float(n) => Value::Float(*n),
            ExprKind::Str(text) => Value::Str(text.clone()),
            ExprKind::Variable(name) => match self.vars.iter().rev().find(|(known, _)| known == name) {
                Some((_, value)) => value.clone(),
                None => return Err(Fault::new(expr.pos, format!("undefined variable \"{name}\""))),
            },
            ExprKind::Function(name) => self.function(expr.pos, name, &[], None, dot)?,
            ExprKind::Pipe(pipe) => self.pipe(pipe, dot)?,
            ExprKind::Chain(base, fields) => {
                let base = self.value(base, dot)?;
                return fields_of(base, fields);
            }
        })
    }
}

fn fields_of(mut value: Value, fields: &[(usize, String)]) -> Result<Value, Fault> {
    for (pos, name) in fields {
        value = match &value {
            Value::Map(entries, _) => match entries.get(name.as_str()) {
                Some(value) => value.clone(),
                None => return Err(missing(*pos, name, entries.keys().map(AsRef::as_ref))),
            },
            Value::Nil => {
                return Err(Fault::new(*pos, format!("nil has no field \"{name}\""))
                    .hint("what stands before it is not there (yet)"));
            }
            other => return Err(Fault::new(*pos, format!("can't evaluate field \"{name}\" in a {}", other.kind()))),
        };
    }
    Ok(value)
}

fn missing<'a>(pos: usize, name: &str, keys: impl Iterator<Item = &'a str>) -> Fault {
    let fault = Fault::new(pos, format!("map has no entry for key \"{name}\""));
    match crate::nearest(name, keys) {
        Some(near) => fault.hint(format!("did you mean `{near}`?")),
        None => fault,
    }
}
