//! The functions: Go's own, and those of sprig that give the same result for the same arguments, everywhere and always.

mod core;
mod data;
mod number;
mod text;

use std::sync::Arc;

use crate::{
    Fault,
    out::{Budget, Wrong},
    value::{Map, Value},
};

type Function = fn(&[Value], &mut Budget) -> Result<Value, Wrong>;

/// Name, how many arguments at least and at most, and what it does.
type Row = (&'static str, usize, usize, Function);

const MANY: usize = usize::MAX;

const STEP_BYTES: usize = 256;

const TABLES: [&[Row]; 4] = [core::TABLE, data::TABLE, number::TABLE, text::TABLE];

/// What sprig has and a template here must not have, with the reason.
const ABSENT: &[(&str, &[&str])] = &[
    ("reads the environment of the server", &["env", "expandenv", "getHostByName"]),
    (
        "reads the clock, so that the same config would give another result tomorrow",
        &[
            "now",
            "ago",
            "date",
            "dateInZone",
            "dateModify",
            "date_in_zone",
            "date_modify",
            "htmlDate",
            "htmlDateInZone",
            "unixEpoch",
        ],
    ),
    (
        "draws randomness, so that each render would give another result",
        &[
            "randAlpha",
            "randAlphaNum",
            "randAscii",
            "randBytes",
            "randInt",
            "randNumeric",
            "shuffle",
            "uuidv4",
            "bcrypt",
            "htpasswd",
            "encryptAES",
            "genCA",
            "genCAWithKey",
            "genPrivateKey",
            "genSelfSignedCert",
            "genSelfSignedCertWithKey",
            "genSignedCert",
            "genSignedCertWithKey",
            "derivePassword",
        ],
    ),
    ("calls function values, and there are none in the data", &["call"]),
    ("is one of sprig's that no config has needed so far", UNUSED),
];

#[rustfmt::skip]
const UNUSED: &[&str] = &[
    "abbrev", "abbrevboth", "add1f", "addf", "adler32sum", "b32dec", "b32enc", "base", "buildCustomCert", "camelcase", "clean", "decryptAES",
    "dir", "divf", "durationRound", "ext", "hello", "initials", "isAbs", "kebabcase", "maxf", "minf", "mulf", "mustAppend", "mustChunk",
    "mustCompact", "mustDateModify", "mustDeepCopy", "mustFirst", "mustFromJson", "mustHas", "mustInitial", "mustLast", "mustMerge",
    "mustMergeOverwrite", "mustPrepend", "mustPush", "mustRegexFind", "mustRegexFindAll", "mustRegexMatch", "mustRegexReplaceAll",
    "mustRegexReplaceAllLiteral", "mustRegexSplit", "mustRest", "mustReverse", "mustSlice", "mustToDate", "mustToJson", "mustToPrettyJson",
    "mustToRawJson", "mustUniq", "mustWithout", "must_date_modify", "osBase", "osClean", "osDir", "osExt", "osIsAbs", "regexFind",
    "regexFindAll", "regexMatch", "regexQuoteMeta", "regexReplaceAll", "regexReplaceAllLiteral", "regexSplit", "semver", "semverCompare",
    "seq", "sha1sum", "sha512sum", "snakecase", "subf", "swapcase", "toDate", "toDecimal", "urlJoin", "urlParse", "wrap", "wrapWith",
];

fn row(name: &str) -> Option<&'static Row> {
    TABLES.iter().flat_map(|table| table.iter()).find(|row| row.0 == name)
}

pub(crate) fn check_name(pos: usize, name: &str) -> Result<(), Fault> {
    if row(name).is_some() {
        return Ok(());
    }
    if let Some((reason, _)) = ABSENT.iter().find(|(_, names)| names.contains(&name)) {
        return Err(Fault::new(pos, format!("function \"{name}\" is not available: it {reason}"))
            .hint("pass such a value as an input or a secret instead"));
    }
    let fault = Fault::new(pos, format!("function \"{name}\" not defined"));
    let names = TABLES.iter().flat_map(|table| table.iter()).map(|row| row.0);
    Err(match crate::nearest(name, names) {
        _ if name == "nuon" => fault.hint("a path begins with a dot: `.nuon`"),
        Some(near) => fault.hint(format!("did you mean `{near}`?")),
        None => fault.hint("a path begins with a dot, a variable with `$`, and a text stands in quotes"),
    })
}

pub(crate) fn call(name: &str, args: &[Value], budget: &mut Budget) -> Result<Value, Wrong> {
    let Some((_, least, most, function)) = row(name) else {
        return Err(format!("function \"{name}\" not defined").into());
    };
    if args.len() < *least || args.len() > *most {
        let wanted = if least == most {
            format!("{least}")
        } else if *most == MANY {
            format!("at least {least}")
        } else {
            format!("{least} to {most}")
        };
        return Err(format!("wrong number of arguments for {name}: want {wanted}, got {}", args.len()).into());
    }
    let named = |wrong: Wrong| Wrong { message: format!("{name}: {}", wrong.message), hint: wrong.hint };
    budget.spend(args.iter().map(steps).sum()).map_err(named)?;
    let result = function(args, budget).map_err(named)?;
    budget.spend(steps(&result)).map_err(named)?;
    Ok(result)
}

/// What it costs to go through a text.
fn steps(value: &Value) -> usize {
    match value {
        Value::Str(text) => text.len() / STEP_BYTES,
        _ => 0,
    }
}

/// In Go these change the map that they are given.
pub(crate) fn changes_its_map(name: &str) -> bool {
    matches!(name, "set" | "unset" | "merge" | "mergeOverwrite")
}

fn expected(kind: &str, found: &Value) -> Wrong {
    let message = format!("expected a {kind}, found a {}", found.kind());
    match (kind, found) {
        (_, Value::Nil) => Wrong::from(format!("expected a {kind}, found nothing")),
        ("string", _) => Wrong::hint(message, "`toString` makes a text of anything"),
        ("int", Value::Float(_) | Value::Int64(_) | Value::Str(_)) => {
            Wrong::hint(message, "`int` makes a number of it")
        }
        _ => message.into(),
    }
}

fn text(value: &Value) -> Result<&Arc<str>, Wrong> {
    match value {
        Value::Str(text) => Ok(text),
        other => Err(expected("string", other)),
    }
}

fn int(value: &Value) -> Result<i64, Wrong> {
    match value {
        Value::Int(n) => Ok(*n),
        other => Err(expected("int", other)),
    }
}

fn boolean(value: &Value) -> Result<bool, Wrong> {
    match value {
        Value::Bool(b) => Ok(*b),
        other => Err(expected("bool", other)),
    }
}

fn list(value: &Value) -> Result<&Arc<Vec<Value>>, Wrong> {
    match value {
        Value::List(items, _) => Ok(items),
        other => Err(expected("list", other)),
    }
}

fn map(value: &Value) -> Result<&Arc<Map>, Wrong> {
    match value {
        Value::Map(entries, _) => Ok(entries),
        other => Err(expected("map", other)),
    }
}

#[cfg(test)]
pub(crate) fn names() -> impl Iterator<Item = &'static str> {
    TABLES.iter().flat_map(|table| table.iter()).map(|row| row.0)
}
