-- What lists show of an install, put together ahead of time: reading ten thousand installs must not open ten thousand states. Counts say
-- whether it was put together since something changed.
ALTER TABLE installs ADD COLUMN summary_wanted BIGINT NOT NULL DEFAULT 1;
ALTER TABLE installs ADD COLUMN summary_made BIGINT NOT NULL DEFAULT 0;
CREATE INDEX installs_unsummarized ON installs (org_id, id) WHERE summary_wanted > summary_made;

CREATE TABLE summaries (
    install_id TEXT NOT NULL PRIMARY KEY,
    org_id TEXT NOT NULL,
    body TEXT NOT NULL,
    made_at BIGINT NOT NULL
);
CREATE INDEX summaries_made ON summaries (org_id, made_at);

-- What the last looks for drift at a part of an install found. It is about the part as it was changed so often; a look that failed since
-- is kept beside it.
CREATE TABLE looks (
    install_id TEXT NOT NULL,
    part TEXT NOT NULL,
    org_id TEXT NOT NULL,
    workflow_id TEXT NOT NULL,
    step_id TEXT NOT NULL,
    status TEXT NOT NULL,
    body TEXT NOT NULL,
    looked_at BIGINT NOT NULL,
    generation BIGINT NOT NULL,
    attempt TEXT,
    PRIMARY KEY (install_id, part)
);

-- A filter of the list of installs that somebody has saved.
CREATE TABLE saved_views (
    id TEXT NOT NULL PRIMARY KEY,
    org_id TEXT NOT NULL,
    account_id TEXT NOT NULL,
    name TEXT NOT NULL,
    query TEXT NOT NULL,
    shared BIGINT NOT NULL,
    created_at BIGINT NOT NULL
);
CREATE INDEX saved_views_org ON saved_views (org_id, account_id);

-- Lists of workflows by how they stand.
CREATE INDEX workflows_status ON workflows (org_id, status, id);
-- What somebody did.
CREATE INDEX workflows_actor ON workflows (org_id, created_by, id);
-- Verdicts that are new to whoever keeps a list.
CREATE INDEX install_health_updated ON install_health (org_id, updated_at);
-- Plans that were answered.
CREATE INDEX workflow_steps_answered ON workflow_steps (org_id, id) WHERE status IN ('approved', 'approval-denied', 'denied-skipped', 'approval-expired');
