//! What the conductor does by itself, on both databases and by a clock of ours.

mod kit;
mod schedules;
