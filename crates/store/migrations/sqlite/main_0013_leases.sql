-- How often a starting server has given a lease more time since the runner last renewed it.
ALTER TABLE executions ADD COLUMN extensions INTEGER NOT NULL DEFAULT 0;
