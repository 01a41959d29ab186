//! Signing in: what the check of a token or of a browser's session adds to a request, once it is known.

use std::time::Instant;

use anyhow::{Context as _, ensure};
use testkit::system::{Options, System};

use crate::{Figure, percentile};

/// Requests of a kind; the kinds take turns.
const REQUESTS: usize = 10_000;

pub(crate) async fn figures(options: Options) -> anyhow::Result<Vec<Figure>> {
    let system = System::start(options).await;
    let url = &system.control_url;
    let http = reqwest::Client::builder().no_proxy().redirect(reqwest::redirect::Policy::none()).build()?;
    let form = http.post(format!("{url}/auth/session")).header("origin", url).body(format!("token={}", system.token()));
    let answer = form.header("content-type", "application/x-www-form-urlencoded").send().await?;
    let cookies = answer.headers().get_all("set-cookie").iter().filter_map(|it| it.to_str().ok());
    let cookie = cookies.filter_map(|it| it.split(';').next()).find(|it| it.starts_with("ferry-dev-"));
    let cookie = cookie.context("no session began")?.to_owned();
    // The same work beside the check: a small JSON document, nothing read.
    let open = || http.get(format!("{url}/version"));
    let named = || http.get(format!("{url}/v1/general/current-user"));
    let mut times = [Vec::new(), Vec::new(), Vec::new()];
    for _ in 0..REQUESTS {
        let requests = [open(), named().bearer_auth(system.token()), named().header("cookie", &cookie)];
        for (request, times) in requests.into_iter().zip(&mut times) {
            let started = Instant::now();
            let answer = request.send().await?;
            ensure!(answer.status().is_success(), "{}", answer.status());
            answer.bytes().await?;
            times.push(started.elapsed().as_secs_f64() * 1e6);
        }
    }
    let [mut open, mut token, mut session] = times;
    let floor = percentile(&mut open, 0.5);
    let added = |times: &mut Vec<f64>| percentile(times, 0.5) - floor;
    Ok(vec![
        Figure::lower("auth_check_us", added(&mut token), "us", 30.0).over("a request without a check", floor),
        Figure::lower("auth_check_session_us", added(&mut session), "us", 30.0)
            .over("a request without a check", floor),
    ])
}
