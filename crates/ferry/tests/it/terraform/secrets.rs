//! The control plane holds no secret of the customer: not in its database, not in its blobs, and not where it opens all that it
//! has sealed itself.

use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD_NO_PAD as B64;
use model::OrgId;
use serde_json::json;
use store::{MasterKeys, Store, StoreConfig};
use testkit::system::{System, shown};

use super::{FIXTURE, Stage};
use crate::options;

/// Makes two passwords; one is put out.
fn maker(world: &str) -> String {
    format!(
        r#"terraform {{
  required_providers {{
    random  = {{ source = "hashicorp/random" }}
    fixture = {{ source = "example.test/ferry/fixture" }}
  }}
}}
resource "random_password" "shared" {{ length = 24 }}
resource "random_password" "own" {{ length = 24 }}
resource "fixture_thing" "it" {{
  name   = "maker"
  world  = "{world}"
  secret = random_password.own.result
}}
output "password" {{
  value     = random_password.shared.result
  sensitive = true
}}
output "login" {{
  value     = {{ user = "ada", password = "login-${{random_password.shared.result}}" }}
  sensitive = true
}}
output "public" {{ value = "seen" }}
"#
    )
}

/// Takes a password, and is careless with it.
fn taker(world: &str) -> String {
    format!(
        r#"{FIXTURE}
variable "password" {{
  type      = string
  sensitive = true
}}
variable "line" {{ type = string }}
resource "fixture_thing" "it" {{
  name   = "taker"
  world  = "{world}"
  secret = var.password
}}
resource "terraform_data" "careless" {{
  provisioner "local-exec" {{
    command     = "echo the password is \"$PASSWORD\""
    environment = {{ PASSWORD = nonsensitive(var.password) }}
  }}
}}
output "hash" {{ value = nonsensitive(sha256(var.password)) }}
output "length" {{ value = length(var.line) }}
"#
    )
}

/// A secret as it may stand somewhere: as it is, in JSON, base64 at each of its three places, hex, and in an URL.
fn shapes(secret: &str) -> Vec<Vec<u8>> {
    let mut all = vec![secret.as_bytes().to_vec()];
    let text = json!(secret).to_string();
    all.push(text.as_bytes()[1..text.len() - 1].to_vec());
    for shift in 0..3 {
        let shifted = [&vec![b'x'; shift][..], secret.as_bytes()].concat();
        // The characters at both ends hold bits of the neighbours too.
        let whole = B64.encode(shifted);
        let from = [0, 2, 3][shift];
        let middle = &whole[from..whole.len() - 2];
        all.push(middle.as_bytes().to_vec());
        all.push(middle.replace('+', "-").replace('/', "_").into_bytes());
    }
    let hex: String = secret.bytes().map(|byte| format!("{byte:02x}")).collect();
    all.push(hex.to_uppercase().into_bytes());
    all.push(hex.into_bytes());
    let url =
        |byte: u8| if byte.is_ascii_alphanumeric() { char::from(byte).to_string() } else { format!("%{byte:02X}") };
    all.push(secret.bytes().map(url).collect::<String>().into_bytes());
    all
}

/// Everything that the control plane holds, by where it was found.
#[derive(Default)]
struct Held(Vec<(String, Vec<u8>)>);

impl Held {
    fn add(&mut self, place: String, bytes: Vec<u8>) {
        // What is packed is looked at both ways.
        if let Ok(opened) = zstd::stream::decode_all(&bytes[..]) {
            self.0.push((format!("{place}, unpacked"), opened));
        }
        self.0.push((place, bytes));
    }

    fn add_files(&mut self, dir: &Path) {
        for entry in fs_err::read_dir(dir).unwrap().map(|entry| entry.unwrap().path()) {
            match entry.is_dir() {
                true => self.add_files(&entry),
                false => self.add(entry.display().to_string(), fs_err::read(&entry).unwrap()),
            }
        }
    }

