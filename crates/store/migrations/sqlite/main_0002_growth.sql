-- What is asked often must not grow with what is over.
DROP INDEX jobs_live;
CREATE INDEX jobs_held ON jobs (runner_id, target) WHERE state IN ('available', 'in-progress', 'unknown');
CREATE INDEX jobs_unreleased ON jobs (id) WHERE state = 'unknown' AND released = 0;
CREATE INDEX jobs_state ON jobs (org_id, state, id);
CREATE INDEX runners_name ON runners (org_id, name);
CREATE INDEX installs_name ON installs (org_id, name);
