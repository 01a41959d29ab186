//! Policies tried out on this machine, as the runner evaluates them, and what is wrong with an app's Rego.

use std::io::Read as _;
use std::path::Path;
use std::time::Duration;

use config::{AppConfig, Code, Diagnostic, Loaded, Place, Severity as Grade, Sources, Tree};
use policy::{Limits, Outcome, Policy, PolicyKind, Report, Severity, Subject, UnitTest};
use serde::Serialize;
use serde_json::{Value, json};

use crate::args::{AppDir, Policies, TestPolicies};
use crate::commands::apps::app_files;
use crate::error::{CliError, Exit, Result};
use crate::output::{Output, cell, count, status, strong};

/// For all tests of one file.
const TESTS_TIME_MAX: Duration = Duration::from_secs(30);

pub(crate) async fn run(out: &Output, command: Policies) -> Result<u8> {
    let Policies::Test(args) = command;
    let dir = AppDir { dir: args.dir.clone(), strict: false, update_lock: false };
    let app = match app_files::valid(out, &dir, false).await? {
        Ok(app) => app,
        Err(code) => return Ok(code),
    };
    let subject = subject(&args)?;
    let chosen = choose(&app.config, &args, subject.as_ref())?;
    let tests = tests(&app.tree, &app.sources, &chosen);
    let report = subject.map(|subject| {
        let policies: Vec<Policy> = chosen.iter().map(|chosen| chosen.policy.clone()).collect();
        policy::evaluate(&policies, &subject, Limits::default())
    });
    show(out, &chosen, report.as_ref(), &tests)
}

/// A policy of the app, with its place in the config.
struct Chosen {
    index: usize,
    policy: Policy,
}

