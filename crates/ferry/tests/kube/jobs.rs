//! Jobs: an image that runs until it ends. What counts how often it ran is a pod of its own, which every run asks.

use std::time::{Duration, Instant};

use api::control::WorkflowStep;
use needs::needs;
use serde_json::{Value, json};
use testkit::kube::{Cluster, Namespace, images};
use testkit::system::until;

use crate::stage::{Stage, ended, newest, planned};

/// Longest wait for a pod to do something.
const POD: Duration = Duration::from_secs(60);

/// A server in a pod that notes who asked for what, and has a file once a test says so.
struct Counter {
    namespace: Namespace,
    address: String,
}

impl Counter {
    fn start() -> Self {
        let namespace = Cluster::get().namespace("counter");
        let image = format!("--image={}", images::SHELL);
        let script = "mkdir -p /tmp/www && exec httpd -f -vv -p 8080 -h /tmp/www";
        namespace.kubectl(&["run", "counter", &image, "--command", "--", "/bin/sh", "-c", script]);
        namespace.kubectl(&["wait", "pod/counter", "--for", "condition=Ready", "--timeout", "60s"]);
        let address = namespace.kubectl(&["get", "pod", "counter", "--output", "jsonpath={.status.podIP}"]);
        Self { namespace, address: format!("http://{}:8080", address.trim()) }
    }

    /// How often something was asked for.
    fn count(&self, what: &str) -> usize {
        let log = self.namespace.kubectl(&["logs", "counter"]);
        log.lines().filter(|line| line.ends_with(&format!("url:/{what}"))).count()
    }

    fn open(&self, what: &str) {
        self.namespace.kubectl(&["exec", "counter", "--", "touch", &format!("/tmp/www/{what}")]);
    }

    async fn until(&self, what: &str, count: usize) {
        until(&format!("{count} runs have asked for `{what}`"), POD, async || match self.count(what) {
            now if now >= count => Ok(()),
            _ => Err(self.namespace.kubectl(&["logs", "counter"])),
        })
        .await;
    }

    /// Asks for something, whatever the answer is.
    fn ask(&self, what: &str) -> String {
        format!("wget -q -O /tmp/answer {}/{what} 2>/tmp/error || true", self.address)
    }

    /// Waits until there is something.
    fn wait(&self, what: &str) -> String {
        format!("until wget -q -O /tmp/answer {}/{what} 2>/tmp/error; do sleep 1; done", self.address)
    }
}

/// A component that runs a script.
fn script(stage: &Stage, name: &str, settings: &str, text: &str) {
    let command = json!(["/bin/sh", "-c", text]);
    stage.program(name, &format!("cmd = {command}\n{settings}"), images::SHELL);
}

/// The log of the job of a step: what the program printed, and what the runner says.
async fn log_of(stage: &Stage, step: &WorkflowStep) -> (String, String) {
    let job = stage.job(step).await;
    (stage.system.text_log(&job, Some("stdout")).await, stage.system.text_log(&job, Some("system")).await)
}

fn jobs(stage: &Stage) -> Vec<Value> {
    stage.namespace.kubectl_json(&["get", "jobs"])["items"].as_array().unwrap().clone()
}

