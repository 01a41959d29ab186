//! Workflows at rest: who may write the next state, what makes one due, and the parts of an install's state.

use std::collections::BTreeMap;

use model::{JobType, OrgId, Outcome, StepId, Timestamp, WorkflowId};
use serde_json::json;
use store::{Given, NewJob, PlannedWorkflow, StepRow, StoreError, Target, WorkflowChange, WorkflowRow};

use crate::kit::{World, new_org, on_both, unique};

pub(crate) fn row(world: &World, now: Timestamp) -> WorkflowRow {
    WorkflowRow {
        id: WorkflowId::new(now, unique()),
        org_id: world.org.clone(),
        install_id: world.install.clone(),
        kind: "deploy_components".into(),
        status: "in-progress".into(),
        body: json!({ "some": "thing" }),
        created_by: world.account.clone(),
        created_at: now,
        updated_at: now,
        started_at: None,
        finished_at: None,
        version: 1,
        dirty: 0,
    }
}

pub(crate) fn step(now: Timestamp, slot: u32, status: &str, locks: Option<&str>) -> StepRow {
    let (id, locks) = (StepId::new(now, unique()), locks.map(str::to_owned));
    StepRow {
        id,
        slot,
        attempt: 0,
        name: format!("step {slot}"),
        status: status.into(),
        locks,
        target: (slot == 0).then(|| "components/a".to_owned()),
        body: json!({ "slot": slot }),
    }
}

pub(crate) fn change(row: &WorkflowRow, steps: &[StepRow], now: Timestamp) -> WorkflowChange {
    WorkflowChange {
        row: row.clone(),
        steps: steps.to_vec(),
        displays: Vec::new(),
        parts: Vec::new(),
        pin: None,
        due_at: None,
        moves: None,
        freed: false,
        events: Vec::new(),
        actor: "ann".into(),
        now,
        looks: Vec::new(),
    }
}

pub(crate) fn planned(row: &WorkflowRow, steps: &[StepRow]) -> PlannedWorkflow {
    PlannedWorkflow {
        row: row.clone(),
        steps: steps.to_vec(),
        given: Given::default(),
        inputs: None,
        toggles: BTreeMap::new(),
    }
}

#[test]
fn the_next_state_is_written_by_one() {
    on_both(|world| async move {
        let (s, now) = (&world.store, world.now());
        let first = row(&world, now);
        let steps = [step(now, 0, "in-progress", Some("a")), step(now, 1, "pending", None)];
        let given = Given { masked_values: vec!["secret value".to_owned()], ..Given::default() };
        s.create_workflow(PlannedWorkflow { given, ..planned(&first, &steps) }, None).await?;
        let (read, found) = s.workflow_with_steps(&world.org, &first.id).await?;
        assert_eq!((read.version, found.len(), &found[1].body), (1, 2, &json!({ "slot": 1 })));
        assert_eq!(s.workflow_given(&world.org, &first.id).await?.masked_values, ["secret value"]);
        assert!(!String::from_utf8_lossy(&world.dump().await?).contains("secret value"), "sealed at rest");
        // It is due at once, and taken once.
        assert_eq!(s.due_workflows(now, now.plus_s(10), 10).await?.len(), 1);
        assert!(s.due_workflows(now, now.plus_s(10), 10).await?.is_empty());
        assert_eq!(s.due_workflows(now.plus_s(10), now.plus_s(20), 10).await?.len(), 1, "who took it has died");
        assert!(s.change_workflow(change(&read, &[], now)).await?);
        assert!(!s.change_workflow(change(&read, &[], now)).await?, "it is another version by now");
        assert!(s.due_workflows(now.plus_s(100), now.plus_s(110), 10).await?.is_empty(), "nothing is left to do");
        // What others hold; and of two who set something moving, one.
        let second = row(&world, now);
        s.create_workflow(planned(&second, &[]), None).await?;
        let (moves, held) = s.held_locks(&world.install, &second.id).await?;
        assert_eq!((held.len(), held[0].lock.as_str()), (1, "a"));
        let moving = |row: &WorkflowRow| WorkflowChange { moves: Some(moves), ..change(row, &[], now) };
        assert!(s.change_workflow(moving(&second)).await?);
        let (read, _) = s.workflow_with_steps(&world.org, &first.id).await?;
        assert!(!s.change_workflow(moving(&read)).await?);
        assert!(s.held_locks(&world.install, &first.id).await?.1.is_empty());
        // Another org's is not there.
        let other = new_org(s, &world.account, "other", now).await?;
        assert!(matches!(s.workflow(&other, &first.id).await, Err(StoreError::NotFound(_))));
        assert!(matches!(s.step_display(&other, &steps[0].id).await, Err(StoreError::NotFound(_))));
        assert!(matches!(s.workflow_of_step(&other, &steps[0].id).await, Err(StoreError::NotFound(_))));
        assert!(s.workflows(&other, Some(&world.install), None, 0, 10).await?.is_empty());
        // Plans are found by what they are about, and what policies have judged by that.
        let plans = async |org: &OrgId, target: Target| s.steps_of_target(org, &world.install, target, 0, 10).await;
        let found = [(first.id.clone(), steps[0].id.clone())];
        assert_eq!(plans(&world.org, Target::Components).await?, found);
        assert_eq!(plans(&world.org, Target::Part("components/a".into())).await?, found);
        assert!(plans(&world.org, Target::Part("sandbox".into())).await?.is_empty());
        assert!(plans(&other, Target::Components).await?.is_empty());
        assert!(s.judged_steps(&world.org, &world.install, 0, 10).await?.is_empty());
        let judged = (steps[0].id.clone(), json!({ "policies": {} }));
        let (read, _) = s.workflow_with_steps(&world.org, &first.id).await?;
        assert!(s.change_workflow(WorkflowChange { displays: vec![judged], ..change(&read, &[], now) }).await?);
        assert_eq!(s.judged_steps(&world.org, &world.install, 0, 10).await?, found);
        Ok(())
    });
}

