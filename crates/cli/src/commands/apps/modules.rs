//! Whether the Terraform modules in an app's directory can be read, and fit what the app says about them: known before anything is
//! uploaded or built.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use config::{AppConfig, Code, ComponentKind, Diagnostic, Loaded, Local, Place, Reader, Severity, Tree};
use terraform::Module;

/// A module of the app, and what it is given.
struct Given<'c> {
    /// Where in the config it stands.
    path: String,
    what: String,
    local: &'c Local,
    vars: &'c BTreeMap<String, String>,
    var_files: Vec<&'c str>,
    env: &'c BTreeMap<String, String>,
    /// Outputs that templates read, by name.
    read: BTreeMap<String, Reader>,
}

/// Adds what is wrong with the modules of an app that is sound otherwise.
pub(crate) fn diagnose(dir: &Path, tree: &Tree, loaded: &mut Loaded) {
    let Some(config) = &loaded.config else { return };
    let mut found = Vec::new();
    for given in all(config) {
        let Some(directory) = given.local.path() else { continue };
        let root = dir.join(&directory);
        // What is not there at all is told by others.
        if !root.is_dir() {
            continue;
        }
        for Problem { severity, path, within, message } in problems(&root, &directory, &given) {
            let place = loaded.sources.locate(tree, &path, within);
            found.push(Diagnostic {
                severity,
                code: Code::BadModule,
                file: place.file,
                line: place.line,
                column: place.column,
                message,
                hint: None,
                span: place.span,
            });
        }
    }
    if found.iter().any(|found| found.severity == Severity::Error) {
        loaded.config = None;
    }
    loaded.diagnostics.extend(found);
    loaded.diagnostics.sort_by(|a, b| (&a.file, a.line, a.column).cmp(&(&b.file, b.line, b.column)));
}

fn all(config: &AppConfig) -> Vec<Given<'_>> {
    let uses = config::Uses::new(config);
    let read = |of: Option<&str>| -> BTreeMap<String, Reader> {
        let outputs = uses.outputs.iter().filter(|((component, _), _)| component.as_deref() == of);
        outputs.filter_map(|((_, path), reader)| Some((path.first()?.clone(), reader.clone()))).collect()
    };
    let mut found = Vec::new();
    if let Some(sandbox) = &config.sandbox
        && let Some(local) = &sandbox.local
    {
        found.push(Given {
            path: "/sandbox".into(),
            what: "the sandbox".into(),
            local,
            vars: &sandbox.vars,
            var_files: sandbox.var_file.iter().map(|file| file.contents.as_str()).collect(),
            env: &sandbox.env_vars,
            read: read(None),
        });
    }
    for (index, component) in config.components.iter().enumerate() {
        let ComponentKind::TerraformModule(kind) = &component.kind else { continue };
        let Some(local) = component.kind.local() else { continue };
        let name = &component.common.name;
        found.push(Given {
            path: format!("/components/{index}"),
            what: format!("component `{name}`"),
            local,
            vars: &kind.vars,
            var_files: kind.var_file.iter().map(|file| file.contents.as_str()).collect(),
            env: &kind.env_vars,
            read: read(Some(name)),
        });
    }
    found
}

struct Problem {
    severity: Severity,
    /// Where in the config, and where in the text that is there.
    path: String,
    within: Option<Place>,
    message: String,
}

/// What is wrong with one module.
fn problems(root: &Path, directory: &str, given: &Given<'_>) -> Vec<Problem> {
    let mut found = Vec::new();
    let about = |severity, key: &str, message| {
        let path = format!("{}{key}", given.path);
        Problem { severity, path, within: None, message }
    };
    if let Err(error) = crate::archive::pack(root) {
        found.push(about(Severity::Error, "/local", error.to_string()));
    }
    let (mut module, mut files) = (Module::default(), 0);
    let mut by_file: BTreeSet<String> = given.var_files.iter().flat_map(|text| terraform::names_given(text)).collect();
    let entries = std::fs::read_dir(root).into_iter().flatten().flatten();
    for name in entries.map(|entry| entry.file_name().to_string_lossy().into_owned()) {
        let text = || fs_err::read_to_string(root.join(&name)).unwrap_or_default();
        if terraform::is_values_file(&name) {
            by_file.extend(terraform::names_given(&text()));
        }
        if !terraform::is_module_file(&name) {
            continue;
        }
        files += 1;
        let text = text();
        if let Err(wrong) = module.read(&name, &text) {
            let text = format!("{directory}/{name}, line {}, column {}: {}", wrong.line, wrong.column, wrong.message);
            found.push(about(Severity::Error, "/local", text));
        }
    }
    if files == 0 || found.iter().any(|problem| problem.severity == Severity::Error) {
        return found;
    }
    let what = &given.what;
    for name in given.vars.keys().filter(|name| !module.variables.contains_key(*name)) {
        let text = format!("the module of {what} declares no variable `{name}`: its value has no effect");
        found.push(about(Severity::Warning, &format!("/vars/{name}"), text));
    }
    // A file that is a template gives names that are known only when it is rendered.
    let open = given.var_files.iter().any(|text| config::is_template(text));
    for (name, _) in module.variables.iter().filter(|(_, needed)| **needed) {
        let env = given.env.contains_key(&format!("TF_VAR_{name}"));
        if !given.vars.contains_key(name) && !by_file.contains(name) && !env && !open {
            let text = format!("the module of {what} needs a value for the variable `{name}`: add it to `vars`");
            found.push(about(Severity::Error, "/vars", text));
        }
    }
    for (name, reader) in given.read.iter().filter(|(name, _)| !module.outputs.contains(*name)) {
        let message =
            format!("the module of {what} has no output `{name}`; add it to {directory}, or read another one");
        let severity = if reader.page { Severity::Warning } else { Severity::Error };
        found.push(Problem { severity, path: reader.path.clone(), within: Some(reader.place), message });
    }
    found
}
