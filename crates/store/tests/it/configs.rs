//! Versions of an app: numbered, immutable, made by one commit; what is sensitive lies sealed.

use std::collections::BTreeMap;

use model::{ConfigId, Digest, InputsId, SectionId, VariableId};
use serde_json::json;
use store::{
    Commit, Config, ConfigStatus, EntityChange, EntityKind, InstallInputs, NewEntity, Result, Section, StoreError,
    Variable,
};

use crate::kit::{World, on_both, unique};

fn draft(world: &World) -> Config {
    let now = world.now();
    Config {
        id: ConfigId::new(now, unique()),
        org_id: world.org.clone(),
        app_id: world.app.clone(),
        version: None,
        status: ConfigStatus::Draft,
        description: String::new(),
        digest: None,
        same_as: None,
        readme: String::new(),
        cli_version: String::new(),
        state: String::new(),
        created_by: world.account.clone(),
        created_at: now,
        updated_at: now,
    }
}

fn section(world: &World, config: &Config, kind: &str, name: &str, text: &str) -> Section {
    Section {
        id: SectionId::new(world.now(), unique()),
        config_id: config.id.clone(),
        kind: kind.into(),
        name: name.into(),
        entity_id: None,
        checksum: String::new(),
        body: json!({ kind: text }),
        created_by: world.account.clone(),
        created_at: world.now(),
    }
}

fn component(world: &World, name: &str, kind: &str) -> NewEntity {
    NewEntity {
        id: EntityKind::Component.new_id(world.now(), unique()),
        kind: EntityKind::Component,
        name: name.into(),
        entity_type: Some(kind.into()),
        var_name: String::new(),
        labels: BTreeMap::new(),
        dependencies: Vec::new(),
    }
}

/// A commit on what is active now, of what the draft holds now.
async fn commit(
    world: &World,
    draft: &Config,
    content: &str,
    sections: Vec<Section>,
    entities: Vec<NewEntity>,
) -> Result<Commit> {
    let active = world.store.active_config(&world.org, &world.app).await?;
    let read = world.store.sections(&world.org, &draft.id).await?;
    Ok(Commit {
        digest: Digest::of(content.as_bytes()),
        based_on: active.map(|active| active.id),
        read: read.into_iter().map(|section| section.id).collect(),
        sections,
        entities,
        description: content.into(),
        state: Some("opaque".into()),
        actor: world.account.clone(),
        now: world.now(),
    })
}

/// Commits; starts over as long as someone else is faster.
async fn made(
    world: &World,
    config: Config,
    content: &str,
    sections: Vec<Section>,
    entities: Vec<NewEntity>,
) -> Result<Config> {
    loop {
        let commit = commit(world, &config, content, sections.clone(), entities.clone()).await?;
        match world.store.commit_config(config.clone(), commit).await {
            Err(StoreError::Stale(_)) => {}
            done => return done,
        }
    }
}

async fn sync(world: &World, content: &str) -> Result<Config> {
    let config = draft(world);
    let sections =
        vec![section(world, &config, "components", "api", content), section(world, &config, "sandbox", "", content)];
    let entities = vec![component(world, "api", "helm_chart")];
    made(world, config, content, sections, entities).await
}

#[test]
fn versions_are_numbered_and_equal_content_makes_none() {
    on_both(|world| async move {
        let s = &world.store;
        let first = sync(&world, "one").await?;
        let again = sync(&world, "one").await?;
        assert_eq!((first.version, &again.id, again.version), (Some(1), &first.id, Some(1)));
        let second = sync(&world, "two").await?;
        assert_eq!(second.version, Some(2));
        // Back to what was before is a new version: history is not rewritten.
        let third = sync(&world, "one").await?;
        assert_eq!(third.version, Some(3));
        let all = s.configs(&world.org, &world.app, 0, 10).await?;
        let seen: Vec<_> = all.iter().map(|c| (c.version, c.status)).collect();
        let expected =
            [(Some(3), ConfigStatus::Active), (Some(2), ConfigStatus::Outdated), (Some(1), ConfigStatus::Outdated)];
        assert_eq!(seen, expected);
        assert_eq!(s.active_config(&world.org, &world.app).await?.map(|c| c.id), Some(third.id.clone()));
        assert_eq!(s.config_version(&world.org, &world.app, 2).await?.id, second.id);
        // The component is one, its configs are three.
        let api = s.entity(&world.org, Some(&world.app), EntityKind::Component, "api").await?;
        let configs = s.sections_of(&world.org, &api.id, 0, 10).await?;
        assert_eq!(configs.len(), 3);
        assert_eq!(configs[0].body, json!({ "components": "one" }));
        assert_eq!(s.section_counts(&world.org, &world.app).await?[&api.id], 3);
        Ok(())
    });
}

