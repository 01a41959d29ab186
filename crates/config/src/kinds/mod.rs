//! Every table of the format. A new key is a line here: the type, its place in the file, its rules and its documentation.

mod actions;
mod app;
mod components;
mod installs;
mod roles;

pub use actions::*;
pub use app::*;
pub use components::*;
pub use installs::*;
pub use roles::*;

/// Text by key.
pub type Texts = std::collections::BTreeMap<String, String>;
