//! The fleet: every install as a flat row, and what needs a person.

use std::collections::BTreeMap;

use model::Timestamp;

use super::{Can, DriftWord, HealthWord, PartWord, RunnerWord};

lean! {
    /// A page of installs, in the order that was asked for.
    pub struct Fleet {
        required {
            rows: Vec<FleetRow>,
            /// Installs of the org.
            total: u64,
            /// Installs that the filter takes.
            matched: u64,
            facets: FleetFacets,
        }
        optional {
            /// What the next page is asked for with.
            next: String,
        }
    }

    pub struct FleetRow {
        required {
            id: String,
            name: String,
            app_id: String,
            app_name: String,
            runner_id: String,
            runner_status: RunnerWord,
            /// `aws`, `azure`, `gcp` or `local`.
            platform: String,
            /// The worst of its sandbox and its components.
            status: PartWord,
            sandbox_status: PartWord,
            /// Every component that it wants or has, by name.
            components: Vec<FleetComponent>,
            /// How many parts differ from what was deployed, as the last looks found.
            drifted: u64,
            created_at: Timestamp,
            /// When something of it changed last.
            changed_at: Timestamp,
        }
        optional {
            region: String,
            labels: BTreeMap<String, String>,
            runner_seen_at: Option<Timestamp>,
            /// The verdict about what is deployed; absent where nothing is observed.
            health: Option<HealthWord>,
            /// The version of the app that was deployed last; absent before the first deploy.
            version: Option<u64>,
            /// The newest version of the app.
            latest_version: Option<u64>,
            /// A rollback keeps it at its version.
            kept: bool,
            /// Who changed it last.
            changed_by: String,
            /// The workflow that runs, waits, or ran last.
            workflow_id: String,
            workflow_type: String,
            workflow_status: String,
        }
    }

    pub struct FleetComponent {
        required {
            name: String,
            status: PartWord,
        }
        optional {
            /// `terraform_module`, `helm_chart` and so on.
            r#type: String,
            drifted: bool,
            /// Switched off in this install.
            disabled: bool,
            /// The version of the app that it was deployed from.
            version: Option<u64>,
        }
    }

    /// How many installs of the org have each value, whatever is filtered.
    pub struct FleetFacets {
        required {
            status: Vec<Facet>,
            app: Vec<Facet>,
            version: Vec<Facet>,
            drift: Vec<Facet>,
            health: Vec<Facet>,
            runner: Vec<Facet>,
            platform: Vec<Facet>,
        }
        optional {
            /// The most frequent labels, each as `key=value`.
            label: Vec<Facet>,
        }
    }

    pub struct Facet {
        required {
            value: String,
            count: u64,
        }
        optional {
            /// What people call it, where that is another word: the name of an app.
            name: String,
        }
    }

    /// What needs a person, the worst first.
    pub struct Attention {
        required {
            items: Vec<AttentionItem>,
            /// How many there are, shown or not; counted up to a bound.
            total: u64,
            /// Plans that wait for an approval.
            approvals: u64,
            /// Workflows that run now.
            running: Vec<RunningWorkflow>,
        }
        optional {
            /// There are more than were counted.
            more: bool,
        }
    }

    pub struct AttentionItem {
        required {
            /// `unknown`, `failed`, `approval`, `data-loss`, `offline`, `unhealthy`, `drifted`, `disabled`, `build-failed` or `build-runner`.
            kind: String,
            /// 0 is the worst.
            rank: u64,
            /// A sentence: what is the matter.
            text: String,
            since: Timestamp,
        }
        optional {
            install_id: String,
            install_name: String,
            component: String,
            workflow_id: String,
            step_id: String,
            job_id: String,
            runner_id: String,
            build_id: String,
            app_id: String,
            /// What to do about it: the words of a button.
            action: String,
        }
    }

    pub struct RunningWorkflow {
        required {
            id: String,
            install_id: String,
            install_name: String,
            r#type: String,
            status: String,
            done: u64,
            total: u64,
            started_at: Timestamp,
        }
        optional {
            /// What it does now.
            now: String,
        }
    }

    /// Plans that wait for a person.
    pub struct Approvals {
        required {
            items: Vec<ApprovalItem>,
            total: u64,
        }
        optional {
            next: String,
        }
    }

    pub struct ApprovalItem {
        required {
            workflow_id: String,
            workflow_type: String,
            step_id: String,
            /// The digest of the plan: what an answer names.
            digest: String,
            install_id: String,
            install_name: String,
            app_id: String,
            app_name: String,
            /// Such as `plan storefront`.
            title: String,
            changes: crate::control::PlanChanges,
            /// Resources that hold data and would be destroyed or replaced.
            data_loss: u64,
            asked_at: Timestamp,
            /// Plans with the same contents have the same one.
            contents: String,
            can_approve: Can,
        }
        optional {
            component: String,
            labels: BTreeMap<String, String>,
            expires_at: Option<Timestamp>,
            policies: Option<crate::control::PolicyCounts>,
            /// Why a person is asked though all plans were approved beforehand.
            ask: String,
            /// What was answered, in the list of answered plans.
            answer: String,
            answered_by: String,
            answered_at: Option<Timestamp>,
            note: String,
            drift: Option<DriftWord>,
        }
    }
}
