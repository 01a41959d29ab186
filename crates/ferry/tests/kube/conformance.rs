//! What every deployer keeps to: the same tests for objects, charts, Terraform, and a deployer that only tests have.

use api::control::SettleJob;
use model::Outcome;
use needs::needs;
use serde_json::{Value, json};
use testkit::kube::images;

use crate::stage::{Stage, config_map, ended, newest};

const CHART: &str =
    "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: it\ndata:\n  word: {{ .Values.word | quote }}\n";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Manifest,
    Helm,
    Terraform,
    Job,
    /// `test_deployer.rs` of the runner.
    File,
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
            Self::Job => &[
                "executor.before_apply",
                "executor.intent_saved",
                "executor.job_started",
                "executor.job_pod_seen",
                "executor.job_ended",
                "executor.applied",
            ],
            Self::File => &["executor.before_apply", "executor.intent_saved", "executor.applied"],
        }
    }

    /// Writes the component `it`, which puts a number into the world.
    fn write(self, stage: &Stage, number: u32) {
        match self {
            Self::Manifest => stage.manifest("it", "", &config_map("it", &format!("\"{number}\""))),
            Self::Helm => {
                stage.chart("it", "", &[("word", &number.to_string())], &[("templates/it.yaml", CHART)]);
            }
            Self::Terraform => {
                let world = stage.system.witness("world");
                fs_err::create_dir_all(&world).unwrap();
                let world = world.display();
                stage.module(
                    "it",
                    &format!(
                        "terraform {{\n  required_providers {{\n    fixture = {{ source = \"example.test/ferry/fixture\" }}\n  }}\n}}\nresource \"fixture_thing\" \"it\" {{\n  name = \"it\"\n  world = \"{world}\"\n  size = {number}\n}}\n"
                    ),
                );
            }
            Self::Job => stage.program("it", &format!("args = [\"-c\", \"echo {number}\"]"), images::SHELL),
            Self::File => {
                let spec = json!({ "path": stage.system.witness("file"), "text": number.to_string() });
                let object = json!({ "apiVersion": "ferry.test/v1", "kind": "File", "metadata": { "name": "it" }, "spec": spec });
                let head = "name = \"it\"\ntype = \"kubernetes_manifest\"\nnamespace = \"files-of-tests\"\n";
                stage.file("components/it.toml", &format!("{head}manifest = \"../manifests/it.yaml\"\n"));
                stage.file("manifests/it.yaml", &object.to_string());
            }
        }
    }

    /// The number that is in the world.
    fn number(self, stage: &Stage) -> Option<u32> {
        let text = match self {
            Self::Terraform => {
                let thing = fs_err::read(stage.system.witness("world/it.json")).ok()?;
                serde_json::from_slice::<Value>(&thing).unwrap()["size"].to_string()
            }
            Self::File => fs_err::read_to_string(stage.system.witness("file")).ok()?,
            // The last one that has run well.
            Self::Job => {
                let jobs = stage.namespace.kubectl_json(&["get", "jobs"])["items"].take();
                let complete = |job: &&Value| job["status"]["succeeded"] == 1;
                let run =
                    |job: &&Value| job["metadata"]["annotations"]["ferry.dev/run"].as_str().unwrap().parse::<u64>();
                let last = jobs.as_array().unwrap().iter().filter(complete).max_by_key(|job| run(job).unwrap())?;
                let said = &last["spec"]["template"]["spec"]["containers"][0]["args"][1];
                said.as_str().unwrap().trim_start_matches("echo ").to_owned()
            }
            Self::Manifest | Self::Helm => {
                stage.object("configmap", "it")?["data"]["word"].as_str().unwrap().to_owned()
            }
        };
        Some(text.parse().unwrap())
    }

    /// Somebody else changes the world. What has run can't be changed, so a Job has no drift, whatever becomes of its object.
    fn meddle(self, stage: &Stage, number: u32) {
        match self {
            Self::Terraform => {
                let thing = json!({ "size": number }).to_string();
                fs_err::write(stage.system.witness("world/it.json"), thing).unwrap();
            }
            Self::File => fs_err::write(stage.system.witness("file"), number.to_string()).unwrap(),
            Self::Job => drop(stage.namespace.kubectl(&["delete", "jobs", "--all"])),
            Self::Manifest | Self::Helm => {
                stage.patch("configmap", "it", &json!({ "data": { "word": number.to_string() } }));
            }
        }
    }

    /// What only part of an apply has written down can't be recorded as finished.
    fn knows_when_it_is_whole(self) -> bool {
        self == Self::Terraform
    }
}

