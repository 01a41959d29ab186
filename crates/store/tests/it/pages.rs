//! What lists are drawn from: summaries follow their installs, looks for drift last until something is deployed, views belong to people.

use model::{AccountId, InstallId, SavedViewId, StepId, Timestamp};
use serde_json::json;
use store::{
    EventFilter, KindFilter, Look, LookChange, SavedView, StoreError, Summary, WorkflowChange, WorkflowFilter,
};

use crate::kit::{World, eventually, new_org, on_both, unique};
use crate::workflows::{change, planned, row, step};

fn summary(world: &World, status: &str) -> Summary {
    Summary {
        id: world.install.clone(),
        name: "acme".into(),
        app_id: model::AppId::new(world.now(), 1),
        runner_id: world.runner.clone(),
        platform: "local".into(),
        region: String::new(),
        labels: Default::default(),
        status: status.into(),
        sandbox_status: "pending".into(),
        components: Vec::new(),
        drifted: 0,
        unlooked: 0,
        version: None,
        kept: false,
        created_at: world.now(),
        changed_at: world.now(),
    }
}

async fn due(world: &World) -> anyhow::Result<Option<u64>> {
    let all = world.store.unsummarized(Some(&world.org), 0, 10).await?;
    Ok(all.into_iter().find(|(_, install, _)| *install == world.install).map(|(_, _, seen)| seen))
}

async fn stored(world: &World, org: &model::OrgId) -> anyhow::Result<Vec<Summary>> {
    let stamps = world.store.summary_stamps(org, Timestamp::from_micros(0)).await?;
    let found = world.store.summaries(org, std::slice::from_ref(&world.install)).await?;
    assert_eq!(stamps.len(), found.len());
    Ok(found.into_iter().map(|(_, summary)| summary).collect())
}

#[test]
fn a_summary_is_due_whenever_its_install_changes() {
    on_both(|world| async move {
        let (s, org, now) = (&world.store, &world.org, world.now());
        let seen = due(&world).await?.expect("a new install has none");
        s.put_summary(org, seen, summary(&world, "pending"), now).await?;
        assert_eq!(due(&world).await?, None);
        assert_eq!(stored(&world, org).await?[0].status, "pending");

        // Settings, parts of the state, and a version of the app make it due.
        s.change_install(org, &world.install, "ann", now, |install| {
            install.settings.labels.insert("env".into(), "prod".into());
            Ok(())
        })
        .await?;
        let seen = due(&world).await?.expect("labels count");
        // Whoever looked before the change has nothing to say.
        s.put_summary(org, seen - 1, summary(&world, "error"), now).await?;
        assert!(due(&world).await?.is_some());
        s.put_summary(org, seen, summary(&world, "active"), now.plus_s(1)).await?;
        assert_eq!(due(&world).await?, None);
        let install = s.install(org, world.install.as_str()).await?;
        let moves = s.install_moves(&world.install).await?;
        assert!(s.put_install_part(&install, moves, ("stack", &json!({ "a": 1 })), ("ann", now)).await?);
        let seen = due(&world).await?.expect("a part of the state counts");
        s.put_summary(org, seen, summary(&world, "active"), now.plus_s(2)).await?;

        // Only what is new is read again, and other orgs see nothing.
        assert!(s.summary_stamps(org, now.plus_s(3)).await?.is_empty());
        assert_eq!(s.count_summaries(org).await?, 1);
        let other = new_org(s, &world.account, "other", now).await?;
        assert!(stored(&world, &other).await?.is_empty());
        assert!(s.unsummarized(Some(&other), 0, 10).await?.is_empty());

        // What is forgotten has none.
        assert!(s.forget_install(&install, None, "ann", now).await?);
        assert!(stored(&world, org).await?.is_empty());
        s.put_summary(org, seen + 5, summary(&world, "active"), now).await?;
        assert!(stored(&world, org).await?.is_empty(), "nor gets it one later");
        Ok(())
    });
}

