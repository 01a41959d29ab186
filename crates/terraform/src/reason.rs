//! Why a change would be made, as the end of a sentence.

use serde_json::Value;

use crate::diff;

const PATHS_NAMED: usize = 3;

/// The sentence for an `action_reason`, with the names of the attributes that force a replacement.
pub(crate) fn sentence(
    action_reason: Option<&str>,
    replace_paths: &[Value],
    masks: &dyn Fn(&str) -> String,
) -> Option<String> {
    let reason = action_reason.filter(|reason| !reason.is_empty());
    let fixed = match reason {
        Some("replace_because_cannot_update") => return Some(cannot_update(replace_paths, masks)),
        None if !replace_paths.is_empty() => return Some(cannot_update(replace_paths, masks)),
        None | Some("none") => return None,
        Some("replace_because_tainted") => "because it is tainted",
        Some("replace_by_request") => "because it was requested",
        Some("replace_by_triggers") => "because something in its replace_triggered_by changes",
        Some("delete_because_no_resource_config") => "because it is no longer in the configuration",
        Some("delete_because_no_module") => "because its module is no longer in the configuration",
        Some("delete_because_wrong_repetition") => "because count or for_each was added to it or taken away",
        Some("delete_because_count_index") => "because its index is no longer within count",
        Some("delete_because_each_key") => "because its key is no longer in for_each",
        Some("delete_because_no_move_target") => "because it was moved to an address that is not in the configuration",
        Some("delete_because_enabled_false") => "because it is no longer enabled",
        Some("read_because_config_unknown") => "because its configuration is known after apply only",
        Some("read_because_dependency_pending") => "because something it depends on changes",
        Some("read_because_check_nested") => "because a check reads it",
        Some(other) => return Some(masks(&format!("because of {}", other.replace('_', " ")))),
    };
    Some(fixed.to_owned())
}

fn cannot_update(replace_paths: &[Value], masks: &dyn Fn(&str) -> String) -> String {
    let mut names: Vec<String> = replace_paths.iter().filter_map(|path| diff::path_of_steps(path, masks)).collect();
    names.dedup();
    let more = names.len().saturating_sub(PATHS_NAMED);
    names.truncate(PATHS_NAMED);
    let listed = names.join(", ");
    match (names.is_empty(), more) {
        (true, _) => "because a change to it can't be made in place".to_owned(),
        (false, 0) => format!("because {listed} can't be changed in place"),
        (false, _) => format!("because {listed} and {more} more can't be changed in place"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn reasons_are_sentences() {
        let paths = |paths: Value| match paths {
            Value::Array(paths) => paths,
            _ => Vec::new(),
        };
        for (reason, replace_paths, expected) in [
            (None, json!([]), None),
            (None, json!([["id"]]), Some("because id can't be changed in place")),
            (Some("replace_because_tainted"), json!([]), Some("because it is tainted")),
            (
                Some("replace_because_cannot_update"),
                json!([["triggers_replace"]]),
                Some("because triggers_replace can't be changed in place"),
            ),
            (
                Some("replace_because_cannot_update"),
                json!([["a"], ["disk", 0, "size"], ["c"], ["d"], ["e"]]),
                Some("because a, disk[0].size, c and 2 more can't be changed in place"),
            ),
            (Some("replace_because_cannot_update"), json!([]), Some("because a change to it can't be made in place")),
            (
                Some("delete_because_no_resource_config"),
                json!([]),
                Some("because it is no longer in the configuration"),
            ),
            (Some("delete_because_new_law"), json!([]), Some("because of delete because new law")),
        ] {
            assert_eq!(sentence(reason, &paths(replace_paths), &str::to_owned).as_deref(), expected);
        }
    }
}
