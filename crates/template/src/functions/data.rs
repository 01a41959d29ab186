//! Defaults, maps, lists, JSON and kinds.

use std::sync::Arc;

use super::{MANY, Row, boolean, expected, int, list, map, number::to_int, text};
use crate::{
    out::{Budget, Wrong},
    value::{Json, Map, Value},
};

pub(super) const TABLE: &[Row] = &[
    ("default", 1, MANY, |args, _| Ok(args.get(1).filter(|given| given.is_true()).unwrap_or(&args[0]).clone())),
    ("coalesce", 0, MANY, |args, _| Ok(args.iter().find(|value| value.is_true()).cloned().unwrap_or(Value::Nil))),
    ("ternary", 3, 3, |args, _| Ok(if boolean(&args[2])? { args[0].clone() } else { args[1].clone() })),
    ("empty", 1, 1, |args, _| Ok(Value::Bool(!args[0].is_true()))),
    ("all", 0, MANY, |args, _| Ok(Value::Bool(args.iter().all(Value::is_true)))),
    ("any", 0, MANY, |args, _| Ok(Value::Bool(args.iter().any(Value::is_true)))),
    ("fail", 1, 1, |args, _| Err(text(&args[0])?.to_string().into())),
    ("dict", 0, MANY, dict),
    ("get", 2, 2, |args, _| Ok(map(&args[0])?.get(text(&args[1])?).cloned().unwrap_or_else(|| Value::str("")))),
    ("set", 3, 3, set),
    ("unset", 2, 2, unset),
    ("hasKey", 2, 2, |args, _| Ok(Value::Bool(map(&args[0])?.contains_key(text(&args[1])?)))),
    ("keys", 0, MANY, keys),
    ("values", 1, 1, |args, budget| budget.list(map(&args[0])?.values().cloned().collect())),
    ("pluck", 1, MANY, pluck),
    ("pick", 1, MANY, |args, budget| chosen(args, budget, true)),
    ("omit", 1, MANY, |args, budget| chosen(args, budget, false)),
    ("merge", 1, MANY, |args, budget| merge(args, budget, false)),
    ("mergeOverwrite", 1, MANY, |args, budget| merge(args, budget, true)),
    ("deepCopy", 1, 1, |args, _| Ok(args[0].clone())),
    ("dig", 3, MANY, dig),
    ("list", 0, MANY, |args, budget| budget.list(args.to_vec())),
    ("tuple", 0, MANY, |args, budget| budget.list(args.to_vec())),
    ("append", 2, 2, append),
    ("push", 2, 2, append),
    ("prepend", 2, 2, prepend),
    ("concat", 0, MANY, concat),
    ("first", 1, 1, |args, _| Ok(list(&args[0])?.first().cloned().unwrap_or(Value::Nil))),
    ("last", 1, 1, |args, _| Ok(list(&args[0])?.last().cloned().unwrap_or(Value::Nil))),
    ("rest", 1, 1, |args, budget| part(&args[0], budget, |items| items.get(1..))),
    ("initial", 1, 1, |args, budget| part(&args[0], budget, |items| items.split_last().map(|(_, rest)| rest))),
    ("reverse", 1, 1, |args, budget| budget.list(list(&args[0])?.iter().rev().cloned().collect())),
    ("has", 2, 2, |args, budget| {
        Ok(Value::Bool(!matches!(args[1], Value::Nil) && contains(list(&args[1])?, &args[0], budget)?))
    }),
    ("uniq", 1, 1, uniq),
    ("without", 1, MANY, without),
    ("compact", 1, 1, |args, budget| {
        budget.list(list(&args[0])?.iter().filter(|item| item.is_true()).cloned().collect())
    }),
    ("slice", 1, MANY, slice),
    ("chunk", 2, 2, chunk),
    ("toJson", 1, 1, |args, budget| Ok(Value::str(args[0].json(Json::Escaped, budget)?))),
    ("toRawJson", 1, 1, |args, budget| Ok(Value::str(args[0].json(Json::Plain, budget)?))),
    ("toPrettyJson", 1, 1, |args, budget| Ok(Value::str(args[0].json(Json::Pretty, budget)?))),
    ("fromJson", 1, 1, from_json),
    ("kindOf", 1, 1, |args, _| Ok(Value::str(args[0].kind()))),
    ("kindIs", 2, 2, |args, _| Ok(Value::Bool(&**text(&args[0])? == args[1].kind()))),
    ("typeOf", 1, 1, |args, _| Ok(Value::str(args[0].type_name()))),
    ("typeIs", 2, 2, |args, _| Ok(Value::Bool(&**text(&args[0])? == args[1].type_name()))),
    ("typeIsLike", 2, 2, |args, _| Ok(Value::Bool(text(&args[0])?.trim_start_matches('*') == args[1].type_name()))),
    ("deepEqual", 2, 2, |args, budget| Ok(Value::Bool(args[0].same(&args[1], budget)?))),
];

