//! What every deployer keeps to: the same tests for objects, charts and Terraform.

use api::control::SettleJob;
use model::Outcome;
use needs::needs;
use serde_json::{Value, json};

use crate::stage::{Stage, config_map, ended, newest};

const CHART: &str = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: it\ndata:\n  word: {{ .Values.word }}\n";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Manifest,
    Helm,
    Terraform,
}

impl Kind {
    /// Points of an apply, in their order.
    const fn points(self) -> &'static [&'static str] {
        match self {
            Self::Manifest => {
                &["executor.before_apply", "executor.intent_saved", "executor.object_applied", "executor.applied"]
            }
            Self::Helm => {
                &["executor.before_apply", "executor.intent_saved", "executor.helm_ended", "executor.applied"]
            }
            Self::Terraform => &["executor.before_apply", "executor.applied"],
        }
    }

    /// Writes the component `it`, which puts a word into the world.
    fn write(self, stage: &Stage, word: &str) {
        match self {
            Self::Manifest => stage.manifest("it", "", &config_map("it", word)),
            Self::Helm => stage.chart("it", "", &[("word", word)], &[("templates/it.yaml", CHART)]),
            Self::Terraform => {
                let file = stage.system.witness("word");
                let file = file.display();
                stage.module(
                    "it",
                    &format!(
                        "resource \"terraform_data\" \"it\" {{\n  triggers_replace = \"{word}\"\n  provisioner \"local-exec\" {{\n    command = \"echo {word} > {file}\"\n  }}\n  provisioner \"local-exec\" {{\n    when = destroy\n    command = \"rm -f {file}\"\n  }}\n}}\n"
                    ),
                );
            }
        }
    }

    /// The word that is in the world.
    fn word(self, stage: &Stage) -> Option<String> {
        match self {
            Self::Terraform => stage.system.lines("word").first().cloned(),
            _ => Some(stage.object("configmap", "it")?["data"]["word"].as_str().unwrap().to_owned()),
        }
    }
}

/// What a plan shows.
fn shown(plan: &Value) -> String {
    let mut plan = plan.clone();
    // Where it was said when the plan was read.
    plan.as_object_mut().unwrap().remove("terraform_version");
    plan.to_string()
}

async fn keeps_to_the_contract(kind: Kind) {
    let stage = Stage::start("contract").await;
    let word = || kind.word(&stage);

    // Another content is another plan; the same content the same.
    let mut plans = Vec::new();
    for content in ["one", "one", "two"] {
        kind.write(&stage, content);
        stage.sync().await;
        let id = stage.deploy("it").await;
        let (_, plan) = stage.waiting(&id, "it").await;
        plans.push(shown(&plan));
        stage.cancel(&id).await;
    }
    assert_eq!(plans[0], plans[1]);
    if kind != Kind::Terraform {
        // What a `triggers_replace` holds is all that differs there, and it is shown, too.
        assert_ne!(plans[1], plans[2]);
    }
    assert_eq!(word(), None, "plans change nothing");

    // A plan waits while another workflow deploys: what was approved is not what fits any more, and is not carried out.
    let id = stage.deploy("it").await;
    let (old, _) = stage.waiting(&id, "it").await;
    stage.deployed("it").await;
    assert_eq!(word().as_deref(), Some("two"));
    stage.approve(&old).await;
    let done = stage.until(&id, "success").await;
    assert_eq!(ended(&done, "apply it"), "auto-skipped", "{:?}", newest(&done, "apply it"));
    assert_ne!(newest(&done, "sync and plan it").unwrap().id, old.id, "it was planned anew");

    // Whatever dies: no false success, and a retry plans again and asks again.
    for (n, point) in kind.points().iter().enumerate() {
        let content = format!("word{n}");
        kind.write(&stage, &content);
        stage.sync().await;
        let id = stage.deploy("it").await;
        let (plan, _) = stage.waiting(&id, "it").await;
        stage.kill_at(point, &plan).await;
        let lost = stage.until_step(&id, "apply it", "unknown").await;
        assert_eq!(stage.part("components/it").await["status"], "unknown", "{point}");
        let last = n + 1 == kind.points().len();
        if last {
            assert_eq!(word().as_deref(), Some(&*content), "it was done, and nobody was told");
            let job = stage.job(&lost).await.id;
            let settle = |outcome| SettleJob { outcome, note: "looked".into() };
            // A module's state says that it is whole. That of objects says which of them may be there.
            if kind == Kind::Terraform {
                stage.client().settle_job(&job, &settle(Outcome::Finished)).await.unwrap();
            } else {
                let refused = stage.client().settle_job(&job, &settle(Outcome::Finished)).await.unwrap_err();
                assert!(refused.to_string().contains("did not finish"), "{refused}");
                stage.client().settle_job(&job, &settle(Outcome::Failed)).await.unwrap();
                stage.until_step(&id, "apply it", "error").await;
            }
        }
        if !last || kind != Kind::Terraform {
            stage.client().retry_step(&id, &lost.id).await.unwrap();
            let (again, _) = stage.waiting_again(&id, "it", &plan).await;
            stage.approve(&again).await;
        }
        stage.until(&id, "success").await;
        assert_eq!(word().as_deref(), Some(&*content), "{point}");
        assert_eq!(stage.part("components/it").await["status"], "active", "{point}");
        let again = stage.deployed("it").await;
        assert_eq!(ended(&again, "apply it"), "auto-skipped", "{point}: nothing is left to do");
    }

    let last = word().unwrap();
    if kind != Kind::Terraform {
        assert_eq!(stage.look("it").await.status.status, "no-drift");
        stage.patch("configmap", "it", &json!({ "data": { "word": "by-hand" } }));
        assert_eq!(stage.look("it").await.status.status, "drifted");
        stage.reconciled("it").await;
        assert_eq!(word(), Some(last));
    }

    // The app knows nothing of it any more, and what was deployed goes all the same.
    stage.drop_component("it");
    stage.sync().await;
    stage.run(json!({ "type": "teardown_component", "component": "it" })).await;
    assert_eq!(word(), None);
    stage.system.until_quiet().await;
}

#[tokio::test]
async fn manifests_keep_to_the_contract() {
    needs!(Kube);
    keeps_to_the_contract(Kind::Manifest).await;
}

#[tokio::test]
async fn charts_keep_to_the_contract() {
    needs!(Kube);
    keeps_to_the_contract(Kind::Helm).await;
}

#[tokio::test]
async fn modules_keep_to_the_contract() {
    needs!(Kube);
    keeps_to_the_contract(Kind::Terraform).await;
}
