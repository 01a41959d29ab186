CREATE TABLE meta (
    key TEXT NOT NULL PRIMARY KEY,
    value TEXT NOT NULL
);

CREATE TABLE orgs (
    id TEXT NOT NULL PRIMARY KEY,
    name TEXT NOT NULL UNIQUE,
    sandbox_mode INTEGER NOT NULL,
    build_runner_id TEXT NOT NULL,
    created_by TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL
);

CREATE TABLE data_keys (
    org_id TEXT NOT NULL,
    id INTEGER NOT NULL,
    master_id TEXT NOT NULL,
    wrapped BLOB NOT NULL,
    created_at INTEGER NOT NULL,
    PRIMARY KEY (org_id, id)
);

CREATE TABLE signing_keys (
    fingerprint TEXT NOT NULL PRIMARY KEY,
    public TEXT NOT NULL,
    master_id TEXT NOT NULL,
    wrapped BLOB NOT NULL,
    endorsed_by TEXT,
    signature TEXT,
    created_at INTEGER NOT NULL,
    position INTEGER NOT NULL UNIQUE
);

CREATE TABLE accounts (
    id TEXT NOT NULL PRIMARY KEY,
    email TEXT NOT NULL UNIQUE,
    created_at INTEGER NOT NULL
);

CREATE TABLE members (
    org_id TEXT NOT NULL,
    account_id TEXT NOT NULL,
    role TEXT NOT NULL CHECK (role IN ('read-only', 'operator', 'admin')),
    created_at INTEGER NOT NULL,
    PRIMARY KEY (org_id, account_id)
);
CREATE INDEX members_account ON members (account_id);

CREATE TABLE tokens (
    id TEXT NOT NULL PRIMARY KEY,
    account_id TEXT NOT NULL,
    org_id TEXT,
    role TEXT NOT NULL CHECK (role IN ('read-only', 'operator', 'admin')),
    name TEXT NOT NULL,
    hint TEXT NOT NULL,
    hash TEXT NOT NULL UNIQUE,
    created_at INTEGER NOT NULL,
    expires_at INTEGER,
    revoked_at INTEGER,
    last_used_at INTEGER
);
CREATE INDEX tokens_org ON tokens (org_id, id);

CREATE TABLE idempotency (
    scope TEXT NOT NULL,
    key TEXT NOT NULL,
    request_digest TEXT NOT NULL,
    resource_id TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    PRIMARY KEY (scope, key)
);
CREATE INDEX idempotency_age ON idempotency (created_at);

CREATE TABLE apps (
    id TEXT NOT NULL PRIMARY KEY,
    org_id TEXT NOT NULL,
    name TEXT NOT NULL,
    display_name TEXT NOT NULL,
    description TEXT NOT NULL,
    created_by TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    UNIQUE (org_id, name)
);

CREATE TABLE installs (
    id TEXT NOT NULL PRIMARY KEY,
    org_id TEXT NOT NULL,
    app_id TEXT NOT NULL,
    name TEXT NOT NULL,
    platform TEXT NOT NULL,
    cloud TEXT NOT NULL,
    runner_id TEXT NOT NULL,
    created_by TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    UNIQUE (app_id, name)
);
CREATE INDEX installs_org ON installs (org_id, id);

CREATE TABLE runners (
    id TEXT NOT NULL PRIMARY KEY,
    org_id TEXT NOT NULL,
    name TEXT NOT NULL,
    kind TEXT NOT NULL CHECK (kind IN ('build', 'install')),
    install_id TEXT,
    generation INTEGER NOT NULL,
    poll_process INTEGER NOT NULL DEFAULT 0,
    poll_seq INTEGER NOT NULL DEFAULT 0,
    draining INTEGER NOT NULL,
    revoked_at INTEGER,
    settings TEXT NOT NULL,
    report TEXT,
    seen_at INTEGER,
    closed_at INTEGER,
    health TEXT,
    health_at INTEGER,
    health_due_at INTEGER,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL
);
CREATE INDEX runners_org ON runners (org_id, id);
CREATE INDEX runners_seen ON runners (seen_at);

CREATE TABLE join_credentials (
    id TEXT NOT NULL PRIMARY KEY,
    org_id TEXT NOT NULL,
    runner_id TEXT NOT NULL,
    hash TEXT NOT NULL UNIQUE,
    created_by TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    revoked_at INTEGER,
    last_used_at INTEGER
);
CREATE INDEX join_credentials_runner ON join_credentials (runner_id);

