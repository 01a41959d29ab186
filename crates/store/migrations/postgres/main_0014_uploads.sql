-- When a state, a plan or a result first named the sealed file. A file that nothing ever named was abandoned, and is deleted.
ALTER TABLE uploads_sealed ADD COLUMN named_at BIGINT;
UPDATE uploads_sealed SET named_at = created_at;
CREATE INDEX uploads_sealed_abandoned ON uploads_sealed (created_at) WHERE named_at IS NULL;
