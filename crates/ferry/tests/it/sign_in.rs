//! People sign in with a real OpenID provider, from browsers and CLIs, and are put out again.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Output, Stdio};
use std::time::Duration;

use api::control::{CreateOrgInvite, CreateToken, UpdateMember};
use model::Role;
use model::env::setting;
use reqwest::{Method, Response, StatusCode};
use serde_json::{Value, json};
use testkit::Backend;
use testkit::system::{SOON, System, until};
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::process::{Child, Command};

use crate::options;

/// A real provider, in a process of its own.
struct Idp {
    issuer: String,
    _process: Child,
}

fn repo() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Programs that a script has installed.
fn tools(name: &str) -> PathBuf {
    let target = std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| repo().join("target"), PathBuf::from);
    fs_err::canonicalize(target.join(name)).expect("scripts/node-tools.sh and scripts/python-tools.sh install them")
}

impl Idp {
    async fn start() -> Self {
        let tools = tools("idp-tools");
        let mut command = Command::new(tools.join("node"));
        command.arg(repo().join("tests/idp/idp.mjs")).arg(&tools).stdin(Stdio::null());
        let mut process = command.stdout(Stdio::piped()).stderr(Stdio::null()).kill_on_drop(true).spawn().unwrap();
        let mut lines = BufReader::new(process.stdout.take().unwrap()).lines();
        let issuer =
            tokio::time::timeout(SOON, lines.next_line()).await.expect("the provider starts").unwrap().unwrap();
        Self { issuer, _process: process }
    }

    async fn told(&self, what: &str) {
        assert_eq!(self.asked(what, None).await, "ok", "{what}");
    }

    async fn user(&self, name: &str, claims: Value) {
        assert_eq!(self.asked(&format!("users/{name}"), Some(claims)).await, "ok");
    }

    async fn asked(&self, what: &str, body: Option<Value>) -> String {
        let url = format!("{}/admin/{what}", self.issuer);
        let http = reqwest::Client::builder().no_proxy().build().unwrap();
        let request = match body {
            Some(body) => http.post(url).json(&body),
            None => http.get(url),
        };
        request.send().await.unwrap().text().await.unwrap()
    }

    /// As a setting of the server.
    fn provider(&self, more: &str) -> String {
        let scopes = "scopes = [\"email\", \"groups\", \"offline_access\"]";
        format!(
            "{{ name = \"idp\", title = \"The IdP\", issuer = \"{}\", client_id = \"ferry\", client_secret = \"secret of tests\", {scopes}, {more} }}",
            self.issuer
        )
    }
}

/// What a browser does: cookies for each port, no script, redirects one by one.
struct Browser {
    http: reqwest::Client,
    cookies: BTreeMap<(String, String), String>,
}

struct Page {
    url: String,
    status: StatusCode,
    text: String,
    headers: reqwest::header::HeaderMap,
}

fn site(url: &str) -> String {
    let url = reqwest::Url::parse(url).unwrap();
    format!("{}:{}", url.host_str().unwrap(), url.port().unwrap_or(80))
}

impl Browser {
    fn new() -> Self {
        let http = reqwest::Client::builder()
            .no_proxy()
            .redirect(reqwest::redirect::Policy::none())
            .user_agent("Mozilla/5.0 (X11; Linux x86_64) Chrome/130.0")
            .build()
            .unwrap();
        Self { http, cookies: BTreeMap::new() }
    }

    fn cookie(&self, url: &str) -> String {
        let site = site(url);
        let own = self.cookies.iter().filter(|((of, _), _)| *of == site);
        own.map(|((_, name), value)| format!("{name}={value}")).collect::<Vec<_>>().join("; ")
    }

    fn keep(&mut self, url: &str, response: &Response) {
        for header in response.headers().get_all("set-cookie") {
            let text = header.to_str().unwrap();
            let (name, value) = text.split(';').next().unwrap().split_once('=').unwrap();
            let key = (site(url), name.to_owned());
            if value.is_empty() || text.to_lowercase().contains("max-age=0") || text.contains("1970") {
                self.cookies.remove(&key);
            } else {
                self.cookies.insert(key, value.to_owned());
            }
        }
    }

    async fn send(
        &mut self,
        method: Method,
        url: &str,
        form: Option<&[(&str, &str)]>,
        origin: Option<&str>,
    ) -> Response {
        let mut request = self.http.request(method, url).header("cookie", self.cookie(url));
        if let Some(form) = form {
            let body = form_urlencoded::Serializer::new(String::new()).extend_pairs(form).finish();
            request = request.header("content-type", "application/x-www-form-urlencoded").body(body);
        }
        if let Some(origin) = origin {
            request = request.header("origin", origin);
        }
        let response = request.send().await.unwrap();
        self.keep(url, &response);
        response
    }