CREATE TABLE sessions (
    runner_id TEXT NOT NULL,
    generation INTEGER NOT NULL,
    org_id TEXT NOT NULL,
    public_key TEXT NOT NULL,
    version TEXT NOT NULL,
    hostname TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    ended_at INTEGER,
    PRIMARY KEY (runner_id, generation)
);

CREATE TABLE jobs (
    id TEXT NOT NULL PRIMARY KEY,
    org_id TEXT NOT NULL,
    runner_id TEXT NOT NULL,
    install_id TEXT,
    type TEXT NOT NULL,
    grp TEXT NOT NULL,
    operation TEXT NOT NULL,
    name TEXT,
    state TEXT NOT NULL CHECK (state IN ('queued', 'available', 'in-progress', 'unknown', 'finished', 'failed', 'timed-out', 'cancelled', 'not-attempted')),
    reason TEXT NOT NULL,
    error_code TEXT,
    target TEXT,
    priority INTEGER NOT NULL,
    epoch INTEGER NOT NULL,
    version INTEGER NOT NULL,
    max_executions INTEGER NOT NULL,
    timeout_s INTEGER NOT NULL,
    queue_until INTEGER NOT NULL,
    spec BLOB NOT NULL,
    order_payload TEXT NOT NULL,
    order_key TEXT NOT NULL,
    order_signature TEXT NOT NULL,
    log_stream_id TEXT NOT NULL UNIQUE,
    cancel_at INTEGER,
    released INTEGER NOT NULL,
    created_by TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    started_at INTEGER,
    finished_at INTEGER
);
CREATE INDEX jobs_queue ON jobs (runner_id, grp, priority DESC, created_at, id) WHERE state = 'queued';
CREATE INDEX jobs_queue_target ON jobs (runner_id, target) WHERE state = 'queued' AND target IS NOT NULL;
CREATE INDEX jobs_queue_until ON jobs (queue_until) WHERE state = 'queued';
CREATE INDEX jobs_live ON jobs (runner_id) WHERE state IN ('available', 'in-progress', 'unknown');
CREATE INDEX jobs_old_checks ON jobs (finished_at) WHERE type = 'health-check';
CREATE INDEX jobs_org ON jobs (org_id, id);
CREATE INDEX jobs_runner ON jobs (runner_id, id);
CREATE INDEX jobs_install ON jobs (install_id, id);

CREATE TABLE executions (
    id TEXT NOT NULL PRIMARY KEY,
    org_id TEXT NOT NULL,
    job_id TEXT NOT NULL,
    runner_id TEXT NOT NULL,
    epoch INTEGER NOT NULL,
    generation INTEGER NOT NULL,
    state TEXT NOT NULL CHECK (state IN ('pending', 'in-progress', 'unknown', 'handed-back', 'finished', 'failed', 'timed-out', 'cancelled', 'not-attempted')),
    reason TEXT NOT NULL,
    token_hash TEXT NOT NULL,
    lease_until INTEGER NOT NULL,
    steps TEXT,
    result BLOB,
    log_chunks INTEGER,
    created_at INTEGER NOT NULL,
    started_at INTEGER,
    finished_at INTEGER,
    UNIQUE (job_id, epoch)
);
CREATE INDEX executions_live ON executions (runner_id) WHERE state IN ('pending', 'in-progress', 'unknown');
CREATE INDEX executions_lease ON executions (lease_until) WHERE state IN ('pending', 'in-progress');

CREATE TABLE events (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    xid INTEGER NOT NULL,
    org_id TEXT NOT NULL,
    time INTEGER NOT NULL,
    kind TEXT NOT NULL,
    subject_type TEXT NOT NULL,
    subject_id TEXT NOT NULL,
    actor TEXT NOT NULL,
    data TEXT NOT NULL
);
CREATE INDEX events_org ON events (org_id, xid, id);

CREATE TABLE archives (
    org_id TEXT NOT NULL,
    digest TEXT NOT NULL,
    size_bytes INTEGER NOT NULL,
    created_at INTEGER NOT NULL,
    PRIMARY KEY (org_id, digest)
);
