//! Modules of a special kind: with their providers inside, with real ones, with a version of their own, and with many resources.

use std::path::PathBuf;
use std::process::Command;
use std::time::{Duration, Instant};

use api::control::Workflow;
use serde_json::{Value, json};
use testkit::outside::Files;
use testkit::system::shown;

use super::{FIXTURE, Stage, program, put, step, version};
use crate::builds::pulled;
use crate::options;

/// The runner has no mirror, and the provider is in no registry of the world: it can only come from the artifact.
#[tokio::test]
async fn a_module_with_its_providers_needs_no_registry() {
    let mut stage = Stage::start(options()).await;
    stage.runner().kill();
    stage.resume_runner(|command| {
        command.env_remove("FERRY_RUNNER_TERRAFORM_CONFIG");
    });
    stage.plain_sandbox();
    let module = |name: &str| {
        let world = stage.world();
        format!(
            "{FIXTURE}resource \"fixture_thing\" \"it\" {{\n  name  = \"{name}\"\n  world = \"{}\"\n}}\n",
            world.display()
        )
    };
    stage.component("with", "vendor_providers = true", &[], &module("with"));
    stage.component("without", "", &[], &module("without"));
    stage.sync().await;
    stage.run(json!({ "type": "manual_deploy", "component": "with" })).await;
    assert_eq!(stage.done_to_world(), ["create with"]);
    let id = stage.deploy("without").await;
    let failed = stage.until_step(&id, "sync and plan without", "error").await;
    let told = &failed.status.status_human_description;
    assert!(told.contains("`init` failed: ") && told.contains("provider"), "and why: {told}");

    // What was packed initializes where nothing can be fetched: every way outward ends at a port that refuses.
    let output = stage.system.ferry(&["builds", "list", "--app", "shop", "--component", "with", "--json"]).await;
    let builds: Value = serde_json::from_slice(&output.stdout).unwrap_or_else(|e| panic!("{e}: {}", shown(&output)));
    let module = pulled(&stage.system, &builds[0]).await;
    let config = stage.system.root().join("empty.tfrc");
    put(&config, "disable_checkpoint = true\n");
    let mut command = Command::new(program());
    command.args(["init", "-no-color", "-plugin-dir=.ferry/providers"]).current_dir(&module);
    command.envs(["HTTP_PROXY", "HTTPS_PROXY"].map(|name| (name, "http://127.0.0.1:9"))).env_remove("NO_PROXY");
    command.env("TF_CLI_CONFIG_FILE", &config).env("HOME", stage.system.root().join("home"));
    let output = testkit::system::run(command).await;
    assert!(output.status.success(), "{}", shown(&output));
}

/// What `init` made for a plan is what its apply works with; the next plan initializes anew, but where nothing could come out differently.
#[tokio::test]
async fn an_apply_works_with_what_its_plan_was_made_with() {
    let stage = Stage::start(options()).await;
    stage.plain_sandbox();
    let world = stage.world();
    let thing =
        format!("resource \"fixture_thing\" \"it\" {{\n  name  = \"it\"\n  world = \"{}\"\n}}\n", world.display());
    stage.component("provided", "", &[], &format!("{FIXTURE}{thing}"));
    stage.component(
        "plain",
        "",
        &[("name", "{{ .nuon.inputs.inputs.name }}")],
        "variable \"name\" {}\nresource \"terraform_data\" \"it\" {\n  input = var.name\n}\n",
    );
    stage.inputs(&[("name", "one")]);
    stage.sync().await;
    let kept = async |workflow: &Workflow, name: &str| {
        let job = stage.job(step(workflow, name)).await;
        let told = stage.system.text_log(&job, Some("system")).await;
        let printed = stage.system.text_log(&job, Some("stdout")).await;
        let (kept, made) = (told.contains("initialized before"), printed.contains("Initializing the backend"));
        assert_ne!(kept, made, "{told}{printed}");
        kept
    };
    for (component, again) in [("provided", false), ("plain", true)] {
        let first = stage.run(json!({ "type": "manual_deploy", "component": component })).await;
        assert!(!kept(&first, &format!("sync and plan {component}")).await);
        assert!(kept(&first, &format!("apply {component}")).await);
        let second = stage.run(json!({ "type": "manual_deploy", "component": component })).await;
        assert_eq!(kept(&second, &format!("sync and plan {component}")).await, again, "{component}");
    }

    // Spoilt, it costs one failure: then `init` runs again.
    let init = stage.system.state_dir("a").join("cache/init");
    for entry in fs_err::read_dir(&init).unwrap() {
        fs_err::write(entry.unwrap().path().join(".terraform/terraform.tfstate"), "").unwrap();
    }
    let id = stage.deploy("plain").await;
    stage.until_step(&id, "sync and plan plain", "error").await;
    let healed = stage.run(json!({ "type": "manual_deploy", "component": "plain" })).await;
    assert!(!kept(&healed, "sync and plan plain").await);
}