#[test]
fn a_draft_takes_sections_until_it_is_committed_or_abandoned() {
    on_both(|world| async move {
        let s = &world.store;
        let config = draft(&world);
        s.create_draft(config.clone(), section(&world, &config, "metadata", "", "first")).await?;
        let put = |kind: &'static str, text: &'static str| {
            s.put_section(&world.org, &world.app, section(&world, &config, kind, "", text))
        };
        futures::future::try_join_all(["input", "sandbox", "runner", "stack"].map(|kind| put(kind, "first"))).await?;
        put("sandbox", "second").await?;
        let sections = s.sections(&world.org, &config.id).await?;
        assert_eq!(sections.len(), 5, "the second took the place of the first");
        let sandbox = sections.iter().find(|s| s.kind == "sandbox").map(|s| s.body.clone());
        assert_eq!(sandbox, Some(json!({ "sandbox": "second" })));

        let done = made(&world, config.clone(), "x", sections, Vec::new()).await?;
        assert_eq!((done.version, done.id.clone(), done.state.as_str()), (Some(1), config.id.clone(), "opaque"));
        let late = put("sandbox", "third").await;
        assert!(matches!(&late, Err(StoreError::Refused(why)) if why.to_string().contains("version 1")), "{late:?}");
        let twice = made(&world, config.clone(), "y", Vec::new(), Vec::new()).await;
        assert!(matches!(twice, Err(StoreError::Refused(_))), "{twice:?}");

        // The same content again: the draft stands for the version that is there.
        let same = draft(&world);
        s.create_draft(same.clone(), section(&world, &same, "metadata", "", "first")).await?;
        let found = made(&world, same.clone(), "x", Vec::new(), Vec::new()).await?;
        assert_eq!(found.id, config.id);
        assert_eq!(s.config(&world.org, &world.app, &same.id).await?.id, config.id);
        assert_eq!(s.configs(&world.org, &world.app, 0, 10).await?.len(), 1);

        let other = draft(&world);
        s.create_draft(other.clone(), section(&world, &other, "metadata", "", "first")).await?;
        let left = s.abandon_draft(&other, "a step failed", world.now()).await?;
        assert_eq!((left.status, left.description.as_str()), (ConfigStatus::Error, "a step failed"));
        assert!(s.abandon_draft(&done, "no", world.now()).await.is_err(), "a version is not abandoned");
        Ok(())
    });
}

#[test]
fn commits_at_once_make_one_version_each() {
    on_both(|world| async move {
        let contents: Vec<String> = (0..8).map(|n| format!("content {n}")).collect();
        let done = futures::future::try_join_all(contents.iter().map(|content| sync(&world, content))).await?;
        let mut versions: Vec<_> = done.iter().filter_map(|c| c.version).collect();
        versions.sort_unstable();
        assert_eq!(versions, (1..=8).collect::<Vec<_>>());
        let all = world.store.configs(&world.org, &world.app, 0, 20).await?;
        assert_eq!(all.iter().filter(|c| c.status == ConfigStatus::Active).count(), 1);
        Ok(())
    });
}

