//! Real executors with real children: `ferry-runner execute DIR` on directories as a session makes them.

mod executor;
mod hostile;
mod sources;
mod world;
