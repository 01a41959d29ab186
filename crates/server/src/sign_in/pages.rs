//! The pages of signing in: plain HTML, one style, no script.

use std::fmt::Write as _;
use std::sync::LazyLock;

use axum::response::{Html, IntoResponse, Response};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as B64;
use http::StatusCode;
use model::Digest;

use super::guarded;

const STYLE: &str = "\
:root{color-scheme:light dark;--line:#d0d7de;--dim:#57606a;--bg:#fff;--fg:#1f2328;--act:#1f6feb;--bad:#cf222e}\
@media(prefers-color-scheme:dark){:root{--line:#30363d;--dim:#9198a1;--bg:#0d1117;--fg:#e6edf3;--act:#388bfd;--bad:#ff7b72}}\
*{box-sizing:border-box}body{font:16px/1.5 system-ui,sans-serif;margin:0;background:var(--bg);color:var(--fg)}\
main{max-width:34rem;margin:8vh auto;padding:0 1.25rem}h1{font-size:1.4rem;margin:0 0 1rem}h2{font-size:1.05rem;margin:2rem 0 .5rem}\
p{margin:.6rem 0}.dim{color:var(--dim)}.bad{color:var(--bad)}a.b,button{display:block;width:100%;padding:.65rem 1rem;margin:.6rem 0;\
border:1px solid var(--line);border-radius:8px;background:transparent;color:inherit;font:inherit;text-align:center;text-decoration:none;cursor:pointer}\
a.b:focus-visible,button:focus-visible,input:focus-visible{outline:3px solid var(--act);outline-offset:2px}\
button.main{background:var(--act);border-color:var(--act);color:#fff}label{display:block;margin:.6rem 0 .2rem}\
input{width:100%;padding:.6rem .75rem;border:1px solid var(--line);border-radius:8px;background:transparent;color:inherit;font:inherit}\
table{width:100%;border-collapse:collapse}td,th{padding:.45rem .5rem .45rem 0;border-bottom:1px solid var(--line);text-align:left;vertical-align:top;overflow-wrap:anywhere}\
td button{width:auto;white-space:nowrap;margin:0;padding:.25rem .7rem}code{font-family:ui-monospace,monospace}";

/// The hash under which a browser takes the style.
pub(super) fn style_hash() -> &'static str {
    static HASH: LazyLock<String> = LazyLock::new(|| {
        let bytes = hex::decode(Digest::of(STYLE.as_bytes()).hex()).unwrap_or_default();
        format!("sha256-{}", B64.encode(bytes))
    });
    &HASH
}

/// Text as text, whatever is in it.
pub(super) fn escape(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => safe.push_str("&amp;"),
            '<' => safe.push_str("&lt;"),
            '>' => safe.push_str("&gt;"),
            '"' => safe.push_str("&quot;"),
            '\'' => safe.push_str("&#39;"),
            // What turns the direction of what follows.
            '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => {}
            other => safe.push(other),
        }
    }
    safe
}

pub(super) fn page(status: StatusCode, title: &str, body: &str) -> Response {
    page_to(status, title, body, "")
}

/// `form_targets`: where else a form of this page may lead.
pub(super) fn page_to(status: StatusCode, title: &str, body: &str, form_targets: &str) -> Response {
    let title = escape(title);
    let html = format!(
        "<!doctype html><html lang=en><head><meta charset=utf-8><meta name=viewport content=\"width=device-width,initial-scale=1\"><title>{title} · Ferry</title><style>{STYLE}</style></head><body><main><h1>{title}</h1>{body}</main></body></html>"
    );
    guarded((status, Html(html)).into_response(), form_targets)
}

/// Something that did not work, and the way on.
pub(super) fn trouble(status: StatusCode, text: &str, next: (&str, &str)) -> Response {
    let (href, label) = next;
    let body = format!(
        "<p class=bad role=alert>{}</p><a class=b href=\"{}\">{}</a>",
        escape(text),
        escape(href),
        escape(label)
    );
    page(status, "That did not work", &body)
}

/// A form of one button.
pub(super) fn button(action: &str, fields: &[(&str, &str)], label: &str, class: &str) -> String {
    let mut form = format!("<form method=post action=\"{}\">", escape(action));
    for (name, value) in fields {
        let _ = write!(form, "<input type=hidden name=\"{}\" value=\"{}\">", escape(name), escape(value));
    }
    let _ = write!(form, "<button class=\"{}\">{}</button></form>", escape(class), escape(label));
    form
}
