//! What pages know of an org: search, saved views, what somebody may do, the state of its build runner.

use std::collections::BTreeMap;

use model::{Role, Timestamp};

use super::Can;

lean! {
    /// The frame of every page.
    pub struct OrgFrame {
        required {
            org_id: String,
            name: String,
            role: Role,
            simulated: bool,
            approvals: u64,
            build_runner: BuildRunnerState,
            can: BTreeMap<String, Can>,
        }
        optional {
            version: String,
        }
    }

    pub struct BuildRunnerState {
        required {
            id: String,
            status: String,
            text: String,
        }
        optional {
            /// Builds that wait or run.
            builds_open: u64,
            builds_running: u64,
        }
    }

    pub struct SearchResults {
        required {
            items: Vec<SearchItem>,
        }
        optional {}
    }

    pub struct SearchItem {
        required {
            /// `install`, `app`, `component`, `workflow`, `runner`, `job`, `action`, `runbook` or `build`.
            kind: String,
            id: String,
            name: String,
        }
        optional {
            /// What it belongs to.
            of: String,
            app_id: String,
            install_id: String,
            workflow_id: String,
            status: String,
        }
    }

    /// A filter of the fleet that somebody has saved.
    pub struct SavedView {
        required {
            id: String,
            name: String,
            /// The query of the page, such as `app=shop&drift=drifted`.
            query: String,
            /// Everybody of the org sees it.
            shared: bool,
            created_by: String,
            created_at: Timestamp,
            mine: bool,
        }
        optional {}
    }

    pub struct CreateSavedView {
        required {
            name: String,
            query: String,
        }
        optional {
            shared: bool,
        }
    }

    /// Something that happened, with names in place of ids.
    pub struct AuditEntry {
        required {
            id: String,
            time: Timestamp,
            kind: String,
            /// Who did it.
            who: String,
            /// A sentence.
            text: String,
            subject_type: String,
            subject_id: String,
            data: serde_json::Value,
        }
        optional {
            subject_name: String,
            install_id: String,
            workflow_id: String,
        }
    }

    pub struct AuditPage {
        required {
            entries: Vec<AuditEntry>,
        }
        optional {
            next: String,
        }
    }

    /// What a page listens to: which things changed. The page asks for what it shows.
    pub struct LiveNote {
        required {
            /// As events have it, or `runner.presence`, `step.waiting`.
            kind: String,
            subject_type: String,
            subject_id: String,
        }
        optional {
            install_id: String,
            workflow_id: String,
            step_id: String,
            runner_id: String,
            app_id: String,
            status: String,
            actor: String,
            at: Option<Timestamp>,
        }
    }
}