    /// Goes on until there is a page, or a place where nobody is.
    async fn follow(&mut self, mut url: String, mut response: Response) -> Page {
        for _ in 0..12 {
            let Some(to) = response.headers().get("location").cloned() else { break };
            url = reqwest::Url::parse(&url).unwrap().join(to.to_str().unwrap()).unwrap().to_string();
            response = self.send(Method::GET, &url, None, None).await;
        }
        let (status, headers) = (response.status(), response.headers().clone());
        Page { url, status, text: response.text().await.unwrap(), headers }
    }

    async fn open(&mut self, url: &str) -> Page {
        let response = self.send(Method::GET, url, None, None).await;
        self.follow(url.to_owned(), response).await
    }

    /// Sends a form as our own page does.
    async fn submit(&mut self, url: &str, form: &[(&str, &str)]) -> Page {
        let origin = reqwest::Url::parse(url).unwrap().origin().ascii_serialization();
        let response = self.send(Method::POST, url, Some(form), Some(&origin)).await;
        self.follow(url.to_owned(), response).await
    }

    async fn sign_in(&mut self, control: &str) -> Page {
        self.open(&format!("{control}/auth/login?provider=idp&return_to=/account")).await
    }

    /// A request of a page's script.
    async fn api(
        &self,
        method: Method,
        url: &str,
        headers: &[(&str, &str)],
        body: Option<Value>,
    ) -> (StatusCode, Value) {
        let mut request = self.http.request(method, url).header("cookie", self.cookie(url));
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        if let Some(body) = body {
            request = request.json(&body);
        }
        let answer = request.send().await.unwrap();
        (answer.status(), answer.json().await.unwrap_or_default())
    }

    async fn session(&self, control: &str) -> (StatusCode, Value) {
        self.api(Method::GET, &format!("{control}/v1/session"), &[], None).await
    }
}

async fn with_idp(more: &str) -> (Idp, System) {
    let idp = Idp::start().await;
    let system = System::start(options().with(&setting("auth.providers"), format!("[{}]", idp.provider(more)))).await;
    (idp, system)
}

async fn invited(system: &System, email: &str, role: Role) -> String {
    let invite = CreateOrgInvite { email: email.into(), role_type: None, role: Some(role) };
    system.client.invite(&invite).await.unwrap().url.unwrap()
}

/// A CLI that begins to sign in.
fn cli_login(system: &System, how: &str) -> Child {
    let mut command = system.ferry_command();
    command.env_remove(model::env::TOKEN).env_remove(model::env::ORG).args(["auth", "login", how]);
    let mut login = Command::from(command);
    login.stdin(Stdio::null()).stderr(Stdio::piped()).stdout(Stdio::piped()).kill_on_drop(true).spawn().unwrap()
}

/// A command of a CLI that has nothing but its sign-in.
async fn signed_in_cli(system: &System, words: &[&str]) -> Output {
    let mut command = system.ferry_command();
    command.env_remove(model::env::TOKEN).env_remove(model::env::URL).env_remove(model::env::ORG).args(words);
    Command::from(command).stdin(Stdio::null()).output().await.unwrap()
}

fn secret_of(url: &str) -> String {
    url.split("t=").nth(1).unwrap().to_owned()
}

