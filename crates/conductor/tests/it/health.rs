//! Health from the signed list of what to observe to alerts, with a clock that a test sets.

use anyhow::Result;
use conductor::health::WantedCheck;
use conductor::{By, Conductor};
use model::health::{Observation, ProbeKind, UnwellObject, Verdict};
use model::papers::{EndorsedKey, Expected, TrustedKeys};
use serde_json::{Value, json};
use store::{Event, KindFilter};

use crate::kit::World;

fn app() -> Value {
    let manifest = |name: &str, more: Value| {
        let mut it = json!({ "name": name, "type": "kubernetes_manifest", "manifest": "{}", "namespace": "shop" });
        it.as_object_mut().expect("a table").extend(more.as_object().cloned().expect("a table"));
        it
    };
    let probe = json!({ "type": "http", "name": "front", "url": "http://{{ .nuon.install.name }}.example/healthz" });
    json!({ "components": [
        manifest("web", json!({ "dependencies": ["db"], "health": { "probes": [probe] } })),
        manifest("db", json!({ "health": { "required_checks": ["smoke"] } })),
        manifest("quiet", json!({ "health": { "enabled": false } })),
    ] })
}

fn seen(component: &str, verdict: Verdict) -> Observation {
    Observation {
        component: component.into(),
        generation: 1,
        verdict,
        reason: format!("{component} is {}", verdict.as_str()),
        stuck: false,
        judged: 1,
        objects: Vec::new(),
    }
}

async fn deploy(world: &World, component: &str, status: &str) -> Result<()> {
    let (store, install) = (&world.store, &world.install);
    let object = json!({ "version": "v1", "kind": "Service", "namespace": "shop", "name": component });
    let value = json!({ "status": status, "generation": 1, "outputs": {}, "objects": [object] });
    let moves = store.install_moves(&install.id).await?;
    let part = format!("components/{component}");
    assert!(store.put_install_part(install, moves, (&part, &value), ("me", world.now())).await?);
    Ok(())
}

/// The alerts so far, of which there are so many: on PostgreSQL an event is read when no older transaction is open in the whole cluster.
async fn alerts(world: &World, expected: usize) -> Result<Vec<Event>> {
    let kind = KindFilter::parse("health")?;
    for _ in 0..100 {
        let found = world.store.latest_events(&world.install.org_id, None, &kind, 100).await?;
        if found.len() >= expected {
            return Ok(found);
        }
        tokio::time::sleep(std::time::Duration::from_millis(100)).await;
    }
    anyhow::bail!("there are not {expected} alerts after 10 s")
}

/// Both components are seen some times, 15 s apart.
async fn see(world: &World, server: &Conductor, times: usize, db: Verdict, web: Verdict) -> Result<u64> {
    let mut again = 0;
    for _ in 0..times {
        world.clock.advance_s(15);
        let observations = vec![seen("db", db), seen("web", web)];
        again = server.note_health(&world.install.org_id, &world.install.id, observations).await?;
    }
    Ok(again)
}

async fn told(world: &World, server: &Conductor, component: &str) -> Result<Verdict> {
    Ok(server.health_of(&world.install).await?.components.0[component].told.verdict)
}

