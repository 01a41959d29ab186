-- Where Terraform keeps what it knows of a part of an install. The lock is Terraform's own; `lock_execution` is who holds it, or
-- nobody where a person on the customer's side does.
CREATE TABLE workspaces (
    id TEXT PRIMARY KEY,
    org_id TEXT NOT NULL,
    install_id TEXT NOT NULL,
    target TEXT NOT NULL,
    revision_id TEXT,
    lock_id TEXT,
    lock_info TEXT,
    lock_execution TEXT,
    locked_at INTEGER,
    created_at INTEGER NOT NULL,
    UNIQUE (install_id, target)
);

-- Every state that was ever written. A quarantined one was written by an execution that had lost its lease.
CREATE TABLE revisions (
    id TEXT PRIMARY KEY,
    workspace_id TEXT NOT NULL,
    org_id TEXT NOT NULL,
    lineage TEXT NOT NULL,
    serial INTEGER NOT NULL,
    quarantined INTEGER NOT NULL DEFAULT 0,
    file TEXT NOT NULL,
    bytes INTEGER NOT NULL,
    resources TEXT NOT NULL,
    resource_count INTEGER NOT NULL,
    note TEXT NOT NULL DEFAULT '',
    author TEXT NOT NULL,
    execution_id TEXT,
    job_id TEXT,
    created_at INTEGER NOT NULL
);
CREATE INDEX revisions_workspace ON revisions (workspace_id, id);

-- What a plan job has made: the sealed file, and the masked model that people approve (compressed, sealed at rest).
CREATE TABLE plans (
    job_id TEXT PRIMARY KEY,
    org_id TEXT NOT NULL,
    execution_id TEXT NOT NULL,
    plan TEXT NOT NULL,
    changes TEXT NOT NULL,
    judged TEXT NOT NULL,
    display BLOB NOT NULL,
    created_at INTEGER NOT NULL
);

-- Files that runners have sealed, by install; the pieces lie in the blob store.
CREATE TABLE uploads_sealed (
    id TEXT PRIMARY KEY,
    org_id TEXT NOT NULL,
    install_id TEXT NOT NULL,
    created_at INTEGER NOT NULL
);
CREATE INDEX uploads_sealed_install ON uploads_sealed (install_id);

-- Names the key that an install seals with; the first one stands.
CREATE TABLE install_keys (
    install_id TEXT PRIMARY KEY,
    org_id TEXT NOT NULL,
    fingerprint TEXT NOT NULL,
    created_at INTEGER NOT NULL
);
