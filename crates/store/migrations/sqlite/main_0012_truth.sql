-- What a state puts out, sealed at rest: an apply whose result never came is settled with it.
ALTER TABLE revisions ADD COLUMN outputs BLOB;

-- The last apply of a part, whatever else the install has done since.
CREATE INDEX jobs_applies ON jobs (install_id, target, id) WHERE operation = 'apply-plan';
