//! What the file of an install would change, field by field. Pure: what is known goes in, changes and problems come out.

use std::collections::{BTreeMap, BTreeSet};

use api::control::{AppInput, ComponentOverride, Install, InstallInputs};
use model::InstallId;
use model::overrides::OverrideKind;
use serde::Serialize;

use crate::args::SyncInstalls;

/// Who keeps an install that is kept in a file; the dialect's word.
pub(super) const MANAGED_BY: &str = "nuon/cli/install-config";
const MASK: &str = "***";

/// What is different about an install, from the one side and the other.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(super) struct Change {
    pub(super) path: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) old: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) new: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Action {
    Create,
    Update,
    None,
}

/// What shall become of one install.
#[derive(Debug, Clone, Serialize)]
pub(super) struct Plan {
    pub(super) name: String,
    pub(super) action: Action,
    pub(super) changes: Vec<Change>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) workflow_ids: Vec<String>,
    /// Where it is there already.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) id: Option<InstallId>,
    #[serde(skip)]
    pub(super) wanted: config::Install,
    /// Inputs that change.
    #[serde(skip)]
    pub(super) inputs: BTreeMap<String, String>,
    /// Overrides of components that change; an empty text is to go.
    #[serde(skip)]
    pub(super) overrides: BTreeMap<String, ComponentOverride>,
}

/// What is known of the app.
#[derive(Debug, Default)]
pub(super) struct App {
    pub(super) inputs: Vec<AppInput>,
    /// The types of its components by their names; looked up only where a file lays something over one.
    pub(super) components: BTreeMap<String, String>,
}

/// What is known of an install that is there.
#[derive(Debug, Clone, Copy)]
pub(super) struct There<'a> {
    pub(super) install: &'a Install,
    pub(super) inputs: Option<&'a InstallInputs>,
}

/// What a file would change; whatever can't be done goes to `problems`.
pub(super) fn compare(
    wanted: config::Install,
    there: Option<There<'_>>,
    app: &App,
    args: &SyncInstalls,
    problems: &mut Vec<String>,
) -> Plan {
    let declared = &app.inputs;
    impossible(&wanted, there, args.take_over, problems);
    let config = there.and_then(|there| there.install.install_config.as_ref());
    let mut changes = Changes::default();
    if there.is_none() {
        changes.differ("cloud", None, Some(cloud(&wanted)));
    }
    let option = there.map(|_| config.map_or("prompt", |config| config.approval_option.as_str()).to_owned());
    changes.differ("approval_option", option, Some(approval_option(&wanted)));
    let own = config.map(|config| config.labels.clone()).unwrap_or_default();
    changes.maps("labels", &own, &wanted.labels);
    let toggles = config.map(|config| config.component_toggles.clone()).unwrap_or_default();
    let word = |on: bool| if on { "on" } else { "off" }.to_owned();
    for (component, on) in &wanted.component_toggles {
        let path = format!("component_toggles.{component}");
        changes.differ(&path, toggles.get(component).copied().map(word), Some(word(*on)));
    }
    let inputs = match there {
        Some(there) => changed_inputs(&wanted, there, declared, &mut changes, problems),
        None => first_inputs(&wanted, declared, &args.inputs, &mut changes, problems),
    };
    let overrides = changed_overrides(&wanted, there, &app.components, &mut changes, problems);
    if let Some(there) = there {
        let keeper = Some(keeper(there.install).to_owned()).filter(|by| !by.is_empty());
        changes.differ("managed_by", keeper, Some(MANAGED_BY.into()));
    }
    let action = match (there, changes.0.is_empty()) {
        (None, _) => Action::Create,
        (Some(_), false) => Action::Update,
        (Some(_), true) => Action::None,
    };
    let id = there.map(|there| there.install.id.clone());
    Plan {
        name: wanted.name.clone(),
        action,
        changes: changes.0,
        workflow_ids: Vec::new(),
        id,
        wanted,
        inputs,
        overrides,
    }
}

#[derive(Debug, Default)]
struct Changes(Vec<Change>);

impl Changes {
    fn differ(&mut self, path: &str, old: Option<String>, new: Option<String>) {
        if old != new {
            self.0.push(Change { path: path.to_owned(), old, new });
        }
    }

