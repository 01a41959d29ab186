//! How the provider is told to stop, and how it is not.
//!
//! Terraform calls StopProvider when it is interrupted. The library answers that call by itself and closes the server once the
//! calls under way are done, but does not pass the news on. It does trace each call, so the trace is where we hear of it.

use std::fmt::Debug;

use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id};
use tracing_subscriber::layer::{Context, SubscriberExt};
use tracing_subscriber::{Layer, Registry};

/// A token that is cancelled when Terraform calls StopProvider.
pub(crate) fn listen() -> anyhow::Result<CancellationToken> {
    let stop = CancellationToken::new();
    tracing::subscriber::set_global_default(Registry::default().with(Ear(stop.clone())))?;
    Ok(stop)
}

/// Ctrl-C reaches the whole process group. Like every provider written in Go, this one leaves it to Terraform to react.
pub(crate) fn ignore_interrupts() -> anyhow::Result<()> {
    // The handler stays for the life of the process, though nobody reads what it receives.
    let _unread = signal(SignalKind::interrupt())?;
    Ok(())
}

struct Ear(CancellationToken);

impl<S: tracing::Subscriber> Layer<S> for Ear {
    fn on_new_span(&self, span: &Attributes<'_>, _: &Id, _: Context<'_, S>) {
        span.record(&mut Call { stop: &self.0 });
    }
}

struct Call<'a> {
    stop: &'a CancellationToken,
}

impl Visit for Call<'_> {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        if field.name() == "uri" && format!("{value:?}").ends_with("/tfplugin6.Provider/StopProvider") {
            self.stop.cancel();
        }
    }
}
