//! The step that waits until what was applied has been healthy for a while.

use engine::health::{Gate, Passage};
use engine::{Ended, Step, Work, Workflow};
use model::time::parse_duration;
use model::{JobType, Timestamp};

use super::context::{Known, WorkflowContext};
use crate::error::Result;

/// How long it must stay healthy where the app does not say.
const WINDOW_S: i64 = 180;

fn seconds(text: Option<&str>) -> Option<i64> {
    text.and_then(|text| parse_duration(text).ok()).map(|lasts| lasts.as_secs() as i64)
}

impl WorkflowContext<'_> {
    pub(super) async fn verify_health(
        &mut self,
        workflow: &Workflow,
        step: &Step,
        component: &str,
        now: Timestamp,
    ) -> Result<Known> {
        let document = self.document().await?;
        let found = document.config.components.iter().find(|known| known.common.name == component);
        let wanted = found.and_then(|found| found.kind.health());
        let window_s = seconds(wanted.and_then(|wanted| wanted.stabilization_window.as_deref())).unwrap_or(WINDOW_S);
        let timeout_s = seconds(found.and_then(|found| found.common.deploy_timeout.as_deref()))
            .unwrap_or(JobType::KubernetesManifestDeploy.facts().timeout_s as i64);
        let begun = step.started_at.unwrap_or(now);
        let is_apply = |known: &&Step| {
            known.group == step.group && matches!(known.work, Work::ComponentApply { .. }) && known.status.is_done()
        };
        let applied_at = workflow.steps.iter().filter(is_apply).filter_map(|apply| apply.finished_at).max();
        let gate = Gate {
            window_s,
            bound_s: window_s + timeout_s,
            required_checks: wanted.map(|wanted| wanted.required_checks.clone()).unwrap_or_default(),
            generation: self.part(&step.work.target()).await?["generation"].as_u64().unwrap_or_default(),
            since: applied_at.unwrap_or(begun),
            begun,
        };
        let health = self.conductor.health_of(&self.install).await?;
        Ok(match gate.passage(component, health.components.0.get(component), now) {
            Passage::Passed => Known::Ended(Ended::Success),
            Passage::Waits(reason) => Known::Reason(reason),
            Passage::Failed(reason) => Known::Ended(Ended::Failed(reason)),
        })
    }
}