    fn maps(&mut self, path: &str, old: &BTreeMap<String, String>, new: &BTreeMap<String, String>) {
        for (key, value) in new {
            self.differ(&format!("{path}.{key}"), old.get(key).cloned(), Some(value.clone()));
        }
        for (key, value) in old.iter().filter(|(key, _)| !new.contains_key(*key)) {
            self.differ(&format!("{path}.{key}"), Some(value.clone()), None);
        }
    }
}

pub(super) fn approval_option(wanted: &config::Install) -> String {
    wanted.approval_option.clone().unwrap_or_else(|| "prompt".into())
}

fn keeper(install: &Install) -> &str {
    install.metadata.as_ref().map_or("", |metadata| metadata.managed_by.as_str())
}

/// Where the install lies, in words.
fn cloud(wanted: &config::Install) -> String {
    let text = |value: &Option<String>| value.clone().unwrap_or_default();
    match (&wanted.aws_account, &wanted.azure_account, &wanted.gcp_account) {
        (Some(aws), _, _) => format!("aws {}", aws.region),
        (_, Some(azure), _) => format!("azure {}", azure.location),
        (_, _, Some(gcp)) => format!("gcp {}/{}", text(&gcp.project_id), text(&gcp.region)),
        (None, None, None) => "local".into(),
    }
}

/// What a file asks for that can't be done. Saying nothing about it would be worse than doing nothing.
fn impossible(wanted: &config::Install, there: Option<There<'_>>, take_over: bool, problems: &mut Vec<String>) {
    let name = &wanted.name;
    let mut say = |text: String| problems.push(format!("install `{name}`: {text}"));
    if let Err(wrong) = model::name::check(name) {
        say(wrong);
    }
    if let Err(wrong) = model::labels::check(&wanted.labels) {
        say(wrong);
    }
    if wanted.approval_option.as_deref() == Some("auto") {
        say("`approval_option = \"auto\"` is not supported; write `prompt` or `approve-all`".into());
    }
    if wanted.stack_overrides.is_some() {
        say("`stack_overrides` is not supported yet; remove it from the file".into());
    }
    let Some(There { install, .. }) = there else { return };
    let (is, shall) = (crate::commands::installs::place(install), cloud(wanted));
    if is != shall {
        say(format!("it is in `{is}` and can't move to `{shall}`"));
    }
    let keeper = keeper(install);
    if !keeper.is_empty() && keeper != MANAGED_BY && !take_over {
        say(format!("it is managed by `{keeper}`; pass `--take-over` to manage it with files"));
    }
}

/// A value that a file may give; whatever may not goes to `problems`.
fn may_give<'d>(
    wanted: &config::Install,
    name: &str,
    declared: &'d [AppInput],
    problems: &mut Vec<String>,
) -> Option<&'d AppInput> {
    let install = &wanted.name;
    match declared.iter().find(|input| input.name == name) {
        None => {
            let close = crate::commands::closest(name, declared.iter().map(|input| input.name.as_str()));
            let hint = close.map(|close| format!(": did you mean `{close}`?")).unwrap_or_default();
            problems.push(format!("install `{install}`: the app declares no input `{name}`{hint}"));
            None
        }
        Some(input) if input.sensitive => {
            problems.push(format!(
                "install `{install}`: input `{name}` is sensitive, and sensitive values can't be stored in install files: set it with \
                 `ferry installs inputs {install} --set-stdin {name}`"
            ));
            None
        }
        Some(input) => {
            let given = wanted.inputs.get(name).map(String::as_str).unwrap_or_default();
            if let Err(why) = rules(input).accepts(given) {
                problems.push(format!("install `{install}`: input `{name}`: the value {why}"));
            }
            Some(input)
        }
    }
}

/// What the app asks of a value.
fn rules(input: &AppInput) -> config::Input {
    let some = |text: &String| Some(text.clone()).filter(|text| !text.is_empty());
    config::Input {
        name: input.name.clone(),
        r#type: some(&input.input_type),
        options: input.options.clone(),
        min: some(&input.min),
        max: some(&input.max),
        pattern: some(&input.pattern),
        ..config::Input::default()
    }
}

