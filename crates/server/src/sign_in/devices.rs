//! The pages on which a person lets a CLI in: by the code that it shows, or from the browser of the same machine.

use axum::Router;
use axum::extract::{Query, State};
use axum::response::{IntoResponse as _, Redirect, Response};
use axum::routing::get;
use conductor::Visitor;
use http::StatusCode;
use serde::Deserialize;
use store::StoreError;

use super::asked::{Person, SentBy};
use super::limiter::Tried;
use super::pages::{button, escape, page, page_to, trouble};
use super::routes::{LOGIN, encoded, failed, roles, shown_time};
use crate::AppState;

pub(super) fn routes() -> Router<AppState> {
    Router::new().route("/device", get(device).post(answer_device)).route("/auth/cli", get(cli_page).post(let_cli_in))
}

fn device_page(status: StatusCode, trouble: &str) -> Response {
    let said =
        if trouble.is_empty() { String::new() } else { format!("<p class=bad role=alert>{}</p>", escape(trouble)) };
    let body = format!(
        "{said}<p>Type the code that <code>ferry auth login</code> shows on the other machine.</p><form method=post action=/device><label for=code>Code</label><input id=code name=code autocomplete=off autocapitalize=characters spellcheck=false maxlength=20 required autofocus><button class=main>Continue</button></form>"
    );
    page(status, "Sign a CLI in", &body)
}

async fn device(_: Person) -> Response {
    device_page(StatusCode::OK, "")
}

#[derive(Debug, Deserialize)]
struct DeviceForm {
    code: String,
    #[serde(default)]
    answer: String,
}

async fn answer_device(
    State(state): State<AppState>,
    SentBy { from, who, form: sent }: SentBy<DeviceForm>,
) -> Response {
    let account = who.account.id.as_str();
    for (tried, key) in [(Tried::Typing, account), (Tried::Guessing, from.address.as_str())] {
        if let Err(error) = state.limits.check(tried, key) {
            return failed(error, ("/device", "Back"));
        }
    }
    let found = match sent.answer.as_str() {
        "" => state.conductor.device_of(&sent.code).await,
        answer => state.conductor.answer_device(&who, &sent.code, answer == "yes").await,
    };
    match (found, sent.answer.as_str()) {
        (Ok(login), "") => {
            let names = state.store().orgs_of(&who.account.id).await.unwrap_or_default();
            let body = format!(
                "<p>The CLI on <b>{}</b> (address {}) asked {} to sign in as <b>{}</b>. It would have: {}.</p><p class=dim>Continue only if you started it yourself.</p>{}{}",
                escape(&login.host),
                escape(&login.address),
                shown_time(login.created_at),
                escape(&who.account.email),
                escape(&roles(&who, &names)),
                button("/device", &[("code", &sent.code), ("answer", "yes")], "Sign this CLI in", "main"),
                button("/device", &[("code", &sent.code), ("answer", "no")], "Refuse", ""),
            );
            page(StatusCode::OK, "Sign a CLI in", &body)
        }
        (Ok(_), "yes") => page(StatusCode::OK, "The CLI is signed in", "<p>You can close this page.</p>"),
        (Ok(_), _) => page(StatusCode::OK, "Refused", "<p>The CLI was not signed in.</p>"),
        (Err(conductor::Error::Store(StoreError::NotFound(_))), _) => {
            state.limits.count(Tried::Typing, account);
            state.limits.count(Tried::Guessing, &from.address);
            device_page(StatusCode::NOT_FOUND, "no CLI waits with this code; codes are good for 10 minutes")
        }
        (Err(error), _) => failed(error, ("/device", "Back")),
    }
}

#[derive(Debug, Clone, Deserialize)]
struct Loopback {
    #[serde(default)]
    port: u16,
    #[serde(default)]
    state: String,
    #[serde(default)]
    challenge: String,
    #[serde(default)]
    host: String,
}

impl Loopback {
    /// The address that the CLI listens on.
    fn target(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    fn is_whole(&self) -> bool {
        let good = |text: &str, most: usize| {
            (16..=most).contains(&text.len()) && text.chars().all(|c| c.is_ascii_alphanumeric() || c == '-' || c == '_')
        };
        self.port >= 1024 && good(&self.state, 128) && good(&self.challenge, 64)
    }
}

/// A CLI of this machine asks to be let in.
async fn cli_page(State(state): State<AppState>, Person(who): Person, Query(asked): Query<Loopback>) -> Response {
    if !asked.is_whole() {
        return trouble(StatusCode::BAD_REQUEST, "the CLI's link is not complete; run `ferry auth login` again", LOGIN);
    }
    let port = asked.port.to_string();
    let fields =
        [("port", port.as_str()), ("state", &asked.state), ("challenge", &asked.challenge), ("host", &asked.host)];
    let names = state.store().orgs_of(&who.account.id).await.unwrap_or_default();
    let body = format!(
        "<p>The CLI on <b>{}</b> asks to sign in as <b>{}</b>. It would have: {}.</p><p class=dim>Continue only if you started it yourself.</p>{}",
        escape(&asked.host),
        escape(&who.account.email),
        escape(&roles(&who, &names)),
        button("/auth/cli", &fields, "Sign this CLI in", "main"),
    );
    page_to(StatusCode::OK, "Sign the CLI in", &body, &format!(" {}", asked.target()))
}

#[derive(Debug, Deserialize)]
struct LoopbackForm {
    port: String,
    state: String,
    challenge: String,
    #[serde(default)]
    host: String,
}

async fn let_cli_in(State(state): State<AppState>, SentBy { from, who, form: sent }: SentBy<LoopbackForm>) -> Response {
    let asked = Loopback {
        port: sent.port.parse().unwrap_or(0),
        state: sent.state,
        challenge: sent.challenge,
        host: sent.host,
    };
    if !asked.is_whole() {
        return trouble(StatusCode::BAD_REQUEST, "the CLI's link is not complete; run `ferry auth login` again", LOGIN);
    }
    let visitor = Visitor { name: asked.host.clone(), address: from.address };
    match state.conductor.let_in_loopback(&who, &asked.challenge, &visitor).await {
        Ok(code) => {
            let to = format!("{}/?code={}&state={}", asked.target(), encoded(&code), encoded(&asked.state));
            super::guarded(Redirect::to(&to).into_response(), &format!(" {}", asked.target()))
        }
        Err(error) => failed(error, ("/account", "Back")),
    }
}