#[test]
fn what_a_look_found_stays_when_a_later_one_fails() {
    on_both(|world| async move {
        let (s, org, now) = (&world.store, &world.org, world.now());
        let mut row = row(&world, now);
        row.kind = "drift_run".into();
        let steps = [step(now, 0, "in-progress", None)];
        s.create_workflow(planned(&row, &steps), None).await?;
        let look = |status: &str, generation| Look {
            part: "components/a".into(),
            workflow_id: row.id.clone(),
            step_id: steps[0].id.clone(),
            status: status.into(),
            body: json!({ "reason": "because" }),
            looked_at: now,
            generation,
            attempt: None,
        };
        let write = async |at: i64, told: LookChange| {
            let row = store::WorkflowRow { version: at, ..row.clone() };
            s.change_workflow(WorkflowChange { looks: vec![told], ..change(&row, &steps, now) }).await
        };
        let found = async || -> anyhow::Result<(String, u64, bool)> {
            let found = s.looks(org, &world.install).await?;
            assert_eq!(found.len(), 1);
            Ok((found[0].status.clone(), found[0].generation, found[0].attempt.is_some()))
        };
        assert!(write(1, LookChange::Failed(look("look-failed", 0))).await?);
        assert_eq!(found().await?, ("look-failed".to_owned(), 0, true));
        assert!(write(2, LookChange::Found(look("drifted", 3))).await?);
        assert_eq!(found().await?, ("drifted".to_owned(), 3, false));
        assert!(write(3, LookChange::Failed(look("look-failed", 0))).await?);
        assert_eq!(found().await?, ("drifted".to_owned(), 3, true), "what was found stays");
        assert!(due(&world).await?.is_some(), "the list shows it");
        let other = new_org(s, &world.account, "other", now).await?;
        assert!(s.looks(&other, &world.install).await?.is_empty());
        Ok(())
    });
}

#[test]
fn workflows_and_plans_are_listed_by_what_is_asked_for() {
    on_both(|world| async move {
        let (s, org, now) = (&world.store, &world.org, world.now());
        let mut ids = Vec::new();
        for (at, status) in ["success", "error", "approval-awaiting", "in-progress"].into_iter().enumerate() {
            let mut row = row(&world, now.plus_s(at as i64));
            row.status = status.into();
            let plan = if status == "approval-awaiting" { "approval-awaiting" } else { "approved" };
            s.create_workflow(planned(&row, &[step(now.plus_s(at as i64), 0, plan, None)]), None).await?;
            ids.push(row.id);
        }
        let list = async |filter: WorkflowFilter| -> anyhow::Result<Vec<model::WorkflowId>> {
            Ok(s.filtered_workflows(org, filter, 10).await?.into_iter().map(|row| row.id).collect())
        };
        let statuses = vec!["error".to_owned(), "in-progress".to_owned()];
        let of_status = list(WorkflowFilter { statuses, ..WorkflowFilter::default() }).await?;
        assert_eq!(of_status, [ids[3].clone(), ids[1].clone()], "newest first, whichever status");
        let older = list(WorkflowFilter { before: Some(ids[2].clone()), ..WorkflowFilter::default() }).await?;
        assert_eq!(older, [ids[1].clone(), ids[0].clone()]);
        let mine = WorkflowFilter { actor: Some(world.account.clone()), ..WorkflowFilter::default() };
        assert_eq!(list(mine).await?.len(), 4);
        let nobody = WorkflowFilter { actor: Some(AccountId::new(now, 9)), ..WorkflowFilter::default() };
        assert!(list(nobody).await?.is_empty());
        let elsewhere = WorkflowFilter { install: Some(InstallId::new(now, 9)), ..WorkflowFilter::default() };
        assert!(list(elsewhere).await?.is_empty());

        let waiting = s.awaiting_plans(org, 10).await?;
        assert_eq!(waiting.iter().map(|(workflow, _)| workflow).collect::<Vec<_>>(), [&ids[2]]);
        let answered = s.answered_plans(org, None, 10).await?;
        assert_eq!(answered.len(), 3);
        let rest: Vec<StepId> =
            s.answered_plans(org, Some(&answered[0].1), 10).await?.into_iter().map(|it| it.1).collect();
        assert_eq!(rest, [answered[1].1.clone(), answered[2].1.clone()]);
        let last = s.last_workflows(org, std::slice::from_ref(&world.install)).await?;
        assert_eq!((last.len(), &last[0].id), (1, &ids[3]));

        let other = new_org(s, &world.account, "other", now).await?;
        assert!(s.filtered_workflows(&other, WorkflowFilter::default(), 10).await?.is_empty());
        assert!(s.awaiting_plans(&other, 10).await?.is_empty());
        assert!(s.answered_plans(&other, None, 10).await?.is_empty());
        assert!(s.last_workflows(&other, std::slice::from_ref(&world.install)).await?.is_empty());
        Ok(())
    });
}

