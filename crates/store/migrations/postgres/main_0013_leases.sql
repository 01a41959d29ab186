-- How often a starting server has given a lease more time since the runner last renewed it.
ALTER TABLE executions ADD COLUMN extensions BIGINT NOT NULL DEFAULT 0;
