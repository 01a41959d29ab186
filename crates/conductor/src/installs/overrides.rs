//! What an install lays over the settings of its components. It lies among the install's inputs (`model::overrides`).

use std::collections::BTreeMap;

use config::{AppConfig, ComponentOverride, Graph, InputUse, OverrideUse};
use model::overrides::{OverrideKind, PREFIX, input_name, of_input};

/// By the name of the component.
pub type Overrides = BTreeMap<String, ComponentOverride>;

/// Those among the inputs that were given.
pub fn overrides(given: &BTreeMap<String, String>) -> Overrides {
    let mut found = Overrides::new();
    for (name, text) in given.range(PREFIX.to_owned()..).take_while(|(name, _)| name.starts_with(PREFIX)) {
        let Some((component, kind)) = of_input(name) else { continue };
        let over = found.entry(component).or_default();
        match kind {
            OverrideKind::HelmValues => over.helm_values = Some(text.clone()),
            OverrideKind::TfVars => over.tf_vars = Some(text.clone()),
        }
    }
    found
}

/// The same as inputs. A text that is named and empty is to go.
pub fn as_inputs(overrides: &Overrides) -> BTreeMap<String, String> {
    let mut inputs = BTreeMap::new();
    for (component, over) in overrides {
        for (kind, text) in [(OverrideKind::HelmValues, &over.helm_values), (OverrideKind::TfVars, &over.tf_vars)] {
            if let Some(text) = text {
                let text = if text.trim().is_empty() { "" } else { text };
                inputs.insert(input_name(component, kind), text.to_owned());
            }
        }
    }
    inputs
}

/// Which inputs they read.
pub(crate) fn input_uses(given: &BTreeMap<String, String>) -> BTreeMap<String, InputUse> {
    let all = overrides(given);
    let uses = |over: &ComponentOverride| {
        let mut uses = InputUse::default();
        for (_, text) in over.texts() {
            let read = OverrideUse::of(text).inputs;
            uses.any |= read.any;
            uses.names.extend(read.names);
        }
        uses
    };
    all.iter().map(|(component, over)| (component.clone(), uses(over))).collect()
}

/// Why an input that is kept for the platform can't have this value; every message says what to do.
pub(super) fn wrong(config: &AppConfig, name: &str, text: &str) -> Option<String> {
    let Some((component, kind)) = of_input(name) else {
        return Some(format!(
            "`{name}` is a name that is kept for the platform, and stands for no override: give overrides in `component_overrides`, and switch components with their `toggle`"
        ));
    };
    if text.is_empty() {
        return None;
    }
    let Some(found) = config.components.iter().find(|known| known.common.name == component) else {
        return Some(format!("the app has no component `{component}`"));
    };
    if let Some(wrong) = config::wrong_override_of(kind, &found.kind, text) {
        return Some(format!("component `{component}`: {wrong}"));
    }
    // What it reads must be deployed before it.
    let needs: Vec<String> = Graph::new(config)
        .map(|graph| graph.dependencies.into_iter().filter(|it| it.component == component).map(|it| it.on).collect())
        .unwrap_or_default();
    let read = OverrideUse::of(text).components;
    let missing = read.into_iter().find(|read| !needs.contains(read))?;
    Some(format!(
        "component `{component}`: `{}` reads `{missing}`, which `{component}` doesn't depend on: add it to the component's `dependencies`",
        kind.as_str()
    ))
}
