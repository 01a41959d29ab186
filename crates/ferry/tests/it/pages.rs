//! What pages are painted from, asked as a browser asks: the fleet and its filters, what needs a person, typed plans, runs, an install,
//! logs by line, and one stream of what changes.

use std::collections::BTreeSet;

use futures::StreamExt as _;
use serde_json::{Value, json};
use testkit::system::{SOON, System, until};

use crate::workflows::Rehearsal;
use crate::{options, seconds};

/// Asks in the name of an org.
struct Asker {
    http: reqwest::Client,
    url: String,
    token: &'static str,
    org: String,
}

impl Asker {
    fn new(system: &System, org: &str) -> Self {
        let url = system.control_url.clone();
        Self { http: reqwest::Client::new(), url, token: system.token(), org: org.to_owned() }
    }

    async fn answer(&self, path: &str) -> (u16, Value) {
        let call = self.http.get(format!("{}{path}", self.url)).bearer_auth(self.token);
        let answer = call.header("x-nuon-org-id", &self.org).header("x-ferry-request", "1").send().await.unwrap();
        let status = answer.status().as_u16();
        if status == 200 {
            assert!(answer.headers().contains_key("x-ferry-cursor"), "{path} says what it knows of");
        }
        (status, answer.json().await.unwrap_or_default())
    }

    async fn get(&self, path: &str) -> Value {
        let (status, body) = self.answer(path).await;
        assert_eq!(status, 200, "{path}: {body}");
        body
    }
}

