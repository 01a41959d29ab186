CREATE TABLE log_heads (
    execution_id TEXT NOT NULL PRIMARY KEY,
    org_id TEXT NOT NULL,
    next_seq INTEGER NOT NULL,
    size_bytes INTEGER NOT NULL,
    hot_bytes INTEGER NOT NULL,
    updated_at INTEGER NOT NULL
);
CREATE INDEX log_heads_hot ON log_heads (updated_at) WHERE hot_bytes > 0;

CREATE TABLE log_chunks (
    execution_id TEXT NOT NULL,
    first_seq INTEGER NOT NULL,
    next_seq INTEGER NOT NULL,
    plain_bytes INTEGER NOT NULL,
    data BLOB NOT NULL,
    PRIMARY KEY (execution_id, first_seq)
);

CREATE TABLE log_segments (
    execution_id TEXT NOT NULL,
    first_seq INTEGER NOT NULL,
    next_seq INTEGER NOT NULL,
    blob_key TEXT NOT NULL,
    size_bytes INTEGER NOT NULL,
    PRIMARY KEY (execution_id, first_seq)
);
