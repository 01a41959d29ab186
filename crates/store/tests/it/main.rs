//! What the store promises, on SQLite and on PostgreSQL.

mod blobs;
mod configs;
mod creating;
mod encryption;
mod events;
mod first_schema;
mod health;
mod install_settings;
mod job_types;
mod journeys;
mod kit;
mod leases;
mod logs;
mod notifier;
mod orphans;
mod queue;
mod registry;
mod schema;
mod signing;
mod telemetry;
mod tenancy;
mod terraform;
mod tokens;
mod traffic;
mod transactions;
mod workflows;
