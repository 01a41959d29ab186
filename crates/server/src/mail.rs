//! Mails, where SMTP is configured: invites only. One that can't be sent is no error of the request; its answer says so.

use std::time::Duration;

use anyhow::Context as _;
use lettre::message::{Mailbox, Message, header::ContentType};
use lettre::{AsyncSmtpTransport, AsyncTransport as _, Tokio1Executor};

use crate::config;

/// How long a mail server may take.
const PATIENCE: Duration = Duration::from_secs(15);

pub(crate) struct Mailer {
    transport: AsyncSmtpTransport<Tokio1Executor>,
    from: Mailbox,
}

impl Mailer {
    /// None where no server is configured.
    pub(crate) fn new(config: &config::Mail) -> anyhow::Result<Option<Self>> {
        if config.smtp_url.is_empty() {
            return Ok(None);
        }
        let from = config.from.parse().with_context(|| format!("mail.from `{}` is no address", config.from))?;
        // The error may hold the URL, and with it the password.
        let transport = AsyncSmtpTransport::<Tokio1Executor>::from_url(&config.smtp_url)
            .map_err(|_| anyhow::anyhow!("mail.smtp_url can't be read; give it like smtps://USER:PASSWORD@HOST"))?;
        Ok(Some(Self { transport: transport.timeout(Some(PATIENCE)).build(), from }))
    }

    /// Whether it was sent.
    pub(crate) async fn invite(&self, to: &str, org: &str, role: &str, url: &str) -> bool {
        let text = format!(
            "You are invited to join {org} on Ferry, with the role {role}.\n\nOpen this link and accept:\n\n{url}\n\nIt is good for 7 days, once, and only for {to}. If you did not expect it, ignore it.\n"
        );
        let sent = async {
            let message = Message::builder()
                .from(self.from.clone())
                .to(to.parse()?)
                .subject(format!("Invitation to {org}"))
                .header(ContentType::TEXT_PLAIN)
                .body(text)?;
            tokio::time::timeout(PATIENCE, self.transport.send(message))
                .await
                .context("the mail server is too slow")??;
            anyhow::Ok(())
        };
        match sent.await {
            Ok(()) => true,
            Err(error) => {
                tracing::warn!(error = format!("{error:#}"), "an invite was not mailed");
                false
            }
        }
    }
}
