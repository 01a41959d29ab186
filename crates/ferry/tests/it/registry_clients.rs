//! The registry by clients that we did not write, each with a login of its own; and the conformance suite of the specification.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use needs::needs;
use testkit::system::{System, run, shown};

use crate::options;

fn target() -> PathBuf {
    crate::ferry().parent().and_then(Path::parent).unwrap().to_owned()
}

/// A program that a script has put below the target directory.
pub(crate) fn tool(path: &str, script: &str) -> PathBuf {
    let tool = target().join(path);
    assert!(tool.exists(), "{} is missing: run scripts/{script} first (`make test` does)", tool.display());
    tool
}

fn debian(name: &str) -> PathBuf {
    let found =
        std::env::split_paths(&std::env::var_os("PATH").unwrap()).map(|dir| dir.join(name)).find(|p| p.exists());
    found.unwrap_or_else(|| panic!("{name} is missing: run scripts/apt-tools.sh first (`make test` does)"))
}

/// One client at its registry.
struct Client<'a> {
    system: &'a System,
    program: PathBuf,
    before: Vec<String>,
}

impl<'a> Client<'a> {
    fn new(system: &'a System, program: PathBuf) -> Self {
        Self { system, program, before: Vec::new() }
    }

    fn host(&self) -> &str {
        self.system.control_url.trim_start_matches("http://")
    }

    /// `HOST/ORG/NAME`.
    fn at(&self, name: &str) -> String {
        format!("{}/{}/{name}", self.host(), self.system.org.id)
    }

    fn dir(&self) -> PathBuf {
        let dir = self.system.root().join("home").join(self.program.file_name().unwrap());
        fs_err::create_dir_all(&dir).unwrap();
        dir
    }

    async fn output(&self, arguments: &[&str]) -> Output {
        let mut command = Command::new(&self.program);
        let dir = self.dir();
        command.args(&self.before).args(arguments).current_dir(&dir).env("HOME", &dir);
        command
            .env("REGISTRY_AUTH_FILE", dir.join("auth.json"))
            .env("XDG_RUNTIME_DIR", &dir)
            .env_remove("DOCKER_CONFIG");
        for name in ["HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy"] {
            command.env_remove(name);
        }
        run(command).await
    }

    /// Runs to a good end; returns what it printed.
    async fn run(&self, arguments: &[&str]) -> String {
        let output = self.output(arguments).await;
        assert!(output.status.success(), "{arguments:?}: {}", shown(&output));
        String::from_utf8(output.stdout).unwrap()
    }

    /// Signs in; wrong credentials are refused.
    async fn login(&self, command: &[&str]) {
        let with = |password: &'static str| [command, &["-u", "any", "-p", password, self.host()]].concat();
        let refused = self.output(&with("wrong")).await;
        let text = shown(&refused).to_lowercase();
        let why = ["unauthorized", "invalid username/password"].iter().any(|why| text.contains(why));
        assert!(!refused.status.success() && why, "{text}");
        self.run(&with(self.system.token())).await;
    }
}

#[tokio::test]
async fn the_conformance_suite_passes() {
    let system = System::start(options()).await;
    let dir = system.root().join("home");
    let mut command = Command::new(tool("oci-tools/oci-conformance", "oci-tools.sh"));
    command.current_dir(&dir).env("OCI_ROOT_URL", &system.control_url);
    command.env("OCI_NAMESPACE", format!("{}/a/b", system.org.id));
    command.env("OCI_CROSSMOUNT_NAMESPACE", format!("{}/c", system.org.id));
    command.env("OCI_USERNAME", "any").env("OCI_PASSWORD", system.token());
    for part in ["PULL", "PUSH", "CONTENT_DISCOVERY", "CONTENT_MANAGEMENT"] {
        command.env(format!("OCI_TEST_{part}"), "1");
    }
    let output = run(command).await;
    assert!(output.status.success(), "{}", shown(&output));
    let text = String::from_utf8_lossy(&output.stdout);
    // The others want a registry that is filled by hand.
    assert!(text.contains("Ran 63 of 68 Specs"), "{text}");
}

