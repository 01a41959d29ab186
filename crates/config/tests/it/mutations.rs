//! Real apps, each broken in one place: the problem must be found, in that file and on that line.

use std::collections::BTreeMap;

use config::{Code, Options, Tree};
use needs::needs;

use crate::corpus::apps;

/// A broken app, and where the problem should be seen.
struct Broken {
    what: &'static str,
    file: String,
    contents: String,
    /// Lines on which it may be reported.
    lines: std::ops::RangeInclusive<usize>,
    codes: &'static [Code],
}

#[derive(Clone, Copy)]
struct Line<'t> {
    number: usize,
    key: &'t str,
    value: &'t str,
    /// The line of the header of the table around; 1 for the top of the file.
    header: usize,
    /// The header's words.
    table: &'t str,
}

/// The lines `key = value` of a TOML file that hold a whole value.
fn lines(text: &str) -> Vec<Line<'_>> {
    let mut found = Vec::new();
    let (mut header, mut table, mut inside) = (1, "", None);
    for (at, line) in text.lines().enumerate() {
        if let Some(quotes) = inside {
            if line.contains(quotes) {
                inside = None;
            }
            continue;
        }
        inside = ["'''", "\"\"\""].into_iter().find(|quotes| line.matches(quotes).count() == 1);
        if line.starts_with('[') {
            (header, table) = (at + 1, line.trim().trim_matches(|c| c == '[' || c == ']'));
        } else if let Some((key, value)) = line.split_once('=')
            && inside.is_none()
            && !line.starts_with('#')
        {
            found.push(Line { number: at + 1, key: key.trim(), value: value.trim(), header, table });
        }
    }
    found
}

fn with_line(text: &str, number: usize, line: Option<&str>) -> String {
    let lines = text.lines().enumerate().filter_map(|(at, old)| if at + 1 == number { line } else { Some(old) });
    lines.map(|line| format!("{line}\n")).collect()
}

fn mutations(app: &Tree) -> Vec<Broken> {
    let mut found = Vec::new();
    for (file, contents) in app.files.iter().filter(|(file, _)| file.ends_with(".toml")) {
        let kind = file.split('/').next().unwrap_or_default();
        let Ok(text) = std::str::from_utf8(contents) else { continue };
        for line in lines(text) {
            let mut add = |what, new: Option<String>, lines, codes| {
                let contents = with_line(text, line.number, new.as_deref());
                found.push(Broken { what, file: file.clone(), contents, lines, codes });
            };
            let here = line.number..=line.number;
            let table = line.header..=line.header;
            match (kind, line.table, line.key) {
                ("components", "", "name" | "type" | "namespace" | "terraform_version")
                | ("actions", "triggers", "type")
                | ("actions", "steps", "name")
                | ("inputs.toml", "input", "name" | "description" | "group")
                | ("runner.toml", "", "runner_type")
                | ("stack.toml", "", "type" | "vpc_nested_template_url")
                | ("metadata.toml", "", "version")
                | ("runbooks", "steps", "type" | "name") => {
                    // A chart needs no namespace, an image and a manifest no version.
                    let manifest = text.contains("\"kubernetes_manifest\"");
                    let needed = (line.key != "namespace" || manifest)
                        && (line.key != "vpc_nested_template_url" || text.contains("aws-"));
                    if needed {
                        add("delete a required key", None, table, &[Code::MissingKey, Code::MissingRole]);
                    }
                }
                _ => {}
            }
            if matches!(
                line.key,
                "name"
                    | "type"
                    | "timeout"
                    | "dependencies"
                    | "description"
                    | "runner_type"
                    | "branch"
                    | "repo"
                    | "max_auto_retries"
                    | "group"
            ) && !matches!(line.table, "vars" | "values" | "labels" | "env_vars" | "steps.env_vars" | "inputs")
            {
                let known = !(line.key == "description" && kind == "actions"
                    || line.key == "timeout" && kind == "components"
                    || line.key == "group" && line.table == "group"
                    || line.key == "max_auto_retries" && text.contains("container_image"));
                if known {
                    let misspelt = format!("{}x = {}", line.key, line.value);
                    add("misspell a key", Some(misspelt), here.clone(), &[Code::UnknownKey, Code::MisplacedKey]);
                }
            }
            if matches!(
                line.key,
                "dependencies" | "triggers" | "labels" | "toggleable" | "max_auto_retries" | "public_repo"
            ) {
                if line.key == "max_auto_retries" && text.contains("container_image") {
                    continue;
                }
                let wrong = if line.key == "max_auto_retries" { "[]" } else { "7" };
                add(
                    "a wrong type",
                    Some(format!("{} = {wrong}", line.key)),
                    here.clone(),
                    &[Code::WrongType, Code::UnknownKey],
                );
            }
            if line.key == "dependencies" && line.value.len() > 2 {
                add(
                    "break a reference",
                    Some("dependencies = [\"no_such_component\"]".into()),
                    here.clone(),
                    &[Code::UnknownComponent],
                );
            }
            if matches!(line.key, "component_name" | "action_name") {
                add(
                    "break a reference",
                    Some(format!("{} = \"no_such_thing\"", line.key)),
                    here.clone(),
                    &[Code::UnknownComponent, Code::UnknownAction],
                );
            }
            for (path, code) in [
                (".nuon.inputs.inputs.", Code::UnknownInput),
                (".nuon.install.inputs.", Code::UnknownInput),
                (".nuon.components.", Code::UnknownComponent),
                (".nuon.actions.workflows.", Code::UnknownAction),
                (".nuon.sandbox.o", Code::TemplatePath),
                (".nuon.install.i", Code::TemplatePath),
            ] {
                let rendered = !matches!(kind, "runner.toml" | "inputs.toml") && line.key != "principal";
                if rendered && line.value.contains(path) && !line.value.contains("[\"") {
                    let broken = line.value.replacen(path, &format!("{path}zz"), 1);
                    let codes: &'static [Code] = match code {
                        Code::UnknownInput => &[Code::UnknownInput],
                        Code::UnknownComponent => &[Code::UnknownComponent],
                        Code::UnknownAction => &[Code::UnknownAction],
                        _ => &[Code::TemplatePath],
                    };
                    add("break a template", Some(format!("{} = {broken}", line.key)), here.clone(), codes);
                }
            }
        }
    }
    found
}