    /// Every value of a database; what the server has sealed is opened with its own keys. Returns how many were.
    async fn add_database(&mut self, file: &Path, store: &Store, org: &OrgId) -> usize {
        let keys = store.org_keys(org).await.unwrap();
        let db = rusqlite::Connection::open(file).unwrap();
        let names = |sql: &str| -> Vec<String> {
            let mut all = db.prepare(sql).unwrap();
            all.query_map([], |row| row.get(0)).unwrap().map(Result::unwrap).collect()
        };
        let mut opened = 0;
        for table in names("SELECT name FROM sqlite_master WHERE type = 'table'") {
            let mut all = db.prepare(&format!("SELECT * FROM {table}")).unwrap();
            let columns: Vec<String> = all.column_names().map(str::to_owned).collect();
            let mut rows = all.query([]).unwrap();
            while let Some(row) = rows.next().unwrap() {
                let texts: Vec<String> = (0..columns.len()).filter_map(|n| row.get::<_, String>(n).ok()).collect();
                for (n, column) in columns.iter().enumerate() {
                    let Ok(bytes) = row.get::<_, Vec<u8>>(n) else { continue };
                    let ids = texts.iter().flat_map(|a| texts.iter().map(move |b| format!("{a}|{b}")));
                    let mut places = texts.iter().cloned().chain(ids).map(|id| format!("{table}|{id}|{column}"));
                    let found = places.find_map(|place| Some((keys.open(&place, &bytes).ok()?, place)));
                    if let Some((plain, place)) = found {
                        opened += 1;
                        self.add(place, plain);
                    } else {
                        // Keys, what other keys have sealed, and what is not sealed at all.
                        let known =
                            ["data_keys", "signing_keys", "registry_manifests", "manifests", "chunks", "log_chunks"];
                        assert!(known.contains(&table.as_str()), "{table}.{column} can't be opened");
                    }
                    self.add(format!("{table}.{column}"), bytes);
                }
            }
        }
        opened
    }

    /// Everything, once the control plane has ended.
    async fn add_all(&mut self, stage: &mut Stage) {
        stage.runner().kill();
        let (status, _) = stage.system.stop_server().await;
        assert!(status.success());
        let data = stage.system.root().join("data");
        self.add_files(&data);
        let store = store_of(&stage.system).await;
        let org = &stage.system.org.id;
        let opened = self.add_database(&data.join("db/ferry.db"), &store, org).await;
        self.add_database(&data.join("db/logs.db"), &store, org).await;
        assert!(opened > 20, "{opened} sealed values were opened");
    }

    /// Where a secret stands, in whatever shape.
    fn find(&self, secret: &str) -> Vec<String> {
        let mut found = Vec::new();
        for shape in shapes(secret) {
            let holds = |bytes: &[u8]| bytes.windows(shape.len()).any(|window| window == shape);
            let places = self.0.iter().filter(|(_, bytes)| holds(bytes));
            found.extend(places.map(|(place, _)| format!("{place} as {}", String::from_utf8_lossy(&shape))));
        }
        found
    }

    fn contains(&self, text: &str) -> bool {
        self.0.iter().any(|(_, bytes)| bytes.windows(text.len()).any(|window| window == text.as_bytes()))
    }
}

#[test]
fn the_search_finds_a_secret_in_every_shape() {
    let secret = "a&b/c\"d+e<f>g%h(i)j";
    let hex = |text: &str| text.bytes().map(|byte| format!("{byte:02x}")).collect::<String>();
    let packed = zstd::bulk::compress(format!("around {secret} around").as_bytes(), 3).unwrap();
    let shaped = ["", "y", "yy", "yyy"].map(|before| B64.encode(format!("{before}{secret}zz")).into_bytes());
    let url = "u=a%26b%2Fc%22d%2Be%3Cf%3Eg%25h%28i%29j".to_owned();
    let others = [json!({ "k": secret }).to_string(), hex(secret), hex(secret).to_uppercase(), url];
    for bytes in shaped.into_iter().chain(others.map(String::into_bytes)).chain([packed]) {
        let mut held = Held::default();
        let shown = String::from_utf8_lossy(&bytes).into_owned();
        held.add("place".into(), bytes);
        assert_ne!(held.find(secret), [""; 0], "{shown}");
    }
}