fn dict(args: &[Value], budget: &mut Budget) -> Result<Value, Wrong> {
    let mut entries = Map::new();
    for pair in args.chunks(2) {
        entries.insert(pair[0].text(budget)?, pair.get(1).cloned().unwrap_or_else(|| Value::str("")));
    }
    finish(entries, budget)
}

fn finish(entries: Map, budget: &mut Budget) -> Result<Value, Wrong> {
    budget.spend(entries.len())?;
    budget.check(Value::map(entries))
}

fn set(args: &[Value], budget: &mut Budget) -> Result<Value, Wrong> {
    let mut entries = Map::clone(map(&args[0])?);
    entries.insert(text(&args[1])?.clone(), args[2].clone());
    finish(entries, budget)
}

fn unset(args: &[Value], budget: &mut Budget) -> Result<Value, Wrong> {
    let mut entries = Map::clone(map(&args[0])?);
    entries.remove(text(&args[1])?);
    finish(entries, budget)
}

fn keys(args: &[Value], budget: &mut Budget) -> Result<Value, Wrong> {
    let mut keys = Vec::new();
    for arg in args {
        keys.extend(map(arg)?.keys().cloned().map(Value::Str));
    }
    budget.list(keys)
}

fn pluck(args: &[Value], budget: &mut Budget) -> Result<Value, Wrong> {
    let key = text(&args[0])?;
    let mut found = Vec::new();
    for arg in &args[1..] {
        found.extend(map(arg)?.get(key).cloned());
    }
    budget.list(found)
}

/// `pick` keeps the named entries, `omit` all others.
fn chosen(args: &[Value], budget: &mut Budget, keep: bool) -> Result<Value, Wrong> {
    let names = args[1..].iter().map(text).collect::<Result<Vec<&Arc<str>>, Wrong>>()?;
    budget.spend(names.len().saturating_mul(map(&args[0])?.len()))?;
    let entries = map(&args[0])?.iter().filter(|(key, _)| names.contains(key) == keep);
    finish(entries.map(|(key, value)| (key.clone(), value.clone())).collect(), budget)
}

fn merge(args: &[Value], budget: &mut Budget, overwrite: bool) -> Result<Value, Wrong> {
    let mut merged = args[0].clone();
    for source in &args[1..] {
        merged = merged_with(&merged, source, budget, overwrite)?;
    }
    map(&merged)?;
    Ok(merged)
}

/// Without `overwrite` only what is missing or empty is filled in.
fn merged_with(base: &Value, source: &Value, budget: &mut Budget, overwrite: bool) -> Result<Value, Wrong> {
    let mut entries = Map::clone(map(base)?);
    for (key, value) in map(source)?.iter() {
        budget.spend(1)?;
        let merged = match (entries.get(key), value) {
            (Some(old @ Value::Map(..)), Value::Map(..)) => merged_with(old, value, budget, overwrite)?,
            (Some(old), _) if old.is_true() && !overwrite => old.clone(),
            (None, Value::Nil) if !overwrite => continue,
            (_, value) => value.clone(),
        };
        entries.insert(key.clone(), merged);
    }
    finish(entries, budget)
}