#[tokio::test]
async fn a_browser_signs_in_with_a_real_provider_and_out_again() {
    let (idp, system) = with_idp("allowed_domains = [\"example.com\"]").await;
    let control = system.control_url.clone();
    let mut ann = Browser::new();
    let page = ann.sign_in(&control).await;
    assert_eq!(
        (page.status, page.url.as_str()),
        (StatusCode::OK, format!("{control}/account").as_str()),
        "{}",
        page.text
    );
    assert!(page.text.contains("ann@example.com") && page.text.contains("Chrome on Linux"), "{}", page.text);
    for (name, value) in
        [("referrer-policy", "no-referrer"), ("x-frame-options", "DENY"), ("cache-control", "no-store")]
    {
        assert_eq!(page.headers[name], value);
    }
    let policy = page.headers["content-security-policy"].to_str().unwrap().to_owned();
    assert!(policy.contains("default-src 'none'") && !policy.contains("unsafe"), "{policy}");
    let (status, told) = ann.session(&control).await;
    assert_eq!((status, &told["email"], &told["by"]), (StatusCode::OK, &json!("ann@example.com"), &json!("browser")));
    // The cookie is the browser's only: no token, and no other kind of credential.
    let secret = ann.cookies.iter().find(|((_, name), _)| name.starts_with("ferry-dev-")).unwrap().1.clone();
    let (status, _) = Browser::new()
        .api(Method::GET, &format!("{control}/v1/session"), &[("authorization", &format!("Bearer {secret}"))], None)
        .await;
    assert_eq!(status, StatusCode::UNAUTHORIZED);
    // Nobody comes in whom nobody invited, whose address is not verified, or whom the provider refuses.
    for (who, why) in [("bob", "has no invite"), ("eve", "is not verified"), ("deny", "refused")] {
        idp.told(&format!("as/{who}")).await;
        let page = Browser::new().sign_in(&control).await;
        assert_eq!(page.status, StatusCode::FORBIDDEN, "{who}: {}", page.text);
        assert!(page.text.contains(why), "{who}: {}", page.text);
    }
    // Out again, and the cookie opens nothing.
    let old = ann.cookies.clone();
    let page = ann.submit(&format!("{control}/auth/logout"), &[]).await;
    assert!(page.url.ends_with("/login"), "{}", page.url);
    ann.cookies = old;
    assert_eq!(ann.session(&control).await.0, StatusCode::UNAUTHORIZED);
}

#[tokio::test]
async fn what_a_provider_says_is_checked() {
    let (idp, system) = with_idp("allowed_domains = [\"example.com\"]").await;
    let control = system.control_url.clone();
    let refused = async |why: &str| {
        let page = Browser::new().sign_in(&control).await;
        assert!(page.status.is_client_error(), "{why}: {} {}", page.status, page.text);
        assert!(page.text.to_lowercase().contains(why), "{why}: {}", page.text);
    };
    idp.told("nonce/another").await;
    refused("nonce").await;
    idp.told("nonce/").await;
    idp.told("age/3600").await;
    refused("expired").await;
    // A clock that is a little ahead is no reason.
    idp.told("age/90").await;
    assert_eq!(Browser::new().sign_in(&control).await.status, StatusCode::OK);
    idp.told("age/0").await;
    // An ID token that was made for somebody else: another client of the same provider.
    let other = idp
        .provider("allowed_domains = [\"example.com\"]")
        .replace("\"idp\"", "\"other\"")
        .replace("\"ferry\"", "\"other\"");
    let both = format!("[{}, {other}]", idp.provider("allowed_domains = [\"example.com\"]"));
    let second = System::start(options().with(&setting("auth.providers"), both)).await;
    let mut browser = Browser::new();
    let page = browser.open(&format!("{}/auth/login?provider=other", second.control_url)).await;
    assert_eq!(page.status, StatusCode::OK, "{}", page.text);
    idp.told("audience").await;
    let page = Browser::new().sign_in(&second.control_url).await;
    assert_eq!(page.status, StatusCode::FORBIDDEN);
    assert!(page.text.to_lowercase().contains("audience"), "{}", page.text);
    // Two providers mixed up: what one answers is no answer to what was asked of the other.
    let mut mixed = Browser::new();
    let first = mixed.send(Method::GET, &format!("{}/auth/login?provider=other", second.control_url), None, None).await;
    let asked = reqwest::Url::parse(first.headers()["location"].to_str().unwrap()).unwrap();
    let state = asked.query_pairs().find(|(name, _)| name == "state").unwrap().1.into_owned();
    mixed.send(Method::GET, &format!("{}/auth/login?provider=idp", second.control_url), None, None).await;
    let page = mixed.open(&format!("{}/auth/callback?code=x&state={state}", second.control_url)).await;
    assert_eq!(page.status, StatusCode::BAD_REQUEST, "{}", page.text);
    // And an answer without a question.
    let page = Browser::new().open(&format!("{control}/auth/callback?code=x&state=y")).await;
    assert_eq!(page.status, StatusCode::BAD_REQUEST, "{}", page.text);
    // New keys in mid-session: who is signed in stays, and who comes now is believed.
    let mut ann = Browser::new();
    assert_eq!(ann.sign_in(&control).await.status, StatusCode::OK);
    tokio::time::sleep(Duration::from_secs(5)).await;
    idp.told("rotate").await;
    assert_eq!(ann.session(&control).await.0, StatusCode::OK);
    assert_eq!(Browser::new().sign_in(&control).await.status, StatusCode::OK);
    // The provider is away: sessions and tokens go on, new sign-ins say why not.
    drop(idp);
    assert_eq!(ann.session(&control).await.0, StatusCode::OK);
    system.client.current_user().await.unwrap();
    tokio::time::sleep(Duration::from_secs(6)).await;
    let page = Browser::new().sign_in(&control).await;
    assert!(page.text.contains("can&#39;t be reached"), "{} {}", page.status, page.text);
}