/// The inputs of an install that is made.
fn first_inputs(
    wanted: &config::Install,
    declared: &[AppInput],
    given: &[(String, String)],
    changes: &mut Changes,
    problems: &mut Vec<String>,
) -> BTreeMap<String, String> {
    let mut inputs = BTreeMap::new();
    for (name, value) in &wanted.inputs {
        if may_give(wanted, name, declared, problems).is_some() && !value.is_empty() {
            changes.differ(&format!("inputs.{name}"), None, Some(value.clone()));
            inputs.insert(name.clone(), value.clone());
        }
    }
    for (name, value) in given {
        let Some(input) = declared.iter().find(|input| input.name == *name) else {
            problems.push(format!("`--input {name}`: the app declares no such input"));
            continue;
        };
        if !input.sensitive {
            problems.push(format!(
                "`--input {name}`: only sensitive inputs can be passed here; put it into the install file"
            ));
        }
        if let Err(why) = rules(input).accepts(value) {
            problems.push(format!("`--input {name}`: the value {why}"));
        }
        changes.differ(&format!("inputs.{name}"), None, Some(MASK.into()));
        inputs.insert(name.clone(), value.clone());
    }
    for input in declared.iter().filter(|input| input.required && !input.sensitive && input.source != "customer") {
        if input.default.is_empty() && !inputs.contains_key(&input.name) {
            problems.push(format!(
                "install `{}`: input `{}` is required, but the file doesn't set it",
                wanted.name, input.name
            ));
        }
    }
    inputs
}

/// Inputs of an install that change: those that the file names, and those of the vendor's that it does not name any more.
fn changed_inputs(
    wanted: &config::Install,
    there: There<'_>,
    declared: &[AppInput],
    changes: &mut Changes,
    problems: &mut Vec<String>,
) -> BTreeMap<String, String> {
    let mut inputs = BTreeMap::new();
    let now =
        |name: &str| there.inputs.and_then(|inputs| inputs.redacted_values.get(name)).cloned().unwrap_or_default();
    for (name, value) in &wanted.inputs {
        let Some(input) = may_give(wanted, name, declared, problems) else { continue };
        let shall = if value.is_empty() { &input.default } else { value };
        if now(name) != *shall {
            changes.differ(&format!("inputs.{name}"), Some(now(name)), Some(shall.clone()));
            inputs.insert(name.clone(), value.clone());
        }
    }
    for input in declared {
        let name = &input.name;
        let theirs = input.sensitive || input.source == "customer" || wanted.inputs.contains_key(name);
        if theirs || now(name) == input.default {
            continue;
        }
        if input.required && input.default.is_empty() {
            let text = format!("install `{}`: input `{name}` is required, but the file doesn't set it", wanted.name);
            problems.push(text);
            continue;
        }
        let default = Some(input.default.clone()).filter(|default| !default.is_empty());
        changes.differ(&format!("inputs.{name}"), Some(now(name)), default);
        inputs.insert(name.clone(), String::new());
    }
    inputs
}

/// What the file lays over settings of components, where that is something else than now. What it does not name is to go.
fn changed_overrides(
    wanted: &config::Install,
    there: Option<There<'_>>,
    components: &BTreeMap<String, String>,
    changes: &mut Changes,
    problems: &mut Vec<String>,
) -> BTreeMap<String, ComponentOverride> {
    let install = &wanted.name;
    for (component, over) in wanted.components.iter().filter(|(_, over)| over.texts().next().is_some()) {
        let Some(kind) = components.get(component) else {
            let close = crate::commands::closest(component, components.keys().map(String::as_str));
            let hint = close.map(|close| format!(": did you mean `{close}`?")).unwrap_or_default();
            problems.push(format!("install `{install}`: the app has no component `{component}`{hint}"));
            continue;
        };
        let misfits = over.texts().filter_map(|(of, _)| config::override_misfit(of, kind));
        problems.extend(misfits.map(|wrong| format!("install `{install}`: `components.{component}`: {wrong}")));
    }
    let mut wants: BTreeMap<(String, OverrideKind), String> = BTreeMap::new();
    for (component, over) in &wanted.components {
        wants.extend(over.texts().map(|(kind, text)| ((component.clone(), kind), text.to_owned())));
    }
    let mut has: BTreeMap<(String, OverrideKind), String> = BTreeMap::new();
    for (component, over) in
        there.iter().filter_map(|there| there.inputs).flat_map(|inputs| &inputs.component_overrides)
    {
        let texts = [(OverrideKind::HelmValues, &over.helm_values), (OverrideKind::TfVars, &over.tf_vars)];
        let texts = texts.into_iter().filter_map(|(kind, text)| Some((kind, text.clone()?)));
        has.extend(texts.map(|(kind, text)| ((component.clone(), kind), text)));
    }
    let keys: BTreeSet<_> = wants.keys().chain(has.keys()).collect();
    let mut changed: BTreeMap<String, ComponentOverride> = BTreeMap::new();
    for key in keys {
        let (old, new) = (has.get(key), wants.get(key));
        if old == new {
            continue;
        }
        let (component, kind) = key;
        changes.differ(&format!("components.{component}.{}", kind.as_str()), old.cloned(), new.cloned());
        let nothing = ComponentOverride { helm_values: None, tf_vars: None };
        let over = changed.entry(component.clone()).or_insert(nothing);
        let text = Some(new.cloned().unwrap_or_default());
        match kind {
            OverrideKind::HelmValues => over.helm_values = text,
            OverrideKind::TfVars => over.tf_vars = text,
        }
    }
    changed
}

