//! Charts that people really use: a look at what was just deployed finds no drift.

use std::path::{Path, PathBuf};

use needs::needs;
use serde_json::json;

use crate::stage::Stage;

/// How often each is looked at, where nobody says otherwise.
const LOOKS: usize = 3;

/// Their images can't be pulled here, so nothing waits for them. What would serve an API of the cluster, and so be missed by
/// everybody while its pods do not run, is left out.
const CHARTS: [(&str, &[(&str, &str)]); 4] = [
    ("cert_manager", &[("crds.enabled", "true"), ("crds.keep", "false"), ("startupapicheck.enabled", "false")]),
    ("metrics_server", &[("apiService.create", "false")]),
    ("flagger", &[]),
    ("descheduler", &[]),
];

/// Where `scripts/kube-tools.sh` put them.
fn charts() -> PathBuf {
    let ferry = crate::ferry();
    let target = ferry.parent().and_then(Path::parent).unwrap();
    let given = std::env::split_paths(&std::env::var_os("PATH").unwrap_or_default())
        .map(|dir| dir.with_file_name("charts"))
        .find(|dir| dir.join("cert-manager").exists());
    given.unwrap_or_else(|| target.join("kube-tools/charts"))
}

#[tokio::test]
async fn looks_at_real_charts_find_no_drift() {
    needs!(Kube);
    let stage = Stage::start("charts").await;
    for (name, values) in CHARTS {
        stage.copy(&charts().join(name.replace('_', "-")), &format!("src/{name}"));
        // What a run that failed has left in the whole cluster is no obstacle.
        // Flagger's definitions hold quoted texts whose lines are indented like their keys, which our YAML parser does not read yet.
        let crds = if name == "flagger" { "\nskip_crds = true" } else { "" };
        stage.chart_at(name, &format!("wait = false\ntake_ownership = true{crds}"), values, &format!("src/{name}"));
    }
    stage.sync().await;
    for (name, _) in CHARTS {
        stage.deployed(name).await;
    }
    let looks = std::env::var(model::env::DRIFT_LOOKS).ok().and_then(|text| text.parse().ok()).unwrap_or(LOOKS);
    for look in 0..looks {
        for (name, _) in CHARTS {
            let step = stage.look(name).await;
            assert_eq!(step.status.status, "no-drift", "look {look} at {name}: {:?}", step.status);
        }
    }
    for (name, _) in CHARTS {
        stage.run(json!({ "type": "teardown_component", "component": name })).await;
    }
    stage.system.until_quiet().await;
}
