//! Tests of the format as a whole: real apps, broken ones, and anything at all.
#![allow(clippy::unwrap_used, clippy::print_stdout, clippy::explicit_write)]

mod anything;
mod checks;
mod corpus;
mod features;
mod generated;
mod kit;
mod mutations;
mod schemas;
mod templates;
mod whole;
