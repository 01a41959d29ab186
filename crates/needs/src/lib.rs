//! What a test needs of the machine. Dev-dependency only.
//!
//! `scripts/machine.sh` probes the machine, before anything is built and again for each test that asks. A test whose need is not met
//! is skipped and recorded by name, so that `make test` lists and counts it. With `FERRY_TEST_ALL=1` it fails instead, unless it
//! only lacks files that a checkout may not have.

use std::collections::BTreeMap;
use std::io::Write as _;
use std::process::Command;
use std::sync::{Mutex, PoisonError};

use model::env;

const MACHINE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../scripts/machine.sh");

/// Each is a probe in `scripts/machine.sh` of the same name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Need {
    /// A small file system to fill: a mount, or a container's small `/dev/shm`.
    SmallDisk,
    /// Namespaces and mounts, in which images are built.
    Images,
    /// Control groups that the tests may create, for limits on memory and processes.
    Cgroups,
    /// Landlock in the kernel.
    Landlock,
    /// Real apps: `../shared/corpus`, or a directory named by `FERRY_CORPUS`.
    Corpus,
    /// The dialect's API document: `../shared/spec`.
    Spec,
    /// A Kubernetes API server that answers; `make test-kube` starts one.
    Kube,
    /// A node that runs pods of the test images.
    KubeNode,
    /// A cluster that `scripts/kube.sh` started, whose parts a test may kill.
    KubeOwn,
    /// Objects with the verdicts of other tools: `../shared/vectors`.
    Vectors,
}

impl Need {
    /// May be missing even where every test must run.
    const fn is_optional(self) -> bool {
        matches!(self, Self::Corpus | Self::Spec | Self::Vectors)
    }
}

/// Returns from the test when the machine lacks what it needs.
#[macro_export]
macro_rules! needs {
    ($need:ident) => {{
        fn here() {}
        if !$crate::met($crate::Need::$need, env!("CARGO_PKG_NAME"), ::std::any::type_name_of_val(&here)) {
            return;
        }
    }};
}

/// Whether the machine has it; if not, records the test as skipped. Called by [`needs!`].
///
/// # Panics
/// With `FERRY_TEST_ALL=1`, where nothing may be skipped.
pub fn met(need: Need, package: &str, place: &str) -> bool {
    let Some(reason) = missing(need) else { return true };
    let test = format!("{package} {}", test_name(place));
    let all = std::env::var_os(env::TEST_ALL).is_some_and(|v| v == "1");
    assert!(!all || need.is_optional(), "{} is set, and this machine can't run {test}: {reason}", env::TEST_ALL);
    let line = format!("{test}: {reason}\n");
    match std::env::var_os(env::TEST_SKIPPED) {
        // One write: tests append side by side.
        Some(file) => std::fs::OpenOptions::new()
            .create(true)
            .append(true)
            .open(file)
            .and_then(|mut file| file.write_all(line.as_bytes()))
            .expect("the list of skipped tests can be written"),
        // Past the test's capture.
        None => std::io::stderr().write_all(format!("SKIPPED {line}").as_bytes()).expect("stderr can be written"),
    }
    false
}

/// The path of the test in its binary: without the binary, the closures of async functions and the marker.
fn test_name(place: &str) -> String {
    let parts: Vec<&str> = place.split("::").skip(1).filter(|p| *p != "{{closure}}" && *p != "here").collect();
    parts.join("::")
}

/// Why the machine does not have it.
fn missing(need: Need) -> Option<String> {
    static SEEN: Mutex<BTreeMap<Need, Option<String>>> = Mutex::new(BTreeMap::new());
    let mut seen = SEEN.lock().unwrap_or_else(PoisonError::into_inner);
    seen.entry(need).or_insert_with(|| probe(need)).clone()
}

fn probe(need: Need) -> Option<String> {
    let output = Command::new(MACHINE).arg(format!("{need:?}")).output().expect("scripts/machine.sh runs");
    let told = String::from_utf8_lossy(&output.stdout).trim().to_owned();
    match output.status.code() {
        Some(0) => None,
        Some(1) => Some(told),
        _ => panic!("scripts/machine.sh {need:?}: {} {told}{}", output.status, String::from_utf8_lossy(&output.stderr)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_test_is_named_as_its_binary_names_it() {
        assert_eq!(test_name("it::disk_full::a_full_disk::{{closure}}::here"), "disk_full::a_full_disk");
        assert_eq!(test_name("it::corpus::policies::here"), "corpus::policies");
    }

    #[test]
    fn every_need_has_a_probe() {
        use Need::{Cgroups, Corpus, Images, Kube, KubeNode, KubeOwn, Landlock, SmallDisk, Spec, Vectors};
        for need in [SmallDisk, Images, Cgroups, Landlock, Corpus, Spec, Kube, KubeNode, KubeOwn, Vectors] {
            let reason = probe(need);
            assert!(reason.as_ref().is_none_or(|r| !r.is_empty()), "{need:?}");
        }
    }

    /// Run by the test below, in a process of its own.
    #[test]
    #[ignore = "run by another test"]
    fn wants_a_corpus_and_images() {
        if std::env::var("NEEDS_TEST").as_deref() == Ok("images") {
            needs!(Images);
        } else {
            needs!(Corpus);
        }
        panic!("it ran");
    }

    #[test]
    fn what_is_missing_is_listed_or_fails_and_never_passes_silently() {
        let dir = std::env::temp_dir().join(format!("ferry-needs-{}", std::process::id()));
        fs_err::create_dir_all(&dir).expect("a directory");
        let list = dir.join("skipped");
        let run = |which: &str, all: &str| {
            let mut command = Command::new(std::env::current_exe().expect("a path"));
            command.args(["--ignored", "wants_a_corpus"]).env("NEEDS_TEST", which).env("FERRY_TEST_ALL", all);
            command.env("FERRY_TEST_SKIPPED", &list).env("FERRY_TEST_WITHOUT", "Images Corpus");
            command.output().expect("this binary runs").status.success()
        };
        assert!(run("corpus", "0") && run("images", "0"), "skipped");
        assert!(run("corpus", "1"), "a checkout may lack the corpus");
        assert!(!run("images", "1"), "nothing else may be missing");
        let told = fs_err::read_to_string(&list).expect("a list");
        assert_eq!(told.lines().count(), 3, "{told}");
        assert!(told.lines().all(|l| l.starts_with("needs tests::wants_a_corpus_and_images: ")), "{told}");
        std::fs::remove_dir_all(dir).expect("a directory");
    }
}