/// What a plan shows.
fn shown(plan: &Value) -> String {
    let mut plan = plan.clone();
    // Where it was said when the plan was read.
    plan.as_object_mut().unwrap().remove("terraform_version");
    plan.to_string()
}

struct Test {
    kind: Kind,
    stage: Stage,
}

impl Test {
    async fn version(&self, number: u32) {
        self.kind.write(&self.stage, number);
        self.stage.sync().await;
    }

    fn number(&self) -> Option<u32> {
        self.kind.number(&self.stage)
    }

    /// Another content is another plan; the same content the same; and plans change nothing.
    async fn plans_tell_what_they_are(&self) {
        let stage = &self.stage;
        let mut plans = Vec::new();
        for number in [1, 1, 2] {
            self.version(number).await;
            let id = stage.deploy("it").await;
            let (_, plan) = stage.waiting(&id, "it").await;
            plans.push(shown(&plan));
            stage.cancel(&id).await;
        }
        assert_eq!(plans[0], plans[1]);
        assert_ne!(plans[1], plans[2]);
        assert_eq!(self.number(), None, "plans change nothing");
    }

    /// A plan waits while another workflow deploys: what was approved is not what fits any more, and is not carried out.
    async fn a_stale_plan_is_not_carried_out(&self) {
        let stage = &self.stage;
        let id = stage.deploy("it").await;
        let (old, _) = stage.waiting(&id, "it").await;
        stage.deployed("it").await;
        assert_eq!(self.number(), Some(2));
        stage.approve(&old).await;
        let done = stage.until(&id, "success").await;
        assert_eq!(ended(&done, "apply it"), "auto-skipped", "{:?}", newest(&done, "apply it"));
        assert_ne!(newest(&done, "sync and plan it").unwrap().id, old.id, "it was planned anew");
    }

    /// The sealed file is another one than was approved, or the control plane names another plan.
    async fn a_swapped_plan_is_refused(&self) {
        let stage = &self.stage;
        self.version(3).await;
        for file in [true, false] {
            let id = stage.deploy("it").await;
            let (plan, _) = stage.waiting(&id, "it").await;
            let told = if file {
                stage.swap_plan_file();
                "another file than it was asked for"
            } else {
                stage.swap_plan_digest();
                "not the one that was approved"
            };
            stage.approve(&plan).await;
            let refused = stage.until_step(&id, "apply it", "error").await;
            let text = &refused.status.status_human_description;
            assert!(text.contains(told), "{text}");
            assert_eq!(self.number(), Some(2));
        }
    }

