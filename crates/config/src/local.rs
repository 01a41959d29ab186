//! Directories of the app itself that a config names.

use std::collections::BTreeSet;

use crate::diagnostic::{did_you_mean, error};
use crate::kinds::AppConfig;
use crate::tree::join;
use crate::{Code, Problem, Tree};

/// A directory of the app that a component or a step is made of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LocalSource {
    /// Where in the config it is named, as a JSON pointer.
    pub path: String,
    /// From the root of the app, without `.` and `..`; empty for the root itself.
    pub directory: String,
}

/// The directories that are sent along with a config.
pub fn local_sources(config: &AppConfig) -> Vec<LocalSource> {
    let components = config
        .components
        .iter()
        .enumerate()
        .filter_map(|(i, component)| Some((format!("/components/{i}/local/directory"), component.kind.local()?)));
    let steps = config.actions.iter().enumerate().flat_map(|(i, action)| {
        action.steps.iter().enumerate().filter_map(move |(j, step)| {
            Some((format!("/actions/{i}/steps/{j}/local/directory"), step.local.as_ref()?))
        })
    });
    components
        .chain(steps)
        .filter_map(|(path, local)| Some(LocalSource { path, directory: join("", &local.directory)? }))
        .collect()
}

/// Directories that are named and have no file.
pub(crate) fn missing(tree: &Tree, config: &AppConfig) -> Vec<Problem> {
    let gone = |source: &LocalSource| !source.directory.is_empty() && !tree.has_directory(&source.directory);
    let directories = || {
        let parents = tree.files.keys().flat_map(|file| file.match_indices('/').map(|(at, _)| &file[..at]));
        parents.collect::<BTreeSet<_>>()
    };
    let said = |source: LocalSource| {
        let hint = did_you_mean(&source.directory, directories().into_iter());
        error(Code::FileNotFound, format!("there is no directory `{}` with files in it", source.directory))
            .maybe_hint(hint)
            .at(source.path)
    };
    local_sources(config).into_iter().filter(gone).map(said).collect()
}

impl crate::kinds::Local {
    /// The directory from the root of the app, without `.` and `..`; none where it leaves the app.
    pub fn path(&self) -> Option<String> {
        join("", &self.directory)
    }
}