#[test]
fn views_belong_to_people() {
    on_both(|world| async move {
        let (s, org, now) = (&world.store, &world.org, world.now());
        let bob = AccountId::new(now, 7);
        let view = |account: &AccountId, name: &str, shared| SavedView {
            id: SavedViewId::new(now, unique()),
            org_id: org.clone(),
            account_id: account.clone(),
            name: name.into(),
            query: "drift=drifted".into(),
            shared,
            created_at: now,
        };
        let mine = s.save_view(view(&world.account, "drift", false)).await?;
        s.save_view(view(&bob, "his", false)).await?;
        s.save_view(view(&bob, "ours", true)).await?;
        let names = async |account: &AccountId| -> anyhow::Result<Vec<String>> {
            Ok(s.saved_views(org, account).await?.into_iter().map(|view| view.name).collect())
        };
        assert_eq!(names(&world.account).await?, ["drift", "ours"]);
        assert_eq!(names(&bob).await?, ["his", "ours"]);
        // The same name again replaces it.
        let again = s.save_view(view(&world.account, "drift", true)).await?;
        assert!(matches!(s.saved_view(org, &mine.id).await, Err(StoreError::NotFound("view"))));
        assert_eq!(names(&bob).await?, ["his", "ours", "drift"], "one's own first");
        s.delete_view(org, &again.id).await?;
        assert!(matches!(s.delete_view(org, &again.id).await, Err(StoreError::NotFound("view"))));
        let other = new_org(s, &world.account, "other", now).await?;
        assert!(s.saved_views(&other, &bob).await?.is_empty());
        Ok(())
    });
}

#[test]
fn an_audit_is_filtered() {
    on_both(|world| async move {
        let (s, org, now) = (&world.store, &world.org, world.now());
        for (actor, label) in [("ann", "one"), ("bob", "two")] {
            s.change_install(org, &world.install, actor, now, move |install| {
                install.settings.labels.insert(label.into(), "x".into());
                Ok(())
            })
            .await?;
        }
        let list = async |filter: EventFilter| -> anyhow::Result<Vec<String>> {
            let found = s.filtered_events(org, filter, 50).await?;
            Ok(found.into_iter().map(|event| format!("{} {}", event.kind, event.actor)).collect())
        };
        let kind = KindFilter::parse("install.updated")?;
        let updates = EventFilter { kind, ..EventFilter::default() };
        let both = vec!["install.updated bob".to_owned(), "install.updated ann".to_owned()];
        eventually(both, async || list(updates.clone()).await).await?;
        let of_bob = EventFilter { actor: Some("bob".into()), ..updates.clone() };
        assert_eq!(list(of_bob).await?, ["install.updated bob"]);
        let with_text = EventFilter { text: Some("\"ONE\"".into()), ..updates.clone() };
        assert_eq!(list(with_text).await?.len(), 2, "the second knows both labels");
        let of_install = EventFilter { install: Some(world.install.clone()), ..updates.clone() };
        assert_eq!(list(of_install).await?.len(), 2);
        let elsewhere = EventFilter { install: Some(InstallId::new(now, 9)), ..EventFilter::default() };
        assert!(list(elsewhere).await?.is_empty());
        let later = EventFilter { from: Some(now.plus_s(60)), ..updates.clone() };
        assert!(list(later).await?.is_empty());
        let first = s.filtered_events(org, updates.clone(), 1).await?;
        let older = EventFilter { before: Some(first[0].cursor), ..updates };
        assert_eq!(list(older).await?, ["install.updated ann"]);
        Ok(())
    });
}
