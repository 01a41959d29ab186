//! Whether this runner may do what an order and a grant say, now. The session asks before it creates anything, and the executor asks
//! again before it starts anything: it trusts what it was told by nobody.

use api::runner::Assignment;
use model::JobError;
use model::papers::{Expected, Grant, Order, TrustedKeys};

/// Its code in results.
pub(crate) const PAPERS_REFUSED: &str = "papers_refused";

/// Checks the papers of an assignment against its spec.
pub fn check_papers(
    trusted: &TrustedKeys,
    expected: &Expected<'_>,
    assignment: &Assignment,
    spec: &[u8],
) -> Result<(Order, Grant), JobError> {
    let (order, grant) = trusted
        .verify(&assignment.order, &assignment.grant, spec, expected)
        .map_err(|e| JobError::new(PAPERS_REFUSED, e.to_string()))?;
    if grant.execution_id != assignment.execution_id
        || grant.epoch != assignment.epoch
        || order.job_id != assignment.job_id
        || order.job_type != assignment.job_type
    {
        return Err(JobError::new(PAPERS_REFUSED, "the papers are for another execution"));
    }
    Ok((order, grant))
}
