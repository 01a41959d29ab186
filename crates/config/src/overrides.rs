//! What an install lays over the settings of a component: whether it fits the component, and what it reads.

use std::collections::BTreeSet;

use model::overrides::{OverrideKind, TEXT_BYTES_MAX};
use template::{Segment, Template};

use crate::is_template;
use crate::kinds::{ComponentKind, ComponentOverride};
use crate::uses::InputUse;

/// What the templates of an override read.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct OverrideUse {
    pub inputs: InputUse,
    /// Components whose outputs it reads.
    pub components: BTreeSet<String>,
}

impl OverrideUse {
    pub fn of(text: &str) -> Self {
        let mut uses = Self::default();
        let Some(template) = is_template(text).then(|| Template::parse(text).ok()).flatten() else { return uses };
        for reference in template.references() {
            uses.inputs.note(&reference.path, reference.whole);
            if let [Segment::Key(nuon), Segment::Key(components), Segment::Key(name), ..] = reference.path.as_slice()
                && nuon == "nuon"
                && components == "components"
            {
                uses.components.insert(name.clone());
            }
        }
        uses
    }
}

impl ComponentOverride {
    /// The texts that it has.
    pub fn texts(&self) -> impl Iterator<Item = (OverrideKind, &str)> {
        let texts = [(OverrideKind::HelmValues, &self.helm_values), (OverrideKind::TfVars, &self.tf_vars)];
        texts
            .into_iter()
            .filter_map(|(kind, text)| Some((kind, text.as_deref().filter(|text| !text.trim().is_empty())?)))
    }
}

/// Why such a text can't be laid over a component of this type.
pub fn override_misfit(kind: OverrideKind, component_type: &str) -> Option<String> {
    let (fits, of) = match kind {
        OverrideKind::HelmValues => ("helm_chart", "charts"),
        OverrideKind::TfVars => ("terraform_module", "Terraform modules"),
    };
    (component_type != fits)
        .then(|| format!("`{}` is for {of}, and the component is a {component_type}", kind.as_str()))
}

/// What is wrong with the text of an override. What a template makes of itself is known only where it is rendered.
pub fn wrong_override(kind: OverrideKind, text: &str) -> Option<String> {
    if text.len() > TEXT_BYTES_MAX {
        return Some(format!("is longer than {} KiB", TEXT_BYTES_MAX / 1024));
    }
    if is_template(text) {
        return Template::parse(text).err().map(|wrong| format!("is a template that can't be read: {}", wrong.message));
    }
    match kind {
        OverrideKind::HelmValues => match serde_saphyr::from_str::<serde_json::Value>(text) {
            Ok(value) if value.is_object() || value.is_null() => None,
            Ok(_) => Some("is not a map of values".into()),
            Err(error) => {
                let told = error.to_string();
                Some(format!("is not YAML: {}", told.lines().next().unwrap_or_default()))
            }
        },
        OverrideKind::TfVars => terraform::wrong_values(text),
    }
}

/// The same, with what is known of the component.
pub fn wrong_override_of(kind: OverrideKind, component: &ComponentKind, text: &str) -> Option<String> {
    override_misfit(kind, component.name())
        .or_else(|| wrong_override(kind, text).map(|wrong| format!("`{}` {wrong}", kind.as_str())))
}
