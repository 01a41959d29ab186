//! What an install lays over the settings of a component. It is kept among the install's inputs, each text under a name of its own, as
//! the dialect has it; so it has versions, is sealed at rest, and is deployed as a changed input is.

/// All such names begin so.
pub const PREFIX: &str = "nuon_component_override_v1_";

/// Most bytes of one text.
pub const TEXT_BYTES_MAX: usize = 128 * 1024;

/// What is laid over what.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum OverrideKind {
    /// YAML over the values of a chart.
    HelmValues,
    /// HCL or JSON over the variables of a module.
    TfVars,
}

impl OverrideKind {
    pub const ALL: [Self; 2] = [Self::HelmValues, Self::TfVars];

    pub fn as_str(self) -> &'static str {
        match self {
            Self::HelmValues => "helm_values",
            Self::TfVars => "tf_vars",
        }
    }
}

/// The name of the input that holds such a text.
pub fn input_name(component: &str, kind: OverrideKind) -> String {
    format!("{PREFIX}{}_{}", kind.as_str(), hex::encode(component))
}

/// Which component's, and what, where a name is of that form.
pub fn of_input(name: &str) -> Option<(String, OverrideKind)> {
    let rest = name.strip_prefix(PREFIX)?;
    let of = |kind: OverrideKind| Some((kind, rest.strip_prefix(kind.as_str())?.strip_prefix('_')?));
    let (kind, component) = OverrideKind::ALL.into_iter().find_map(of)?;
    let component = String::from_utf8(hex::decode(component).ok()?).ok()?;
    // One name for each.
    (input_name(&component, kind) == name).then_some((component, kind))
}

/// An input as people know it: an override by its place in an install's file.
pub fn shown(name: &str) -> String {
    match of_input(name) {
        Some((component, kind)) => format!("components.{component}.{}", kind.as_str()),
        None => name.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_says_component_and_kind_and_nothing_else_does() {
        let name = input_name("web_tls_1", OverrideKind::HelmValues);
        assert_eq!(name, "nuon_component_override_v1_helm_values_7765625f746c735f31");
        assert_eq!(of_input(&name), Some(("web_tls_1".into(), OverrideKind::HelmValues)));
        assert_eq!(shown(&name), "components.web_tls_1.helm_values");
        assert_eq!(shown(&input_name("db", OverrideKind::TfVars)), "components.db.tf_vars");
        for other in [
            "host",
            "nuon_component_override_v1_enabled_6462",
            "nuon_component_override_v1_tf_vars_6Z",
            &name.to_uppercase(),
        ] {
            assert_eq!(of_input(other), None, "{other}");
        }
        assert_eq!(of_input("nuon_component_override_v1_tf_vars_6C"), None, "written in one way only");
    }
}
