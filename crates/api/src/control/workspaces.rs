//! Terraform's workspaces and their states. What is in a state is sealed with a key that only the customer's side has: here are
//! numbers, names and times.

use model::Timestamp;

lean! {
    /// Where Terraform keeps the state of a part of an install.
    pub struct TerraformWorkspace {
        required {
            id: String,
            org_id: String,
            install_id: String,
            /// `components/NAME` or `sandbox`.
            target: String,
            owner_id: String,
            owner_type: String,
            created_at: Timestamp,
            updated_at: Timestamp,
        }
        optional {
            /// Name of the component; empty for the sandbox.
            component: String,
            sandbox: bool,
            /// The state as it is; empty before the first one.
            state_id: String,
            serial: u64,
            lineage: String,
            resource_count: u64,
            bytes: u64,
            lock: Option<TerraformLock>,
            /// States that were kept beside, because who wrote them had lost its lease.
            quarantined: u64,
        }
    }

    /// Who holds a workspace.
    pub struct TerraformLock {
        required {
            id: String,
            who: String,
            operation: String,
            created: Timestamp,
        }
        optional {
            info: String,
            /// Of the program that took it.
            version: String,
            /// Empty: a person on the customer's side.
            execution_id: String,
            job_id: String,
        }
    }

    /// A state as it was written once.
    pub struct TerraformState {
        required {
            id: String,
            org_id: String,
            terraform_workspace_id: String,
            serial: u64,
            /// The serial, as the dialect calls it.
            revision: u64,
            lineage: String,
            /// Of the plain state.
            bytes: u64,
            /// Of the sealed state.
            digest: String,
            resource_count: u64,
            author: String,
            created_by_id: String,
            created_at: Timestamp,
            updated_at: Timestamp,
        }
        optional {
            /// It is the state now.
            current: bool,
            /// Who wrote it had lost its lease: it is kept, and was never the state.
            quarantined: bool,
            /// Why it was written, where that is not an apply.
            note: String,
            job_id: String,
            runner_job_id: String,
            /// Only of a state that is looked at alone.
            resources: Vec<TerraformResource>,
            terraform_workspace: Option<TerraformWorkspace>,
        }
    }

    /// An instance of a resource, without its values.
    pub struct TerraformResource {
        required {
            address: String,
            r#type: String,
            provider: String,
            /// `managed` or `data`.
            mode: String,
            /// `ready`, `tainted` or `deposed`.
            status: String,
        }
        optional {}
    }
}
