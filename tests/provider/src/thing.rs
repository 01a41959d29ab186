//! The resource `fixture_thing`.

use std::borrow::Cow;
use std::io;
use std::time::Duration;

use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use tf_provider::schema::{Attribute, AttributeConstraint, AttributeType, Block, Description, Schema};
use tf_provider::value::{Value, ValueBool, ValueEmpty, ValueNumber, ValueString};
use tf_provider::{AttributePath, Diagnostic, Diagnostics, Resource, map};
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;
use tokio_util::sync::CancellationToken;

use crate::world::{Body, Place};

/// The directory in which an imported thing is looked for when its id is a bare name.
const WORLD_VAR: &str = "FIXTURE_WORLD";
const FAILURES: [&str; 4] = ["create", "update", "delete", "after_create"];

pub(crate) struct Thing {
    stop: CancellationToken,
}

#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(crate) struct State<'a> {
    #[serde(borrow = "'a")]
    id: ValueString<'a>,
    name: ValueString<'a>,
    world: ValueString<'a>,
    size: ValueNumber,
    secret: ValueString<'a>,
    sleep_ms: ValueNumber,
    ignore_stop: ValueBool,
    fail: ValueString<'a>,
    made_at: ValueString<'a>,
}

impl State<'_> {
    fn place(&self) -> Place {
        Place::new(self.world.as_str(), self.name.as_str())
    }

    fn body(&self) -> Body {
        Body { size: self.size.as_option() }
    }

    fn fails(&self, at: &str) -> bool {
        self.fail.as_deref_option() == Some(at)
    }
}

impl Thing {
    pub(crate) fn new(stop: CancellationToken) -> Self {
        Self { stop }
    }

    /// The time that an operation lasts. The world has changed by then: what is interrupted here has happened.
    async fn last(&self, state: &State<'_>) -> Result<(), Interrupted> {
        let time = Duration::from_millis(state.sleep_ms.as_option().and_then(|ms| ms.try_into().ok()).unwrap_or(0));
        tokio::select! {
            biased;
            () = tokio::time::sleep(time) => Ok(()),
            () = self.stop.cancelled(), if !state.ignore_stop.unwrap_or(false) => Err(Interrupted),
        }
    }
}

#[async_trait]
impl Resource for Thing {
    type State<'a> = State<'a>;
    type PrivateState<'a> = ValueEmpty;
    type ProviderMetaState<'a> = ValueEmpty;

    fn schema(&self, _: &mut Diagnostics) -> Option<Schema> {
        use AttributeConstraint::{Computed, Optional, Required};
        use AttributeType::{Bool, Number, String};
        let attributes = map! {
            "id" => attribute(String, Computed, "The name, once the thing is made"),
            "name" => attribute(String, Required, "Another name is another thing"),
            "world" => attribute(String, Required, "The directory in which the thing is a file; another world is another thing"),
            "size" => attribute(Number, Optional, "A whole number, which the file holds"),
            "secret" => Attribute { sensitive: true, ..attribute(String, Optional, "Kept in the state alone") },
            "sleep_ms" => attribute(Number, Optional, "How long create, update and delete last after the world has changed"),
            "ignore_stop" => attribute(Bool, Optional, "Sleeps on when Terraform is interrupted"),
            "fail" => attribute(String, Optional, "What fails: create, update, delete, or after_create"),
            "made_at" => attribute(String, Computed, "When the thing was made"),
        };
        let description = Description::plain("A file in a directory");
        Some(Schema { version: 1, block: Block { attributes, description, ..Block::default() } })
    }