#[test]
fn a_component_keeps_its_type_until_it_is_retired() {
    on_both(|world| async move {
        let s = &world.store;
        sync(&world, "one").await?;
        let as_type = |kind: &'static str, content: &'static str| {
            let config = draft(&world);
            let sections = vec![section(&world, &config, "components", "api", content)];
            let entities = vec![component(&world, "api", kind)];
            made(&world, config, content, sections, entities)
        };
        let refused = as_type("terraform_module", "two").await;
        assert!(
            matches!(&refused, Err(StoreError::Refused(why)) if why.to_string().contains("helm_chart")),
            "{refused:?}"
        );
        let version = s.active_config(&world.org, &world.app).await?.and_then(|c| c.version);
        assert_eq!(version, Some(1), "nothing was written");
        let api = s.entity(&world.org, None, EntityKind::Component, "api").await?;
        let retire = || {
            let change = EntityChange { retire: true, ..EntityChange::default() };
            s.change_entity(EntityKind::Component, &api, change, &world.account, world.now())
        };
        let refused = retire().await;
        assert!(matches!(&refused, Err(StoreError::Refused(why)) if why.to_string().contains("active")), "{refused:?}");
        made(&world, draft(&world), "without it", Vec::new(), Vec::new()).await?;
        retire().await?;
        assert!(matches!(
            s.entity(&world.org, None, EntityKind::Component, "api").await,
            Err(StoreError::NotFound("component"))
        ));
        as_type("terraform_module", "three").await?;
        let back = s.entity(&world.org, None, EntityKind::Component, "api").await?;
        assert_eq!((back.id, back.entity_type.as_deref()), (api.id, Some("terraform_module")));
        Ok(())
    });
}

#[test]
fn sections_variables_and_inputs_lie_sealed() {
    on_both(|world| async move {
        let s = &world.store;
        sync(&world, "hunter2-in-a-section").await?;
        let now = world.now();
        let variable = Variable {
            id: VariableId::new(now, unique()),
            name: "password".into(),
            value: "hunter2-in-a-variable".into(),
            created_by: world.account.clone(),
            created_at: now,
            updated_at: now,
        };
        let set = s.set_variable(&world.org, &world.app, variable.clone()).await?;
        let again = Variable { id: VariableId::new(now, unique()), value: "hunter2-changed".into(), ..variable };
        assert_eq!(s.set_variable(&world.org, &world.app, again).await?.id, set.id, "a name stands for one variable");
        assert_eq!(s.variables(&world.org, &world.app).await?[0].value, "hunter2-changed");
        let inputs = |version: u64| InstallInputs {
            id: InputsId::new(now, unique()),
            install_id: world.install.clone(),
            version,
            values: BTreeMap::from([("size".into(), "hunter2-as-an-input".into())]),
            created_by: world.account.clone(),
            created_at: now,
        };
        s.put_inputs(&world.org, inputs(2)).await?;
        let stale = s.put_inputs(&world.org, inputs(2)).await;
        assert!(matches!(stale, Err(StoreError::Refused(_))), "{stale:?}");
        let current = s.current_inputs(&world.org, &world.install).await?;
        assert_eq!(current.map(|i| (i.version, i.values["size"].clone())), Some((2, "hunter2-as-an-input".into())));
        let rows = s
            .db()
            .query("SELECT body AS sealed FROM sections UNION ALL SELECT value FROM variables UNION ALL SELECT value FROM install_inputs", vec![])
            .await?;
        assert!(rows.len() >= 4);
        for row in rows {
            let bytes: Vec<u8> = row.get("sealed")?;
            assert!(!bytes.windows(7).any(|w| w == b"hunter2"), "a value lies open");
        }
        s.delete_variable(&world.org, &world.app, "password", "x", now).await?;
        assert!(s.variables(&world.org, &world.app).await?.is_empty());
        Ok(())
    });
}

#[test]
fn another_org_sees_nothing_of_an_app() {
    on_both(|world| async move {
        let s = &world.store;
        let config = sync(&world, "one").await?;
        let api = s.entity(&world.org, None, EntityKind::Component, "api").await?;
        let other = model::OrgId::new(world.now(), unique());
        assert!(s.config(&other, &world.app, &config.id).await.is_err());
        assert!(s.active_config(&other, &world.app).await?.is_none());
        assert!(s.configs(&other, &world.app, 0, 10).await?.is_empty());
        assert!(s.sections(&other, &config.id).await?.is_empty());
        assert!(s.sections_of(&other, &api.id, 0, 10).await?.is_empty());
        assert!(s.section_counts(&other, &world.app).await?.is_empty());
        assert!(s.entity(&other, None, EntityKind::Component, &api.id).await.is_err());
        assert!(s.entities(&other, None, EntityKind::Component, "", 0, 10).await?.is_empty());
        assert!(s.variables(&other, &world.app).await?.is_empty());
        assert!(s.inputs(&other, &world.install, 0, 10).await?.is_empty());
        assert!(s.delete_variable(&other, &world.app, "x", "x", world.now()).await.is_err());
        Ok(())
    });
}