/// Real providers, all in one module: those of every run, and in soak (`FERRY_ALL_PROVIDERS`) those that take long to build.
#[tokio::test]
async fn real_providers_plan_apply_and_destroy() {
    let all = std::env::var_os("FERRY_ALL_PROVIDERS").is_some();
    let stage = Stage::start(options()).await;
    let (written, served) = (stage.system.witness("written"), Files::serve(&stage.app));
    stage.file("hello.txt", "hello from outside");
    let more = r#"
resource "time_static" "now" {}
resource "tls_private_key" "key" { algorithm = "ED25519" }
data "http" "hello" { url = "URL/hello.txt" }
output "more" {
  value = "${data.http.hello.response_body} ${time_static.now.year > 2000} ${tls_private_key.key.public_key_openssh}"
}
output "private" {
  value     = tls_private_key.key.private_key_openssh
  sensitive = true
}
"#;
    let module = r#"
resource "random_pet" "name" { length = 3 }
resource "local_file" "it" {
  filename = "FILE"
  content  = random_pet.name.id
}
output "name" { value = random_pet.name.id }
"#;
    let module = module.replace("FILE", written.to_str().unwrap());
    let more = if all { more.replace("URL", &served.url()) } else { String::new() };
    stage.plain_sandbox();
    stage.component("it", "", &[], &(module + &more));
    stage.sync().await;
    stage.run(json!({ "type": "manual_deploy", "component": "it" })).await;
    let part = stage.part("components/it").await;
    let outputs = &part["outputs"];
    assert_eq!(outputs["name"].as_str().unwrap(), fs_err::read_to_string(&written).unwrap());
    if all {
        let more = outputs["more"].as_str().unwrap();
        assert!(more.starts_with("hello from outside true ssh-ed25519 "), "{more}");
        assert!(!part.to_string().contains("PRIVATE KEY"), "{part}");
    }
    // A second look finds nothing; a teardown takes everything away.
    let again = stage.run(json!({ "type": "manual_deploy", "component": "it" })).await;
    assert_eq!(step(&again, "sync and plan it").changes.as_ref().map(|c| c.create + c.update + c.destroy), Some(0));
    stage.run(json!({ "type": "teardown_component", "component": "it" })).await;
    assert!(!written.exists());
}

/// A version that is not on PATH comes from the mirror: once, and only with the checksum that the mirror tells.
#[tokio::test]
async fn a_version_is_fetched_once_and_checked() {
    let mut stage = Stage::start(options()).await;
    let (mirror, command) = (stage.system.root().join("mirror"), program());
    let served = Files::serve(&mirror);
    let (url, place) = (served.url(), mirror.join(format!("{command}/9.9.9")));
    stage.runner().kill();
    stage.resume_runner(|runner| {
        runner.env("FERRY_RUNNER_TERRAFORM_MIRROR", &url);
    });
    put(&place.join(command), &format!("#!/bin/sh\nexec \"{}\" \"$@\"\n", on_path(command).display()));
    let zip = format!("{command}_9.9.9_linux_amd64.zip");
    let pack = format!("import zipfile; zipfile.ZipFile('{zip}', 'w').write('{command}')");
    let output = Command::new("python3").args(["-c", &pack]).current_dir(&place).output().unwrap();
    assert!(output.status.success(), "{}", shown(&output));
    let sums = place.join(format!("{command}_9.9.9_SHA256SUMS"));
    put(&sums, &format!("{}  {zip}\n", "0".repeat(64)));

    let named = if command == "tofu" { "tofu-9.9.9" } else { "9.9.9" };
    stage.plain_sandbox();
    stage.component("it", "", &[], "output \"x\" {\n  value = \"y\"\n}\n");
    let path = stage.app.join("components/it.toml");
    let text = fs_err::read_to_string(&path).unwrap();
    fs_err::write(&path, text.replace(&format!("\"{}\"", version()), &format!("\"{named}\""))).unwrap();
    stage.sync().await;
    let id = stage.deploy("it").await;
    let failed = stage.until_step(&id, "sync and plan it", "error").await;
    let told = &failed.status.status_human_description;
    assert!(told.contains("has another checksum than the list says"), "{told}");

    let sum = model::Digest::of(&fs_err::read(place.join(&zip)).unwrap());
    put(&sums, &format!("{}  {zip}\n", sum.hex()));
    for _ in 0..2 {
        stage.run(json!({ "type": "manual_deploy", "component": "it" })).await;
    }
    let zips = served.asked().iter().filter(|path| path.ends_with(&zip)).count();
    assert_eq!(zips, 2, "the refused one, and one: {:?}", served.asked());
}

