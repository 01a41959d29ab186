//! What the conductor does by itself, on both databases and by a clock of ours.

mod health;
mod installs;
mod kit;
mod schedules;
mod secrets;