/// Templates in files that the config takes the contents of.
fn in_contents(app: &Tree) -> Vec<Broken> {
    let config = config::load(app, Options::default()).config.expect("real apps have no error");
    let stored = String::from_utf8(config.canonical_json()).unwrap();
    let mut found = Vec::new();
    for (file, contents) in app.files.iter().filter(|(file, _)| !file.ends_with(".toml")) {
        let text = std::str::from_utf8(contents).unwrap_or_default();
        let quoted = serde_json::to_string(text).unwrap();
        if text.is_empty() || !stored.contains(quoted.trim_matches('"')) {
            continue;
        }
        for (at, line) in text.lines().enumerate() {
            if let Some((before, after)) = line.split_once("{{ .nuon.inputs.inputs.") {
                let broken = format!("{before}{{{{ .nuon.inputs.inputs.zz{after}");
                let contents = with_line(text, at + 1, Some(&broken));
                let lines = at + 1..=at + 1;
                found.push(Broken {
                    what: "break a file",
                    file: file.clone(),
                    contents,
                    lines,
                    codes: &[Code::UnknownInput],
                });
            }
        }
    }
    found
}

/// Two components that are made to wait for each other.
fn circle(app: &Tree) -> Option<Broken> {
    let components: Vec<(&String, &str)> = app
        .files
        .iter()
        .filter(|(file, _)| file.starts_with("components/") && file.ends_with(".toml"))
        .filter_map(|(file, contents)| Some((file, std::str::from_utf8(contents).ok()?)))
        .collect();
    let name = |text: &str| {
        lines(text)
            .iter()
            .find(|line| line.table.is_empty() && line.key == "name")
            .map(|line| line.value.trim_matches('"').to_owned())
    };
    let depends = |text: &str| {
        lines(text)
            .iter()
            .find(|line| line.key == "dependencies" && line.value.starts_with("[\""))
            .map(|line| line.value.split('"').nth(1).unwrap_or_default().to_owned())
    };
    let (upper, needed) = components.iter().find_map(|(_, text)| Some((name(text)?, depends(text)?)))?;
    let (file, text) = components.iter().find(|(_, text)| name(text).as_deref() == Some(&needed))?;
    let contents: String =
        text.lines().filter(|line| !line.starts_with("dependencies")).map(|line| format!("{line}\n")).collect();
    let contents = format!("dependencies = [\"{upper}\"]\n{contents}");
    Some(Broken { what: "a circle", file: file.to_string(), contents, lines: 1..=1, codes: &[Code::DependencyCycle] })
}

#[test]
fn broken_apps_are_found_broken_on_the_right_line() {
    needs!(Corpus);
    let apps = apps();
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    let mut missed = Vec::new();
    // All of them take half a minute; a prime number of them leaves no kind out.
    let every = if std::env::var_os("FERRY_ALL_MUTATIONS").is_some() { 1 } else { 5 };
    for app in &apps {
        let before = config::load(app, Options::default()).diagnostics;
        let all = mutations(app).into_iter().enumerate().filter(|(at, _)| at % every == 0).map(|(_, broken)| broken);
        for broken in all.chain(circle(app)).chain(in_contents(app)) {
            let mut tree = app.clone();
            tree.add(broken.file.as_str(), &broken.contents);
            let after = config::load(&tree, Options::default()).diagnostics;
            let new: Vec<_> = after.iter().filter(|found| !before.contains(found)).collect();
            let circle = broken.what == "a circle";
            let hit = new.iter().any(|found| {
                broken.codes.contains(&found.code)
                    && (circle || found.file == broken.file && broken.lines.contains(&found.line))
            });
            *counts.entry(broken.what).or_default() += 1;
            if !hit {
                missed.push(format!(
                    "{}: {} in {} lines {:?}: {new:#?}",
                    app.name, broken.what, broken.file, broken.lines
                ));
            }
        }
    }
    println!("{counts:?}");
    assert!(missed.is_empty(), "{} missed, of {counts:?}:\n{}", missed.len(), missed[..missed.len().min(8)].join("\n"));
    assert!(counts.values().sum::<usize>() >= 500, "{counts:?}");
}
