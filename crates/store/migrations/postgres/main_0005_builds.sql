-- When the builds of an active config were planned; null: a reconciler does it.
ALTER TABLE configs ADD COLUMN builds_at BIGINT;

-- Artifacts made of components. While a build is open, its job says how it stands.
CREATE TABLE builds (
    id TEXT NOT NULL PRIMARY KEY,
    org_id TEXT NOT NULL,
    app_id TEXT NOT NULL,
    component_id TEXT NOT NULL,
    component TEXT NOT NULL,
    section_id TEXT NOT NULL,
    config_version BIGINT NOT NULL,
    -- Digest of the recipe: equal recipes make equal artifacts, as long as their sources do not move.
    recipe TEXT NOT NULL,
    status TEXT NOT NULL CHECK (status IN ('open', 'active', 'error', 'cancelled')),
    description TEXT NOT NULL,
    job_id TEXT,
    git_ref TEXT NOT NULL,
    -- The build whose artifact stands for this one's: the source has not moved.
    same_as TEXT,
    -- What it was made of, and what came out.
    revision TEXT NOT NULL,
    source TEXT NOT NULL,
    artifact TEXT,
    cache_hits BIGINT NOT NULL,
    cache_steps BIGINT NOT NULL,
    created_by TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL
);
CREATE INDEX builds_component ON builds (component_id, id);
CREATE INDEX builds_app ON builds (app_id, id);
CREATE INDEX builds_org ON builds (org_id, id);
CREATE INDEX builds_job ON builds (job_id);
-- One at a time: a second one would make the same.
CREATE UNIQUE INDEX builds_open ON builds (component_id, recipe) WHERE status = 'open';

-- Who we are to a git host or a registry, sealed; the longest prefix of an address wins.
CREATE TABLE source_credentials (
    org_id TEXT NOT NULL,
    prefix TEXT NOT NULL,
    username TEXT NOT NULL,
    password BYTEA NOT NULL,
    expires_at BIGINT,
    created_by TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    PRIMARY KEY (org_id, prefix)
);