/// The Rego policies of a config.
fn rego(config: &AppConfig) -> impl Iterator<Item = (usize, PolicyKind, &config::Policy)> {
    let policies = config.policies.iter().enumerate();
    policies
        .filter(|(_, policy)| policy::is_rego(&policy.r#type, policy.engine.as_deref()))
        .filter_map(|(index, policy)| Some((index, PolicyKind::parse(&policy.r#type)?, policy)))
}

/// Which policies apply: by what they judge, their type, the component and their name.
fn choose(config: &AppConfig, args: &TestPolicies, subject: Option<&Subject>) -> Result<Vec<Chosen>> {
    if let (Some(kind), Some(subject)) = (args.kind, subject)
        && !kind.judges(subject)
    {
        return Err(CliError::usage(format!("policies of type `{}` can't evaluate this input", kind.as_str())));
    }
    let of_component = match &args.component {
        None => None,
        Some(name) => Some((name, component_kind(config, name)?)),
    };
    let applies = |kind: PolicyKind, policy: &config::Policy| {
        let component = of_component.is_none_or(|(name, component)| {
            kind.as_str() == component && policy.components.iter().any(|of| of == "*" || of == name)
        });
        component && args.kind.is_none_or(|wanted| wanted == kind) && subject.is_none_or(|subject| kind.judges(subject))
    };
    let mut chosen = Vec::new();
    for (index, kind, policy) in rego(config) {
        let named = args.policy.as_ref().is_none_or(|name| *name == policy.name);
        if named && applies(kind, policy) {
            let (name, contents) = (policy.name.clone(), policy.contents.clone());
            chosen.push(Chosen { index, policy: Policy { name, kind, contents } });
        }
    }
    match &args.policy {
        Some(name) if chosen.is_empty() => {
            let names: Vec<String> = rego(config).map(|(_, _, policy)| policy.name.clone()).collect();
            let text = match names.contains(name) {
                true => format!("policy `{name}` does not apply to this input"),
                false => format!("the app has no Rego policy `{name}`"),
            };
            let hint = crate::commands::suggestion(name, &names).filter(|_| !names.contains(name));
            let error = CliError::new(Exit::NotFound, text);
            Err(hint.into_iter().fold(error, CliError::hint))
        }
        _ => Ok(chosen),
    }
}

fn component_kind<'c>(config: &'c AppConfig, name: &str) -> Result<&'c str> {
    match config.components.iter().find(|component| component.common.name == name) {
        Some(component) => Ok(component.kind.name()),
        None => {
            let names: Vec<String> = config.components.iter().map(|component| component.common.name.clone()).collect();
            let error = CliError::new(Exit::NotFound, format!("the app has no component `{name}`"));
            Err(crate::commands::suggestion(name, &names).into_iter().fold(error, CliError::hint))
        }
    }
}

/// What is to be judged, where something is given.
fn subject(args: &TestPolicies) -> Result<Option<Subject>> {
    if let Some(image) = &args.image {
        let metadata = match &args.metadata {
            Some(file) => parse_json(&read(file)?, file)?,
            None => json!({}),
        };
        let (image, tag) = split_image(image);
        return Ok(Some(Subject::Image { image, tag, metadata }));
    }
    args.input.as_deref().map(|file| parse(&read(file)?, file)).transpose()
}

pub(crate) fn read(file: &Path) -> Result<String> {
    if file == Path::new("-") {
        let mut text = String::new();
        std::io::stdin().read_to_string(&mut text)?;
        return Ok(text);
    }
    Ok(fs_err::read_to_string(file)?)
}

fn parse_json(text: &str, file: &Path) -> Result<Value> {
    serde_json::from_str(text).map_err(|e| CliError::failed(format!("{} is not JSON: {e}", file.display())))
}

/// A plan is JSON and has resources; all else are objects.
fn parse(text: &str, file: &Path) -> Result<Subject> {
    if let Ok(value) = serde_json::from_str::<Value>(text) {
        let is_plan =
            ["resource_changes", "planned_values", "terraform_version"].iter().any(|key| value.get(key).is_some());
        return Ok(match value {
            Value::Array(objects) => Subject::Objects(objects),
            value if is_plan => Subject::Plan(value),
            value => Subject::Objects(vec![value]),
        });
    }
    let objects: Vec<Value> = serde_saphyr::from_multiple(text)
        .map_err(|e| CliError::failed(format!("{} is neither JSON nor YAML: {e}", file.display())))?;
    match objects.iter().find(|object| !object.is_object() && !object.is_null()) {
        Some(_) => {
            Err(CliError::failed(format!("{} contains something that is not a Kubernetes object", file.display())))
        }
        None => Ok(Subject::Objects(objects)),
    }
}

/// `host:5000/name:tag`, `name@sha256:…`: the tag stands after the last `/`.
fn split_image(image: &str) -> (String, String) {
    let (name, after) = match image.split_once('@') {
        Some((name, digest)) => (name, digest),
        None => {
            let name_at = image.rfind('/').map_or(0, |at| at + 1);
            match image[name_at..].split_once(':') {
                Some((name, tag)) => (&image[..name_at + name.len()], tag),
                None => (image, ""),
            }
        }
    };
    (name.to_owned(), after.to_owned())
}

/// A file of tests, run.
#[derive(Debug, Serialize)]
struct TestFile {
    policy: String,
    file: String,
    tests: Vec<UnitTest>,
    /// Why none of them could be run.
    error: Option<String>,
}

impl TestFile {
    fn failures(&self) -> usize {
        usize::from(self.error.is_some()) + self.tests.iter().filter(|test| test.outcome != Outcome::Passed).count()
    }
}

/// Runs the tests beside the policies.
fn tests(tree: &Tree, sources: &Sources, chosen: &[Chosen]) -> Vec<TestFile> {
    let mut files = Vec::new();
    for Chosen { index, policy } in chosen {
        let place = Place { line: 1, column: 1 };
        let own = sources.locate(tree, &format!("/policies/{index}/contents"), Some(place)).file;
        let Some(file) = own.strip_suffix(".rego").map(|stem| format!("{stem}_test.rego")) else { continue };
        let Some(contents) = tree.files.get(&file) else { continue };
        let ran = policy::unit_tests(&policy.contents, &String::from_utf8_lossy(contents), TESTS_TIME_MAX);
        let (tests, error) = match ran {
            Ok(tests) => (tests, None),
            Err(error) => (Vec::new(), Some(error.to_string())),
        };
        files.push(TestFile { policy: policy.name.clone(), file, tests, error });
    }
    files
}

fn show(out: &Output, chosen: &[Chosen], report: Option<&Report>, tests: &[TestFile]) -> Result<u8> {
    let denied = report.map_or(0, |report| report.count(Severity::Deny));
    let failed: usize = tests.iter().map(TestFile::failures).sum();
    let code = u8::from(denied + failed > 0);
    if out.json {
        let policies: Vec<&str> = chosen.iter().map(|chosen| chosen.policy.name.as_str()).collect();
        out.json(&json!({ "ok": code == 0, "policies": policies, "report": report, "tests": tests }))?;
        return Ok(code);
    }
    if chosen.is_empty() {
        out.note("no Rego policy applies");
        return Ok(0);
    }
    for chosen in chosen.iter().filter(|chosen| config::is_template(&chosen.policy.contents)) {
        out.warn(&format!("policy `{}` is a template; it is evaluated without rendering it", chosen.policy.name));
    }
    if let Some(report) = report.filter(|report| !report.verdicts.is_empty()) {
        let rows = report.verdicts.iter().map(|verdict| {
            let object = verdict.object.as_deref().unwrap_or("-");
            vec![strong(&verdict.policy), status(verdict.severity.as_str()), cell(object), cell(&verdict.message)]
        });
        out.table(&["POLICY", "VERDICT", "OBJECT", "MESSAGE"], rows.collect())?;
    }
    if !tests.is_empty() {
        let row = |file: &TestFile, name: &str, outcome: &str, reason: &str| {
            vec![strong(&file.policy), cell(name), status(outcome), cell(reason)]
        };
        let mut rows = Vec::new();
        for file in tests {
            rows.extend(file.error.iter().map(|error| row(file, "-", "error", error)));
            rows.extend(file.tests.iter().map(|test| match &test.outcome {
                Outcome::Passed => row(file, &test.name, "ok", ""),
                Outcome::Failed => row(file, &test.name, "failed", "the rule is false or undefined"),
                Outcome::Broken(reason) => row(file, &test.name, "error", reason),
            }));
        }
        out.table(&["POLICY", "TEST", "RESULT", "REASON"], rows)?;
    }
    summary(out, chosen, report, tests, code);
    Ok(code)
}

fn summary(out: &Output, chosen: &[Chosen], report: Option<&Report>, tests: &[TestFile], code: u8) {
    let mut parts = vec![count(chosen.len(), "policy", "policies")];
    if let Some(report) = report {
        parts.push(count(report.evaluated, "evaluation", "evaluations"));
        parts.push(count(report.count(Severity::Deny), "denial", "denials"));
        parts.push(count(report.count(Severity::Warn), "warning", "warnings"));
    }
    if !tests.is_empty() {
        let (all, failed): (usize, usize) =
            (tests.iter().map(|file| file.tests.len()).sum(), tests.iter().map(TestFile::failures).sum());
        parts.push(format!("{}, {failed} failed", count(all, "test", "tests")));
    }
    let text = parts.join(", ");
    if code == 0 {
        out.success(&text)
    } else {
        out.failure(&text)
    }
    if report.is_none() && tests.is_empty() {
        out.hint("pass something to evaluate: `--input FILE` or `--image NAME:TAG`");
    }
}

/// Adds what is wrong with the Rego of an app that is sound otherwise. A template is Rego only when it is rendered.
pub(crate) fn diagnose(tree: &Tree, loaded: &mut Loaded) {
    let Some(config) = &loaded.config else { return };
    let mut found = Vec::new();
    for (index, _, policy) in rego(config).filter(|(_, _, policy)| !config::is_template(&policy.contents)) {
        let (severity, message, place) = match policy::check(&policy.contents) {
            Err(error) => {
                let place = Place { line: error.line.max(1), column: error.column.max(1) };
                (Grade::Error, error.message, Some(place))
            }
            Ok(info) if !info.denies && !info.warns => {
                let text = format!("the policy `{}` has neither a rule `deny` nor a rule `warn`", policy.name);
                (Grade::Warning, format!("{text}: it denies everything"), None)
            }
            Ok(_) => continue,
        };
        let at = loaded.sources.locate(tree, &format!("/policies/{index}/contents"), place);
        found.push(Diagnostic {
            severity,
            code: Code::BadPolicy,
            file: at.file,
            line: at.line,
            column: at.column,
            message,
            hint: None,
            span: at.span,
        });
    }
    if found.iter().any(|found| found.severity == Grade::Error) {
        loaded.config = None;
    }
    loaded.diagnostics.extend(found);
    loaded.diagnostics.sort_by(|a, b| (&a.file, a.line, a.column).cmp(&(&b.file, b.line, b.column)));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn images_are_cut_at_their_tag() {
        let table = [
            ("nginx", "nginx", ""),
            ("nginx:1.2", "nginx", "1.2"),
            ("h:5000/a/b", "h:5000/a/b", ""),
            ("h:5000/a/b:v1", "h:5000/a/b", "v1"),
            ("a/b@sha256:ff", "a/b", "sha256:ff"),
        ];
        for (image, name, tag) in table {
            assert_eq!(split_image(image), (name.to_owned(), tag.to_owned()), "{image}");
        }
    }

    #[test]
    fn inputs_are_told_apart() {
        let parse = |text: &str| parse(text, Path::new("f")).map_err(|e| e.message);
        assert!(matches!(parse("{\"resource_changes\": []}"), Ok(Subject::Plan(_))));
        let count = |text: &str| match parse(text) {
            Ok(Subject::Objects(objects)) => objects.len(),
            other => panic!("{other:?}"),
        };
        assert_eq!(count("{\"kind\": \"Pod\"}"), 1);
        assert_eq!(count("[{\"kind\": \"Pod\"}, {\"kind\": \"Pod\"}]"), 2);
        assert_eq!(count("kind: Pod\n---\nkind: Service\n"), 2);
        assert!(parse("a: [").is_err_and(|told| told.contains("neither JSON nor YAML")));
        assert!(parse("just text").is_err_and(|told| told.contains("not a Kubernetes object")));
    }
}