#[test]
fn what_a_runner_observes_is_signed_for_its_request_and_rendered() {
    testkit::on_both(|place| async move {
        let world = World::new(&place, app()).await?;
        let server = world.server().await?;
        let (org, install) = (&world.install.org_id, &world.install);
        let (_, nothing) = server.watch_of(org, &install.runner_id, 1, "n").await?;
        assert_eq!(nothing, None, "nothing is deployed");
        for component in ["web", "db", "quiet"] {
            deploy(&world, component, "active").await?;
        }
        let (version, paper) = server.watch_of(org, &install.runner_id, 1, "n").await?;
        assert_eq!(version, 3);
        let keys = server.signing_keys();
        let mut trusted = TrustedKeys::new(vec![keys.signatory.fingerprint().to_owned()]);
        trusted.learn(&[EndorsedKey { public: keys.signatory.public(), endorsed_by: None, signature: None }]);
        let expected = Expected { runner_id: &install.runner_id, generation: 1, nonce: "n", now: world.now() };
        let watch = trusted.open_watch(&paper.expect("a paper"), &install.id, &expected)?;
        let names: Vec<&str> = watch.components.iter().map(|it| it.name.as_str()).collect();
        assert_eq!(names, ["db", "web"], "one is switched off");
        let probe = &watch.components[1].probes[0];
        assert_eq!(probe.how, ProbeKind::Http { url: "http://one.example/healthz".into() });
        assert_eq!(watch.components[0].objects.len(), 1);
        // After a sync of secrets there is something else to mask.
        let (moves, part) = (world.store.install_moves(&install.id).await?, json!({ "status": "active" }));
        assert!(world.store.put_install_part(install, moves, ("secrets", &part), ("me", world.now())).await?);
        assert_eq!(server.watch_of(org, &install.runner_id, 1, "n").await?.0, 4);
        Ok(())
    });
}

#[test]
fn alerts_are_paired_dependents_are_silent_and_silence_is_unknown() {
    testkit::on_both(|place| async move {
        let world = World::new(&place, app()).await?;
        let (one, two) = (world.server().await?, world.server().await?);
        deploy(&world, "web", "active").await?;
        deploy(&world, "db", "active").await?;
        assert_eq!(see(&world, &one, 1, Verdict::Healthy, Verdict::Healthy).await?, 60);
        assert_eq!(told(&world, &two, "db").await?, Verdict::Healthy);

        // Nobody hears of the runner for five minutes.
        world.clock.advance_s(299);
        two.reconcile_component_health().await?;
        assert_eq!(told(&world, &one, "db").await?, Verdict::Healthy);
        world.clock.advance_s(2);
        two.reconcile_component_health().await?;
        assert_eq!(told(&world, &one, "db").await?, Verdict::Unknown);
        assert!(alerts(&world, 0).await?.is_empty(), "what is unknown alerts nobody");

        see(&world, &one, 1, Verdict::Healthy, Verdict::Healthy).await?;
        assert_eq!(see(&world, &one, 3, Verdict::Unhealthy, Verdict::Unhealthy).await?, 15);
        let bad = alerts(&world, 2).await?;
        let kinds: Vec<_> = bad.iter().map(|it| (it.kind.as_str(), it.data["silent"] == true)).collect();
        assert_eq!(kinds, [("health.bad", false), ("health.bad", true)], "{bad:?}");
        assert_eq!(bad[1].data["downstream_of"], "db");
        see(&world, &two, 2, Verdict::Healthy, Verdict::Healthy).await?;
        let all = alerts(&world, 4).await?;
        assert_eq!(all.iter().filter(|it| it.kind == "health.recovered").count(), 2);

        // What is torn down while it is bad recovers, too.
        see(&world, &one, 3, Verdict::Unhealthy, Verdict::Healthy).await?;
        deploy(&world, "db", "inactive").await?;
        two.watch_of(&world.install.org_id, &world.install.runner_id, 1, "n").await?;
        let all = alerts(&world, 6).await?;
        assert_eq!(all.last().map(|it| it.kind.as_str()), Some("health.recovered"));
        assert!(!one.health_of(&world.install).await?.components.0.contains_key("db"));
        Ok(())
    });
}