#[tokio::test]
async fn buildah_podman_and_skopeo() {
    needs!(Images);
    let system = System::start(options()).await;
    let storage = system.root().join("home/storage");
    let with_storage = |name: &str| {
        let mut client = Client::new(&system, debian(name));
        let (root, run) = (storage.join("root"), storage.join("run"));
        client.before =
            vec!["--root".into(), root.display().to_string(), "--runroot".into(), run.display().to_string()];
        client.before.extend(["--storage-driver".into(), "vfs".into()]);
        client
    };
    let buildah = with_storage("buildah");
    fs_err::write(buildah.dir().join("Dockerfile"), "FROM scratch\nCOPY hello /\n").unwrap();
    fs_err::write(buildah.dir().join("hello"), "hello").unwrap();
    buildah.login(&["login", "--tls-verify=false"]).await;
    buildah.run(&["build", "--isolation", "chroot", "-t", &buildah.at("web/app:v1"), "."]).await;
    buildah.run(&["push", "--tls-verify=false", &buildah.at("web/app:v1")]).await;
    buildah.run(&["rmi", "--all", "--force"]).await;

    let podman = with_storage("podman");
    podman.login(&["login", "--tls-verify=false"]).await;
    podman.run(&["pull", "--tls-verify=false", &podman.at("web/app:v1")]).await;
    podman.run(&["push", "--tls-verify=false", &podman.at("web/app:v1"), &podman.at("web/copy:v2")]).await;

    let skopeo = Client::new(&system, debian("skopeo"));
    skopeo.login(&["login", "--tls-verify=false"]).await;
    let (from, to) = (format!("docker://{}", skopeo.at("web/copy:v2")), format!("docker://{}", skopeo.at("third:v3")));
    skopeo.run(&["copy", "--src-tls-verify=false", "--dest-tls-verify=false", &from, &to]).await;
    skopeo.run(&["copy", "--src-tls-verify=false", &to, "dir:image"]).await;
    let tags = skopeo.run(&["list-tags", "--tls-verify=false", &to.replace(":v3", "")]).await;
    assert!(tags.contains("\"v3\""), "{tags}");
    skopeo.run(&["delete", "--tls-verify=false", &to]).await;
    assert!(!skopeo.output(&["inspect", "--tls-verify=false", &to]).await.status.success(), "it was deleted");
    skopeo.run(&["inspect", "--tls-verify=false", &from]).await;
}

#[tokio::test]
async fn helm_and_oras() {
    let system = System::start(options()).await;
    let helm = Client::new(&system, tool("python-tools/bin/helm", "python-tools.sh"));
    helm.login(&["registry", "login", "--insecure"]).await;
    helm.run(&["create", "chart"]).await;
    helm.run(&["package", "chart"]).await;
    helm.run(&["push", "--plain-http", "chart-0.1.0.tgz", &format!("oci://{}", helm.at("charts"))]).await;
    fs_err::create_dir(helm.dir().join("out")).unwrap();
    let chart = format!("oci://{}", helm.at("charts/chart"));
    helm.run(&["pull", "--plain-http", &chart, "--version", "0.1.0", "-d", "out"]).await;
    let read = |path: &str| fs_err::read(helm.dir().join(path)).unwrap();
    assert_eq!(read("chart-0.1.0.tgz"), read("out/chart-0.1.0.tgz"));

    let oras = Client::new(&system, tool("oci-tools/oras", "oci-tools.sh"));
    oras.login(&["login", "--plain-http"]).await;
    fs_err::write(oras.dir().join("file"), "content").unwrap();
    let at = oras.at("artifact:v1");
    oras.run(&["push", "--plain-http", &at, "--artifact-type", "application/x.test", "file:text/plain"]).await;
    for kind in ["application/x.sbom", "application/x.signature"] {
        oras.run(&["attach", "--plain-http", "--artifact-type", kind, &at, "file:text/plain"]).await;
    }
    let found =
        oras.run(&["discover", "--plain-http", "--artifact-type", "application/x.sbom", "--format", "json", &at]).await;
    assert!(found.contains("application/x.sbom") && !found.contains("application/x.signature"), "{found}");
    // The fallback of registries without referrers is a tag: there must be none.
    assert_eq!(oras.run(&["repo", "tags", "--plain-http", &oras.at("artifact")]).await.trim(), "v1");
    oras.run(&["copy", "--from-plain-http", "--to-plain-http", "-r", &at, &oras.at("copied:v1")]).await;
    let copied = oras.run(&["discover", "--plain-http", "--format", "json", &oras.at("copied:v1")]).await;
    assert!(copied.contains("application/x.sbom") && copied.contains("application/x.signature"), "{copied}");
    let listed = oras.run(&["repo", "ls", "--plain-http", oras.host()]).await;
    assert_eq!(listed.lines().count(), 3, "{listed}");
}