#[tokio::test]
async fn a_job_runs_once_for_each_content() {
    needs!(KubeNode);
    let stage = Stage::start("jobs").await;
    let counter = Counter::start();
    let namespace = stage.namespace.name().to_owned();
    stage.file("inputs.toml", "[[group]]\nname = \"main\"\ndescription = \"d\"\ndisplay_name = \"d\"\n[[input]]\nname = \"password\"\ndescription = \"d\"\ndisplay_name = \"d\"\ngroup = \"main\"\nsensitive = true\n");
    let text = |word: &str| format!("echo the word is {word}; echo and $PASSWORD; {}", counter.ask(word));
    let secret = "[env_vars]\nPASSWORD = \"{{ .nuon.inputs.inputs.password }}\"\n";
    script(&stage, "it", secret, &text("one"));
    stage.sync().await;
    stage.ferry(&["installs", "inputs", stage.install(), "--set", "password=hunter2-of-a-job"]).await;
    let id = stage.deploy("it").await;
    let (step, plan) = stage.waiting(&id, "it").await;
    assert_eq!(plan["changes"]["create"], 1, "{plan}");
    assert!(plan.to_string().contains("the word is one") && plan.to_string().contains("PASSWORD"), "{plan}");
    assert_eq!((jobs(&stage).len(), counter.count("one")), (0, 0), "a plan runs nothing");
    stage.approve(&step).await;
    let done = stage.until(&id, "success").await;
    let (log, said) = log_of(&stage, newest(&done, "apply it").unwrap()).await;
    assert!(log.contains("the word is one\nand ***\n") && said.contains("attempt 1: pod it-"), "{log}{said}");
    for seen in [&plan.to_string(), &log, &said, &stage.part("components/it").await.to_string()] {
        assert!(!seen.contains("hunter2"), "{seen}");
    }
    let part = stage.part("components/it").await;
    let first = jobs(&stage)[0]["metadata"]["name"].as_str().unwrap().to_owned();
    let outputs = &part["outputs"];
    assert_eq!(outputs["job"], json!({ "name": first, "namespace": namespace }), "{part}");
    assert_eq!((&outputs["exit_code"], &outputs["attempts"]), (&json!(0), &json!(1)), "{part}");
    assert!(outputs["started_at"].as_str() <= outputs["finished_at"].as_str(), "{part}");

    // The same content runs no more, not even when its Job was deleted by hand.
    for look in [true, false] {
        let again = stage.deployed("it").await;
        assert_eq!(ended(&again, "apply it"), "auto-skipped");
        if look {
            stage.namespace.kubectl(&["delete", "job", &first]);
        }
        assert_eq!(stage.look("it").await.status.status, "no-drift");
    }
    // Other content does, and takes the place of the one before.
    script(&stage, "it", secret, &text("two"));
    stage.sync().await;
    stage.deployed("it").await;
    let second = jobs(&stage)[0]["metadata"]["name"].as_str().unwrap().to_owned();
    script(&stage, "it", secret, &text("three"));
    stage.sync().await;
    let id = stage.deploy("it").await;
    let (step, plan) = stage.waiting(&id, "it").await;
    assert_eq!(planned(&plan, &format!("Job/{namespace}/{second}"))["action"], "destroy", "{plan}");
    stage.approve(&step).await;
    stage.until(&id, "success").await;
    let left = jobs(&stage);
    assert!(left.len() == 1 && left[0]["metadata"]["name"] != second, "{left:?}");
    assert_eq!(["one", "two", "three"].map(|word| counter.count(word)), [1, 1, 1], "each ran once");

    for _ in 0..2 {
        stage.run(json!({ "type": "teardown_component", "component": "it" })).await;
        assert_eq!((jobs(&stage).len(), stage.part("components/it").await["status"].clone()), (0, json!("inactive")));
    }
    // A namespace that is not there is made.
    let inner = format!("{namespace}-made");
    stage.program("elsewhere", &format!("args = [\"-c\", \"true\"]\nnamespace = \"{inner}\""), images::SHELL);
    stage.sync().await;
    let id = stage.deploy("elsewhere").await;
    let (step, plan) = stage.waiting(&id, "elsewhere").await;
    assert_eq!(planned(&plan, &format!("Namespace/{inner}"))["action"], "create", "{plan}");
    stage.approve(&step).await;
    stage.until(&id, "success").await;
    Cluster::get().kubectl(&["delete", "namespace", &inner, "--wait=false"]);
    stage.system.until_quiet().await;
}

