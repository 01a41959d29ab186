//! The session process.