#[cfg(test)]
mod tests {
    use config::{Options, Tree};
    use serde_json::json;

    use super::*;

    fn declared() -> Vec<AppInput> {
        let input = |name: &str, default: &str, required: bool, sensitive: bool, source: &str| {
            serde_json::from_value(json!({
                "id": "i", "name": name, "index": 0, "default": default, "required": required, "sensitive": sensitive,
                "source": source,
            }))
            .expect("an input")
        };
        vec![
            input("host", "one", false, false, "vendor"),
            input("size", "", true, false, "vendor"),
            input("password", "", true, true, "vendor"),
            input("colour", "", false, false, "customer"),
        ]
    }

    fn args() -> SyncInstalls {
        SyncInstalls {
            files: Vec::new(),
            dir: None,
            app: "shop".into(),
            yes: crate::args::Yes::default(),
            wait: false,
            plan: false,
            inputs: Vec::new(),
            take_over: false,
        }
    }

    fn wanted(text: &str) -> config::Install {
        let mut tree = Tree::new("shop");
        tree.add("installs/a.toml", text);
        let loaded = config::load_installs(&tree, Options::default());
        loaded.config.unwrap_or_else(|| panic!("{:?}", loaded.diagnostics)).installs.remove(0)
    }

    fn there(managed_by: &str) -> (Install, InstallInputs) {
        let id = |prefix: &str| format!("{prefix}0123456789abcdefghijklm");
        let at = "2025-01-01T00:00:00Z";
        let install = json!({
            "id": id("ins"), "org_id": id("org"), "app_id": id("app"), "name": "a", "runner_id": id("run"),
            "runner_status": "active", "sandbox_status": "active", "composite_component_status": "active",
            "cloud_platform": "local", "created_by_id": id("acc"), "created_at": at, "updated_at": at,
            "metadata": { "managed_by": managed_by },
            "install_config": {
                "id": "c", "install_id": "i", "org_id": "o", "approval_option": "prompt", "created_by_id": "a",
                "created_at": at, "updated_at": at, "labels": { "env": "prod" }, "component_toggles": { "extra": false },
            },
        });
        let inputs = json!({
            "id": "x", "created_by_id": "a", "created_at": at, "updated_at": at, "install_id": "i", "version": 1,
            "component_overrides": { "api": { "helm_values": "a: 1" } }, "redacted_values": { "host": "two", "size": "1", "password": "***", "colour": "red" },
        });
        (serde_json::from_value(install).expect("an install"), serde_json::from_value(inputs).expect("inputs"))
    }

    fn lines(text: &str, managed_by: Option<&str>, args: &SyncInstalls) -> (Vec<String>, Vec<String>) {
        let known = managed_by.map(there);
        let there = known.as_ref().map(|(install, inputs)| There { install, inputs: Some(inputs) });
        let mut problems = Vec::new();
        let components = [("api", "helm_chart"), ("db", "terraform_module"), ("img", "docker_build")];
        let components = components.map(|(name, kind)| (name.to_owned(), kind.to_owned())).into();
        let app = App { inputs: declared(), components };
        let plan = compare(wanted(text), there, &app, args, &mut problems);
        let text = |side: &Option<String>| side.clone().unwrap_or_else(|| "-".into());
        (plan.changes.iter().map(|c| format!("{} {} {}", c.path, text(&c.old), text(&c.new))).collect(), problems)
    }