#[tokio::test]
async fn a_job_outlives_its_runner_and_its_executor() {
    needs!(KubeNode);
    let mut stage = Stage::start("jobs").await;
    let counter = Counter::start();
    let text = |n: u32| {
        format!("echo begun; {}; {}; echo over", counter.ask(&format!("begun{n}")), counter.wait(&format!("go{n}")))
    };
    script(&stage, "it", "", &text(1));
    stage.sync().await;
    let id = stage.deploy("it").await;
    let (step, _) = stage.waiting(&id, "it").await;
    stage.approve(&step).await;
    counter.until("begun1", 1).await;
    for _ in 0..3 {
        stage.restart_runner().await;
    }
    counter.open("go1");
    let done = stage.until(&id, "success").await;
    let (log, _) = log_of(&stage, newest(&done, "apply it").unwrap()).await;
    assert_eq!(log, "begun\nover\n");
    assert_eq!(counter.count("begun1"), 1, "it ran once");

    // The executor dies while it runs. Nobody starts another one: who plans next finds it and waits.
    script(&stage, "it", "", &text(2));
    stage.sync().await;
    let id = stage.deploy("it").await;
    let (plan, _) = stage.waiting(&id, "it").await;
    stage.kill_at("executor.job_pod_seen", &plan).await;
    counter.until("begun2", 1).await;
    let lost = stage.until_step(&id, "apply it", "unknown").await;
    stage.client().retry_step(&id, &lost.id).await.unwrap();
    let (again, shown) = stage.waiting_again(&id, "it", &plan).await;
    assert!(shown.to_string().contains("this apply waits for it"), "{shown}");
    stage.approve(&again).await;
    stage.until_step(&id, "apply it", "in-progress").await;
    counter.open("go2");
    let done = stage.until(&id, "success").await;
    let (log, _) = log_of(&stage, newest(&done, "apply it").unwrap()).await;
    assert_eq!(log, "begun\nover\n", "the log of the whole run");
    assert_eq!(counter.count("begun2"), 1, "it ran once");
    stage.system.until_quiet().await;
}

#[tokio::test]
async fn a_job_that_fails_takes_too_long_or_is_cancelled() {
    needs!(KubeNode);
    let stage = Stage::start("jobs").await;
    let counter = Counter::start();
    let namespace = stage.namespace.name().to_owned();
    script(
        &stage,
        "flaky",
        "retries = 2",
        &format!(
            "{}; wget -q -O /tmp/answer {}/ok || {{ echo not yet >&2; exit 7; }}; echo now",
            counter.ask("try"),
            counter.address
        ),
    );
    script(&stage, "broken", "retries = 1", "echo first; echo the disk is full >&2; exit 9");
    let slow = |word: &str| format!("trap 'exit 0' TERM; {}; sleep 600 & wait", counter.ask(word));
    script(&stage, "slow", "deploy_timeout = \"30s\"", &slow("slow"));
    script(&stage, "cancelled", "", &slow("cancelled"));
    stage.sync().await;

    // Two attempts fail, the third one succeeds. Meanwhile the others run, too.
    let begin = async |component: &str| {
        stage.begin(json!({ "type": "manual_deploy", "component": component, "approve_all": true })).await
    };
    let (flaky, broken, slow) = (begin("flaky").await, begin("broken").await, begin("slow").await);
    let cancelled = begin("cancelled").await;
    counter.until("cancelled", 1).await;
    let step = stage.until_step(&cancelled, "apply cancelled", "in-progress").await;
    stage.client().cancel_workflow(&cancelled).await.unwrap();
    stage.until(&cancelled, "cancelled").await;
    let (_, said) = log_of(&stage, &step).await;
    assert!(said.contains("is deleted, with its pods"), "{said}");
    let pods = stage.namespace.kubectl(&["get", "jobs,pods", "--output", "name"]);
    assert!(!pods.contains("cancelled-"), "{pods}");

    counter.until("try", 2).await;
    counter.open("ok");
    let done = stage.until(&flaky, "success").await;
    let (log, said) = log_of(&stage, newest(&done, "apply flaky").unwrap()).await;
    assert_eq!(log.matches("not yet\n").count(), 2, "{log}");
    assert!(
        said.contains("attempt 2 failed: container `main` of pod flaky-") && said.contains("exit code 7"),
        "{said}"
    );
    assert!(log.contains("now\n"), "{log}");
    assert_eq!(stage.part("components/flaky").await["outputs"]["attempts"], 3);
    assert_eq!(counter.count("try"), 3);

    let step = stage.until_step(&broken, "apply broken", "error").await;
    let told = &step.status.status_human_description;
    let parts = [&format!("Job/{namespace}/broken-"), "after 2 attempts", "exit code 9", "the disk is full"];
    assert!(parts.iter().all(|part| told.contains(part)), "{told}");
    let job = stage.job(&step).await;
    assert_eq!(job.error.as_ref().unwrap().code, "job_failed");
    assert!(json!(job).to_string().contains("\"exit_code\":9"), "{}", json!(job));
    // What is said of its Job is what is so.
    assert!(!told.contains("deleted"), "{told}");
    // It failed, so it is planned again, and its Job is deleted first.
    let id = stage.deploy("broken").await;
    let (_, plan) = stage.waiting(&id, "broken").await;
    assert_eq!((&plan["changes"]["create"], &plan["changes"]["destroy"]), (&json!(1), &json!(1)), "{plan}");
    stage.cancel(&id).await;

    let step = stage.until_step(&slow, "apply slow", "error").await;
    let told = &step.status.status_human_description;
    assert!(told.contains(&format!("Job/{namespace}/slow-")) && told.contains("deploy_timeout"), "{told}");
    assert!(told.contains("is deleted, with its pods"), "{told}");
    assert_eq!(stage.job(&step).await.error.unwrap().code, "timed_out");
    assert_eq!(counter.count("slow"), 1);

    let pods = stage.namespace.kubectl(&["get", "jobs,pods", "--output", "name"]);
    assert!(!pods.contains("slow-"), "{pods}");
    stage.system.until_quiet().await;
}

