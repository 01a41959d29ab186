//! Owns what lists and pages are drawn from: summaries of installs, the last looks for drift, saved views.
//! The conductor puts summaries together; the handlers of pages read them.
//! No truth of its own: all but the saved views follows from other tables.

pub(crate) mod lists;
pub(crate) mod looks;
pub(crate) mod summaries;
pub(crate) mod views;
