//! Versions on both sides.

use api::client::{Client, Options};
use serde_json::json;

use crate::args::Global;
use crate::commands::{REQUEST_TIMEOUT, target};
use crate::error::Result;
use crate::output::{Output, cell, strong};

pub(super) async fn run(global: &Global, out: &Output) -> Result<u8> {
    let version = env!("CARGO_PKG_VERSION");
    let target = target(global)?;
    let mut pairs = vec![("ferry", strong(version))];
    let mut document = json!({ "version": version });
    if let Some(url) = &target.url {
        let options = Options { ca_file: target.ca_file.clone(), timeout: REQUEST_TIMEOUT };
        let answer = match Client::new(url, None, None, &options) {
            Ok(client) => client.version().await,
            Err(error) => Err(error),
        };
        match answer {
            Ok(server) => {
                let protocols = format!("{} to {}", server.protocol_min, server.protocol_max);
                document["server"] = json!(server);
                pairs.push(("server", cell(format!("{} ({}) at {url}", server.version, server.git_ref))));
                pairs.push(("runner protocols", cell(protocols)));
            }
            // The own version is an answer too.
            Err(error) => out.warn(&error.to_string()),
        }
    }
    if out.json {
        out.json(&document)?;
    } else {
        out.pairs(pairs)?;
    }
    Ok(0)
}
