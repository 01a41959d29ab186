-- How much of a log was passed on to a collector, and until when somebody is at it.
ALTER TABLE log_heads ADD COLUMN forwarded_seq BIGINT NOT NULL DEFAULT 0;
ALTER TABLE log_heads ADD COLUMN forward_until BIGINT NOT NULL DEFAULT 0;
CREATE INDEX log_heads_forward ON log_heads (updated_at) WHERE forwarded_seq < next_seq;

-- A log without an end loses its oldest segments: it begins with this chunk.
ALTER TABLE log_heads ADD COLUMN rolling BIGINT NOT NULL DEFAULT 0;
ALTER TABLE log_heads ADD COLUMN first_seq BIGINT NOT NULL DEFAULT 0;
CREATE INDEX log_heads_rolling ON log_heads (execution_id) WHERE rolling = 1;
