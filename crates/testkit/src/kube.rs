//! The Kubernetes cluster of the tests: the one that `make test-kube` started, or one that the developer's `KUBECONFIG` names.
//!
//! It speaks through `kubectl`, so that what a test sees is what a person sees, and shares no code with what is tested.

use std::ffi::OsStr;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use model::env;
use serde_json::Value;

const SCRIPT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../scripts/kube.sh");

/// Images of the node (`scripts/kube-node.sh`): no other can be pulled, except from [`Cluster::registry`].
pub mod images {
    /// Answers `app 1` on port 8080, and `/healthz`.
    pub const APP_1: &str = "ferry.test/app:1";
    /// Answers `app 2`.
    pub const APP_2: &str = "ferry.test/app:2";
    /// Like [`APP_1`], but `/healthz` is not found.
    pub const UNREADY: &str = "ferry.test/unready:1";
    /// Ends with exit code 3 after a last line on stderr.
    pub const CRASH: &str = "ferry.test/crash:1";
    pub const SLEEP: &str = "ferry.test/sleep:1";
    /// `/bin/sh`, for a test's own commands.
    pub const SHELL: &str = "ferry.test/shell:1";
}

/// A cluster that answers. The tests of a run share it, so each works in a [`Namespace`] of its own.
#[derive(Debug, Clone)]
pub struct Cluster {
    kubeconfig: PathBuf,
}

impl Cluster {
    /// The cluster of this run. A test says `needs!(Kube)` first.
    ///
    /// # Panics
    /// When neither `FERRY_KUBECONFIG` nor `KUBECONFIG` is set.
    pub fn get() -> Self {
        let kubeconfig = std::env::var_os(env::TEST_KUBECONFIG).or_else(|| std::env::var_os("KUBECONFIG"));
        Self {
            kubeconfig: kubeconfig.expect("a kubeconfig in the environment: begin the test with `needs!(Kube)`").into(),
        }
    }

    pub fn kubeconfig(&self) -> &Path {
        &self.kubeconfig
    }

    /// Runs `kubectl`, whatever comes of it.
    pub fn try_kubectl<S: AsRef<OsStr>>(&self, args: &[S]) -> Output {
        self.command(args).stdin(Stdio::null()).output().expect("kubectl runs")
    }

    /// What `kubectl` prints.
    ///
    /// # Panics
    /// When it fails.
    pub fn kubectl<S: AsRef<OsStr>>(&self, args: &[S]) -> String {
        printed(args, &self.try_kubectl(args))
    }

    /// What `kubectl … --output json` prints.
    pub fn kubectl_json<S: AsRef<OsStr>>(&self, args: &[S]) -> Value {
        let mut args: Vec<&OsStr> = args.iter().map(AsRef::as_ref).collect();
        args.extend(["--output", "json"].map(OsStr::new));
        serde_json::from_str(&self.kubectl(&args)).expect("kubectl prints JSON")
    }

    /// Applies objects on the server's side, as the field manager `test`.
    pub fn apply_yaml(&self, objects: &str) -> String {
        self.with_input(&["apply", "--server-side", "--field-manager", "test", "--filename", "-"], objects)
    }

    /// `kubectl` with something on its standard input.
    pub fn with_input<S: AsRef<OsStr>>(&self, args: &[S], input: &str) -> String {
        let mut command = self.command(args);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().expect("kubectl runs");
        let mut stdin = child.stdin.take().expect("a pipe");
        let input = input.to_owned();
        // Beside it, so that neither waits for the other when both pipes are full. A kubectl that ended early says why itself.
        let writer = std::thread::spawn(move || stdin.write_all(input.as_bytes()));
        let output = child.wait_with_output().expect("kubectl ends");
        let _ = writer.join();
        printed(args, &output)
    }

