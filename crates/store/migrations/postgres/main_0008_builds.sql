-- `source` says it.
ALTER TABLE builds DROP COLUMN revision;