#[tokio::test]
async fn another_site_does_nothing_with_a_cookie() {
    let (_idp, system) = with_idp("allowed_domains = [\"example.com\"]").await;
    let control = system.control_url.clone();
    let mut ann = Browser::new();
    ann.sign_in(&control).await;
    let url = format!("{control}/v1/account/sessions");
    let own = control.as_str();
    let cases: [(&str, &[(&str, &str)]); 4] = [
        ("no origin", &[("x-ferry-request", "1")]),
        ("another origin", &[("origin", "https://evil.example"), ("x-ferry-request", "1")]),
        ("no header of ours", &[("origin", own)]),
        ("a form", &[("origin", own), ("x-ferry-request", "1"), ("content-type", "text/plain")]),
    ];
    for (what, headers) in cases {
        let (status, told) = ann.api(Method::DELETE, &url, headers, None).await;
        assert_eq!((status, &told["code"]), (StatusCode::FORBIDDEN, &json!("cross_site")), "{what}");
    }
    // No answer lets another site read it.
    let request = ann.http.request(Method::OPTIONS, &url).header("origin", "https://evil.example");
    let answer = request.header("access-control-request-method", "DELETE").send().await.unwrap();
    assert!(answer.headers().get("access-control-allow-origin").is_none());
    // Forms of pages, too: every one that writes.
    for path in ["/auth/logout", "/auth/session", "/link", "/invite", "/device", "/account/sessions", "/auth/cli"] {
        for origin in [None, Some("https://evil.example"), Some("null")] {
            let fields = [
                ("t", "x"),
                ("token", "x"),
                ("code", "x"),
                ("all", "1"),
                ("port", "1"),
                ("state", "x"),
                ("challenge", "x"),
            ];
            let answer = ann.send(Method::POST, &format!("{control}{path}"), Some(&fields), origin).await;
            assert_eq!(answer.status(), StatusCode::FORBIDDEN, "{path} from {origin:?}");
        }
    }
    assert_eq!(ann.session(&control).await.0, StatusCode::OK, "still signed in");
    // Nobody is sent elsewhere.
    for to in ["https://evil.example", "//evil.example", "/\\evil.example", "/%09/evil.example", "javascript:alert(1)"]
    {
        let to: String = form_urlencoded::byte_serialize(to.as_bytes()).collect();
        let answer = ann.send(Method::GET, &format!("{control}/login?return_to={to}"), None, None).await;
        let location = answer.headers()["location"].to_str().unwrap().to_owned();
        assert!(
            location.starts_with('/') && !location.starts_with("//") && !location.contains('\\'),
            "{to}: {location}"
        );
    }
    // What a stranger sends is shown as text.
    let page = ann
        .open(&format!(
            "{control}/auth/cli?port=2000&state=aaaaaaaaaaaaaaaaaaaa&challenge=aaaaaaaaaaaaaaaaaaaa&host=%3Cscript%3Ex"
        ))
        .await;
    assert!(!page.text.contains("<script>") && page.text.contains("&lt;script&gt;x"), "{}", page.text);
    // With our own page's header it works.
    let (status, _) = ann.api(Method::DELETE, &url, &[("origin", own), ("x-ferry-request", "1")], None).await;
    assert_eq!(status, StatusCode::OK);
    assert_eq!(ann.session(&control).await.0, StatusCode::UNAUTHORIZED);
}

