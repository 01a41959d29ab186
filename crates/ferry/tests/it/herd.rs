//! Many parked runners, in a process of their own: the server is killed under them, and they come back, not as a crowd. Ten
//! thousand of them in `make soak PART=herd`.

use std::process::Command;

use testkit::system::{run, shown};

use crate::options;

async fn come_back(mode: &str, runners: &str) {
    let ferry = options().ferry;
    let bench = ferry.with_file_name("bench");
    assert!(bench.exists(), "{} is missing: `cargo build -p bench` makes it", bench.display());
    let mut command = Command::new(bench);
    command.arg(mode).arg(ferry.parent().unwrap()).arg(runners);
    let output = run(command).await;
    assert!(output.status.success(), "{}", shown(&output));
    assert!(shown(&output).contains(&format!("{runners} runners came back")), "{}", shown(&output));
}

#[tokio::test]
async fn parked_runners_come_back_and_not_as_a_crowd() {
    come_back("return", "600").await;
}

#[tokio::test]
async fn a_parked_runner_holds_no_connection_to_the_database() {
    come_back("return-postgres", "150").await;
}