    /// Whatever dies: no false success, and a retry plans again and asks again.
    async fn deaths_are_told(&self) {
        let (stage, kind) = (&self.stage, self.kind);
        for (n, point) in kind.points().iter().enumerate() {
            let number = 10 + u32::try_from(n).unwrap();
            self.version(number).await;
            let id = stage.deploy("it").await;
            let (plan, _) = stage.waiting(&id, "it").await;
            stage.kill_at(point, &plan).await;
            let lost = stage.until_step(&id, "apply it", "unknown").await;
            assert_eq!(stage.part("components/it").await["status"], "unknown", "{point}");
            let last = n + 1 == kind.points().len();
            if last {
                assert_eq!(self.number(), Some(number), "it was done, and nobody was told");
                self.settle(&id, &lost).await;
            }
            if !last || !kind.knows_when_it_is_whole() {
                stage.client().retry_step(&id, &lost.id).await.unwrap();
                let (again, _) = stage.waiting_again(&id, "it", &plan).await;
                stage.approve(&again).await;
            }
            stage.until(&id, "success").await;
            assert_eq!(self.number(), Some(number), "{point}");
            assert_eq!(stage.part("components/it").await["status"], "active", "{point}");
            let again = stage.deployed("it").await;
            assert_eq!(ended(&again, "apply it"), "auto-skipped", "{point}: nothing is left to do");
        }
    }

    /// A person has looked. A module's state says that it is whole; that of objects says which of them may be there.
    async fn settle(&self, id: &str, lost: &api::control::WorkflowStep) {
        let stage = &self.stage;
        let job = stage.job(lost).await.id;
        let settle = |outcome| SettleJob { outcome, note: "looked".into() };
        if self.kind.knows_when_it_is_whole() {
            stage.client().settle_job(&job, &settle(Outcome::Finished)).await.unwrap();
        } else {
            let refused = stage.client().settle_job(&job, &settle(Outcome::Finished)).await.unwrap_err();
            assert!(refused.to_string().contains("did not finish"), "{refused}");
            stage.client().settle_job(&job, &settle(Outcome::Failed)).await.unwrap();
            stage.until_step(id, "apply it", "error").await;
        }
    }

    /// What others change is found and brought back.
    async fn drift_is_found_and_reconciled(&self) {
        let stage = &self.stage;
        let before = self.number();
        assert_eq!(stage.look("it").await.status.status, "no-drift");
        self.kind.meddle(stage, 99);
        if self.kind == Kind::Job {
            assert_eq!(stage.look("it").await.status.status, "no-drift", "it has run, whatever was deleted since");
            return;
        }
        assert_eq!(stage.look("it").await.status.status, "drifted");
        assert_eq!(self.number(), Some(99), "looking changes nothing");
        stage.reconciled("it").await;
        assert_eq!(self.number(), before);
    }

    /// An earlier version comes back, and stays until somebody deploys the newest one.
    async fn a_rollback_goes_back(&self) {
        let stage = &self.stage;
        self.version(20).await;
        stage.deployed("it").await;
        self.version(21).await;
        stage.deployed("it").await;
        stage.ferry(&["installs", "rollback", stage.install(), "--component", "it", "--yes"]).await;
        assert_eq!(self.number(), Some(20));
        assert_eq!(stage.look("it").await.status.status, "no-drift", "compared with what was deployed");
    }

    /// The app knows nothing of it any more, and what was deployed goes all the same.
    async fn a_teardown_needs_no_config(&self) {
        let stage = &self.stage;
        stage.drop_component("it");
        stage.sync().await;
        stage.run(json!({ "type": "teardown_component", "component": "it" })).await;
        assert_eq!(self.number(), None);
        stage.system.until_quiet().await;
    }
}

async fn keeps_to_the_contract(kind: Kind) {
    let test = Test { kind, stage: Stage::start("contract").await };
    test.plans_tell_what_they_are().await;
    test.a_stale_plan_is_not_carried_out().await;
    test.a_swapped_plan_is_refused().await;
    test.deaths_are_told().await;
    test.drift_is_found_and_reconciled().await;
    test.a_rollback_goes_back().await;
    test.a_teardown_needs_no_config().await;
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

/// A rollback runs the earlier version again: what it did then may have been undone since.
#[tokio::test]
async fn jobs_keep_to_the_contract() {
    needs!(KubeNode);
    keeps_to_the_contract(Kind::Job).await;
}

#[tokio::test]
async fn a_deployer_of_tests_keeps_to_the_contract() {
    needs!(Kube);
    keeps_to_the_contract(Kind::File).await;
}
