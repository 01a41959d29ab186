//! The contexts file.

use serde_json::json;

use crate::args::{ContextsCommand, Global};
use crate::context::{self, Context, Contexts};
use crate::error::{CliError, Result};
use crate::output::{Output, cell, dim, strong};

pub(super) fn run(global: &Global, out: &Output, command: ContextsCommand) -> Result<u8> {
    let contexts = context::load()?;
    match command {
        ContextsCommand::List => list(&contexts, out),
        ContextsCommand::Show { name } => {
            let name = name.or_else(|| global.context.clone()).or_else(|| contexts.current.clone());
            let name = name.ok_or_else(|| {
                CliError::usage("there is no current context").hint("create one with `ferry auth login` or `ferry dev`")
            })?;
            show(&contexts, out, &name)
        }
        ContextsCommand::Use { name } => {
            find(&contexts, &name)?;
            context::update(&context::config_path()?, |contexts| contexts.current = Some(name.clone()))?;
            done(out, &name, &format!("`{name}` is the current context"))
        }
        ContextsCommand::Remove { name } => {
            find(&contexts, &name)?;
            context::update(&context::config_path()?, |contexts| {
                contexts.contexts.remove(&name);
                if contexts.current.as_ref() == Some(&name) {
                    contexts.current = None;
                }
            })?;
            done(out, &name, &format!("context `{name}` is removed"))
        }
    }
}

fn done(out: &Output, name: &str, text: &str) -> Result<u8> {
    if out.json {
        out.json(&json!({ "context": name }))?;
    } else {
        out.success(text);
    }
    Ok(0)
}

fn find<'a>(contexts: &'a Contexts, name: &str) -> Result<&'a Context> {
    contexts.contexts.get(name).ok_or_else(|| context::unknown_context(name, contexts))
}

fn list(contexts: &Contexts, out: &Output) -> Result<u8> {
    let all: Vec<_> = contexts.contexts.iter().map(|(name, context)| view(contexts, name, context)).collect();
    out.list(
        &all,
        "no contexts yet; create one with `ferry auth login` or `ferry dev`",
        &["", "NAME", "URL", "ORG"],
        |c| {
            let text = |key: &str| c[key].as_str().unwrap_or("-").to_owned();
            let mark = if c["current"] == true { "*" } else { "" };
            vec![cell(mark), strong(text("name")), cell(text("url")), dim(text("org"))]
        },
    )?;
    Ok(0)
}

fn show(contexts: &Contexts, out: &Output, name: &str) -> Result<u8> {
    let context = find(contexts, name)?;
    if out.json {
        out.json(&view(contexts, name, context))?;
        return Ok(0);
    }
    out.pairs(vec![
        ("name", strong(name)),
        ("url", cell(&context.url)),
        ("org", cell(context.org.as_deref().unwrap_or("-"))),
        (
            "token",
            cell(if context.token.is_some() { "stored (not shown)" } else { "none; sign in with `ferry auth login`" }),
        ),
        ("file", cell(context::config_path()?.display())),
    ])?;
    Ok(0)
}

/// A context without its token.
fn view(contexts: &Contexts, name: &str, context: &Context) -> serde_json::Value {
    json!({
        "name": name,
        "current": contexts.current.as_deref() == Some(name),
        "url": context.url,
        "org": context.org,
        "signed_in": context.token.is_some(),
    })
}