    #[test]
    fn what_a_file_changes() {
        let same = "name = \"a\"\n[labels]\nenv = \"prod\"\n[inputs]\nhost = \"two\"\nsize = \"1\"\n[components.api]\nhelm_values = \"a: 1\"\n";
        assert_eq!(lines(same, Some(MANAGED_BY), &args()), (vec![], vec![]));
        assert_eq!(lines(same, Some(""), &args()).0, [format!("managed_by - {MANAGED_BY}")]);
        let other = "name = \"a\"\napproval_option = \"approve-all\"\n[inputs]\nsize = \"2\"\n[component_toggles]\nextra = true\n[components.api]\nhelm_values = \"a: 1\"\n";
        let (changes, problems) = lines(other, Some(MANAGED_BY), &args());
        assert_eq!(
            changes,
            [
                "approval_option prompt approve-all",
                "labels.env prod -",
                "component_toggles.extra off on",
                "inputs.size 1 2",
                "inputs.host two one",
            ]
        );
        assert_eq!(problems, Vec::<String>::new());
        let secret = SyncInstalls { inputs: vec![("password".into(), "p".into())], ..args() };
        let new = "name = \"a\"\n[aws_account]\nregion = \"eu-west-1\"\n[inputs]\nsize = \"2\"\n";
        let (changes, problems) = lines(new, None, &secret);
        let expected =
            ["cloud - aws eu-west-1", "approval_option - prompt", "inputs.size - 2", "inputs.password - ***"];
        assert_eq!((changes, problems), (expected.map(str::to_owned).to_vec(), vec![]));
    }

    #[test]
    fn what_is_laid_over_components_is_compared() {
        let base = "name = \"a\"\n[labels]\nenv = \"prod\"\n[inputs]\nhost = \"two\"\nsize = \"1\"\n";
        let known = "[components.api]\nhelm_values = \"a: 1\"\n";
        assert_eq!(lines(&format!("{base}{known}"), Some(MANAGED_BY), &args()), (vec![], vec![]));
        assert_eq!(lines(base, Some(MANAGED_BY), &args()).0, ["components.api.helm_values a: 1 -"]);
        let other = "[components.api]\nhelm_values = \"a: 2\"\n[components.db]\ntf_vars = \"size = 3\"\n";
        let (changes, problems) = lines(&format!("{base}{other}"), Some(MANAGED_BY), &args());
        assert_eq!(changes, ["components.api.helm_values a: 1 a: 2", "components.db.tf_vars - size = 3"]);
        assert_eq!(problems, Vec::<String>::new());
    }

    #[test]
    fn what_a_file_can_t_have_is_said() {
        let table = [
            ("name = \"a\"\n[inputs]\nsize = \"1\"\npassword = \"p\"\n", None, "is sensitive"),
            ("name = \"a\"\n[inputs]\nsize = \"1\"\nhots = \"p\"\n", None, "did you mean `host`?"),
            ("name = \"a\"\n", None, "input `size` is required"),
            ("name = \"a\"\n", Some(MANAGED_BY), "input `size` is required"),
            ("name = \"a\"\napproval_option = \"auto\"\n[inputs]\nsize = \"1\"\n", None, "\"auto\""),
            (
                "name = \"a\"\n[inputs]\nsize = \"1\"\n[components.apy]\nhelm_values = \"a: b\"\n",
                None,
                "no component `apy`: did you mean `api`?",
            ),
            (
                "name = \"a\"\n[inputs]\nsize = \"1\"\n[components.img]\nhelm_values = \"a: b\"\n",
                None,
                "`helm_values` is for charts, and the component is a docker_build",
            ),
            (
                "name = \"a\"\n[inputs]\nsize = \"1\"\n[components.api]\ntf_vars = \"a = 1\"\n",
                None,
                "`tf_vars` is for Terraform modules",
            ),
            ("name = \"a\"\n[inputs]\nsize = \"1\"\n", Some("nuon/dashboard"), "--take-over"),
            (
                "name = \"a\"\n[inputs]\nsize = \"1\"\n[aws_account]\nregion = \"eu-west-1\"\n",
                Some(MANAGED_BY),
                "can't move to `aws eu-west-1`",
            ),
        ];
        for (text, managed_by, expected) in table {
            let (_, problems) = lines(text, managed_by, &args());
            assert!(problems.iter().any(|problem| problem.contains(expected)), "{text}: {problems:?}");
        }
    }
}