fn names(fleet: &Value) -> Vec<&str> {
    fleet["rows"].as_array().unwrap().iter().map(|row| row["name"].as_str().unwrap()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn the_fleet_is_filtered_sorted_and_counted_by_the_server() {
    let system = System::start(options()).await;
    let org = Rehearsal::new(&system, &[("step_ms", 0), ("seed", 7)]).await;
    for name in ["ada", "bob", "cyd"] {
        org.install(name).await;
    }
    let ask = Asker::new(&system, &org.org);
    let client = &org.client;
    client.approve_all(&org.newest("ada").await).await.unwrap();
    org.until(&org.newest("ada").await, "success").await;
    let fleet = ask.get("/v1/fleet").await;
    assert_eq!(names(&fleet), ["ada", "bob", "cyd"]);
    assert_eq!((&fleet["total"], &fleet["matched"]), (&json!(3), &json!(3)));
    let ada = &fleet["rows"][0];
    assert_eq!((&ada["status"], &ada["version"], &ada["app_name"]), (&json!("active"), &json!(1), &json!("shop")));
    assert_eq!(ada["components"].as_array().unwrap().len(), 5);
    assert_eq!(names(&ask.get("/v1/fleet?status=active").await), ["ada"]);
    assert_eq!(names(&ask.get("/v1/fleet?status=pending&sort=-name").await), ["cyd", "bob"]);
    assert_eq!(names(&ask.get("/v1/fleet?q=CY").await), ["cyd"]);
    assert_eq!(names(&ask.get("/v1/fleet?version=none").await), ["bob", "cyd"]);
    assert_eq!(ask.get("/v1/fleet?app=other").await["matched"], json!(0));
    // A page at a time.
    let first = ask.get("/v1/fleet?limit=2").await;
    let next = first["next"].as_str().unwrap().to_owned();
    assert_eq!(names(&ask.get(&format!("/v1/fleet?limit=2&cursor={next}")).await), ["cyd"]);
    // Facets are of the whole org, whatever is filtered.
    let facets = ask.get("/v1/fleet?q=cyd").await["facets"]["status"].clone();
    assert_eq!(facets, json!([{ "value": "active", "count": 1 }, { "value": "pending", "count": 2 }]));
    // Labels, as soon as they are set; a new version makes it outdated; who is forgotten is gone.
    let set = ask.http.post(format!("{}/v1/installs/bob/labels", ask.url)).bearer_auth(ask.token);
    let set = set.header("x-nuon-org-id", &ask.org).json(&json!({ "labels": { "env": "prod" } })).send().await.unwrap();
    assert!(set.status().is_success());
    assert_eq!(names(&ask.get("/v1/fleet?labels=env%3Dprod").await), ["bob"]);
    assert_eq!(names(&ask.get("/v1/fleet?labels=!env").await), ["ada", "cyd"]);
    org.sync(
        &system,
        &[(
            "components/extra.toml",
            "name = \"extra\"\ntype = \"kubernetes_manifest\"\nnamespace = \"x\"\nmanifest = \"a: b\"\n",
        )],
    )
    .await;
    assert_eq!(names(&ask.get("/v1/fleet?version=outdated").await), ["ada"]);
    let forget = system.ferry(&["--org", &org.org, "installs", "forget", "cyd", "--yes", "--force"]).await;
    assert!(forget.status.success(), "{}", String::from_utf8_lossy(&forget.stderr));
    assert_eq!(names(&ask.get("/v1/fleet").await), ["ada", "bob"]);
    for wrong in ["status=splendid", "sort=luck", "order=up", "labels=%3D", "limit=many"] {
        assert_eq!(ask.answer(&format!("/v1/fleet?{wrong}")).await.0, 400, "{wrong}");
    }
    // The CLI paints the same.
    let shown = system.ferry(&["--org", &org.org, "fleet", "--version", "outdated", "--json"]).await;
    let shown: Value = serde_json::from_slice(&shown.stdout).unwrap();
    assert_eq!(names(&shown), ["ada"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_plan_is_reviewed_answered_and_remembered() {
    let system = System::start(options()).await;
    let org = Rehearsal::new(&system, &[("step_ms", 0), ("seed", 3), ("resources", 4)]).await;
    org.install("ada").await;
    org.install("bob").await;
    let ask = Asker::new(&system, &org.org);
    let both = async || {
        let waiting = ask.get("/v1/approvals").await;
        if waiting["total"] == json!(2) { Ok(waiting) } else { Err(waiting.to_string()) }
    };
    let waiting = until("two plans wait", SOON, both).await;
    let plans = waiting["items"].as_array().unwrap();
    assert_eq!(plans[0]["contents"], plans[1]["contents"], "both would do the same");
    assert_ne!(plans[0]["digest"], plans[1]["digest"], "and each is its own plan");
    let ada = plans.iter().find(|plan| plan["install_name"] == "ada").unwrap();
    let (workflow, step) = (ada["workflow_id"].as_str().unwrap(), ada["step_id"].as_str().unwrap());
    let plan = ask.get(&format!("/v1/workflow-steps/{step}/plan")).await;
    assert_eq!((&plan["digest"], &plan["type"]), (&ada["digest"], &json!("simulated")));
    assert_eq!(plan["resources"].as_array().unwrap().len(), 4);
    assert_eq!(plan["can"]["approve"], json!({ "ok": true }));
    let run = ask.get(&format!("/v1/workflows/{workflow}/view")).await;
    assert_eq!((&run["focus"], &run["waits"]["code"]), (&json!(step), &json!("approval")));
    let attention = ask.get("/v1/attention").await;
    assert_eq!((&attention["approvals"], &attention["items"][0]["kind"]), (&json!(2), &json!("approval")));
    // An answer to another plan than this one is refused.
    let refused = format!("{}/v1/workflows/{workflow}/steps/{step}/approvals/sha256:0/response", system.control_url);
    let refused = ask.http.post(refused).bearer_auth(ask.token).header("x-nuon-org-id", &ask.org);
    assert_eq!(refused.json(&json!({ "response_type": "approve" })).send().await.unwrap().status(), 409);
    let deny = system.ferry(&["--org", &org.org, "steps", "deny", step, "--note", "not today"]).await;
    assert!(deny.status.success(), "{}", String::from_utf8_lossy(&deny.stderr));
    let denied = ask.get(&format!("/v1/workflow-steps/{step}/plan")).await;
    assert_eq!(denied["can"]["approve"]["ok"], json!(false));
    assert_eq!(denied["can"]["approve"]["reason"], json!("the plan was denied"));
    assert_eq!(ask.get("/v1/approvals").await["total"], json!(1));
    let answered = ask.get("/v1/approvals?answered=true").await;
    assert_eq!((&answered["items"][0]["answer"], &answered["items"][0]["note"]), (&json!("deny"), &json!("not today")));
    let failed = ask.get("/v1/attention").await;
    assert!(failed["items"].as_array().unwrap().iter().any(|item| item["kind"] == "failed"), "{failed}");
    // A retry plans again; the new plan is compared with the one before.
    let retry = system.ferry(&["--org", &org.org, "steps", "retry", step]).await;
    assert!(retry.status.success());
    let newer = until("a newer plan waits", SOON, async || {
        let run = ask.get(&format!("/v1/workflows/{workflow}/view")).await;
        match run["status"] == "approval-awaiting" {
            true => Ok(run["focus"].as_str().unwrap().to_owned()),
            false => Err(run.to_string()),
        }
    })
    .await;
    let plan = ask.get(&format!("/v1/workflow-steps/{newer}/plan")).await;
    assert_eq!(plan["earlier"], json!([denied["digest"]]));
    let against = denied["digest"].as_str().unwrap();
    let diff = ask.get(&format!("/v1/workflow-steps/{newer}/plan/diff?against={against}")).await;
    assert_eq!((&diff["same"], &diff["unchanged"]), (&json!(true), &json!(4)));
    let old = ask.get(&format!("/v1/workflow-steps/{step}/plan")).await;
    assert_eq!(old["replaced_by_step"], json!(newer));
    assert_eq!(ask.answer("/v1/workflow-steps/stp000000000000000000000000/plan").await.0, 404);
    // Another org sees none of it.
    let foreign = Asker { org: system.org.id.to_string(), ..Asker::new(&system, &org.org) };
    for path in [format!("/v1/workflow-steps/{newer}/plan"), format!("/v1/workflows/{workflow}/view")] {
        assert_eq!(foreign.answer(&path).await.0, 404, "{path}");
    }
    assert_eq!(foreign.get("/v1/approvals").await["total"], json!(0));
}

#[tokio::test(flavor = "multi_thread")]
async fn an_install_shows_its_parts_its_drift_and_what_may_be_done() {
    let system = System::start(options()).await;
    let org = Rehearsal::new(&system, &[("step_ms", 0), ("drift_percent", 100)]).await;
    org.install("ada").await;
    let ask = Asker::new(&system, &org.org);
    let overview = ask.get("/v1/installs/ada/overview").await;
    assert_eq!(overview["can"]["teardown"], json!({ "ok": false, "reason": "nothing is deployed" }));
    client_done(&org, "ada").await;
    let overview = ask.get("/v1/installs/ada/overview").await;
    let api = overview["components"].as_array().unwrap().iter().find(|row| row["name"] == "api").unwrap();
    assert_eq!((&api["status"], &api["depends_on"]), (&json!("active"), &json!(["db", "img"])));
    assert_eq!(overview["can"]["teardown"], json!({ "ok": true }));
    assert_eq!(overview["can"]["forget"]["ok"], json!(false));
    assert_eq!(overview["changes"][0]["title"], json!("provision"));
    let graph = ask.get("/v1/installs/ada/graph").await;
    let rank = |name: &str| {
        let nodes = graph["nodes"].as_array().unwrap();
        nodes.iter().find(|node| node["name"] == name).unwrap()["rank"].as_u64().unwrap()
    };
    assert!(rank("db") < rank("api") && rank("api") < rank("web"));
    assert_eq!(ask.get("/v1/apps/shop/graph").await["nodes"].as_array().unwrap().len(), 5);
    // Drift: never looked, then drifted, then void by a deploy.
    let drift_of = async || {
        let drift = ask.get("/v1/installs/ada/drift").await;
        let part = drift["parts"].as_array().unwrap().iter().find(|part| part["part"] == "db").unwrap().clone();
        part["drift"].as_str().unwrap().to_owned()
    };
    assert_eq!(drift_of().await, "never-looked");
    let look = org.start("ada", json!({ "type": "drift_run", "component": "db" })).await;
    org.until(&look, "success").await;
    assert_eq!(drift_of().await, "drifted");
    assert_eq!(names(&ask.get("/v1/fleet?drift=drifted").await), ["ada"]);
    org.done("ada", json!({ "type": "manual_deploy", "component": "db", "deployed": true })).await;
    assert_eq!(drift_of().await, "none", "a deploy that finds nothing to do has looked");
    assert_eq!(ask.get("/v1/fleet?drift=drifted").await["matched"], json!(0));
    let diff = ask.get("/v1/installs/ada/state/diff").await;
    assert!(diff["changes"].as_array().unwrap().iter().any(|change| change["path"] == "components/db.generation"));
    // Search finds it by name and by id, and says what it is.
    let found = ask.get("/v1/search?q=ad").await;
    assert_eq!((&found["items"][0]["kind"], &found["items"][0]["name"]), (&json!("install"), &json!("ada")));
    let found = ask.get(&format!("/v1/search?q={look}")).await;
    assert_eq!(found["items"][0]["kind"], json!("workflow"));
    // The audit has names in place of ids, and can be downloaded.
    let audit = ask.get("/v1/audit?install=ada&limit=5").await;
    assert_eq!(audit["entries"].as_array().unwrap().len(), 5);
    assert!(audit["next"].is_string());
    let csv = ask.http.get(format!("{}/v1/audit?format=csv&install=ada", ask.url)).bearer_auth(ask.token);
    let csv = csv.header("x-nuon-org-id", &ask.org).send().await.unwrap().text().await.unwrap();
    assert!(csv.starts_with("time,who,kind,what") && csv.lines().count() > 10);
    let frame = ask.get("/v1/frame").await;
    assert_eq!((&frame["role"], &frame["simulated"]), (&json!("admin"), &json!(true)));
    // Views are kept for their owner.
    let views = format!("{}/v1/views", ask.url);
    let save = ask.http.post(&views).bearer_auth(ask.token).header("x-nuon-org-id", &ask.org);
    let saved = save.json(&json!({ "name": "drift", "query": "drift=drifted" })).send().await.unwrap();
    assert_eq!(saved.status(), 201);
    let id = saved.json::<Value>().await.unwrap()["id"].as_str().unwrap().to_owned();
    assert_eq!(ask.get("/v1/views").await[0]["mine"], json!(true));
    let delete = ask.http.delete(format!("{views}/{id}")).bearer_auth(ask.token).header("x-nuon-org-id", &ask.org);
    assert_eq!(delete.send().await.unwrap().status(), 204);
}

async fn client_done(org: &Rehearsal, install: &str) {
    let id = org.newest(install).await;
    org.client.approve_all(&id).await.unwrap();
    org.until(&id, "success").await;
}

/// One script prints many lines, in pieces and on both pipes: numbers are the same from wherever they are read.
#[tokio::test(flavor = "multi_thread")]
async fn a_log_is_read_by_line_numbers() {
    let system = System::start(options()).await;
    let script = "for i in $(seq 1 3000); do echo line $i; done; echo some error >&2; printf 'in '; sleep 0.3; echo pieces; exit 3";
    let _runner = system.start_runner("one").await;
    let job = system.script(script).await;
    let ask = Asker::new(&system, system.org.id.as_str());
    let log = job.log_stream_id.to_string();
    let over = async || {
        let outline = ask.get(&format!("/v1/log-streams/{log}/outline")).await;
        if outline["open"] == json!(false) { Ok(outline) } else { Err(outline.to_string()) }
    };
    let outline = until("the log is whole", seconds(60), over).await;
    let total = outline["lines"].as_u64().unwrap();
    assert!(total >= 3002, "{outline}");
    assert_eq!(outline["job_status"], json!("failed"));
    assert!(outline["failures_total"].as_u64().unwrap() >= 1);
    let mut seen = Vec::new();
    let mut numbers = BTreeSet::new();
    let mut from = 1;
    while from <= total {
        let page = ask.get(&format!("/v1/log-streams/{log}/lines?from={from}&count=700")).await;
        for line in page["lines"].as_array().unwrap() {
            assert!(numbers.insert(line["n"].as_u64().unwrap()), "each once");
            if line["pipe"].is_null() || line["pipe"] == "stderr" {
                seen.push(line["text"].as_str().unwrap().to_owned());
            }
        }
        from += 700;
    }
    assert_eq!(numbers.len() as u64, total, "no number is missing");
    let printed: Vec<String> = (1..=3000).map(|n| format!("line {n}")).collect();
    assert_eq!(seen.iter().filter(|line| line.starts_with("line ")).cloned().collect::<Vec<_>>(), printed);
    assert!(seen.contains(&"in pieces".to_owned()) && seen.contains(&"some error".to_owned()));
    // The middle has the same numbers whoever asks first.
    let middle = ask.get(&format!("/v1/log-streams/{log}/lines?from=1500&count=2")).await;
    let again = ask.get(&format!("/v1/log-streams/{log}/lines?from=1499&count=2")).await;
    assert_eq!(middle["lines"][0], again["lines"][1]);
    let found = ask.get(&format!("/v1/log-streams/{log}/matches?q=LINE%201234")).await;
    assert_eq!((found["total"].as_u64(), found["lines"].as_array().unwrap().len()), (Some(1), 1));
    let n = found["lines"][0].as_u64().unwrap();
    let line = ask.get(&format!("/v1/log-streams/{log}/lines?from={n}&count=1")).await;
    assert_eq!(line["lines"][0]["text"], json!("line 1234"));
    let found = ask.get(&format!("/v1/log-streams/{log}/matches?q=line%201.%24&regex=true")).await;
    assert_eq!(found["total"], json!(10));
    assert_eq!(ask.answer(&format!("/v1/log-streams/{log}/matches?q=%28&regex=true")).await.0, 400);
}

/// What a page hears: the change that it made, and nothing twice when it comes back.
#[tokio::test(flavor = "multi_thread")]
async fn one_stream_tells_what_changes_and_goes_on_where_it_was() {
    let system = System::start(options()).await;
    let org = Rehearsal::new(&system, &[("step_ms", 0)]).await;
    let ask = Asker::new(&system, &org.org);
    let url = format!("{}/v1/live?org_id={}", ask.url, org.org);
    let listen = async |last: Option<&str>| {
        let call = ask.http.get(&url).bearer_auth(ask.token);
        let call = match last {
            Some(last) => call.header("last-event-id", last),
            None => call,
        };
        let answer = call.send().await.unwrap();
        assert_eq!(answer.status(), 200);
        answer.bytes_stream()
    };
    let mut stream = listen(None).await;
    org.install("ada").await;
    let mut text = String::new();
    let told = tokio::time::timeout(SOON, async {
        while !text.contains("approval-awaiting") {
            text += &String::from_utf8_lossy(&stream.next().await.unwrap().unwrap());
        }
    });
    told.await.unwrap_or_else(|_| panic!("{text}"));
    assert!(text.contains("event: beat"), "it is alive from the start");
    let ids: Vec<&str> = text.lines().filter_map(|line| line.strip_prefix("id: ")).collect();
    let known: BTreeSet<&str> = ids.iter().copied().collect();
    assert!(text.contains("\"kind\":\"install.created\""), "{text}");
    drop(stream);
    // Coming back from the third message: the rest, and nothing of what was known.
    let mut again = listen(Some(ids[3])).await;
    let mut rest = String::new();
    let told = tokio::time::timeout(SOON, async {
        while !rest.contains("approval-awaiting") {
            rest += &String::from_utf8_lossy(&again.next().await.unwrap().unwrap());
        }
    });
    told.await.unwrap_or_else(|_| panic!("{rest}"));
    let notes =
        |text: &str| text.lines().filter(|line| line.contains("\"kind\"")).map(str::to_owned).collect::<Vec<_>>();
    let (all, rest) = (notes(&text), notes(&rest));
    assert_eq!(all[all.len() - rest.len()..], rest[..], "the same notes, in their order");
    assert!(known.len() > 4);
    // Another org hears nothing, and nobody hears without a right to it.
    let foreign = ask.http.get(format!("{}/v1/live?org_id={}", ask.url, org.org)).send().await.unwrap();
    assert_eq!(foreign.status(), 401);
}
