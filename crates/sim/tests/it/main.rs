//! The simulator's own tests.

mod seeds;
