//! Syncs of secrets: what a runner is asked to do, and what can't be asked.

use anyhow::Result;
use conductor::{Conductor, Loaded, NewWorkflow};
use engine::{Ended, Event, Step, StepStatus, WorkflowKind};
use model::secrets::SecretsSpec;
use model::spec::{JobSpec, Work};
use serde_json::{Value, json};

use crate::kit::World;

fn app(namespace: &str) -> Value {
    let target = json!({ "namespaces": [namespace], "name": "shop", "key": "k" });
    json!({ "secrets": [{ "name": "a", "display_name": "a", "description": "a", "kubernetes_sync_targets": [target] }] })
}

fn step<'l>(loaded: &'l Loaded, name: &str) -> &'l Step {
    loaded.workflow.steps.iter().find(|step| step.name == name).expect("a step")
}

/// A workflow whose runner is there.
async fn begun(world: &World, server: &Conductor, kind: WorkflowKind) -> Result<Loaded> {
    let (org, new) = (&world.install.org_id, NewWorkflow::new(kind));
    let id = server.start_workflow(&world.install, new, &world.account, None).await?;
    let begun = server.tell_workflow(org, &id, Event::Look, "me").await?;
    let step = step(&begun, "await runner healthy").id.clone();
    Ok(server.tell_workflow(org, &id, Event::Ended { step, ended: Ended::Success }, "me").await?)
}

/// What the runner is asked to do.
async fn asked(world: &World, step: &Step) -> Result<SecretsSpec> {
    let org = &world.install.org_id;
    let job = world.store.job_of_step(org, &step.id).await?.expect("a job");
    let spec: JobSpec = serde_json::from_slice(&world.store.spec(org, &job.id).await?)?;
    match spec.work {
        Work::SandboxSyncSecrets(spec) => Ok(*spec),
        other => anyhow::bail!("{other:?}"),
    }
}

#[test]
fn a_target_that_cannot_be_rendered_fails_the_sync() {
    testkit::on_both(|place| async move {
        let world = World::real(&place, app("{{ .nuon.components.db.outputs.ns }}")).await?;
        let server = world.server().await?;
        let loaded = begun(&world, &server, WorkflowKind::SyncSecrets).await?;
        let sync = step(&loaded, "sync secrets");
        assert_eq!(sync.status, StepStatus::Error, "{}", sync.reason);
        assert!(sync.reason.contains("can't be rendered"), "{}", sync.reason);

        world.commit(app("shop")).await?;
        let loaded = begun(&world, &server, WorkflowKind::SyncSecrets).await?;
        let sync = step(&loaded, "sync secrets");
        assert_eq!(sync.status, StepStatus::InProgress, "{}", sync.reason);
        let spec = asked(&world, sync).await?;
        assert_eq!(spec.secrets[0].targets[0].namespace, "shop");
        Ok(())
    });
}

#[test]
fn only_a_deprovision_deletes_namespaces_and_it_knows_those_of_earlier_syncs() {
    testkit::on_both(|place| async move {
        let world = World::real(&place, json!({ "components": [] })).await?;
        let server = world.server().await?;
        let target = json!({ "namespace": "shop", "name": "shop", "key": "k" });
        let part = json!({
            "status": "active", "generation": 1, "namespaces": ["before", "shop"],
            "outputs": { "a": { "name": "a", "exists": true, "targets": [target] } },
        });
        let moves = world.store.install_moves(&world.install.id).await?;
        assert!(world.store.put_install_part(&world.install, moves, ("secrets", &part), ("me", world.now())).await?);
        for (kind, name, namespaces) in [
            (WorkflowKind::SyncSecrets, "sync secrets", &[][..]),
            (WorkflowKind::Deprovision, "remove secrets", &["before", "shop"]),
        ] {
            let loaded = begun(&world, &server, kind).await?;
            let spec = asked(&world, step(&loaded, name)).await?;
            assert_eq!((spec.gone.len(), spec.namespaces.as_slice() == namespaces), (1, true), "{spec:?}");
        }
        Ok(())
    });
}
