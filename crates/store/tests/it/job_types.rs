//! Every type of job, one after the other: what the table in `model` says of it is what happens to it.

use model::{Digest, JobState, JobType};
use store::{Idempotency, LeaseTiming};

use crate::kit::{LEASE_S, on_both};

/// The operations of a type, each with whether it changes something outside of Ferry. Written down once more, so that a wrong
/// entry in the table is found here.
fn operations(job_type: JobType) -> &'static [(&'static str, bool)] {
    match job_type {
        JobType::Noop | JobType::HealthCheck => &[("exec", false)],
        // They add artifacts, which are named by their content.
        JobType::TerraformModuleBuild
        | JobType::HelmChartBuild
        | JobType::KubernetesManifestBuild
        | JobType::DockerBuild
        | JobType::ContainerImageBuild
        | JobType::OciSync => &[("exec", false)],
        // What is there already is not written again.
        JobType::SandboxSyncSecrets => &[("exec", false)],
        JobType::ActionsWorkflow => &[("exec", true)],
        JobType::TerraformDeploy
        | JobType::HelmChartDeploy
        | JobType::KubernetesManifestDeploy
        | JobType::JobDeploy
        | JobType::SandboxTerraform => &[
            ("create-apply-plan", false),
            ("create-teardown-plan", false),
            ("apply-plan", true),
            ("restore-state", true),
        ],
    }
}

#[test]
fn every_type_of_job_is_queued_once_and_retried_only_where_that_is_safe() {
    on_both(|world| async move {
        for job_type in JobType::ALL {
            for (operation, changes) in operations(job_type) {
                let what = format!("{job_type} {operation}");
                let new = store::NewJob { operation: (*operation).into(), ..world.job(job_type) };
                let idem = || {
                    let request_digest = Digest::of(what.as_bytes());
                    Some(Idempotency { scope: world.account.clone(), key: what.clone(), request_digest })
                };
                let first = world.store.enqueue(new, idem()).await?;
                let second = store::NewJob { operation: (*operation).into(), ..world.job(job_type) };
                let second = world.store.enqueue(second, idem()).await?;
                assert_eq!((first.job.id.clone(), second.replayed), (second.job.id, true), "{what}");

                let read = world.store.job(&world.org, &first.job.id).await?;
                assert_eq!((read.job_type, read.group), (job_type, job_type.group()), "{what}");
                assert_eq!(read.max_executions > 1, !changes, "{what}");
                let claim = world.claimed(&[]).await?;
                world.start(&claim).await?;
                world.silence().await?;
                let lost = world.state(&claim.job).await?;
                assert_eq!(lost, if *changes { JobState::Unknown } else { JobState::Queued }, "{what}");
                if !changes {
                    world.store.cancel(&world.org, &claim.job, "ann", world.now()).await?;
                    assert_eq!(world.state(&claim.job).await?, JobState::Cancelled, "{what}");
                    continue;
                }
                // Its target is free when its executor must be gone: after the grace of its type.
                let timing = LeaseTiming { lease_s: LEASE_S, offline_s: 100 };
                world.clock.advance_s(100 + job_type.facts().grace_s as i64 - 2);
                assert_eq!(world.store.release_offline(timing, world.now()).await?, 0, "{what}");
                world.clock.advance_s(2);
                assert_eq!(world.store.release_offline(timing, world.now()).await?, 1, "{what}");
            }
        }
        Ok(())
    });
}