/// What the server can open, once it has ended.
async fn store_of(system: &System) -> Store {
    let data = system.root().join("data");
    let config = StoreConfig {
        database_url: format!("sqlite:{}", data.join("db").display()),
        blobs_url: data.join("blobs").display().to_string(),
        pg_connections: 1,
        s3: store::S3Options::default(),
    };
    let masters = MasterKeys::from_file(&data.join("master.key")).unwrap();
    Store::open(&config, masters, model::Timestamp::from_micros(1)).await.unwrap()
}

#[tokio::test]
async fn no_secret_of_the_customer_reaches_the_control_plane() {
    let mut stage = Stage::start(options()).await;
    let world = stage.world().display().to_string();
    stage.plain_sandbox();
    stage.component("maker", "", &[], &maker(&world));
    let vars = [
        ("password", "{{ .nuon.components.maker.outputs.password }}"),
        ("line", "as {{ .nuon.components.maker.outputs.login.password }}!"),
    ];
    stage.component("taker", "", &vars, &taker(&world));
    stage.sync().await;
    let done = stage.run(json!({ "type": "provision" })).await;

    // It arrived.
    let state = stage.state("maker").await;
    let value = |name: &str| {
        let found = state["resources"].as_array().unwrap().iter().find(|r| r["name"] == name).unwrap();
        found["instances"][0]["attributes"]["result"].as_str().unwrap().to_owned()
    };
    let (shared, own) = (value("shared"), value("own"));
    assert_eq!(shared.len(), 24);
    let outputs = stage.part("components/taker").await["outputs"].clone();
    let hash = sha256(&shared);
    assert_eq!(outputs["hash"], hash.as_str(), "{outputs}");
    assert_eq!(outputs["length"], json!("as login-!".len() + 24), "{outputs}");
    let seen = stage.part("components/maker").await;
    assert_eq!(seen["outputs"]["public"], "seen", "{seen}");

    // And nothing that the control plane holds has it.
    let mut held = Held::default();
    let of_terraform = |name: &str| name.contains("plan") || name.starts_with("apply");
    for step in done.steps.iter().filter(|step| of_terraform(&step.name)) {
        let job = stage.job(step).await;
        held.add(format!("the log of {}", step.name), stage.system.raw_log(&job, None).await);
        let shown = serde_json::to_vec(&job).unwrap();
        held.add(format!("the job of {}", step.name), shown);
    }
    assert!(held.contains("the password is ***"), "the log tells where it stood");
    held.add_all(&mut stage).await;
    assert!(held.contains(&hash), "what may be seen is there: the search finds things");
    assert_eq!(held.find(&shared), [""; 0], "the password");
    assert_eq!(held.find(&own), [""; 0], "the attribute");
    stage.system.start_server().await;
}

const VAULT: &str = r#"
variable "word" { type = string }
output "secret" {
  value     = "tops3cret-${var.word}-x"
  sensitive = true
}
output "list" {
  value     = ["listsecret-${var.word}-a", "listsecret-${var.word}-b"]
  sensitive = true
}
"#;

/// Takes secrets through variables that are not marked, and puts one out that is not marked either.
const APP: &str = r#"
variable "url" { type = string }
variable "list" { type = list(string) }
resource "terraform_data" "it" {
  input            = { url = var.url, list = var.list, coded = base64encode(var.url) }
  triggers_replace = [var.url]
}
resource "terraform_data" "each" {
  for_each = toset([var.url])
}
output "u" { value = var.url }
"#;

const SINK: &str = r#"
variable "u" { type = string }
variable "file" { type = string }
resource "terraform_data" "it" {
  triggers_replace = [var.u]
  provisioner "local-exec" {
    command = "printf '%s\n' '${var.u}' >> ${var.file}"
  }
}
"#;

