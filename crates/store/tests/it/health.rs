//! The health of installs at rest: who may write it, its history, and what makes it due.

use model::Timestamp;
use serde_json::json;
use store::{HealthChange, HealthRow, HealthTransition, KindFilter};

use crate::kit::{World, new_org, on_both};

fn row(world: &World, version: i64, verdict: &str) -> HealthRow {
    HealthRow {
        install_id: world.install.clone(),
        org_id: world.org.clone(),
        verdict: verdict.into(),
        body: json!({ "some": verdict }),
        version,
        due_at: Some(world.now().plus_s(300)),
        updated_at: world.now(),
    }
}

fn change(world: &World, version: i64, verdict: &str) -> HealthChange {
    let moved = |component: &str| HealthTransition {
        component: component.into(),
        at: world.now(),
        was: (version > 0).then(|| "healthy".to_owned()),
        verdict: verdict.into(),
        reason: format!("{component} is {verdict}"),
        downstream_of: (component == "web").then(|| "db".to_owned()),
    };
    HealthChange {
        row: row(world, version, verdict),
        transitions: vec![moved("db"), moved("web")],
        events: vec![("health.bad", json!({ "component": "db" }))],
        actor: "runner".into(),
    }
}

#[test]
fn a_change_is_written_once_and_its_history_is_paged_and_swept() {
    on_both(|world| async move {
        let (store, org, install) = (&world.store, &world.org, &world.install);
        assert_eq!(store.install_health(org, install).await?, None);
        assert!(store.write_health(change(&world, 0, "healthy")).await?);
        assert!(!store.write_health(change(&world, 0, "healthy")).await?, "somebody else was first");
        let begun = world.now();
        world.clock.advance_s(60);
        assert!(store.write_health(change(&world, 1, "unhealthy")).await?);
        assert!(!store.write_health(change(&world, 1, "unhealthy")).await?, "it was read before that");
        let found = store.install_health(org, install).await?.expect("a row");
        assert_eq!((found.version, found.verdict.as_str()), (2, "unhealthy"));
        let written = (install.clone(), "unhealthy".to_owned(), world.now());
        assert_eq!(store.install_verdicts(org, begun).await?, [written]);
        assert_eq!(store.install_verdicts(org, world.now().plus_s(1)).await?, []);

        let all = |component: Option<&'static str>, from: Timestamp, place| {
            store.health_transitions(org, install, component, from, place)
        };
        let told = all(None, begun, (0, 10)).await?;
        let names: Vec<_> = told.iter().map(|it| (it.component.as_str(), it.verdict.as_str())).collect();
        let expected = [("db", "unhealthy"), ("web", "unhealthy"), ("db", "healthy"), ("web", "healthy")];
        assert_eq!(names, expected, "the newest first");
        assert_eq!(told[1].downstream_of.as_deref(), Some("db"));
        assert_eq!((told[2].was.as_deref(), told[0].was.as_deref()), (None, Some("healthy")));
        assert_eq!(all(Some("web"), begun, (0, 10)).await?.len(), 2);
        assert_eq!(all(None, world.now(), (0, 10)).await?.len(), 2, "since a time");
        assert_eq!(all(None, begun, (3, 10)).await?.len(), 1, "the last page");

        // Another org sees nothing of it.
        let other = new_org(store, &world.account, "other", world.now()).await?;
        assert_eq!(store.install_health(&other, install).await?, None);
        assert!(store.install_verdicts(&other, begun).await?.is_empty());
        assert!(store.health_transitions(&other, install, None, begun, (0, 10)).await?.is_empty());

        let kind = KindFilter::parse("health")?;
        assert_eq!(store.latest_events(org, None, &kind, 10).await?.len(), 2);

        assert!(store.due_health(world.now(), 10).await?.is_empty());
        assert_eq!(store.due_health(world.now().plus_s(300), 10).await?, [(org.clone(), install.clone())]);

        assert_eq!(store.prune_health_transitions(world.now(), 1).await?, 1, "no more than asked for");
        assert_eq!(store.prune_health_transitions(world.now(), 10).await?, 1);
        assert_eq!(all(None, begun, (0, 10)).await?.len(), 2);

        // With the install everything goes, and nobody brings it back.
        let gone = store.install(org, install.as_str()).await?;
        assert!(store.forget_install(&gone, None, "me", world.now()).await?);
        assert_eq!(store.install_health(org, install).await?, None);
        assert!(all(None, begun, (0, 10)).await?.is_empty());
        assert!(!store.write_health(change(&world, 0, "healthy")).await?);
        Ok(())
    });
}

#[test]
fn a_runner_is_told_when_it_has_something_else_to_observe() {
    on_both(|world| async move {
        let (store, org) = (&world.store, &world.org);
        let watch = || async { Ok::<_, anyhow::Error>(store.runner(org, world.runner.as_str()).await?.watch) };
        let before = watch().await?;
        let install = store.install(org, world.install.as_str()).await?;
        for (part, more) in [("stack", 0), ("components/web", 1), ("sandbox", 2)] {
            let moves = store.install_moves(&install.id).await?;
            let value = json!({ "status": "active" });
            assert!(store.put_install_part(&install, moves, (part, &value), ("me", world.now())).await?);
            assert_eq!(watch().await?, before + more, "{part}");
        }
        let found = store.poll(world.poll_input(&[], &[])).await?;
        assert_eq!(found.watch, before + 2);
        Ok(())
    });
}
