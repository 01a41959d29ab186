//! The client and the commands against a small HTTP server on loopback: real requests cross a socket.

mod client;
mod commands;
mod ferry;
mod modules;
mod policies;
mod server;