#[test]
fn what_went_with_a_deploy_alerts_nobody() {
    testkit::on_both(|place| async move {
        let world = World::new(&place, app()).await?;
        let server = world.server().await?;
        deploy(&world, "db", "active").await?;
        see(&world, &server, 1, Verdict::Healthy, Verdict::Healthy).await?;
        let gone = |generation| {
            let object = UnwellObject {
                kind: "Service".into(),
                namespace: Some("shop".into()),
                name: "db".into(),
                verdict: Verdict::Unhealthy,
                reason: "Service/shop/db is not there".into(),
                by_change: true,
            };
            Observation { generation, objects: vec![object], ..seen("db", Verdict::Unhealthy) }
        };
        let note = async |observation: Observation| {
            world.clock.advance_s(15);
            server.note_health(&world.install.org_id, &world.install.id, vec![observation]).await
        };
        // The runner has not heard of the last deploy yet.
        for _ in 0..3 {
            note(gone(0)).await?;
        }
        assert_eq!(told(&world, &server, "db").await?, Verdict::Progressing);
        for _ in 0..3 {
            note(gone(1)).await?;
        }
        assert_eq!(told(&world, &server, "db").await?, Verdict::Unhealthy, "nothing explains it");
        assert_eq!(alerts(&world, 1).await?.len(), 1);
        Ok(())
    });
}

#[test]
fn a_check_worsens_and_goes_stale_and_many_writers_lose_nothing() {
    testkit::on_both(|place| async move {
        let world = World::new(&place, app()).await?;
        let server = world.server().await?;
        deploy(&world, "db", "active").await?;
        let by = By { org: world.install.org_id.clone(), account: world.account.clone(), who: "me".into() };
        let push = |name: String, status, stale_after_s| {
            let wanted = WantedCheck { status, message: "look".into(), stale_after_s };
            let (server, by, install) = (server.clone(), by.clone(), world.install.clone());
            async move { server.push_check(&by, &install, "db", &name, wanted).await }
        };
        push("check-0".into(), Verdict::Healthy, Some(60)).await?;
        assert_eq!(told(&world, &server, "db").await?, Verdict::Unknown, "nobody has observed it");
        see(&world, &server, 1, Verdict::Healthy, Verdict::Healthy).await?;
        let pushes = (0..8).map(|n| push(format!("check-{n}"), Verdict::Healthy, Some(60)));
        for pushed in futures::future::join_all(pushes).await {
            pushed?;
        }
        assert_eq!(server.health_of(&world.install).await?.components.0["db"].checks.len(), 8);
        push("check-0".into(), Verdict::Degraded, Some(60)).await?;
        assert_eq!(told(&world, &server, "db").await?, Verdict::Degraded);
        world.clock.advance_s(60);
        server.reconcile_component_health().await?;
        assert_eq!(told(&world, &server, "db").await?, Verdict::Unknown, "all of them are stale");
        for n in 0..8 {
            server.forget_check(&by, &world.install, "db", &format!("check-{n}")).await?;
        }
        assert!(server.forget_check(&by, &world.install, "db", "check-0").await.is_err(), "it is gone");
        see(&world, &server, 1, Verdict::Healthy, Verdict::Healthy).await?;
        assert_eq!(told(&world, &server, "db").await?, Verdict::Healthy);
        // A day after it went stale, one that nobody requires goes by itself.
        for name in ["once", "smoke"] {
            push(name.into(), Verdict::Healthy, Some(60)).await?;
        }
        world.clock.advance_s(60 + 86_400);
        server.reconcile_component_health().await?;
        let known = server.health_of(&world.install).await?.components.0["db"].checks.clone();
        assert_eq!(known.keys().collect::<Vec<_>>(), ["smoke"]);
        assert!(push("late".into(), Verdict::Healthy, Some(3601)).await.is_err());
        let wanted = WantedCheck { status: Verdict::Healthy, message: String::new(), stale_after_s: None };
        let refused = server.push_check(&by, &world.install, "web", "x", wanted.clone()).await.expect_err("refused");
        assert!(refused.to_string().contains("not deployed"), "{refused}");
        deploy(&world, "quiet", "active").await?;
        let refused = server.push_check(&by, &world.install, "quiet", "x", wanted).await.expect_err("refused");
        assert!(refused.to_string().contains("takes no checks"), "{refused}");
        Ok(())
    });
}