#[tokio::test]
async fn a_rollback_runs_again_though_the_run_since_was_cancelled() {
    needs!(KubeNode);
    let stage = Stage::start("jobs").await;
    let counter = Counter::start();
    let first = counter.ask("first");
    script(&stage, "it", "", &first);
    stage.sync().await;
    stage.deployed("it").await;
    script(&stage, "it", "", &format!("trap 'exit 0' TERM; {}; sleep 600 & wait", counter.ask("second")));
    stage.sync().await;
    let id = stage.begin(json!({ "type": "manual_deploy", "component": "it", "approve_all": true })).await;
    counter.until("second", 1).await;
    stage.client().cancel_workflow(&id).await.unwrap();
    stage.until(&id, "cancelled").await;
    assert_eq!(jobs(&stage).len(), 1, "that of the first run is still there");
    script(&stage, "it", "", &first);
    stage.sync().await;
    let done = stage.deployed("it").await;
    assert_eq!((ended(&done, "apply it"), counter.count("first")), ("success", 2));
    // What was torn down runs anew.
    stage.run(json!({ "type": "teardown_component", "component": "it" })).await;
    stage.deployed("it").await;
    assert_eq!(counter.count("first"), 3);
    stage.system.until_quiet().await;
}

#[tokio::test]
async fn a_large_log_arrives_whole() {
    needs!(KubeNode);
    const LINES: usize = 500_000;
    let stage = Stage::start("jobs").await;
    let line = "0123456789".repeat(9) + "012345678";
    script(&stage, "loud", "", &format!("busybox yes {line} | head -n {LINES}"));
    stage.sync().await;
    let begun = Instant::now();
    let done = stage.deployed("loud").await;
    let log = stage.system.raw_log(&stage.job(newest(&done, "apply loud").unwrap()).await, Some("stdout")).await;
    eprintln!("{} MB in {:?}", log.len() / 1_000_000, begun.elapsed());
    assert_eq!(log.len(), LINES * (line.len() + 1));
    assert!(log.chunks(line.len() + 1).all(|chunk| chunk == format!("{line}\n").as_bytes()), "each line is whole");
    stage.system.until_quiet().await;
}

