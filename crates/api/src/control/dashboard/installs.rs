//! An install as its pages show it.

use std::collections::BTreeMap;

use model::Timestamp;
use serde_json::{Map, Value};

use super::{Can, DriftWord, FleetRow, HealthWord, PartWord, RunningWorkflow};
use crate::control::Runner;

lean! {
    /// The first page of an install.
    pub struct InstallOverview {
        required {
            install: FleetRow,
            runner: Runner,
            /// `prompt` or `approve-all`.
            approval_option: String,
            components: Vec<ComponentRow>,
            /// Values that the app's templates call outputs, by component; sensitive ones hidden.
            outputs: BTreeMap<String, Value>,
            changes: Vec<ChangeRow>,
            can: BTreeMap<String, Can>,
        }
        optional {
            /// The workflow that runs now.
            now: Vec<RunningWorkflow>,
            /// Inputs whose value is not deployed.
            undeployed_inputs: Vec<String>,
            /// A rollback keeps the install at this version.
            kept_at_version: Option<u64>,
            managed_by: String,
            /// Jobs of its runner that wait.
            jobs_queued: u64,
            /// Sentences that a person must know before anything else.
            warnings: Vec<String>,
            has_readme: bool,
            sandbox: Option<ComponentRow>,
        }
    }

    /// A component in an install.
    pub struct ComponentRow {
        required {
            name: String,
            status: PartWord,
        }
        optional {
            id: String,
            r#type: String,
            /// It is deployed, and the app does not have it any more.
            retired: bool,
            disabled: bool,
            toggleable: bool,
            depends_on: Vec<String>,
            needed_by: Vec<String>,
            version: Option<u64>,
            /// The version that the next deploy brings, where it is another one.
            next_version: Option<u64>,
            drift: Option<DriftWord>,
            health: Option<HealthWord>,
            health_reason: String,
            deployed_at: Option<Timestamp>,
            /// The workflow that deployed it last.
            workflow_id: String,
            /// A plan of it that waits: its step and workflow.
            waiting_step_id: String,
            waiting_workflow_id: String,
            workspace_id: String,
            outputs: Map<String, Value>,
        }
    }

    /// Something that was done to an install.
    pub struct ChangeRow {
        required {
            workflow_id: String,
            r#type: String,
            title: String,
            status: String,
            by: String,
            at: Timestamp,
        }
        optional {
            finished_at: Option<Timestamp>,
            version: Option<u64>,
            plan_only: bool,
            trouble: String,
        }
    }

    /// Components and what they need, laid out in ranks (columns) and lanes (rows).
    pub struct ComponentGraph {
        required {
            nodes: Vec<GraphNode>,
            edges: Vec<GraphEdge>,
            ranks: u64,
            lanes: u64,
        }
        optional {}
    }

    pub struct GraphNode {
        required {
            name: String,
            rank: u64,
            lane: u64,
        }
        optional {
            r#type: String,
            status: Option<PartWord>,
            drift: Option<DriftWord>,
            health: Option<HealthWord>,
            disabled: bool,
        }
    }

    pub struct GraphEdge {
        required {
            /// What is needed.
            from: String,
            /// What needs it.
            to: String,
        }
        optional {}
    }

    /// The last look for drift at each part of an install.
    pub struct InstallDrift {
        required {
            parts: Vec<PartDrift>,
            can: BTreeMap<String, Can>,
        }
        optional {}
    }

    pub struct PartDrift {
        required {
            /// A component's name, or `sandbox`.
            part: String,
            drift: DriftWord,
        }
        optional {
            looked_at: Option<Timestamp>,
            workflow_id: String,
            /// The step whose plan shows what differs.
            step_id: String,
            digest: String,
            changes: Option<crate::control::PlanChanges>,
            /// Why nothing is known.
            reason: String,
            schedule: String,
            next_at: Option<Timestamp>,
        }
    }

    /// A README as blocks, with values filled in; never HTML.
    pub struct Readme {
        required {
            blocks: Vec<ReadmeBlock>,
        }
        optional {
            /// What could not be filled in.
            problems: Vec<String>,
        }
    }

    pub struct ReadmeBlock {
        required {
            /// `heading`, `paragraph`, `code`, `list`, `quote`, `table` or `rule`.
            r#type: String,
        }
        optional {
            level: u64,
            text: Vec<ReadmeText>,
            /// Of code.
            language: String,
            code: String,
            ordered: bool,
            start: u64,
            /// Of a list: each item is blocks; of a quote: one item.
            #[cfg_attr(feature = "schema", schema(no_recursion))]
            items: Vec<ReadmeItem>,
            header: Vec<ReadmeCell>,
            rows: Vec<ReadmeRow>,
        }
    }

    pub struct ReadmeItem {
        required {
            blocks: Vec<ReadmeBlock>,
        }
        optional {
            /// Of a list of tasks.
            checked: Option<bool>,
        }
    }

    pub struct ReadmeRow {
        required {
            cells: Vec<ReadmeCell>,
        }
        optional {}
    }

    pub struct ReadmeCell {
        required {
            text: Vec<ReadmeText>,
        }
        optional {}
    }

    /// A run of text.
    pub struct ReadmeText {
        required {
            text: String,
        }
        optional {
            strong: bool,
            emphasis: bool,
            code: bool,
            strike: bool,
            /// Where it leads: http, https or mailto, and nothing else.
            href: String,
        }
    }

    /// How two versions of an install's state differ.
    pub struct StateDiff {
        required {
            from: u64,
            to: u64,
            changes: Vec<StateChange>,
        }
        optional {
            omitted: u64,
        }
    }

    pub struct StateChange {
        required {
            /// Dotted.
            path: String,
            /// `added`, `removed` or `changed`.
            change: String,
        }
        optional {
            before: String,
            after: String,
        }
    }
}