/// An org's life: an invite, an approver, a token, a removal.
#[tokio::test]
async fn an_invited_approver_reads_and_approves_until_removed() {
    let (idp, mut system) = with_idp("").await;
    let control = system.control_url.clone();
    let org = system.org.id.to_string();
    let url = invited(&system, "Bob@Elsewhere.test", Role::Approver).await;
    // Who only opens it has not used it.
    for _ in 0..2 {
        let page = Browser::new().open(&url).await;
        assert!(page.status.is_success() && page.text.contains("bob@elsewhere.test"), "{}", page.text);
    }
    // Somebody else's sign-in does not take it.
    idp.told("as/ann").await;
    let mut ann = Browser::new();
    ann.submit(&format!("{control}/invite"), &[("t", &secret_of(&url))]).await;
    let page = ann.sign_in(&control).await;
    assert!(page.status == StatusCode::FORBIDDEN && page.text.contains("is for bob@elsewhere.test"), "{}", page.text);
    idp.told("as/bob").await;
    let mut bob = Browser::new();
    let page = bob.submit(&format!("{control}/invite"), &[("t", &secret_of(&url))]).await;
    assert!(page.url.ends_with("/login") && page.text.contains("bob@elsewhere.test"), "{}", page.text);
    let page = bob.sign_in(&control).await;
    assert!(page.text.contains("approver in"), "{}", page.text);
    let page = Browser::new().open(&url).await;
    assert_eq!(page.status, StatusCode::NOT_FOUND, "used once");
    // Reads, and starts nothing.
    let headers = [("x-nuon-org-id", org.as_str()), ("origin", control.as_str()), ("x-ferry-request", "1")];
    let install = system.install.id.as_str();
    let (status, _) = bob.api(Method::GET, &format!("{control}/v1/installs"), &headers, None).await;
    assert_eq!(status, StatusCode::OK);
    let deploy = json!({ "type": "deploy_components" });
    let (status, told) =
        bob.api(Method::POST, &format!("{control}/v1/installs/{install}/workflows"), &headers, Some(deploy)).await;
    assert_eq!((status, &told["code"]), (StatusCode::FORBIDDEN, &json!("forbidden")));
    // A token of one's own is no wider, and ends with the member.
    let wide = json!({ "name": "wide", "role": "admin" });
    let (status, token) = bob.api(Method::POST, &format!("{control}/v1/tokens"), &headers, Some(wide)).await;
    assert_eq!((status, &token["role"]), (StatusCode::CREATED, &json!("approver")));
    let token = token["token"].as_str().unwrap().to_owned();
    let of_token = [("authorization", format!("Bearer {token}"))];
    let of_token = [(of_token[0].0, of_token[0].1.as_str())];
    assert_eq!(
        Browser::new().api(Method::GET, &format!("{control}/v1/session"), &of_token, None).await.0,
        StatusCode::OK
    );
    // The CLI is let in by a code.
    let mut login = cli_login(&system, "--device");
    let mut lines = BufReader::new(login.stderr.take().unwrap()).lines();
    let mut code = String::new();
    while let Some(line) = lines.next_line().await.unwrap() {
        let word = line.trim();
        if word.len() == 9 && word.chars().nth(4) == Some('-') {
            code = word.to_lowercase();
            break;
        }
    }
    let page = bob.submit(&format!("{control}/device"), &[("code", "WRNG-CODE")]).await;
    assert_eq!(page.status, StatusCode::NOT_FOUND);
    let page = bob.submit(&format!("{control}/device"), &[("code", &code)]).await;
    assert!(page.text.contains("127.0.0.1") && page.text.contains("approver in"), "{}", page.text);
    let page = bob.submit(&format!("{control}/device"), &[("code", &code), ("answer", "yes")]).await;
    assert!(page.text.contains("signed in"), "{}", page.text);
    let out = login.wait_with_output().await.unwrap();
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stdout));
    let as_bob = |words: &'static [&'static str]| signed_in_cli(&system, words);
    let who = as_bob(&["auth", "whoami", "--json"]).await;
    assert!(
        String::from_utf8_lossy(&who.stdout).contains("bob@elsewhere.test"),
        "{}",
        String::from_utf8_lossy(&who.stderr)
    );
    let sessions = as_bob(&["auth", "sessions"]).await;
    let sessions = String::from_utf8_lossy(&sessions.stdout).into_owned();
    assert!(sessions.contains("cli (this one)") && sessions.contains("Chrome on Linux"), "{sessions}");
    // Removed: browser, CLI and token are out within a second.
    let members = system.client.members().await.unwrap();
    let bobs = members.iter().find(|it| it.email == "bob@elsewhere.test").unwrap().account_id.clone();
    system.client.remove_member(bobs.as_str()).await.unwrap();
    assert_eq!(bob.session(&control).await.0, StatusCode::UNAUTHORIZED);
    assert_eq!(
        Browser::new().api(Method::GET, &format!("{control}/v1/session"), &of_token, None).await.0,
        StatusCode::UNAUTHORIZED
    );
    let after = as_bob(&["installs", "list"]).await;
    assert_eq!(after.status.code(), Some(3), "{}", String::from_utf8_lossy(&after.stderr));
    // It is all in the events.
    let (events, _) = system.client.events(None, None, 200).await.unwrap();
    let kinds: Vec<&str> = events.iter().map(|event| event.kind.as_str()).collect();
    for kind in [
        "invite.created",
        "invite.accepted",
        "person.signed-in",
        "token.created",
        "member.removed",
        "person.signed-out",
    ] {
        assert!(kinds.contains(&kind), "{kind}: {kinds:?}");
    }
    system.kill_server();
}

