CREATE TABLE log_heads (
    execution_id TEXT NOT NULL PRIMARY KEY,
    org_id TEXT NOT NULL,
    next_seq BIGINT NOT NULL,
    size_bytes BIGINT NOT NULL,
    hot_bytes BIGINT NOT NULL,
    updated_at BIGINT NOT NULL
);
CREATE INDEX log_heads_hot ON log_heads (updated_at) WHERE hot_bytes > 0;

CREATE TABLE log_chunks (
    execution_id TEXT NOT NULL,
    first_seq BIGINT NOT NULL,
    next_seq BIGINT NOT NULL,
    plain_bytes BIGINT NOT NULL,
    data BYTEA NOT NULL,
    PRIMARY KEY (execution_id, first_seq)
);

CREATE TABLE log_segments (
    execution_id TEXT NOT NULL,
    first_seq BIGINT NOT NULL,
    next_seq BIGINT NOT NULL,
    blob_key TEXT NOT NULL,
    size_bytes BIGINT NOT NULL,
    PRIMARY KEY (execution_id, first_seq)
);