#[test]
fn an_app_with_installs_is_not_deleted() {
    on_both(|world| async move {
        let s = &world.store;
        sync(&world, "one").await?;
        let app = s.app(&world.org, world.app.as_str()).await?;
        let refused = s.delete_app(&app, &world.account, world.now()).await;
        assert!(
            matches!(&refused, Err(StoreError::Refused(why)) if why.to_string().contains("1 install")),
            "{refused:?}"
        );
        let empty = crate::kit::app_named(&world.account, &world.org, "empty", world.now());
        s.create_app(empty.clone(), None).await?;
        s.delete_app(&empty, &world.account, world.now()).await?;
        assert!(s.app(&world.org, "empty").await.is_err());
        Ok(())
    });
}

/// What was acknowledged is in the version, or the section is refused: never neither.
#[test]
fn a_section_that_meets_a_commit_is_in_it_or_refused() {
    on_both(|world| async move {
        let s = &world.store;
        for round in 0..12 {
            let config = draft(&world);
            s.create_draft(config.clone(), section(&world, &config, "metadata", "", "first")).await?;
            let content = format!("round {round}");
            let commit = async {
                loop {
                    let sections = s.sections(&world.org, &config.id).await?;
                    let read = sections.iter().map(|section| section.id.clone()).collect();
                    let commit = commit(&world, &config, &content, sections, Vec::new()).await?;
                    let commit = Commit { read, ..commit };
                    match s.commit_config(config.clone(), commit).await {
                        Err(StoreError::Stale(_)) => {}
                        done => return done,
                    }
                }
            };
            let late = s.put_section(&world.org, &world.app, section(&world, &config, "secrets", "", "late"));
            let (done, late) = futures::future::join(commit, late).await;
            let there = s.sections(&world.org, &done?.id).await?.iter().any(|section| section.kind == "secrets");
            assert_eq!(there, late.is_ok(), "round {round}: {late:?}");
        }
        Ok(())
    });
}

#[test]
fn a_commit_on_what_is_not_active_any_more_starts_over() {
    on_both(|world| async move {
        sync(&world, "one").await?;
        let config = draft(&world);
        let stale = commit(&world, &config, "mine", Vec::new(), Vec::new()).await?;
        sync(&world, "two").await?;
        let refused = world.store.commit_config(config, stale).await;
        assert!(matches!(refused, Err(StoreError::Stale(_))), "{refused:?}");
        Ok(())
    });
}

#[test]
fn drafts_do_not_stand_before_versions_and_do_not_stay() {
    on_both(|world| async move {
        let s = &world.store;
        sync(&world, "one").await?;
        let api = s.entity(&world.org, None, EntityKind::Component, "api").await?;
        let config = draft(&world);
        s.create_draft(config.clone(), section(&world, &config, "metadata", "", "first")).await?;
        let mine =
            Section { entity_id: Some(api.id.clone()), ..section(&world, &config, "components", "api", "draft") };
        s.put_section(&world.org, &world.app, mine).await?;
        let latest = |found: Vec<Section>| found.into_iter().next().map(|section| section.body);
        assert_eq!(latest(s.sections_of(&world.org, &api.id, 0, 1).await?), Some(json!({ "components": "one" })));
        s.abandon_draft(&config, "no", world.now()).await?;
        assert_eq!(s.sections_of(&world.org, &api.id, 0, 10).await?.len(), 1, "what was abandoned is nobody's config");
        world.clock.advance_s(10);
        assert_eq!(s.prune_drafts(world.now()).await?, 1);
        assert!(s.sections(&world.org, &config.id).await?.is_empty());
        assert_eq!(s.configs(&world.org, &world.app, 0, 10).await?.len(), 1);
        Ok(())
    });
}