#[tokio::test]
async fn groups_give_roles_and_take_them_again() {
    let idp = Idp::start().await;
    let roles = "roles = [{ value = \"ops\", org = \"acme\", role = \"operator\" }]";
    let options = options()
        .with(&setting("auth.providers"), format!("[{}]", idp.provider(roles)))
        .with(&setting("auth.groups_s"), 2);
    let system = System::start(options).await;
    let control = system.control_url.clone();
    let provider = idp.provider(&roles.replace("acme", system.org.name.as_str()));
    let mut system = system;
    system.set(&setting("auth.providers"), &format!("[{provider}]"));
    system.stop_server().await;
    system.start_server().await;
    idp.user("bob", json!({ "groups": ["ops", "others"] })).await;
    idp.told("as/bob").await;
    let mut bob = Browser::new();
    let page = bob.sign_in(&control).await;
    assert!(page.text.contains("operator in"), "{}", page.text);
    // A group that is taken away takes the role with it, the session stays.
    idp.user("bob", json!({ "groups": [] })).await;
    until("the role is gone", SOON, async || {
        let (status, told) = bob.session(&control).await;
        if status == StatusCode::OK && told["orgs"] == json!([]) { Ok(()) } else { Err(told.to_string()) }
    })
    .await;
    idp.user("bob", json!({ "groups": ["ops"] })).await;
    until("the role is back", SOON, async || {
        let (_, told) = bob.session(&control).await;
        if told["orgs"][0]["role"] == "operator" { Ok(()) } else { Err(told.to_string()) }
    })
    .await;
    // A provider that refuses ends the session.
    idp.told("revoke").await;
    until("the session is over", SOON, async || {
        let (status, told) = bob.session(&control).await;
        if status == StatusCode::UNAUTHORIZED { Ok(()) } else { Err(told.to_string()) }
    })
    .await;
    // One that is away does not.
    let mut again = Browser::new();
    again.sign_in(&control).await;
    drop(idp);
    tokio::time::sleep(Duration::from_secs(6)).await;
    assert_eq!(again.session(&control).await.0, StatusCode::OK);
}

#[tokio::test]
async fn a_session_of_one_replica_is_one_of_the_other_and_ends_on_both() {
    let idp = Idp::start().await;
    let settings = format!("[{}]", idp.provider("allowed_domains = [\"example.com\"]"));
    let mut system = System::start(options().on(Backend::Postgres).with(&setting("auth.providers"), settings)).await;
    system.add_replica().await;
    let (controls, _) = system.listeners();
    let (one, two) = (format!("http://{}", controls[0]), format!("http://{}", controls[1]));
    let mut ann = Browser::new();
    assert_eq!(ann.sign_in(&one).await.status, StatusCode::OK);
    // A cookie belongs to a host; the ports differ here only.
    let secret = ann.cookies.iter().find(|((_, name), _)| name.starts_with("ferry-dev-")).unwrap().1.clone();
    let name = |url: &str| format!("ferry-dev-{}", url.rsplit(':').next().unwrap());
    ann.cookies.insert((site(&two), name(&two)), secret);
    for _ in 0..3 {
        assert_eq!((ann.session(&one).await.0, ann.session(&two).await.0), (StatusCode::OK, StatusCode::OK));
    }
    let headers = [("origin", one.as_str()), ("x-ferry-request", "1")];
    let (status, _) = ann.api(Method::DELETE, &format!("{one}/v1/account/sessions"), &headers, None).await;
    assert_eq!(status, StatusCode::OK);
    assert_eq!(ann.session(&one).await.0, StatusCode::UNAUTHORIZED, "at once where it was ended");
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(ann.session(&two).await.0, StatusCode::UNAUTHORIZED, "within a second at the other");
}

