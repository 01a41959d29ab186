//! Directories of the app itself that a config names.

use std::collections::BTreeSet;

use crate::diagnostic::{did_you_mean, error};
use crate::kinds::{AppConfig, Local};
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
    let inside = |(path, local): (String, &Local)| Some(LocalSource { path, directory: join("", &local.directory)? });
    named(config).filter_map(inside).collect()
}

fn named(config: &AppConfig) -> impl Iterator<Item = (String, &Local)> {
    let sandbox = config.sandbox.iter().filter_map(|sandbox| Some(("/sandbox".to_owned(), sandbox.local.as_ref()?)));
    let components = config.components.iter().enumerate();
    let components =
        components.filter_map(|(i, component)| Some((format!("/components/{i}"), component.kind.local()?)));
    let steps = config.actions.iter().enumerate().flat_map(|(i, action)| {
        let steps = action.steps.iter().enumerate();
        steps.filter_map(move |(j, step)| Some((format!("/actions/{i}/steps/{j}"), step.local.as_ref()?)))
    });
    sandbox.chain(components).chain(steps).map(|(path, local)| (path + "/local/directory", local))
}

/// Directories that are not in the app.
pub(crate) fn outside(config: &AppConfig) -> impl Iterator<Item = Problem> {
    named(config).filter(|(_, local)| join("", &local.directory).is_none()).map(|(path, local)| {
        error(Code::PathEscape, format!("`{}` leads out of the app's directory", local.directory)).at(path)
    })
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