#[test]
fn a_job_that_ends_makes_its_workflow_due() {
    on_both(|world| async move {
        let (s, now) = (&world.store, world.now());
        let workflow = row(&world, now);
        let steps = [step(now, 0, "in-progress", None), step(now, 1, "success", None)];
        s.create_workflow(planned(&workflow, &steps), None).await?;
        let (read, _) = s.workflow_with_steps(&world.org, &workflow.id).await?;
        let new = NewJob { step_id: Some(steps[0].id.clone()), ..world.job(JobType::ActionsWorkflow) };
        let running = world.running(new, &[]).await?;
        // A second job of the same step is the first one; a step that has ended gets none.
        let again = NewJob { step_id: Some(steps[0].id.clone()), ..world.job(JobType::ActionsWorkflow) };
        assert_eq!(world.enqueue(again).await?, running.job);
        let late = NewJob { step_id: Some(steps[1].id.clone()), ..world.job(JobType::ActionsWorkflow) };
        assert!(s.enqueue(late, None).await.is_err());
        // It ends while someone writes the next state without knowing it: it stays due.
        world.report(&running, Outcome::Finished).await?;
        assert!(s.change_workflow(change(&read, &[], now)).await?);
        assert_eq!(s.due_workflows(world.now(), world.now().plus_s(10), 10).await?.len(), 1);
        assert_eq!(s.job_of_step(&world.org, &steps[0].id).await?.map(|job| job.id), Some(running.job));
        Ok(())
    });
}

#[test]
fn the_state_of_an_install_has_versions() {
    on_both(|world| async move {
        let (s, now) = (&world.store, world.now());
        let mut workflow = row(&world, now);
        s.create_workflow(planned(&workflow, &[]), None).await?;
        let writes = [
            vec![("sandbox".to_owned(), json!({ "n": 1 }))],
            vec![("components/a".to_owned(), json!({ "n": 1 })), ("components/b".to_owned(), json!({ "n": 1 }))],
            vec![("components/a".to_owned(), json!({ "n": 2 })), ("components/c".to_owned(), json!({ "n": 1 }))],
        ];
        for parts in writes {
            assert!(s.change_workflow(WorkflowChange { parts, ..change(&workflow, &[], now) }).await?);
            workflow.version += 1;
        }
        let (version, parts) = s.install_parts(&world.org, &world.install, None).await?;
        assert_eq!((version, parts.len(), &parts["components/a"]), (3, 4, &json!({ "n": 2 })));
        let (version, parts) = s.install_parts(&world.org, &world.install, Some(2)).await?;
        assert_eq!((version, parts.len(), &parts["components/a"]), (2, 3, &json!({ "n": 1 })));
        assert_eq!(s.install_part(&world.org, &world.install, "components/d").await?, None);
        assert_eq!(s.install_part(&world.org, &world.install, "components/a").await?, Some(json!({ "n": 2 })));
        let versions = s.state_versions(&world.org, &world.install, 0, 10).await?;
        let told: Vec<(u64, usize)> = versions.iter().map(|v| (v.version, v.parts.len())).collect();
        assert_eq!(told, [(3, 2), (2, 2), (1, 1)]);
        let other = new_org(s, &world.account, "other", now).await?;
        assert!(s.install_parts(&other, &world.install, None).await?.1.is_empty());
        Ok(())
    });
}