/// `ferry auth login` on a machine with a browser, and the sign-in that goes on by itself.
#[tokio::test]
async fn a_cli_signs_in_through_the_browser_and_goes_on_without_a_question() {
    let idp = Idp::start().await;
    let settings = format!("[{}]", idp.provider("allowed_domains = [\"example.com\"]"));
    let system =
        System::start(options().with(&setting("auth.providers"), settings).with(&setting("auth.cli_access_s"), 2))
            .await;
    let control = system.control_url.clone();
    let mut login = cli_login(&system, "--no-open");
    let mut lines = BufReader::new(login.stderr.take().unwrap()).lines();
    let mut link = String::new();
    while let Some(line) = lines.next_line().await.unwrap() {
        if line.trim().starts_with("http://") {
            link = line.trim().to_owned();
            break;
        }
    }
    let mut ann = Browser::new();
    let page = ann.open(&link).await;
    assert!(page.url.contains("/login?return_to="), "{}", page.url);
    ann.sign_in(&control).await;
    let page = ann.open(&link).await;
    assert!(page.text.contains("Sign this CLI in"), "{}", page.text);
    let query = reqwest::Url::parse(&link).unwrap();
    let fields: Vec<(String, String)> = query.query_pairs().map(|(a, b)| (a.into_owned(), b.into_owned())).collect();
    let fields: Vec<(&str, &str)> = fields.iter().map(|(a, b)| (a.as_str(), b.as_str())).collect();
    let page = ann.submit(&format!("{control}/auth/cli"), &fields).await;
    assert!(page.text.contains("The CLI is signed in"), "{} {}", page.url, page.text);
    let out = login.wait_with_output().await.unwrap();
    assert!(out.status.success());
    // Its file is for its owner alone.
    let file = system.root().join("home/ferry/config.toml");
    let mode = std::os::unix::fs::PermissionsExt::mode(&fs_err::metadata(&file).unwrap().permissions());
    assert_eq!(mode & 0o777, 0o600);
    let run = |words: &'static [&'static str]| signed_in_cli(&system, words);
    // The access token runs out; two commands at once renew it once.
    for _ in 0..2 {
        tokio::time::sleep(Duration::from_millis(2500)).await;
        let (one, two) = tokio::join!(run(&["auth", "whoami"]), run(&["auth", "whoami"]));
        assert!(one.status.success() && two.status.success(), "{}", String::from_utf8_lossy(&one.stderr));
    }
    let before = fs_err::read_to_string(&file).unwrap();
    assert!(run(&["auth", "logout"]).await.status.success());
    assert!(!fs_err::read_to_string(&file).unwrap().contains("refresh"));
    // What was in the file opens nothing any more.
    fs_err::write(&file, before).unwrap();
    assert_eq!(run(&["auth", "whoami"]).await.status.code(), Some(3));
    assert_eq!(ann.session(&control).await.0, StatusCode::OK, "the browser stays");
}

/// Without a provider: the first account, an invite, a link; and where no browser may sign in.
#[tokio::test]
async fn without_a_provider_links_sign_in() {
    let system = System::start(options()).await;
    let control = system.control_url.clone();
    let link = system.client.create_sign_in_link().await.unwrap().url;
    let mut first = Browser::new();
    let page = first.open(&link).await;
    assert!(page.text.contains("signs this browser in, once"), "{}", page.text);
    let page = first.submit(&format!("{control}/link"), &[("t", &secret_of(&link)), ("to", "/account")]).await;
    assert!(page.url.ends_with("/account") && page.text.contains("admin in"), "{}", page.text);
    let page = Browser::new().submit(&format!("{control}/link"), &[("t", &secret_of(&link))]).await;
    assert_eq!(page.status, StatusCode::NOT_FOUND, "once");
    // A token that is good for one org makes no link that is good for more.
    let token = CreateToken { name: "one".into(), role: Role::Admin, runner_id: None, expires_in_s: None };
    let token = system.client.create_token(&token).await.unwrap().token.unwrap();
    let bearer = format!("Bearer {token}");
    let (status, _) = Browser::new()
        .api(Method::POST, &format!("{control}/v1/sign-in-links"), &[("authorization", &bearer)], None)
        .await;
    assert_eq!(status, StatusCode::FORBIDDEN);
    // The token itself signs a browser in, as far as it reaches.
    let mut by_token = Browser::new();
    let page =
        by_token.submit(&format!("{control}/auth/session"), &[("token", &token), ("return_to", "/account")]).await;
    assert!(page.url.ends_with("/account"), "{}", page.text);
    // A request that is sent again, since its answer was lost, gives the same link.
    let wanted = CreateOrgInvite { email: "carol@example.com".into(), role_type: None, role: Some(Role::Operator) };
    let client = system.client.with_idempotency_key("carol");
    let (invite, again) = (client.invite(&wanted).await.unwrap(), client.invite(&wanted).await.unwrap());
    assert_eq!((&invite.id, &invite.url), (&again.id, &again.url));
    assert_eq!((invite.mailed, again.mailed), (Some(false), None));
    let url = invite.url.unwrap();
    let mut carol = Browser::new();
    carol.submit(&format!("{control}/invite"), &[("t", &secret_of(&url))]).await;
    let page = carol.open(&format!("{control}/account")).await;
    assert!(page.text.contains("carol@example.com") && page.text.contains("operator in"), "{}", page.text);
    // The last admin stays.
    let members = system.client.members().await.unwrap();
    let admin = members.iter().find(|it| it.role == Role::Admin).unwrap();
    let error = system.client.remove_member(admin.account_id.as_str()).await.unwrap_err().to_string();
    assert!(error.contains("needs an admin"), "{error}");
    let error = system.client.set_member_role(admin.account_id.as_str(), &UpdateMember { role: Role::Operator }).await;
    assert!(error.unwrap_err().to_string().contains("needs an admin"));
    // Guesses are counted: soon nobody at this address may try on.
    let mut last = StatusCode::OK;
    for n in 0..25 {
        last = Browser::new().open(&format!("{control}/link?t=frl_{n}")).await.status;
    }
    assert_eq!(last, StatusCode::TOO_MANY_REQUESTS);
}

