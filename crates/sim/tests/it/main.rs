//! The simulator's own tests.

mod fleet;
mod seeds;
