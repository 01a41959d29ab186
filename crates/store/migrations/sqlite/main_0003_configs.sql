-- What `PATCH /v1/apps/{app_id}` keeps beside names.
ALTER TABLE apps ADD COLUMN settings TEXT NOT NULL DEFAULT '{}';

-- Versions of an app's files. A draft has no version; committed, it never changes but for its status.
CREATE TABLE configs (
    id TEXT NOT NULL PRIMARY KEY,
    org_id TEXT NOT NULL,
    app_id TEXT NOT NULL,
    version INTEGER,
    status TEXT NOT NULL CHECK (status IN ('draft', 'active', 'outdated', 'error', 'same')),
    description TEXT NOT NULL,
    digest TEXT,
    -- A draft whose content was that of the active version.
    same_as TEXT,
    readme TEXT NOT NULL,
    cli_version TEXT NOT NULL,
    state TEXT NOT NULL,
    created_by TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    UNIQUE (app_id, version)
);
CREATE INDEX configs_app ON configs (app_id, id);

-- Components and actions: what keeps its id from version to version.
CREATE TABLE entities (
    id TEXT NOT NULL PRIMARY KEY,
    org_id TEXT NOT NULL,
    app_id TEXT NOT NULL,
    kind TEXT NOT NULL CHECK (kind IN ('component', 'action')),
    name TEXT NOT NULL,
    -- The type of a component, once a config has said it.
    type TEXT,
    var_name TEXT NOT NULL,
    labels TEXT NOT NULL,
    dependencies TEXT NOT NULL,
    -- Not part of the app any more.
    retired_at INTEGER,
    created_by TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    UNIQUE (app_id, kind, name)
);
CREATE INDEX entities_org ON entities (org_id, kind, id);

-- The parts of a config, sealed; together they are the whole of it.
CREATE TABLE sections (
    id TEXT NOT NULL PRIMARY KEY,
    org_id TEXT NOT NULL,
    app_id TEXT NOT NULL,
    config_id TEXT NOT NULL,
    kind TEXT NOT NULL,
    name TEXT NOT NULL,
    entity_id TEXT,
    checksum TEXT NOT NULL,
    body BLOB NOT NULL,
    created_by TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    UNIQUE (config_id, kind, name)
);
CREATE INDEX sections_entity ON sections (entity_id, id);
CREATE INDEX sections_app ON sections (app_id, entity_id);

CREATE TABLE variables (
    id TEXT NOT NULL PRIMARY KEY,
    org_id TEXT NOT NULL,
    app_id TEXT NOT NULL,
    name TEXT NOT NULL,
    value BLOB NOT NULL,
    created_by TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    UNIQUE (app_id, name)
);

-- The inputs of an install, every version of them, sealed.
CREATE TABLE install_inputs (
    id TEXT NOT NULL PRIMARY KEY,
    org_id TEXT NOT NULL,
    install_id TEXT NOT NULL,
    version INTEGER NOT NULL,
    value BLOB NOT NULL,
    created_by TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    UNIQUE (install_id, version)
);

-- Runs of a synced action: which action, of which section, as which job.
CREATE TABLE action_runs (
    id TEXT NOT NULL PRIMARY KEY,
    org_id TEXT NOT NULL,
    install_id TEXT NOT NULL,
    entity_id TEXT NOT NULL,
    section_id TEXT NOT NULL,
    job_id TEXT NOT NULL,
    trigger_type TEXT NOT NULL,
    created_by TEXT NOT NULL,
    created_at INTEGER NOT NULL
);
CREATE INDEX action_runs_install ON action_runs (install_id, entity_id, id);
CREATE INDEX action_runs_job ON action_runs (job_id);
