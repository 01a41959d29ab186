//! What of the server needs no running system; the rest is in `crates/ferry/tests`.

mod config;
mod generated;
mod layers;
