-- Which server hosts a build runner, and until when nobody else may.
ALTER TABLE runners ADD COLUMN host TEXT;
ALTER TABLE runners ADD COLUMN host_until BIGINT;
