-- A token with a runner sends telemetry in that runner's name, and does nothing else.
ALTER TABLE tokens ADD COLUMN runner_id TEXT;
CREATE INDEX tokens_runner ON tokens (runner_id) WHERE runner_id IS NOT NULL;
