//! One execution for one tick, whoever looks, and however often.

use anyhow::Result;
use serde_json::{Value, json};
use store::Schedule;

use crate::kit::World;

fn app(cron: &str) -> Value {
    let repo = json!({ "repo": "a/b", "branch": "main", "directory": "." });
    json!({
        "components": [{
            "name": "db", "type": "terraform_module", "terraform_version": "1.11.3", "public_repo": repo,
            "drift_schedule": "0 * * * *",
        }],
        "actions": [{
            "name": "sweep",
            "triggers": [{ "type": "cron", "cron_schedule": cron }],
            "steps": [{ "name": "s", "command": "true" }],
        }],
    })
}

fn of<'s>(schedules: &'s [Schedule], name: &str) -> &'s Schedule {
    schedules.iter().find(|schedule| schedule.name == name).expect("a schedule")
}

#[test]
fn a_tick_is_taken_once_by_many_servers() {
    testkit::on_both(|place| async move {
        let world = World::new(&place, app("*/5 * * * *")).await?;
        let (one, two) = (world.server().await?, world.server().await?);
        one.reconcile_schedules().await?;
        assert_eq!(world.schedules().await?.len(), 2);
        assert!(world.workflows().await?.is_empty(), "before its time nothing happens");
        let first = of(&world.schedules().await?, "sweep").clone();
        assert!(first.due_at >= first.tick_at && first.due_at <= first.tick_at.plus_s(30));

        world.clock.set(first.due_at);
        let looks = (0..4).flat_map(|_| [one.reconcile_schedules(), two.reconcile_schedules()]);
        for look in futures::future::join_all(looks).await {
            look?;
        }
        let started = world.workflows().await?;
        assert_eq!(started.len(), 1, "one tick, one workflow");
        assert_eq!(started[0].kind, "action_workflow_run");
        let taken = of(&world.schedules().await?, "sweep").clone();
        assert_eq!(taken.workflow_id.as_ref(), Some(&started[0].id));
        assert!(taken.tick_at > first.tick_at && taken.last_at == Some(first.tick_at));

        // A server that died after it started the workflow, and before it moved the schedule on.
        let behind = Schedule { tick_at: first.tick_at, due_at: first.due_at, workflow_id: None, ..taken.clone() };
        assert!(world.store.take_tick(&taken, behind).await?);
        two.reconcile_schedules().await?;
        assert_eq!(world.workflows().await?.len(), 1, "the tick's key finds what was started");
        assert_eq!(of(&world.schedules().await?, "sweep").workflow_id, taken.workflow_id);
        Ok(())
    });
}

#[test]
fn ticks_that_nobody_took_are_taken_once() {
    testkit::on_both(|place| async move {
        let world = World::new(&place, app("*/5 * * * *")).await?;
        let server = world.server().await?;
        server.reconcile_schedules().await?;
        world.clock.advance_s(3 * 3600);
        server.reconcile_schedules().await?;
        assert_eq!(world.workflows().await?.len(), 1);
        let schedules = world.schedules().await?;
        let sweep = of(&schedules, "sweep");
        assert!(sweep.note.contains("more ticks had passed"), "{}", sweep.note);
        assert!(sweep.tick_at > world.now(), "the next one lies ahead");
        assert!(of(&schedules, "db").note.contains("not deployed"), "nothing to look at");
        Ok(())
    });
}

#[test]
fn a_tick_waits_for_nobody() {
    testkit::on_both(|place| async move {
        let world = World::new(&place, app("*/5 * * * *")).await?;
        let server = world.server().await?;
        server.reconcile_schedules().await?;
        // Nobody advances the first one, so it is not over when the second tick comes.
        for _ in 0..2 {
            world.clock.set(of(&world.schedules().await?, "sweep").due_at);
            server.reconcile_schedules().await?;
        }
        assert_eq!(world.workflows().await?.len(), 1);
        assert!(of(&world.schedules().await?, "sweep").note.contains("is not over"));
        // Once it is, the next tick starts another.
        world.clock.advance_s(30);
        server.reconcile_workflows().await?;
        world.clock.advance_s(30);
        server.reconcile_workflows().await?;
        world.clock.set(of(&world.schedules().await?, "sweep").due_at);
        server.reconcile_schedules().await?;
        assert_eq!(world.workflows().await?.len(), 2);
        Ok(())
    });
}

#[test]
fn schedules_follow_the_config() {
    testkit::on_both(|place| async move {
        let world = World::new(&place, app("*/5 * * * *")).await?;
        let server = world.server().await?;
        server.reconcile_schedules().await?;
        let before = of(&world.schedules().await?, "db").clone();
        world.commit(app("0 3 * * *")).await?;
        server.reconcile_schedules().await?;
        let after = world.schedules().await?;
        assert_eq!(of(&after, "sweep").cron, "0 3 * * *");
        assert_eq!(of(&after, "db"), &before, "what stays keeps its next tick");
        world.commit(json!({ "actions": [] })).await?;
        server.reconcile_schedules().await?;
        assert!(world.schedules().await?.is_empty());
        Ok::<(), anyhow::Error>(())
    });
}

#[test]
fn a_forgotten_install_leaves_nothing_that_ticks() {
    testkit::on_both(|place| async move {
        let world = World::new(&place, app("*/5 * * * *")).await?;
        let server = world.server().await?;
        server.reconcile_schedules().await?;
        world.clock.set(of(&world.schedules().await?, "sweep").due_at);
        server.reconcile_schedules().await?;
        world.store.forget_install(&world.install, None, "someone", world.now()).await?;
        assert!(world.schedules().await?.is_empty() && world.workflows().await?.is_empty());
        assert!(world.store.install(&world.install.org_id, "one").await.is_err());
        let runner = world.store.runner(&world.install.org_id, world.install.runner_id.as_str()).await?;
        assert!(runner.revoked_at.is_some());
        world.clock.advance_s(3600);
        server.reconcile_schedules().await?;
        server.reconcile_workflows().await?;
        let done: Result<()> = Ok(());
        done
    });
}