fn on_path(program: &str) -> PathBuf {
    let path = std::env::var_os("PATH").unwrap();
    std::env::split_paths(&path).map(|dir| dir.join(program)).find(|file| file.exists()).unwrap()
}

/// The most memory that a process has had, in MiB.
fn peak_mib(pid: i32) -> Option<u64> {
    let status = fs_err::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    line.trim().trim_end_matches(" kB").parse::<u64>().ok().map(|kib| kib >> 10)
}

/// Deploys the component `it`; returns the workflow, how long it took, and the peaks of the server and of an executor in MiB.
async fn measured(stage: &Stage, bound: Duration) -> (Workflow, Duration, u64, u64) {
    let started = Instant::now();
    let id = stage.begin(json!({ "type": "manual_deploy", "component": "it", "approve_all": true })).await;
    let mut executor = 0;
    let done = loop {
        let seen = stage.system.executors().into_iter().filter_map(peak_mib).max().unwrap_or_default();
        executor = executor.max(seen);
        let workflow = stage.client().workflow(&id).await.unwrap();
        if workflow.finished {
            break workflow;
        }
        assert!(started.elapsed() < bound, "it takes too long");
        tokio::time::sleep(Duration::from_millis(20)).await;
    };
    assert_eq!(done.status.status, "success", "{}", done.status.status_human_description);
    let server = peak_mib(stage.system.server().pid()).unwrap();
    (done, started.elapsed(), server, executor)
}

/// So many resources with so much text each.
fn bulky(count: usize, kib: usize) -> String {
    let text = "some text ".repeat(102);
    let input = format!("{{ n = count.index, text = join(\"\", [for i in range({kib}) : \"{text}\"]) }}");
    format!(
        "resource \"terraform_data\" \"it\" {{\n  count = {count}\n  input = {input}\n}}\noutput \"count\" {{\n  value = length(terraform_data.it)\n}}\n"
    )
}

#[tokio::test]
async fn five_hundred_resources_take_little_memory() {
    const MANY: usize = 500;
    let stage = Stage::start(options()).await;
    stage.plain_sandbox();
    stage.component("it", "", &[], &bulky(MANY, 1));
    stage.sync().await;
    let (done, took, server, executor) = measured(&stage, super::STEP).await;
    assert_eq!(step(&done, "sync and plan it").changes.as_ref().map(|changes| changes.create), Some(MANY as u64));
    assert_eq!(stage.part("components/it").await["outputs"]["count"], json!(MANY));
    eprintln!("{MANY} resources: {took:?}; peak of the server {server} MiB, of an executor {executor} MiB");
    assert!(executor < 128, "the executor took {executor} MiB");
    assert!(server < 256, "the server took {server} MiB");
}

/// A plan of 200 MB as JSON, and a state of 100 MB, through the whole system.
#[tokio::test]
#[ignore = "takes minutes: make soak PART=terraform"]
async fn heavy_plans_and_states_take_little_memory() {
    const MANY: usize = 500;
    const KIB: usize = 200;
    let stage = Stage::start(options()).await;
    stage.plain_sandbox();
    let module = bulky(MANY, KIB);
    stage.component("it", "", &[], &module);
    stage.sync().await;
    // The same plan, made by hand, to know its size.
    let dir = stage.system.root().join("by-hand");
    put(&dir.join("main.tf"), &module);
    let by_hand = format!("{0} init && {0} plan -out plan && {0} show -json plan > plan.json", program());
    let mut command = Command::new("/bin/sh");
    command.args(["-c", &by_hand]).current_dir(&dir).env_remove("TF_CLI_CONFIG_FILE").env("CHECKPOINT_DISABLE", "1");
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", shown(&output));
    let plan = fs_err::metadata(dir.join("plan.json")).unwrap().len() / 1_000_000;
    fs_err::remove_dir_all(&dir).unwrap();
    assert!(plan >= 200, "the plan has {plan} MB");

    let before = peak_mib(stage.system.server().pid()).unwrap();
    let (_, took, server, executor) = measured(&stage, Duration::from_secs(900)).await;
    let state = stage.system.ferry(&["states", "list", stage.install(), "--json"]).await;
    eprintln!(
        "{MANY} resources of {KIB} KiB, plan of {plan} MB: {took:?}; server from {before} to {server} MiB, executor {executor} MiB\n{}",
        shown(&state)
    );
    assert!(executor < 160, "the executor took {executor} MiB");
    assert!(server <= before + 64, "the server grew from {before} to {server} MiB");
}