#[tokio::test]
async fn off_loopback_without_tls_no_browser_signs_in() {
    let system = System::start(options().with(&setting("control.public_url"), "http://ferry.example.com")).await;
    let page = Browser::new().open(&format!("{}/login", system.control_url)).await;
    assert_eq!(page.status, StatusCode::FORBIDDEN);
    assert!(page.text.contains("https only") && page.text.contains("tls.cert_file"), "{}", page.text);
    // Programs go on.
    system.client.current_user().await.unwrap();
}

/// The same with a real browser: what it sends, keeps and shows.
#[tokio::test]
async fn a_real_browser_signs_people_in() {
    let (idp, system) = with_idp("allowed_domains = [\"example.com\"]").await;
    let invite = invited(&system, "bob@elsewhere.test", Role::Approver).await;
    let tools = tools("idp-tools");
    let mut command = Command::new(tools.join("node"));
    command.arg(repo().join("tests/idp/browser.mjs")).arg(&tools);
    command.args([system.control_url.as_str(), &idp.issuer, &invite]).stdin(Stdio::null()).kill_on_drop(true);
    let out = tokio::time::timeout(SOON * 3, command.output()).await.expect("the browser ends").unwrap();
    let said = format!("{}{}", String::from_utf8_lossy(&out.stdout), String::from_utf8_lossy(&out.stderr));
    assert!(out.status.success(), "{said}");
}

/// Where SMTP is configured an invite is mailed; where the mail server is away, the link is there all the same.
#[tokio::test]
async fn invites_are_mailed() {
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let python = tools("python-tools").join("bin/python");
    let mut server = Command::new(python);
    server.args([
        "-u",
        "-m",
        "aiosmtpd",
        "-n",
        "-l",
        &format!("127.0.0.1:{port}"),
        "-c",
        "aiosmtpd.handlers.Debugging",
        "stdout",
    ]);
    let mut server =
        server.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null()).kill_on_drop(true).spawn().unwrap();
    let mut lines = BufReader::new(server.stdout.take().unwrap()).lines();
    let mail = options().with(&setting("mail.smtp_url"), format!("smtp://127.0.0.1:{port}"));
    let system = System::start(mail.with(&setting("mail.from"), "ferry@example.com")).await;
    until("the mail server listens", SOON, async || {
        std::net::TcpStream::connect(("127.0.0.1", port)).map(drop).map_err(|e| e.to_string())
    })
    .await;
    let wanted = CreateOrgInvite { email: "dan@example.com".into(), role_type: None, role: Some(Role::ReadOnly) };
    let invite = system.client.invite(&wanted).await.unwrap();
    assert_eq!(invite.mailed, Some(true));
    let mut seen = String::new();
    while !seen.contains("END MESSAGE") {
        let line = tokio::time::timeout(SOON, lines.next_line()).await.expect("a mail").unwrap().expect("a mail");
        seen = format!("{seen}\n{line}");
    }
    let seen = seen.replace("=\n", "").replace("=3D", "=");
    assert!(seen.contains("To: dan@example.com") && seen.contains(&invite.url.unwrap()), "{seen}");
    drop(server);
    let invite = system.client.invite(&wanted).await.unwrap();
    assert_eq!((invite.mailed, invite.url.is_some()), (Some(false), true));
}