    async fn validate<'a>(&self, diags: &mut Diagnostics, config: State<'a>) -> Option<()> {
        if let Some(name) = config.name.as_deref_option()
            && (name.is_empty() || name.starts_with('.') || name.contains('/'))
        {
            error(diags, "The name must be a file's name", format!("{name:?}"));
        }
        if let Some(fail) = config.fail.as_deref_option()
            && !FAILURES.contains(&fail)
        {
            error(diags, "There is no such failure", format!("{fail:?} is none of {}", FAILURES.join(", ")));
        }
        Some(())
    }

    async fn read<'a>(
        &self,
        diags: &mut Diagnostics,
        state: State<'a>,
        private: ValueEmpty,
        _: ValueEmpty,
    ) -> Option<(State<'a>, ValueEmpty)> {
        match state.place().read() {
            Ok(body) => body.map(|body| (State { size: body.size.into(), ..state }, private)),
            Err(err) => {
                io_error(diags, "read", &err);
                Some((state, private))
            }
        }
    }

    async fn plan_create<'a>(
        &self,
        _: &mut Diagnostics,
        proposed: State<'a>,
        _: State<'a>,
        _: ValueEmpty,
    ) -> Option<(State<'a>, ValueEmpty)> {
        Some((State { id: Value::Unknown, made_at: Value::Unknown, ..proposed }, Value::Null))
    }

    async fn plan_update<'a>(
        &self,
        _: &mut Diagnostics,
        prior: State<'a>,
        proposed: State<'a>,
        _: State<'a>,
        private: ValueEmpty,
        _: ValueEmpty,
    ) -> Option<(State<'a>, ValueEmpty, Vec<AttributePath>)> {
        let replacing = [("name", prior.name != proposed.name), ("world", prior.world != proposed.world)];
        let replacing = replacing.into_iter().filter(|(_, differs)| *differs).map(|(name, _)| AttributePath::new(name));
        Some((proposed, private, replacing.collect()))
    }

    async fn plan_destroy<'a>(
        &self,
        _: &mut Diagnostics,
        _: State<'a>,
        private: ValueEmpty,
        _: ValueEmpty,
    ) -> Option<ValueEmpty> {
        Some(private)
    }

    async fn create<'a>(
        &self,
        diags: &mut Diagnostics,
        planned: State<'a>,
        _: State<'a>,
        private: ValueEmpty,
        _: ValueEmpty,
    ) -> Option<(State<'a>, ValueEmpty)> {
        if planned.fails("create") {
            told_to_fail(diags, "create");
            return None;
        }
        if let Err(err) = planned.place().create(&planned.body()) {
            io_error(diags, "create", &err);
            return None;
        }
        let made_at = Value::from(rfc3339(OffsetDateTime::now_utc()));
        let made = State { id: planned.name.clone(), made_at, ..planned };
        // An error with a state: Terraform records the thing, and marks it tainted.
        if let Err(Interrupted) = self.last(&made).await {
            interrupted(diags, "create");
        } else if made.fails("after_create") {
            told_to_fail(diags, "after_create");
        }
        Some((made, private))
    }

    async fn update<'a>(
        &self,
        diags: &mut Diagnostics,
        prior: State<'a>,
        planned: State<'a>,
        _: State<'a>,
        private: ValueEmpty,
        _: ValueEmpty,
    ) -> Option<(State<'a>, ValueEmpty)> {
        if planned.fails("update") {
            told_to_fail(diags, "update");
            return Some((prior, private));
        }
        if let Err(err) = planned.place().update(&planned.body()) {
            io_error(diags, "update", &err);
            return Some((prior, private));
        }
        if let Err(Interrupted) = self.last(&planned).await {
            interrupted(diags, "update");
        }
        Some((planned, private))
    }

    /// After an error Terraform keeps the thing in its state, whether it is still there or not: the next read tells.
    async fn destroy<'a>(&self, diags: &mut Diagnostics, prior: State<'a>, _: ValueEmpty, _: ValueEmpty) -> Option<()> {
        if prior.fails("delete") {
            told_to_fail(diags, "delete");
            return None;
        }
        if let Err(err) = prior.place().delete() {
            io_error(diags, "delete", &err);
            return None;
        }
        if let Err(Interrupted) = self.last(&prior).await {
            interrupted(diags, "delete");
            return None;
        }
        Some(())
    }

    /// The id is `<world>/<name>`, or a name in the world that the environment names.
    async fn import<'a>(&self, diags: &mut Diagnostics, id: String) -> Option<(State<'a>, ValueEmpty)> {
        let (world, name) = match id.rsplit_once('/') {
            Some((world, name)) => (world.to_owned(), name.to_owned()),
            None => (std::env::var(WORLD_VAR).unwrap_or_default(), id),
        };
        if world.is_empty() {
            error(diags, "Where is it?", format!("Import <world>/<name>, or set {WORLD_VAR}"));
            return None;
        }
        let made_at = match Place::new(&world, &name).written_at() {
            Ok(at) => rfc3339(at),
            Err(err) => {
                io_error(diags, "import", &err);
                return None;
            }
        };
        // Terraform reads the rest.
        let found = State {
            id: name.clone().into(),
            name: name.into(),
            world: world.into(),
            made_at: made_at.into(),
            ..State::default()
        };
        Some((found, Value::Null))
    }
}

/// Terraform called StopProvider while an operation lasted.
struct Interrupted;

fn attribute(attr_type: AttributeType, constraint: AttributeConstraint, description: &str) -> Attribute {
    Attribute { attr_type, constraint, description: Description::plain(description), ..Attribute::default() }
}

fn rfc3339(at: OffsetDateTime) -> String {
    at.format(&Rfc3339).expect("a clock of our time has a year of four digits")
}

fn told_to_fail(diags: &mut Diagnostics, at: &'static str) {
    error(diags, format!("Told to fail: {at}"), "The argument `fail` says so");
}

fn interrupted(diags: &mut Diagnostics, operation: &'static str) {
    error(
        diags,
        format!("Interrupted: {operation}"),
        "The world has changed, but the operation did not last to its end",
    );
}

fn io_error(diags: &mut Diagnostics, operation: &'static str, err: &io::Error) {
    error(diags, format!("Failed to {operation}"), err.to_string());
}

/// Without the backtrace that the library's own functions add to what a user reads.
fn error(diags: &mut Diagnostics, summary: impl Into<Cow<'static, str>>, detail: impl Into<Cow<'static, str>>) {
    diags.add_error(Diagnostic { summary: summary.into(), detail: detail.into(), attribute: AttributePath::default() });
}
