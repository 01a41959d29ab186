//! What other tools say of the same objects.

use std::path::Path;

use kubernetes::{Status, Verdict, health_of, status_of};
use needs::needs;
use serde_json::Value;

/// Any time after all that stand in the files.
const NOW: &str = "2026-01-01T00:00:00Z";

/// Objects of a folder, each with its file and what is said of it.
fn vectors(folder: &str) -> Vec<(String, String, Value)> {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/vectors/kubernetes").join(folder);
    let table = fs_err::read_to_string(dir.join("expected.tsv")).expect("expected.tsv");
    let rows = table.lines().skip(1).map(|line| {
        let mut fields = line.split('\t');
        let (file, expected) = (fields.next().expect("file"), fields.next().expect("status"));
        let text = fs_err::read_to_string(dir.join(file)).expect(file).replace("NOW", NOW);
        let options = serde_saphyr::options! { duplicate_keys: serde_saphyr::options::DuplicateKeyPolicy::LastWins };
        let object = serde_saphyr::from_str_with_options(&text, options).expect(file);
        (file.to_owned(), expected.to_owned(), object)
    });
    rows.collect()
}

fn now_s() -> i64 {
    NOW.parse::<jiff::Timestamp>().expect("time").as_second()
}

#[test]
fn readiness_is_what_kstatus_says() {
    needs!(Vectors);
    let mut wrong = Vec::new();
    let all = vectors("kstatus");
    for (file, expected, object) in &all {
        let found = match status_of(object, now_s()) {
            Status::Ready => "Current",
            Status::Progressing(_) => "InProgress",
            Status::Failed(_) => "Failed",
            Status::Terminating(_) => "Terminating",
        };
        if found != expected {
            wrong.push(format!("{file}: {found}, kstatus says {expected}"));
        }
    }
    assert_eq!((all.len(), wrong), (53, Vec::new()));
}

/// Where we say something else on purpose: what an on-call engineer wants to hear.
const DIFFERENCES: [(&str, Verdict, &str); 5] = [
    ("podCompletedFail.yaml", Verdict::Unhealthy, "a pod that failed is no success; Argo CD says so, too"),
    ("jobInProgress.yaml", Verdict::Progressing, "a job that runs has not done its work yet; Argo CD says so, too"),
    ("serviceLBok.yaml", Verdict::Progressing, "without an address nobody outside reaches it; Argo CD says so, too"),
    ("hpa-v1-healthy.yaml", Verdict::Degraded, "an autoscaler that can't read its metric does not scale"),
    ("pod-running-restart-onfailure.yaml", Verdict::Unhealthy, "it crashes again and again, whoever restarts it"),
];

#[test]
fn verdicts_are_those_of_kstatus_and_argo_cd() {
    needs!(Vectors);
    let (mut wrong, mut count, mut used) = (Vec::new(), 0, 0);
    for (file, expected, object) in ["kstatus", "argo-health", "argo-custom"].into_iter().flat_map(vectors) {
        let found = health_of(&object, now_s());
        count += 1;
        let agrees = match expected.as_str() {
            "Current" | "Healthy" => matches!(found.verdict, Verdict::Healthy | Verdict::NotApplicable),
            "Suspended" => found.verdict == Verdict::Healthy && found.reason.starts_with("suspended"),
            "InProgress" | "Progressing" | "Terminating" => found.verdict == Verdict::Progressing,
            "Failed" | "Degraded" => matches!(found.verdict, Verdict::Degraded | Verdict::Unhealthy),
            "Unknown" => found.verdict == Verdict::Unknown,
            other => panic!("{other}"),
        };
        let deliberate = DIFFERENCES.iter().any(|(name, verdict, _)| *name == file && *verdict == found.verdict);
        used += usize::from(deliberate && !agrees);
        if !agrees && !deliberate {
            wrong.push(format!("{file}: {expected}, found {found:?}"));
        }
    }
    assert_eq!(count, 245);
    assert!(wrong.is_empty(), "{} differ:\n{}", wrong.len(), wrong.join("\n"));
    assert_eq!(used, DIFFERENCES.len(), "a difference that is none any more");
}
