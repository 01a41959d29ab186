//! A Terraform provider for tests: things that live in a directory, fail and take their time when told to.
//!
//! One resource type, `fixture_thing`. What it makes is real: the file `<world>/<name>.json`. Whoever edits or removes that
//! file makes drift, and `<world>/witness.log` has a line for each time the provider changed the world. README.md has the
//! arguments.

mod stop;
mod thing;
mod world;

use std::collections::HashMap;

use async_trait::async_trait;
use tf_provider::schema::{Block, Description, Schema};
use tf_provider::value::ValueEmpty;
use tf_provider::{Diagnostics, DynamicResource, Provider, map, serve};
use tokio_util::sync::CancellationToken;

struct Fixture {
    stop: CancellationToken,
}

#[async_trait]
impl Provider for Fixture {
    type Config<'a> = ValueEmpty;
    type MetaState<'a> = ValueEmpty;

    fn schema(&self, _: &mut Diagnostics) -> Option<Schema> {
        let description = Description::plain("Things that live in a directory, for tests");
        Some(Schema { version: 1, block: Block { description, ..Block::default() } })
    }

    fn get_resources(&self, _: &mut Diagnostics) -> Option<HashMap<String, Box<dyn DynamicResource>>> {
        Some(map! { "thing" => thing::Thing::new(self.stop.clone()) })
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> anyhow::Result<()> {
    stop::ignore_interrupts()?;
    serve("fixture", Fixture { stop: stop::listen()? }).await
}