/// A program for another processor: its header is all that the kernel reads.
fn foreign_program() -> Vec<u8> {
    let machine: u16 = if cfg!(target_arch = "x86_64") { 183 } else { 62 };
    let mut header = vec![0x7f, b'E', b'L', b'F', 2, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2, 0];
    header.extend(machine.to_le_bytes());
    header.resize(4096, 0);
    header
}

/// What a person reads within a minute.
#[tokio::test]
async fn what_keeps_a_job_from_running_is_told_within_a_minute() {
    needs!(KubeNode);
    needs!(KubeOwn);
    let stage = Stage::start("jobs").await;
    let cluster = Cluster::get();
    let folder = stage.system.root().join("foreign");
    fs_err::create_dir_all(&folder).unwrap();
    let program = folder.join("program");
    fs_err::write(&program, foreign_program()).unwrap();
    fs_err::set_permissions(&program, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let foreign = format!("ferry.test/foreign-{}:1", std::process::id());
    cluster.image(&foreign, &folder, r#"["/program"]"#);
    // Limits and requests come from the namespaces.
    let limited = |name: &str, limits: &str| {
        let namespace = cluster.namespace(name);
        let range = format!(
            "apiVersion: v1\nkind: LimitRange\nmetadata:\n  name: limits\nspec:\n  limits:\n  - type: Container\n{limits}"
        );
        namespace.apply_yaml(&range);
        namespace
    };
    let small = limited("small", "    default: {memory: 24Mi}\n    defaultRequest: {memory: 1Mi}\n");
    let huge = limited("huge", "    default: {cpu: 5000}\n    defaultRequest: {cpu: 5000}\n");
    stage.program("missing", "", "ferry.test/no-such-image:7");
    stage.program("foreign", "", &foreign);
    stage.program("crash", "retries = 0", images::CRASH);
    stage.program("nobody", "service_account = \"nobody\"", images::SLEEP);
    stage.program(
        "hungry",
        &format!("namespace = \"{}\"\nretries = 0\ncmd = [\"tail\", \"/dev/zero\"]", small.name()),
        images::SHELL,
    );
    stage.program("unplaced", &format!("namespace = \"{}\"", huge.name()), images::SLEEP);
    stage.program("nothing", "cmd = [\"/bin/no-such-program\"]", images::SHELL);
    stage.sync().await;
    let cases: [(&str, &[&str]); 7] = [
        ("missing", &["the image ferry.test/no-such-image:7", "can't be pulled", "check its name"]),
        ("foreign", &["another architecture", "build it for"]),
        ("crash", &["exit code 3", "fatal: the database at db:5432 does not answer"]),
        ("nobody", &["pod can't be created", "serviceaccount \"nobody\" not found"]),
        ("hungry", &["more memory than its limit of 24Mi", "raise"]),
        ("unplaced", &["no node can take the pod", "Insufficient cpu", "add a node"]),
        ("nothing", &["can't be started", "its command is not in the image"]),
    ];
    let mut begun = Vec::new();
    for (component, parts) in cases {
        let id = stage.begin(json!({ "type": "manual_deploy", "component": component, "approve_all": true })).await;
        begun.push((component, parts, id));
    }
    for (component, parts, id) in begun {
        let step = stage.until_step(&id, &format!("apply {component}"), "error").await;
        let told = &step.status.status_human_description;
        eprintln!("{component}: {told}");
        assert!(parts.iter().all(|part| told.contains(part)), "{component}: {told}");
        assert!(told.contains(&format!("/{component}-")), "it names the Job: {told}");
        let job = stage.job(&step).await;
        let took = job.finished_at.unwrap().since(job.started_at.unwrap());
        assert!(took < Duration::from_secs(60), "{component} took {took:?}");
        assert_eq!(job.error.unwrap().code, "job_failed", "{component}");
        assert_eq!(stage.part(&format!("components/{component}")).await["status"], "error");
    }
    stage.system.until_quiet().await;
}
