-- When the first chunk of a batch or a segment was written, in nanoseconds; 0 where it is not known.
ALTER TABLE log_chunks ADD COLUMN first_ns BIGINT NOT NULL DEFAULT 0;
ALTER TABLE log_segments ADD COLUMN first_ns BIGINT NOT NULL DEFAULT 0;
-- Where the blocks of a segment are, as JSON; empty in those that were made before there were blocks.
ALTER TABLE log_segments ADD COLUMN blocks TEXT NOT NULL DEFAULT '';

-- When a log was deleted; its head stays, so that nobody takes it for an empty one.
ALTER TABLE log_heads ADD COLUMN deleted_at BIGINT;
CREATE INDEX log_heads_org ON log_heads (org_id, updated_at) WHERE deleted_at IS NULL;

-- What an org wants kept.
CREATE TABLE log_rules (
    org_id TEXT NOT NULL PRIMARY KEY,
    retention_s BIGINT,
    quota_bytes BIGINT
);
