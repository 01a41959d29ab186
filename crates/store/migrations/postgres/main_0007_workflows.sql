-- How an org without clouds plays its jobs.
ALTER TABLE orgs ADD COLUMN simulation TEXT NOT NULL DEFAULT '{}';

-- The config that an install is at, what it says about approvals, labels and components, and a count of what was set moving there:
-- of two replicas that start something at the same time one finds another count.
ALTER TABLE installs ADD COLUMN config_id TEXT;
ALTER TABLE installs ADD COLUMN settings TEXT NOT NULL DEFAULT '{}';
ALTER TABLE installs ADD COLUMN moves BIGINT NOT NULL DEFAULT 0;

-- The step that a job is for: one job for one step.
ALTER TABLE jobs ADD COLUMN step_id TEXT;
CREATE UNIQUE INDEX jobs_step ON jobs (step_id) WHERE step_id IS NOT NULL;

CREATE TABLE workflows (
    id TEXT NOT NULL PRIMARY KEY,
    org_id TEXT NOT NULL,
    install_id TEXT NOT NULL,
    type TEXT NOT NULL,
    -- Derived from the steps with every change.
    status TEXT NOT NULL,
    body TEXT NOT NULL,
    -- Environment that was given with it, sealed.
    env BYTEA,
    created_by TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL,
    started_at BIGINT,
    finished_at BIGINT,
    version BIGINT NOT NULL,
    -- Counts what has happened to it; what happens while someone advances it is not lost.
    dirty BIGINT NOT NULL,
    -- When someone must look at it.
    due_at BIGINT
);
CREATE INDEX workflows_due ON workflows (due_at) WHERE due_at IS NOT NULL;
CREATE INDEX workflows_install ON workflows (install_id, id);
CREATE INDEX workflows_org ON workflows (org_id, id);
CREATE INDEX workflows_open ON workflows (install_id) WHERE status IN ('pending', 'in-progress', 'approval-awaiting');

CREATE TABLE workflow_steps (
    id TEXT NOT NULL PRIMARY KEY,
    org_id TEXT NOT NULL,
    install_id TEXT NOT NULL,
    workflow_id TEXT NOT NULL,
    slot BIGINT NOT NULL,
    attempt BIGINT NOT NULL,
    name TEXT NOT NULL,
    status TEXT NOT NULL,
    -- What it keeps others from while it is in progress.
    locks TEXT,
    body TEXT NOT NULL,
    -- What people are shown of a plan, sealed.
    display BYTEA,
    UNIQUE (workflow_id, slot, attempt)
);
CREATE INDEX workflow_steps_locks ON workflow_steps (install_id) WHERE locks IS NOT NULL;

-- The install state, part by part: the document of a version is the newest of every part up to it.
CREATE TABLE install_parts (
    install_id TEXT NOT NULL,
    part TEXT NOT NULL,
    version BIGINT NOT NULL,
    org_id TEXT NOT NULL,
    -- Sealed.
    value BYTEA NOT NULL,
    workflow_id TEXT,
    created_at BIGINT NOT NULL,
    PRIMARY KEY (install_id, part, version)
);
CREATE INDEX install_parts_version ON install_parts (install_id, version);