/// A password that has changed, one that nobody reads any more, elements of a list, keys of `for_each`, and what stands in an
/// output that is not marked: none of it is seen, and all of it arrives.
#[tokio::test]
async fn a_secret_stays_one_wherever_it_goes() {
    let mut stage = Stage::start(options()).await;
    let file = stage.system.witness("arrived");
    stage.inputs(&[("word", "one")]);
    stage.plain_sandbox();
    stage.component("vault", "", &[("word", "{{ .nuon.inputs.inputs.word }}")], VAULT);
    let url = "https://admin:{{ .nuon.components.vault.outputs.secret }}@db";
    stage.component("app", "", &[("url", url), ("list", "{{ .nuon.components.vault.outputs.list }}")], APP);
    let vars = [("u", "{{ .nuon.components.app.outputs.u }}"), ("file", file.to_str().unwrap())];
    stage.component("sink", "", &vars, SINK);
    stage.sync().await;
    stage.run(json!({ "type": "provision" })).await;
    assert_eq!(stage.system.lines("arrived"), ["https://admin:tops3cret-one-x@db"]);
    // It changes: the plans show what was there before.
    let install = stage.install().to_owned();
    let output = stage.system.ferry(&["installs", "inputs", &install, "--set", "word=two", "-y"]).await;
    assert!(output.status.success(), "{}", shown(&output));
    assert_eq!(stage.system.lines("arrived").last().map(String::as_str), Some("https://admin:tops3cret-two-x@db"));
    // It is not read any more.
    stage.component("app", "", &[("url", "none at all"), ("list", "[]")], APP);
    stage.sync().await;
    stage.run(json!({ "type": "manual_deploy", "component": "app" })).await;

    let mut held = Held::default();
    held.add_all(&mut stage).await;
    assert!(held.contains("none at all"), "what may be seen is there");
    for secret in ["tops3cret-one-x", "tops3cret-two-x", "listsecret-one-a", "listsecret-two-b"] {
        assert_eq!(held.find(secret), [""; 0], "{secret}");
    }
    stage.system.start_server().await;
}

#[tokio::test]
async fn a_function_of_a_template_can_not_work_on_a_sensitive_output() {
    let stage = Stage::start(options()).await;
    let world = stage.world().display().to_string();
    stage.plain_sandbox();
    stage.component("maker", "", &[], &maker(&world));
    let vars = [("password", "{{ .nuon.components.maker.outputs.password | upper }}"), ("line", "x")];
    stage.component("taker", "", &vars, &taker(&world));
    stage.sync().await;
    let id = stage.begin(json!({ "type": "provision", "approve_all": true })).await;
    let failed = stage.until_step(&id, "sync and plan taker", "error").await;
    let told = &failed.status.status_human_description;
    assert!(told.contains("password") && told.contains("sensitive output"), "{told}");
}

/// A module is the vendor's: it runs with the customer, and must not read what the runner holds.
#[tokio::test]
async fn a_module_can_read_neither_the_key_nor_a_state_of_the_runner() {
    let stage = Stage::start(options()).await;
    stage.plain_sandbox();
    let (state, loot) = (stage.system.state_dir("a"), stage.system.witness("loot"));
    let module = format!(
        r#"
locals {{ key = try(file("{0}/keys/install.key"), "none") }}
resource "terraform_data" "it" {{
  triggers_replace = timestamp()
  provisioner "local-exec" {{
    command = "cat {0}/*.key {0}/session.json {0}/executions/*/*.json {0}/executions/*/private/* >> {1} 2>/dev/null; echo looked >> {1}.done"
  }}
}}
output "key" {{ value = local.key }}
"#,
        state.display(),
        loot.display()
    );
    stage.component("it", "", &[], &module);
    stage.sync().await;
    // The second time there is a state to be read, too.
    for _ in 0..2 {
        stage.run(json!({ "type": "manual_deploy", "component": "it" })).await;
        assert_eq!(stage.part("components/it").await["outputs"]["key"], "none");
    }
    assert_eq!(stage.system.lines("loot.done"), ["looked", "looked"]);
    assert_eq!(fs_err::read_to_string(&loot).unwrap(), "", "nothing was to be read");
}

fn sha256(text: &str) -> String {
    model::Digest::of(text.as_bytes()).hex().to_owned()
}
