//! Builds, from the files of an app to an artifact that is read back: every kind of component, with the real tools.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use needs::needs;
use serde_json::{Value, json};
use testkit::outside::{DockerRegistry, Files};
use testkit::system::{Runner, System, shown};

use crate::clients::python_tool;
use crate::{options, seconds};

const BUSYBOX: &str = "/bin/busybox";

fn good(output: &Output) -> String {
    assert!(output.status.success(), "{}", shown(output));
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn document(output: &Output) -> Value {
    serde_json::from_slice(&output.stdout).unwrap_or_else(|e| panic!("{e}: {}", shown(output)))
}

fn put(path: impl AsRef<Path>, text: &str) {
    let path = path.as_ref();
    fs_err::create_dir_all(path.parent().unwrap()).unwrap();
    fs_err::write(path, text).unwrap();
}

fn tool(program: &str, dir: &Path, words: &[&str]) -> String {
    let mut command = Command::new(program);
    let date = "2026-01-02T03:04:05Z";
    command.args(words).current_dir(dir).env("HOME", dir);
    for (name, value) in [
        ("GIT_AUTHOR_NAME", "Ada"),
        ("GIT_AUTHOR_EMAIL", "ada@example.com"),
        ("GIT_COMMITTER_NAME", "Ada"),
        ("GIT_COMMITTER_EMAIL", "ada@example.com"),
        ("GIT_AUTHOR_DATE", date),
        ("GIT_COMMITTER_DATE", date),
        ("GIT_CONFIG_GLOBAL", "/dev/null"),
    ] {
        command.env(name, value);
    }
    let output = command.output().unwrap_or_else(|e| panic!("{program} is needed: {e}"));
    good(&output).trim().to_owned()
}

fn git(dir: &Path, words: &[&str]) -> String {
    let words: Vec<&str> = ["-c", "init.defaultBranch=main"].iter().chain(words).copied().collect();
    tool("git", dir, &words)
}

/// Commits what lies in a directory; the first time it becomes a repository.
fn commit(repo: &Path, message: &str) -> String {
    if !repo.join(".git").exists() {
        git(repo, &["init", "--quiet"]);
    }
    git(repo, &["add", "."]);
    git(repo, &["commit", "--quiet", "-m", message]);
    git(repo, &["rev-parse", "HEAD"])
}

/// The source of a component: a directory of a repository on this machine.
fn of_git(repo: &Path, directory: &str, branch: &str) -> String {
    format!("[public_repo]\nrepo = \"file://{}\"\ndirectory = \"{directory}\"\nbranch = \"{branch}\"\n", repo.display())
}

/// An app with nothing but what the test puts in.
struct App {
    dir: PathBuf,
}

impl App {
    async fn new(system: &System, name: &str) -> Self {
        let dir = system.root().join(name);
        good(&system.ferry(&["apps", "init", dir.to_str().unwrap()]).await);
        fs_err::remove_file(dir.join("components/greeting.toml")).unwrap();
        fs_err::remove_dir_all(dir.join("actions")).unwrap();
        Self { dir }
    }

    fn file(&self, path: &str, text: &str) {
        put(self.dir.join(path), text);
    }

    fn component(&self, name: &str, kind: &str, rest: &str) {
        self.file(&format!("components/{name}.toml"), &format!("name = \"{name}\"\ntype = \"{kind}\"\n{rest}"));
    }

    /// A component that is built from a directory with a Dockerfile; busybox lies beside it.
    fn docker(&self, name: &str, dockerfile: &str, settings: &str) {
        let rest = format!("dockerfile = \"Dockerfile\"\n{settings}\n[local]\ndirectory = \"src/{name}\"\n");
        self.component(name, "docker_build", &rest);
        self.file(&format!("src/{name}/Dockerfile"), dockerfile);
        let busybox = self.dir.join("src").join(name).join("busybox");
        fs_err::copy(BUSYBOX, busybox).expect("busybox-static is needed: `scripts/apt-tools.sh` installs it");
    }

    async fn sync_output(&self, system: &System) -> Output {
        let mut command = system.ferry_command();
        command.args(["apps", "sync", self.dir.to_str().unwrap(), "--json"]);
        let mut command = tokio::process::Command::from(command);
        let output = tokio::time::timeout(seconds(120), command.kill_on_drop(true).output()).await;
        output.expect("a sync takes no two minutes").unwrap()
    }

    /// Syncs, and returns the builds by component.
    async fn sync(&self, system: &System) -> BTreeMap<String, Value> {
        let output = self.sync_output(system).await;
        let synced = document(&output);
        let builds = synced["builds"].as_array().unwrap_or_else(|| panic!("{}", shown(&output)));
        builds.iter().map(|b| (b["component_name"].as_str().unwrap().to_owned(), b.clone())).collect()
    }
}

/// The head of every Dockerfile here: busybox with its links.
const BASE: &str =
    "FROM scratch AS base\nCOPY busybox /bin/busybox\nRUN [\"/bin/busybox\", \"--install\", \"-s\", \"/bin\"]\n";

fn id(build: &Value) -> &str {
    build["id"].as_str().unwrap_or_else(|| panic!("{build}"))
}

fn digest(build: &Value) -> String {
    build["artifact"]["digest"].as_str().unwrap_or_else(|| panic!("{build}")).to_owned()
}

async fn log(system: &System, build: &Value) -> String {
    let output = system.ferry(&["builds", "logs", id(build)]).await;
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}

async fn assert_active(system: &System, build: &Value) {
    if build["status"] != "active" {
        panic!("{build:#}\n{}", log(system, build).await);
    }
}

/// Brings an artifact here and unpacks all its layers, one over the other.
pub(crate) async fn pulled(system: &System, build: &Value) -> PathBuf {
    let layout = system.root().join("pulled").join(id(build));
    fs_err::create_dir_all(layout.parent().unwrap()).unwrap();
    good(&system.ferry(&["artifacts", "pull", id(build), layout.to_str().unwrap()]).await);
    let read = |digest: &str| fs_err::read(layout.join("blobs/sha256").join(&digest[7..])).unwrap();
    let manifest: Value = serde_json::from_slice(&read(&digest(build))).unwrap();
    let out = layout.with_extension("files");
    fs_err::create_dir_all(&out).unwrap();
    for layer in manifest["layers"].as_array().unwrap() {
        let blob = layout.join("blobs/sha256").join(&layer["digest"].as_str().unwrap()[7..]);
        tool("tar", &out, &["-xf", blob.to_str().unwrap()]);
    }
    out
}

fn text(dir: &Path, path: &str) -> String {
    fs_err::read_to_string(dir.join(path)).unwrap()
}

/// The build runner, with helm on its path.
async fn build_runner(system: &System, change: impl Fn(&mut Command)) -> Runner {
    let helm = python_tool("helm");
    let path = format!("{}:{}", helm.parent().unwrap().display(), std::env::var("PATH").unwrap());
    system
        .start_build_runner("build", |command| {
            command.env("PATH", &path);
            change(command);
        })
        .await
}

const CHART: &str = "apiVersion: v2\nname: NAME\nversion: 1.2.3\n";

fn chart(dir: &Path, name: &str, more: &str) {
    put(dir.join("Chart.yaml"), &format!("{}{more}", CHART.replace("NAME", name)));
    put(dir.join("templates/map.yaml"), "kind: ConfigMap\napiVersion: v1\nmetadata: {name: x}\n");
}

#[tokio::test]
async fn every_kind_is_built_and_reads_back() {
    needs!(Images);
    let system = System::start(options()).await;
    let _runner = build_runner(&system, |_| {}).await;
    let root = system.root().to_owned();
    let helm = python_tool("helm");
    let helm = |words: &[&str]| tool(helm.to_str().unwrap(), &root, words);

    // A repository of charts, and a registry with a chart and an image of two platforms.
    let files = root.join("files");
    chart(&root.join("remote"), "remote", "");
    fs_err::create_dir_all(&files).unwrap();
    helm(&["package", "remote", "--destination", "files"]);
    let served = Files::serve(&files);
    helm(&["repo", "index", "files", "--url", &served.url()]);
    let registry = DockerRegistry::start(&root.join("registry"), false).await;
    helm(&["push", "files/remote-1.2.3.tgz", &format!("oci://{}/charts", registry.host), "--plain-http"]);
    let index = push_index(&root, &registry.host, None);

    // A repository of git.
    let repo = root.join("repo");
    put(repo.join("module/main.tf"), "output \"v\" { value = 1 }\n");
    let first = commit(&repo, "first\n\nand why");

    let app = App::new(&system, "kinds").await;
    app.component(
        "module",
        "terraform_module",
        "terraform_version = \"1.13.5\"\n[local]\ndirectory = \"src/module\"\n",
    );
    app.file("src/module/main.tf", "output \"x\" { value = \"y\" }\n");
    app.file("src/module/sub/file", "sub\n");
    app.component(
        "from_git",
        "terraform_module",
        &format!("terraform_version = \"1.13.5\"\n{}", of_git(&repo, "module", "main")),
    );
    app.component("chart", "helm_chart", "chart_name = \"chart\"\n[local]\ndirectory = \"src/charts/main\"\n");
    // The dependency lies beside the chart.
    chart(
        &app.dir.join("src/charts/main"),
        "main",
        "dependencies: [{name: dep, version: 1.2.3, repository: \"file://dep\"}]\n",
    );
    chart(&app.dir.join("src/charts/main/dep"), "dep", "");
    let of_repo = |url: &str| {
        format!("chart_name = \"remote\"\n[helm_repo]\nrepo_url = \"{url}\"\nchart = \"remote\"\nversion = \"1.2.3\"\n")
    };
    app.component("chart_http", "helm_chart", &of_repo(&served.url()));
    app.component("chart_oci", "helm_chart", &of_repo(&format!("oci://{}/charts", registry.host)));
    app.component("objects", "kubernetes_manifest", "namespace = \"x\"\nmanifest = '''\nkind: ConfigMap\n'''\n");
    app.component(
        "kustomized",
        "kubernetes_manifest",
        "namespace = \"x\"\n[kustomize]\npath = \"over\"\n[local]\ndirectory = \"src/kustomized\"\n",
    );
    app.file("src/kustomized/over/kustomization.yaml", "resources: [map.yaml]\nnamePrefix: pre-\n");
    app.file("src/kustomized/over/map.yaml", "kind: ConfigMap\napiVersion: v1\nmetadata: {name: map}\n");
    app.docker("scratch", "FROM scratch\nCOPY Dockerfile /Dockerfile\n", "");
    let stages = format!(
        "{BASE}FROM base\nARG WHO=nobody\nRUN echo \"hello $WHO\" > /hello && id -u > /id\nFROM base AS other\n"
    );
    app.docker("runs", &stages, "target = \"1\"\n[build_args]\nWHO = \"world\"\n");
    app.component(
        "copy",
        "container_image",
        &format!("[public]\nimage_url = \"http://{}/multi\"\ntag = \"1\"\n", registry.host),
    );
    app.component("later", "pulumi", "runtime = \"go\"\n[local]\ndirectory = \"src/module\"\n");

    let builds = app.sync(&system).await;
    assert_eq!(builds.len(), 11);
    let later = &builds["later"];
    assert_eq!(later["status"], "error");
    assert!(later["status_description"].as_str().unwrap().contains("not supported yet"), "{later}");
    for (name, build) in &builds {
        if name != "later" {
            assert_active(&system, build).await;
        }
    }
    let out = pulled(&system, &builds["module"]).await;
    assert_eq!(
        (text(&out, "main.tf").as_str(), text(&out, "sub/file").as_str()),
        ("output \"x\" { value = \"y\" }\n", "sub\n")
    );
    let out = pulled(&system, &builds["from_git"]).await;
    assert_eq!(text(&out, "main.tf"), "output \"v\" { value = 1 }\n");
    let made_of = &builds["from_git"]["vcs_connection_commit"];
    assert_eq!((&made_of["sha"], &made_of["author_name"]), (&json!(first), &json!("Ada")));
    assert_eq!(made_of["message"].as_str().unwrap().trim(), "first\n\nand why");
    let out = pulled(&system, &builds["chart"]).await;
    assert!(text(&out, "main/Chart.yaml").contains("name: main"));
    assert_eq!(fs_err::read_dir(out.join("main/charts")).unwrap().count(), 1, "the dependency is in the chart");
    for name in ["chart_http", "chart_oci"] {
        let out = pulled(&system, &builds[name]).await;
        assert!(text(&out, "remote/Chart.yaml").contains("name: remote"));
    }
    assert_eq!(text(&pulled(&system, &builds["objects"]).await, "manifest.yaml").trim(), "kind: ConfigMap");
    assert!(text(&pulled(&system, &builds["kustomized"]).await, "manifest.yaml").contains("pre-map"));
    assert!(text(&pulled(&system, &builds["scratch"]).await, "Dockerfile").starts_with("FROM scratch"));
    let out = pulled(&system, &builds["runs"]).await;
    assert_eq!((text(&out, "hello").as_str(), text(&out, "id").as_str()), ("hello world\n", "0\n"));
    assert_eq!(digest(&builds["copy"]), index, "an image is copied with all its platforms, as it is");

    // The same content is the same build: nothing is queued but looks at what may have moved, and they find nothing.
    let again = app.sync(&system).await;
    for name in ["module", "chart", "objects", "kustomized", "scratch", "runs"] {
        assert_eq!(id(&again[name]), id(&builds[name]), "{name}");
    }
    for name in ["from_git", "chart_http", "chart_oci", "copy"] {
        assert_eq!((&again[name]["status"], &again[name]["no_op"]), (&json!("active"), &json!(true)), "{name}");
        assert_eq!(digest(&again[name]), digest(&builds[name]), "{name}");
    }
    // A branch that has moved is built again. So is what someone wants anew: with the layers of before, to the same bytes.
    put(repo.join("module/main.tf"), "output \"v\" { value = 2 }\n");
    commit(&repo, "second");
    let moved = app.sync(&system).await;
    assert_ne!(digest(&moved["from_git"]), digest(&builds["from_git"]));
    assert!(text(&pulled(&system, &moved["from_git"]).await, "main.tf").contains("value = 2"));
    let output = system.ferry(&["builds", "create", "runs", "--app", "kinds", "--anew", "--json"]).await;
    good(&output);
    let anew = document(&output);
    assert_ne!(id(&anew), id(&builds["runs"]));
    assert_eq!(digest(&anew), digest(&builds["runs"]));
    assert!(anew["cache_hits"].as_u64() >= Some(3), "{anew}");
}

/// Puts an image of two platforms into a registry; returns its digest.
fn push_index(root: &Path, host: &str, login: Option<&str>) -> String {
    let dir = root.join("index");
    fs_err::create_dir_all(dir.join("blobs/sha256")).unwrap();
    let store = |bytes: &[u8]| {
        let digest = model::Digest::of(bytes);
        fs_err::write(dir.join("blobs/sha256").join(digest.hex()), bytes).unwrap();
        (digest.to_string(), bytes.len())
    };
    let mut manifests = Vec::new();
    for architecture in ["amd64", "arm64"] {
        let layer = store(format!("not a layer, but who looks: {architecture}").as_bytes());
        let config = store(
            json!({ "architecture": architecture, "os": "linux", "rootfs": {"type": "layers", "diff_ids": []} })
                .to_string()
                .as_bytes(),
        );
        let manifest = json!({
            "schemaVersion": 2, "mediaType": "application/vnd.oci.image.manifest.v1+json",
            "config": { "mediaType": "application/vnd.oci.image.config.v1+json", "digest": config.0, "size": config.1 },
            "layers": [{ "mediaType": "application/vnd.oci.image.layer.v1.tar", "digest": layer.0, "size": layer.1 }],
        });
        let manifest = store(manifest.to_string().as_bytes());
        manifests.push(json!({
            "mediaType": "application/vnd.oci.image.manifest.v1+json", "digest": manifest.0, "size": manifest.1,
            "platform": { "architecture": architecture, "os": "linux" },
        }));
    }
    let index =
        json!({ "schemaVersion": 2, "mediaType": "application/vnd.oci.image.index.v1+json", "manifests": manifests });
    let (digest, size) = store(index.to_string().as_bytes());
    fs_err::write(dir.join("oci-layout"), "{\"imageLayoutVersion\":\"1.0.0\"}").unwrap();
    let top = json!({ "schemaVersion": 2, "manifests": [{ "mediaType": "application/vnd.oci.image.index.v1+json", "digest": digest, "size": size }] });
    fs_err::write(dir.join("index.json"), top.to_string()).unwrap();
    let to = format!("docker://{host}/multi:1");
    let mut words = vec!["copy", "--insecure-policy", "--all", "--dest-tls-verify=false"];
    if let Some(login) = login {
        words.extend(["--dest-creds", login]);
    }
    words.extend(["oci:index", &to]);
    tool("skopeo", root, &words);
    let mut words = vec!["inspect", "--raw", "--tls-verify=false"];
    if let Some(login) = login {
        words.extend(["--creds", login]);
    }
    words.push(&to);
    let found = tool("skopeo", root, &words);
    assert_eq!(found.matches("\"platform\"").count(), 2, "{found}");
    model::Digest::of(found.as_bytes()).to_string()
}

/// Every place that a hostile Dockerfile would like to reach is watched by someone who must see nothing.
#[tokio::test]
async fn a_hostile_dockerfile_reaches_nothing() {
    needs!(Images);
    let system = System::start(options()).await;
    let runner = build_runner(&system, |_| {}).await;
    put(system.witness("bait"), "bait");
    let served = Files::serve(&system.root().join("witness"));
    let (control, runners) = system.listeners();
    let mut ports: Vec<u16> = control.iter().chain(&runners).map(std::net::SocketAddr::port).collect();
    ports.push(served.port());
    // This host as a build could call it: its loopback, and the gateway of the cell.
    let hosts = ["127.0.0.1".to_owned(), "198.18.240.2".into()];
    let reach = |host: &String| {
        let one = |port: &u16| format!("ask {host} {port}");
        ports.iter().map(one).collect::<Vec<_>>().join("; ")
    };
    let reach: Vec<String> = hosts.iter().map(reach).collect();
    let (state, root) = (runner.state_dir.display(), system.root().display());
    let dockerfile = format!(
        "{BASE}\
         RUN (echo -n served-inside | nc -l -p 4444 &); n=0; until nc -w 2 127.0.0.1 4444 </dev/null || [ $n = 50 ]; do n=$((n+1)); sleep 0.2; done; echo\n\
         RUN ask() {{ printf 'GET /bait HTTP/1.0\\r\\n\\r\\n' | nc -w 2 $1 $2 | grep HTTP && echo got-out; }}; {}; ask 169.254.169.254 80; echo asked\n\
         RUN for p in {state} /proc/1/root/storage /proc/1/root{state} /proc/1/root{root} {root} /work /home /root/.ssh /etc/shadow; do \
             ls -d $p 2>/dev/null && echo got-out; done; cat /proc/1/environ && echo got-out; \
             find / -name session.json -o -name master.key -o -name assignment.json -o -name token 2>/dev/null | grep . && echo got-out; echo looked\n\
         RUN mkdir /x; mount -t proc proc /x && echo got-out; mknod /x/disk b 8 0 && echo got-out; unshare -m true && echo got-out; \
             ip route del unreachable 169.254.0.0/16 && echo got-out; echo x > /proc/sys/kernel/core_pattern && echo got-out; \
             kill -9 1; echo tried\n\
         RUN ps | grep 'ferr[y]-run' && echo got-out; cat /proc/self/uid_map\n\
         COPY perl /\nCOPY escape /escape\n\
         RUN mkdir /deep; n=0; until perl /escape >/said 2>&1; grep -q escaped /said || [ $n = 20 ]; do n=$((n+1)); sleep 0.5; done; cat /said\n",
        reach.join("; "),
    );
    // Out of a directory that is only the root of its processes, root finds a way: what is beyond must be empty too.
    let beyond = format!(
        "for p in {state} {root} /work /home /root/.ssh /etc/shadow /var/lib /boot /sys/kernel; do ls -d $p 2>/dev/null && echo got-out; done; \
         for p in / /usr/bin /etc /context; do touch $p/x 2>/dev/null && echo got-out; done; \
         find / -xdev '(' -name session.json -o -name master.key -o -name token ')' 2>/dev/null | grep . && echo got-out; \
         ls -A /proc/1/root/ && echo got-out; ls -A /; echo escaped"
    );
    let escape = format!(
        "chroot('deep') or die; chdir('..') for 1..60; chroot('.') or die; exec('/bin/sh', '-c', q^{beyond}^) or die 'no shell';\n"
    );
    let app = App::new(&system, "hostile").await;
    app.docker("runs", &dockerfile, "");
    app.file("src/runs/escape", &escape);
    // With all that perl needs.
    let needed = tool("ldd", system.root(), &["/usr/bin/perl"]);
    for path in needed.split_whitespace().filter(|word| word.starts_with('/')).chain(["/usr/bin/perl"]) {
        let to = app.dir.join("src/runs/perl").join(path.trim_start_matches('/'));
        fs_err::create_dir_all(to.parent().unwrap()).unwrap();
        fs_err::copy(path, to).unwrap();
    }
    app.docker("adds", &format!("FROM scratch\nADD {}/bait /bait\n", served.url()), "");
    app.docker("starts", &format!("FROM 127.0.0.1:{}/bait\n", served.port()), "");
    // A repository may hold links that an upload may not.
    let repo = system.root().join("repo");
    put(repo.join("Dockerfile"), "FROM scratch\nCOPY out /out\n");
    std::os::unix::fs::symlink(runner.state_dir.join("session.json"), repo.join("out")).unwrap();
    commit(&repo, "links");
    app.component("links", "docker_build", &format!("dockerfile = \"Dockerfile\"\n{}", of_git(&repo, ".", "main")));

    let builds = app.sync(&system).await;
    assert_active(&system, &builds["runs"]).await;
    let said = log(&system, &builds["runs"]).await;
    let lines: Vec<&str> = said.lines().collect();
    for word in ["served-inside", "asked", "looked", "tried"] {
        assert!(lines.contains(&word), "`{word}` is missing: {said}");
    }
    assert!(!lines.contains(&"got-out"), "{said}");
    let stays = "buildah now keeps even root in its directory: leave this line out, and the look from beyond with it";
    assert!(lines.contains(&"escaped"), "{stays}\n{said}");
    // Root of a build is nobody here.
    let map = |line: &&str| line.split_whitespace().map(|n| n.parse().unwrap_or(0)).collect::<Vec<u32>>();
    assert!(lines.iter().map(map).any(|m| m.len() == 3 && m[0] == 0 && m[1] >= 0x7700_0000 && m[2] == 65536), "{said}");
    for name in ["adds", "starts"] {
        assert_eq!(builds[name]["status"], "error", "{}", log(&system, &builds[name]).await);
    }
    if builds["links"]["status"] == "active" {
        let out = pulled(&system, &builds["links"]).await;
        assert!(
            fs_err::read(out.join("out")).is_err() || fs_err::symlink_metadata(out.join("out")).unwrap().is_symlink()
        );
    }
    assert!(served.asked().is_empty(), "{:?}", served.asked());
    assert_eq!(testkit::system::processes_of(&runner.state_dir.join("executions")).len(), 0, "nothing is left");
}

fn why(build: &Value) -> &str {
    assert_eq!(build["status"], "error", "{build:#}");
    build["status_description"].as_str().unwrap()
}

#[tokio::test]
async fn secrets_stay_secret_and_mistakes_are_named() {
    needs!(Images);
    const SECRET: &str = "s3cret-of-the-build";
    let system = System::start(options()).await;
    let mut runner = build_runner(&system, |_| {}).await;
    let app = App::new(&system, "careful").await;
    good(&system.ferry(&["apps", "create", "careful"]).await);
    good(&system.ferry(&["apps", "variables", "set", "careful", &format!("TOKEN={SECRET}")]).await);
    let uses = "RUN --mount=type=secret,id=TOKEN cat /run/secrets/TOKEN; wc -c < /run/secrets/TOKEN > /length; cut -c 2- /run/secrets/TOKEN | rev > /dev/null\nRUN ls -A /run/secrets 2>/dev/null; true\n";
    app.docker(
        "uses",
        &format!("{BASE}ARG WHO\n{uses}"),
        "secrets = [\"TOKEN\"]\n[build_args]\nWHO = \"argument-of-the-build\"\n",
    );
    app.docker("unset", "FROM scratch\n", "secrets = [\"NOTHING\"]\n");
    app.docker("fails", &format!("{BASE}RUN exit 37\n"), "");
    app.docker("stages", &format!("{BASE}FROM base AS two\n"), "target = \"three\"\n");
    app.docker("gone", "FROM scratch\n", "");
    fs_err::remove_file(app.dir.join("src/gone/Dockerfile")).unwrap();
    app.docker("odd", "FORM scratch\n", "");
    let builds = app.sync(&system).await;

    let used = &builds["uses"];
    assert_active(&system, used).await;
    assert_eq!(text(&pulled(&system, used).await, "length").trim(), SECRET.len().to_string());
    let said = log(&system, used).await;
    assert!(!said.contains(SECRET) && !said.contains("argument-of-the-build") && said.contains("***"), "{said}");
    let needle = SECRET.as_bytes();
    let holds = |path: &Path| fs_err::read(path).is_ok_and(|bytes| bytes.windows(needle.len()).any(|w| w == needle));
    // Neither in what was made, unpacked or not, nor in anything that the runner keeps.
    for dir in [system.root().join("pulled"), runner.state_dir.join("cache"), runner.state_dir.join("executions")] {
        let found: Vec<PathBuf> = walk(&dir).into_iter().filter(|path| holds(path)).collect();
        assert!(found.is_empty(), "{found:?}");
    }
    assert!(why(&builds["unset"]).contains("the app has no variable `NOTHING`"), "{}", builds["unset"]);
    assert!(why(&builds["fails"]).contains("exit status 37"), "{}", builds["fails"]);
    assert!(why(&builds["stages"]).contains("no stage `three`: it has base, two"), "{}", builds["stages"]);
    assert!(why(&builds["gone"]).contains("`Dockerfile` is not in the source"), "{}", builds["gone"]);
    assert!(why(&builds["odd"]).contains("no FROM"), "{}", builds["odd"]);

    // A host without slirp4netns builds without a network, and says so; one without buildah says what it lacks.
    let few = system.root().join("few");
    fs_err::create_dir(&few).unwrap();
    for name in ["buildah", "unshare"] {
        std::os::unix::fs::symlink(Path::new("/usr/bin").join(name), few.join(name)).unwrap();
    }
    for (path, good) in [(few.as_path(), true), (Path::new("/nonexistent"), false)] {
        runner.kill();
        runner = system.spawn_runner("build", system.build_runner_command("build").env("PATH", path));
        let output = system.ferry(&["builds", "create", "uses", "--app", "careful", "--anew", "--json"]).await;
        let build = document(&output);
        if good {
            assert_active(&system, &build).await;
            assert!(log(&system, &build).await.contains("the build has no network: it needs slirp4netns"));
        } else {
            assert!(why(&build).contains("needs `buildah` on the runner's PATH: install it"), "{build:#}");
        }
    }
}

/// Who does not use our client may upload anything; it is unpacked nowhere but where it belongs.
#[tokio::test]
async fn hostile_archives_are_refused() {
    let system = System::start(options()).await;
    let _runner = build_runner(&system, |_| {}).await;
    let root = system.root().to_owned();
    put(root.join("main.tf"), "output \"x\" { value = 1 }\n");
    tool("truncate", &root, &["-s", "1T", "bomb"]);
    tool("tar", &root, &["-cPf", "out.tar", "--transform", "s,^,../../../../../,", "main.tf"]);
    tool("tar", &root, &["-cSf", "bomb.tar", "main.tf", "bomb"]);
    fs_err::remove_file(root.join("bomb")).unwrap();
    let mut tree = config::Tree::new("shop");
    tree.files.extend(config::starter("shop").files.iter().map(|(file, text)| (file.clone(), text.clone())));
    let config = config::load(&tree, config::Options::default()).config.unwrap();
    for (file, reason) in [("out.tar", "leads out of the archive"), ("bomb.tar", "it holds more than")] {
        let bytes = fs_err::read(root.join(file)).unwrap();
        let digest = model::Digest::of(&bytes);
        system.client.put_archive(&digest, bytes.into()).await.unwrap();
        let local_sources = ["src/greeting", "src/sandbox"].map(|dir| (dir.to_owned(), digest.to_string())).into();
        let body = api::control::SyncApp {
            config: serde_json::to_value(&config).unwrap(),
            local_sources,
            cli_version: String::new(),
            plan_only: false,
        };
        let synced = system.client.sync_app(system.install.app_id.as_str(), &body).await.unwrap();
        let ended = ended(&system, &synced.builds[0].stamp.id).await;
        assert!(why(&ended).contains(reason), "{ended:#}");
    }
}

async fn ended(system: &System, id: &str) -> Value {
    testkit::system::until("the build has ended", seconds(60), async || {
        let build = system.client.build(id).await.map_err(|e| e.to_string())?;
        let build = serde_json::to_value(&build).map_err(|e| e.to_string())?;
        let over = matches!(build["status"].as_str(), Some("active" | "error"));
        if over { Ok(build) } else { Err(build["status"].to_string()) }
    })
    .await
}

fn walk(dir: &Path) -> Vec<PathBuf> {
    let (mut found, mut folders) = (Vec::new(), vec![dir.to_owned()]);
    while let Some(folder) = folders.pop() {
        for entry in fs_err::read_dir(&folder).into_iter().flatten().flatten() {
            match entry.file_type() {
                Ok(kind) if kind.is_dir() => folders.push(entry.path()),
                Ok(kind) if kind.is_file() => found.push(entry.path()),
                _ => {}
            }
        }
    }
    found
}

#[tokio::test]
async fn artifacts_go_to_a_registry_and_come_from_one() {
    needs!(Images);
    let system = System::start(options()).await;
    let root = system.root().to_owned();
    let open = DockerRegistry::start(&root.join("open"), false).await;
    let locked = DockerRegistry::start(&root.join("locked"), true).await;
    let bases = format!("http://{}", open.host);
    let _builder = build_runner(&system, |command| {
        command.env("FERRY_RUNNER_BASE_REGISTRIES", &bases);
    })
    .await;
    let _runner = system.start_runner("a").await;
    let app = App::new(&system, "shop").await;
    app.docker("base", &format!("{BASE}RUN echo of-the-base > /base\n"), "");
    let builds = app.sync(&system).await;
    assert_active(&system, &builds["base"]).await;

    // Into the install's registry: all of it, then nothing, then what was lost.
    let to = format!("{}/bases/busy", open.host);
    let sync = ["artifacts", "sync", "base", "--install", &system.install.name, "--to", &to, "--plain-http"];
    let said = |output: &Output| {
        let text = good(output) + &String::from_utf8_lossy(&output.stderr);
        text.lines().find(|l| l.contains(" blobs, ")).unwrap_or_else(|| panic!("{text}")).to_owned()
    };
    let first = said(&system.ferry(&sync).await);
    assert!(first.contains("4 blobs, 0 of them were there"), "{first}");
    let again = said(&system.ferry(&sync).await);
    assert!(again.contains("4 blobs, 4 of them were there"), "{again}");
    let layout = root.join("layout");
    good(&system.ferry(&["artifacts", "pull", "base", layout.to_str().unwrap(), "--app", "shop"]).await);
    let manifest: Value =
        serde_json::from_slice(&fs_err::read(layout.join("blobs/sha256").join(&digest(&builds["base"])[7..])).unwrap())
            .unwrap();
    let layer = manifest["layers"][0]["digest"].as_str().unwrap();
    fs_err::remove_file(open.blob(layer)).unwrap();
    fs_err::remove_dir_all(open.link("bases/busy", layer)).unwrap();
    let third = said(&system.ferry(&sync).await);
    assert!(third.contains("4 blobs, 3 of them were there"), "{third}");
    let there = tool(
        "skopeo",
        &root,
        &[
            "inspect",
            "--tls-verify=false",
            "--format",
            "{{.Digest}}",
            &format!("docker://{to}:{}", id(&builds["base"])),
        ],
    );
    assert_eq!(there, digest(&builds["base"]));

    // A build starts from there, although it does not reach it: the runner fetches what is on its list.
    app.docker(
        "child",
        &format!("ARG TAG\nFROM {to}:${{TAG}}\nRUN cp /base /child\n"),
        &format!("[build_args]\nTAG = \"{}\"\n", id(&builds["base"])),
    );
    // An image that wants a login, and one with a layer that is not what its digest says.
    push_index(&root, &locked.host, Some("ada:correct-horse"));
    let index = push_index(&root, &open.host, None);
    let image = |host: &str| format!("[public]\nimage_url = \"http://{host}/multi\"\ntag = \"1\"\n");
    app.component("private", "container_image", &image(&locked.host));
    app.component("broken", "container_image", &image(&open.host));
    let named = |digest: &str, pointer: &str| {
        let found: Value = serde_json::from_slice(&fs_err::read(open.blob(digest)).unwrap()).unwrap();
        found.pointer(pointer).and_then(Value::as_str).unwrap().to_owned()
    };
    let blob = open.blob(&named(&named(&index, "/manifests/1/digest"), "/layers/0/digest"));
    let right = fs_err::read(&blob).unwrap();
    fs_err::write(&blob, vec![b'x'; right.len()]).unwrap();
    let builds = app.sync(&system).await;
    assert_active(&system, &builds["child"]).await;
    assert_eq!(text(&pulled(&system, &builds["child"]).await, "child"), "of-the-base\n");
    assert!(why(&builds["private"]).contains("asks for a login"), "{}", builds["private"]);
    assert!(why(&builds["broken"]).contains("sha256:"), "{}", builds["broken"]);

    fs_err::write(&blob, &right).unwrap();
    let mut login = system.ferry_command();
    login.args(["sources", "login", &locked.host, "--username", "ada"]).stdin(std::process::Stdio::piped());
    let mut login = login.stdout(std::process::Stdio::null()).spawn().unwrap();
    std::io::Write::write_all(&mut login.stdin.take().unwrap(), b"correct-horse\n").unwrap();
    assert!(login.wait().unwrap().success());
    let builds = app.sync(&system).await;
    for name in ["private", "broken"] {
        assert_active(&system, &builds[name]).await;
        assert_eq!(digest(&builds[name]), index, "{name}");
    }
    assert!(!log(&system, &builds["private"]).await.contains("correct-horse"));
}

/// Waits until a build's own command runs in its cell.
async fn until_in_cell(line: &str) -> i32 {
    let runs = |pid: &i32| {
        let command = fs_err::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        command.split(|b| *b == 0).map(String::from_utf8_lossy).collect::<Vec<_>>().join(" ").trim() == line
    };
    testkit::system::until(&format!("`{line}` runs in a cell"), seconds(30), async || {
        let entries = fs_err::read_dir("/proc").into_iter().flatten().flatten();
        let pids: Vec<i32> = entries.filter_map(|e| e.file_name().to_str()?.parse().ok()).collect();
        pids.into_iter().find(runs).ok_or_else(|| "it does not".to_owned())
    })
    .await
}

#[tokio::test]
async fn a_build_ends_true_whatever_dies() {
    needs!(Images);
    let mut system = System::start(options()).await;
    let mut runner = build_runner(&system, |_| {}).await;
    let app = App::new(&system, "dies").await;
    let pid = std::process::id();
    let slow = |n: u32| format!("{BASE}RUN sleep {n}.{pid} && echo made > /made\n");
    let sync = async |system: &System| {
        let output = system.ferry(&["apps", "sync", app.dir.to_str().unwrap(), "--no-wait", "--json"]).await;
        good(&output);
        document(&output)["builds"][0]["id"].as_str().unwrap().to_owned()
    };
    // Runner and server die: the executor goes on, and what it made is there.
    app.docker("slow", &slow(3), "");
    let build = sync(&system).await;
    until_in_cell(&format!("sleep 3.{pid}")).await;
    runner.kill();
    system.kill_server();
    system.start_server().await;
    let path = format!("{}:{}", python_tool("helm").parent().unwrap().display(), std::env::var("PATH").unwrap());
    let resume =
        |system: &System| system.spawn_runner("build", system.build_runner_command("build").env("PATH", &path));
    let mut runner = resume(&system);
    let first = ended(&system, &build).await;
    assert_active(&system, &first).await;
    assert_eq!(text(&pulled(&system, &first).await, "made"), "made\n");

    // All three die: what ran in the cell goes with them, nobody says that it was built, and the next one is good.
    app.docker("slow", &slow(50), "");
    let build = sync(&system).await;
    let inside = until_in_cell(&format!("sleep 50.{pid}")).await;
    let executors = system.executors();
    executors.iter().for_each(|pid| testkit::system::send(*pid, rustix::process::Signal::KILL));
    runner.kill();
    system.kill_server();
    system.start_server().await;
    runner = resume(&system);
    testkit::system::until("the cell is gone", seconds(20), async || {
        if testkit::system::is_running(inside) { Err(inside.to_string()) } else { Ok(()) }
    })
    .await;
    // Whether it is tried again or not, it is not good without having been made.
    let output = system.ferry(&["builds", "cancel", &build]).await;
    let cancelled = output.status.success();
    let second = ended(&system, &build).await;
    assert_eq!(second["status"], "error", "{second:#} {cancelled}");
    // A cancelled one ends at once, and all that it runs.
    app.docker("slow", &slow(51), "");
    let build = sync(&system).await;
    let inside = until_in_cell(&format!("sleep 51.{pid}")).await;
    good(&system.ferry(&["builds", "cancel", &build]).await);
    let begun = std::time::Instant::now();
    let third = ended(&system, &build).await;
    assert_eq!((&third["status"], &third["status_v2"]["status"]), (&json!("error"), &json!("cancelled")), "{third:#}");
    let listed = good(&system.ferry(&["builds", "list", "--wide"]).await);
    assert!(listed.lines().any(|l| l.contains(&build) && l.contains("cancelled")), "{listed}");
    assert!(begun.elapsed() < seconds(8) && !testkit::system::is_running(inside), "{:?}", begun.elapsed());
    app.docker("slow", &slow(1), "");
    let build = sync(&system).await;
    let third = ended(&system, &build).await;
    assert_active(&system, &third).await;
    assert_eq!(text(&pulled(&system, &third).await, "made"), "made\n");
    drop(runner);
}

/// Artifacts may be kept in a registry that is not ours; build runners of the server's find the host's login for it.
#[tokio::test]
async fn artifacts_are_kept_in_another_registry() {
    let place = testkit::system::temporary();
    let registry = DockerRegistry::start(place.path(), true).await;
    let auth = place.path().join("auth.json");
    let pair = base64::Engine::encode(&base64::engine::general_purpose::STANDARD, "ada:correct-horse");
    put(&auth, &json!({ "auths": { registry.host.as_str(): { "auth": pair } } }).to_string());
    let options = options()
        .with("FERRY_BUILDS__LAUNCHER", "process")
        .with("FERRY_REGISTRY__EXTERNAL", format!("{}/ferry", registry.host))
        .with("FERRY_REGISTRY__EXTERNAL_PLAIN_HTTP", true)
        .with("REGISTRY_AUTH_FILE", auth.display());
    let system = System::start(options).await;
    let app = App::new(&system, "elsewhere").await;
    app.component(
        "note",
        "kubernetes_manifest",
        "namespace = \"x\"\nmanifest = \"kind: ConfigMap\"\nbuild_timeout = \"1m\"\n",
    );
    let builds = app.sync(&system).await;
    assert_active(&system, &builds["note"]).await;
    let artifact = &builds["note"]["artifact"];
    assert!(
        artifact["repository"].as_str().unwrap().starts_with(&format!("{}/ferry/org", registry.host)),
        "{artifact}"
    );
    assert!(registry.blob(&digest(&builds["note"])).exists(), "{artifact}");
    assert_eq!(builds["note"]["runner_job"]["execution_timeout"], 60_000_000_000_u64);
    // What other orgs keep there is not to be had by naming it.
    let image = format!(
        "public = {{ image_url = \"http://{}/ferry/org00000000000000000000000/x\", tag = \"t\" }}\n",
        registry.host
    );
    app.component("theirs", "container_image", &image);
    let builds = app.sync(&system).await;
    assert_eq!(builds["theirs"]["status"], "error");
    assert!(why(&builds["theirs"]).contains("belongs to another org"), "{}", why(&builds["theirs"]));
}

/// What a policy denies is never in the registry; a policy that changes has its say about what is there already.
#[tokio::test]
async fn policies_judge_images_before_they_are_pushed() {
    let place = testkit::system::temporary();
    let registry = DockerRegistry::start(place.path(), false).await;
    push_index(place.path(), &registry.host, None);
    let system = System::start(options().with("FERRY_BUILDS__LAUNCHER", "process")).await;
    let app = App::new(&system, "judged").await;
    let image = format!("public = {{ image_url = \"http://{}/multi\", tag = \"1\" }}\n", registry.host);
    app.component("theirs", "container_image", &image);
    let policy = |rule: &str| {
        let rego = format!(
            "package nuon\n{rule} contains msg if {{\n    input.tag == \"1\"\n    startswith(input.metadata.digest, \"sha256:\")\n    msg := \"too old\"\n}}\n"
        );
        format!(
            "[[policy]]\ntype = \"container_image\"\nengine = \"opa\"\nname = \"age\"\ncomponents = [\"*\"]\ncontents = '''\n{rego}'''\n"
        )
    };
    app.file("policies.toml", &policy("warn"));
    let builds = app.sync(&system).await;
    assert_active(&system, &builds["theirs"]).await;
    assert!(log(&system, &builds["theirs"]).await.contains("policy age: warn: too old"));
    app.file("policies.toml", &policy("deny"));
    let builds = app.sync(&system).await;
    assert_eq!(why(&builds["theirs"]), "build: policy `age` denies it: too old");
    assert_eq!(builds["theirs"]["artifact"], Value::Null);
}

/// A kustomization that may load files from everywhere finds nothing beyond its source.
#[tokio::test]
async fn a_hostile_kustomization_reads_nothing_of_the_host() {
    let system = System::start(options()).await;
    let _runner = build_runner(&system, |_| {}).await;
    put(system.witness("bait"), "bait");
    let app = App::new(&system, "hostile").await;
    let wanted = [system.witness("bait"), system.root().join("master.key"), "/etc/shadow".into()];
    for (n, path) in wanted.iter().enumerate() {
        let name = format!("kust{n}");
        app.file(&format!("src/{name}/inside.txt"), "inside");
        app.file(
            &format!("src/{name}/kustomization.yaml"),
            &format!("configMapGenerator:\n- name: x\n  files:\n  - a={}\n  - inside.txt\n", path.display()),
        );
        let settings = format!(
            "namespace = \"x\"\n[kustomize]\npath = \".\"\nload_restrictor = \"none\"\n[local]\ndirectory = \"src/{name}\"\n"
        );
        app.component(&name, "kubernetes_manifest", &settings);
    }
    // The same without what it must not have is built.
    app.file("src/good/inside.txt", "inside");
    app.file("src/good/kustomization.yaml", "configMapGenerator:\n- name: x\n  files:\n  - inside.txt\n");
    app.component(
        "good",
        "kubernetes_manifest",
        "namespace = \"x\"\n[kustomize]\npath = \".\"\nload_restrictor = \"none\"\n[local]\ndirectory = \"src/good\"\n",
    );
    let builds = app.sync(&system).await;
    assert_active(&system, &builds["good"]).await;
    for n in 0..wanted.len() {
        let build = &builds[&format!("kust{n}")];
        assert_eq!(build["status"], "error", "{}: {build}", wanted[n].display());
    }
}

/// A copy whose executor is killed half-way is made again, whole.
#[tokio::test]
async fn a_copy_that_is_killed_is_made_again() {
    let system = System::start(options().with("FERRY_BUILDS__LAUNCHER", "process")).await;
    let registry = DockerRegistry::start(&system.root().join("theirs"), false).await;
    let app = App::new(&system, "shop").await;
    app.component("note", "kubernetes_manifest", "namespace = \"x\"\nmanifest = \"kind: ConfigMap\"\n");
    let builds = app.sync(&system).await;
    assert_active(&system, &builds["note"]).await;
    // An install of this app, beside the system's own, whose runner is what starting one waits for.
    let _own = system.start_runner("a").await;
    let install = system.client.create_install("shop", &api::control::CreateInstall::local("theirs".to_owned())).await;
    let install = install.unwrap();
    let join = system.client.create_join_command(install.runner_id.as_str()).await.unwrap();
    let _theirs = system.start_runner_with("b", &join, |_| {}).await;
    registry.signal(rustix::process::Signal::STOP);
    let wanted = api::control::SyncArtifact {
        build_id: id(&builds["note"]).to_owned(),
        component: String::new(),
        repository: format!("{}/theirs", registry.host),
        plain_http: true,
    };
    let job = system.client.sync_artifact(install.id.as_str(), &wanted).await.unwrap();
    let executor = testkit::system::until("an executor waits for the registry", testkit::system::SOON, async || {
        let (status, found) = (system.job(&job.id).await.status, system.executors());
        if status == model::JobState::Running && found.len() == 1 { Ok(found[0]) } else { Err(format!("{found:?}")) }
    })
    .await;
    tokio::time::sleep(std::time::Duration::from_millis(500)).await;
    testkit::system::send(executor, rustix::process::Signal::KILL);
    registry.signal(rustix::process::Signal::CONT);
    let job = system.until_over(&job.id).await;
    assert_eq!(job.status, model::JobState::Finished, "{}", job.status_description);
    assert_eq!(job.execution_count, 2, "it was tried again");
    assert!(registry.blob(&digest(&builds["note"])).exists());
    assert_eq!(job.outputs["image"]["digest"], builds["note"]["artifact"]["digest"]);
}

/// Where podman is what the host has, podman builds.
#[tokio::test]
async fn podman_builds_too() {
    needs!(Images);
    let system = System::start(options()).await;
    let _runner = build_runner(&system, |command| {
        command.env("FERRY_RUNNER_BUILDER", "podman");
    })
    .await;
    let app = App::new(&system, "shop").await;
    app.docker(
        "web",
        &format!("{BASE}ARG WHO\nRUN echo \"hello $WHO\" > /hello\n"),
        "[build_args]\nWHO = \"podman\"\n",
    );
    let builds = app.sync(&system).await;
    assert_active(&system, &builds["web"]).await;
    assert_eq!(text(&pulled(&system, &builds["web"]).await, "hello"), "hello podman\n");
    assert!(builds["web"]["cache_steps"].as_u64().unwrap() > 0);
}