    /// A new namespace, which is deleted when the value is dropped.
    pub fn namespace(&self, prefix: &str) -> Namespace {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let now = SystemTime::now().duration_since(UNIX_EPOCH).expect("a clock after 1970").as_millis();
        let name = format!("{prefix}-{now:x}-{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
        self.kubectl(&["create", "namespace", &name]);
        let namespace = Namespace { cluster: self.clone(), name };
        // A pod is refused before its service account is there.
        namespace.until("a service account", |n| n.try_kubectl(&["get", "serviceaccount", "default"]).status.success());
        namespace
    }

    /// Address of the registry that nodes pull from, without a scheme: `127.0.0.1:5001`. It is only in a cluster of our own.
    pub fn registry(&self) -> String {
        let file = self.kubeconfig.with_file_name("registry");
        fs_err::read_to_string(file)
            .expect("a cluster of `scripts/kube.sh`: begin the test with `needs!(KubeOwn)`")
            .trim()
            .to_owned()
    }

    /// An image like [`images::APP_1`] that no node has before a pod pulls it.
    pub fn image_in_registry(&self) -> String {
        format!("{}/pulled:1", self.registry())
    }

    /// Makes an image of a folder on the node of a cluster of our own (`needs!(KubeOwn)`). Its entry point is a JSON list.
    pub fn image(&self, name: &str, folder: &Path, entry_point: &str) {
        script(&["image", name, &folder.display().to_string(), entry_point]);
    }

    /// Kills a part of a cluster of our own (`needs!(KubeOwn)`): `etcd`, `apiserver`, `controllers`, `scheduler`, `containerd`,
    /// `kubelet`, `proxy` or `registry`. It is started again when the value is dropped.
    pub fn kill(&self, part: &'static str) -> Killed {
        script(&["kill", part]);
        Killed { part, is_down: true }
    }

    /// Replaces a cluster of our own (`needs!(KubeOwn)`) by a new one at the same address. All that was in it is gone.
    pub fn replace(&self) {
        script(&["down"]);
        script(&["up"]);
    }

    fn command<S: AsRef<OsStr>>(&self, args: &[S]) -> Command {
        let mut command = Command::new("kubectl");
        command.arg("--kubeconfig").arg(&self.kubeconfig).args(args);
        command
    }
}

/// A part of the cluster that is dead.
#[derive(Debug)]
pub struct Killed {
    part: &'static str,
    is_down: bool,
}

impl Killed {
    /// Starts it, and waits until it works.
    pub fn start(self) {
        self.start_with(&[]);
    }

    /// Starts it with more flags.
    pub fn start_with(mut self, flags: &[&str]) {
        self.is_down = false;
        script(&[&["start", self.part], flags].concat());
    }
}

impl Drop for Killed {
    fn drop(&mut self) {
        if self.is_down {
            // A test that failed must not fail all that come after it.
            let _ = Command::new(SCRIPT).args(["start", self.part]).stdin(Stdio::null()).output();
        }
    }
}

/// A namespace of one test.
#[derive(Debug)]
pub struct Namespace {
    cluster: Cluster,
    name: String,
}

impl Namespace {
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Like [`Cluster::kubectl`], in this namespace.
    pub fn kubectl(&self, args: &[&str]) -> String {
        self.cluster.kubectl(&self.here(args))
    }

    /// Like [`Cluster::try_kubectl`], in this namespace.
    pub fn try_kubectl(&self, args: &[&str]) -> Output {
        self.cluster.try_kubectl(&self.here(args))
    }

    /// Like [`Cluster::kubectl_json`], in this namespace.
    pub fn kubectl_json(&self, args: &[&str]) -> Value {
        self.cluster.kubectl_json(&self.here(args))
    }

    /// Like [`Cluster::apply_yaml`], in this namespace.
    pub fn apply_yaml(&self, objects: &str) -> String {
        let args = ["apply", "--server-side", "--field-manager", "test", "--filename", "-"];
        self.cluster.with_input(&self.here(&args), objects)
    }

    /// Waits until it holds, at most a minute.
    ///
    /// # Panics
    /// When it does not, with what is in the namespace.
    pub fn until(&self, what: &str, holds: impl Fn(&Self) -> bool) {
        for _ in 0..600 {
            if holds(self) {
                return;
            }
            std::thread::sleep(Duration::from_millis(100));
        }
        let told = |args: &[&str]| String::from_utf8_lossy(&self.try_kubectl(args).stdout).into_owned();
        panic!("no {what} in {} after a minute:\n{}{}", self.name, told(&["get", "all"]), told(&["get", "events"]));
    }

    fn here<'a>(&'a self, args: &[&'a str]) -> Vec<&'a str> {
        [&["--namespace", self.name.as_str()], args].concat()
    }
}

impl Drop for Namespace {
    fn drop(&mut self) {
        // Without waiting: its pods may take as long as they like to end.
        let _ = self.cluster.try_kubectl(&["delete", "namespace", &self.name, "--wait=false", "--ignore-not-found"]);
    }
}

fn script(args: &[&str]) {
    let output = Command::new(SCRIPT).args(args).stdin(Stdio::null()).output().expect("scripts/kube.sh runs");
    printed(args, &output);
}

fn printed<S: AsRef<OsStr>>(args: &[S], output: &Output) -> String {
    let args: Vec<_> = args.iter().map(|a| a.as_ref().to_string_lossy()).collect();
    let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "`{}`: {}\n{out}{err}", args.join(" "), output.status);
    out.into_owned()
}
