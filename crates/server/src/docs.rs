//! The API documents as JSON and as a page to read.

use std::fmt::Write as _;

use api::ErrorCode;
use axum::Router;
use axum::response::{Html, IntoResponse, Response};
use axum::routing::get;
use serde_json::Value;
use utoipa::Modify;
use utoipa::openapi::OpenApi;
use utoipa::openapi::security::{HttpAuthScheme, HttpBuilder, SecurityScheme};

use crate::AppState;
use crate::error::ApiError;

pub(crate) struct BearerToken;

impl Modify for BearerToken {
    fn modify(&self, document: &mut OpenApi) {
        let scheme = HttpBuilder::new().scheme(HttpAuthScheme::Bearer).build();
        let components = document.components.get_or_insert_default();
        components.add_security_scheme("token", SecurityScheme::Http(scheme));
    }
}

pub(crate) fn routes(document: OpenApi) -> Router<AppState> {
    let json = serde_json::to_value(&document).unwrap_or_default();
    let page = page(&json);
    Router::new()
        .route("/openapi.json", get(move || async move { axum::Json(json) }))
        .route("/docs", get(move || async move { Html(page) }))
}

pub(crate) fn panicked(panic: Box<dyn std::any::Any + Send>) -> Response {
    let text = panic.downcast_ref::<&str>().map(|s| (*s).to_owned());
    let text = text.or_else(|| panic.downcast_ref::<String>().cloned());
    let error = ApiError::new(ErrorCode::Internal, "something broke in the control plane");
    ApiError { internal: Some(format!("panic: {}", text.unwrap_or_default())), ..error }.into_response()
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

const STYLE: &str = "body{font:15px/1.5 system-ui,sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem;color:#1b1f24}\
h1{font-size:1.6rem}h2{margin-top:2.5rem;border-bottom:1px solid #d8dee4}details{margin:.4rem 0;padding:.3rem .6rem;border:1px solid #d8dee4;border-radius:6px}\
summary{cursor:pointer}code,b.m{font-family:ui-monospace,monospace}b.m{display:inline-block;width:4.5rem;color:#0969da}\
.r{color:#57606a}pre{background:#f6f8fa;padding:.6rem;overflow:auto;border-radius:6px;font-size:13px}table{border-collapse:collapse}td{padding:.1rem 1rem .1rem 0;vertical-align:top}";

/// A readable page of the document: no script, nothing from elsewhere.
fn page(document: &Value) -> String {
    let title = escape(document["info"]["title"].as_str().unwrap_or_default());
    let mut by_tag: std::collections::BTreeMap<String, String> = std::collections::BTreeMap::new();
    for (path, methods) in document["paths"].as_object().into_iter().flatten() {
        for (method, operation) in methods.as_object().into_iter().flatten() {
            let tag = operation["tags"][0].as_str().unwrap_or("general").to_owned();
            by_tag.entry(tag).or_default().push_str(&describe(path, method, operation));
        }
    }
    let mut html = format!(
        "<!doctype html><html lang=en><meta charset=utf-8><meta name=viewport content='width=device-width'><title>{title}</title><style>{STYLE}</style><h1>{title}</h1><p>{}</p><p class=r>Version {}. The document itself: <a href=/openapi.json>/openapi.json</a></p>",
        escape(document["info"]["description"].as_str().unwrap_or_default()),
        escape(document["info"]["version"].as_str().unwrap_or_default()),
    );
    for (tag, operations) in by_tag {
        let _ = write!(html, "<h2>{}</h2>{operations}", escape(&tag));
    }
    html.push_str("<h2>Schemas</h2>");
    for (name, schema) in document["components"]["schemas"].as_object().into_iter().flatten() {
        let text = serde_json::to_string_pretty(schema).unwrap_or_default();
        let name = escape(name);
        let _ = write!(
            html,
            "<details id='{name}'><summary><code>{name}</code></summary><pre>{}</pre></details>",
            escape(&text)
        );
    }
    html
}

fn describe(path: &str, method: &str, operation: &Value) -> String {
    let mut rows = String::new();
    for parameter in operation["parameters"].as_array().into_iter().flatten() {
        let _ = write!(
            rows,
            "<tr><td><code>{}</code><td class=r>{}<td>{}",
            escape(parameter["name"].as_str().unwrap_or_default()),
            escape(parameter["in"].as_str().unwrap_or_default()),
            escape(parameter["description"].as_str().unwrap_or_default()),
        );
    }
    if let Some(name) = schema_name(&operation["requestBody"]) {
        let _ = write!(rows, "<tr><td>body<td class=r>JSON<td><a href='#{name}'><code>{name}</code></a>");
    }
    for (status, response) in operation["responses"].as_object().into_iter().flatten() {
        let name = schema_name(response).map(|n| format!(" <a href='#{n}'><code>{n}</code></a>")).unwrap_or_default();
        let text = escape(response["description"].as_str().unwrap_or_default());
        let _ = write!(rows, "<tr><td>{}<td class=r>answer<td>{text}{name}", escape(status));
    }
    let summary = operation["summary"].as_str().or_else(|| operation["description"].as_str()).unwrap_or_default();
    let role = operation["security"][0]["token"][0].as_str().map(|r| match r {
        "any" => " <span class=r>needs a token</span>".to_owned(),
        role => format!(" <span class=r>needs {role}</span>"),
    });
    format!(
        "<details><summary><b class=m>{}</b><code>{}</code> {}{}</summary><table>{rows}</table></details>",
        escape(&method.to_uppercase()),
        escape(path),
        escape(summary),
        role.unwrap_or_default()
    )
}

fn schema_name(part: &Value) -> Option<String> {
    let schema = &part["content"].as_object()?.values().next()?["schema"];
    let reference = schema["$ref"].as_str().or_else(|| schema["items"]["$ref"].as_str())?;
    reference.rsplit('/').next().map(escape)
}