fn dig(args: &[Value], _: &mut Budget) -> Result<Value, Wrong> {
    let [keys @ .., default, start] = args else { return Err("needs at least three arguments".into()) };
    let mut value = start.clone();
    for key in keys {
        let entries = match &value {
            Value::Map(entries, _) => entries,
            other => return Err(expected("map", other)),
        };
        value = match entries.get(text(key)?) {
            Some(value) => value.clone(),
            None => return Ok(default.clone()),
        };
    }
    Ok(value)
}

fn append(args: &[Value], budget: &mut Budget) -> Result<Value, Wrong> {
    let mut items = Vec::clone(list(&args[0])?);
    items.push(args[1].clone());
    budget.list(items)
}

fn prepend(args: &[Value], budget: &mut Budget) -> Result<Value, Wrong> {
    let mut items = vec![args[1].clone()];
    items.extend(list(&args[0])?.iter().cloned());
    budget.list(items)
}

fn concat(args: &[Value], budget: &mut Budget) -> Result<Value, Wrong> {
    let mut items = Vec::new();
    for arg in args {
        budget.spend(list(arg)?.len())?;
        items.extend(list(arg)?.iter().cloned());
    }
    budget.list(items)
}

fn part(value: &Value, budget: &mut Budget, of: fn(&[Value]) -> Option<&[Value]>) -> Result<Value, Wrong> {
    budget.list(of(list(value)?).unwrap_or(&[]).to_vec())
}

fn contains(items: &[Value], wanted: &Value, budget: &mut Budget) -> Result<bool, Wrong> {
    for item in items {
        if item.same(wanted, budget)? {
            return Ok(true);
        }
    }
    Ok(false)
}

fn uniq(args: &[Value], budget: &mut Budget) -> Result<Value, Wrong> {
    let mut unique = Vec::new();
    for item in list(&args[0])?.iter() {
        if !contains(&unique, item, budget)? {
            unique.push(item.clone());
        }
    }
    budget.list(unique)
}

fn without(args: &[Value], budget: &mut Budget) -> Result<Value, Wrong> {
    let mut left = Vec::new();
    for item in list(&args[0])?.iter() {
        if !contains(&args[1..], item, budget)? {
            left.push(item.clone());
        }
    }
    budget.list(left)
}

/// Sprig's: of lists alone. For texts there is `substr`.
fn slice(args: &[Value], budget: &mut Budget) -> Result<Value, Wrong> {
    let items = match &args[0] {
        Value::Str(_) => return Err(Wrong::hint("a text can't be sliced", "`substr` cuts texts: `substr 0 3 .x`")),
        value => list(value)?,
    };
    if items.is_empty() {
        return Ok(Value::Nil);
    }
    let start = args.get(1).map_or(0, to_int);
    let end = args.get(2).map_or(items.len() as i64, to_int);
    let range = usize::try_from(start).ok().zip(usize::try_from(end).ok());
    match range.and_then(|(start, end)| items.get(start..end)) {
        Some(part) => budget.list(part.to_vec()),
        None => Err(format!("{start} to {end} is outside of a list of {}", items.len()).into()),
    }
}

fn chunk(args: &[Value], budget: &mut Budget) -> Result<Value, Wrong> {
    let size = usize::try_from(int(&args[0])?).ok().filter(|size| *size > 0).ok_or("the size is not positive")?;
    budget.spend(list(&args[1])?.len())?;
    budget.list(list(&args[1])?.chunks(size).map(|items| Value::list(items.to_vec())).collect())
}

/// What is no JSON is nothing, as in sprig.
fn from_json(args: &[Value], budget: &mut Budget) -> Result<Value, Wrong> {
    match serde_json::from_str(text(&args[0])?) {
        Ok(json) => Value::from_json(&json, budget.bounds.max_depth_levels),
        Err(_) => Ok(Value::Nil),
    }
}
