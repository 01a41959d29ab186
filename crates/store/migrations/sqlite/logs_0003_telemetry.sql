-- How much of a log was passed on to a collector, and until when somebody is at it.
ALTER TABLE log_heads ADD COLUMN forwarded_seq INTEGER NOT NULL DEFAULT 0;
ALTER TABLE log_heads ADD COLUMN forward_until INTEGER NOT NULL DEFAULT 0;
CREATE INDEX log_heads_forward ON log_heads (updated_at) WHERE forwarded_seq < next_seq;

-- A log without an end loses its oldest segments: it begins with this chunk.
ALTER TABLE log_heads ADD COLUMN rolling INTEGER NOT NULL DEFAULT 0;
ALTER TABLE log_heads ADD COLUMN first_seq INTEGER NOT NULL DEFAULT 0;
CREATE INDEX log_heads_rolling ON log_heads (execution_id) WHERE rolling = 1;
