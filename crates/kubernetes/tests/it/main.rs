//! What other tools say of the same objects.

use std::path::Path;

use kubernetes::{Status, status_of};
use needs::needs;

/// Any time after all that stand in the files.
const NOW: &str = "2026-01-01T00:00:00Z";

#[test]
fn readiness_is_what_kstatus_says() {
    needs!(Vectors);
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/vectors/kubernetes/kstatus");
    let now_s = NOW.parse::<jiff::Timestamp>().expect("time").as_second();
    let table = fs_err::read_to_string(dir.join("expected.tsv")).expect("expected.tsv");
    let (mut wrong, mut count) = (Vec::new(), 0);
    for line in table.lines().skip(1) {
        let mut fields = line.split('\t');
        let (file, expected) = (fields.next().expect("file"), fields.next().expect("status"));
        let text = fs_err::read_to_string(dir.join(file)).expect(file).replace("NOW", NOW);
        let options = serde_saphyr::options! { duplicate_keys: serde_saphyr::options::DuplicateKeyPolicy::LastWins };
        let object: serde_json::Value = serde_saphyr::from_str_with_options(&text, options).expect(file);
        let found = match status_of(&object, now_s) {
            Status::Ready => "Current",
            Status::Progressing(_) => "InProgress",
            Status::Failed(_) => "Failed",
            Status::Terminating(_) => "Terminating",
        };
        count += 1;
        if found != expected {
            wrong.push(format!("{file}: {found}, kstatus says {expected}"));
        }
    }
    assert_eq!((count, wrong), (53, Vec::new()));
}
