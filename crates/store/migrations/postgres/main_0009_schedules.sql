-- The part of the install's state that a plan, or the sync of an image, is about. The dialect calls these deploys and sandbox runs.
ALTER TABLE workflow_steps ADD COLUMN target TEXT;
CREATE INDEX workflow_steps_target ON workflow_steps (install_id, target, id) WHERE target IS NOT NULL;

-- Policies have judged it; what they said is in what people are shown.
ALTER TABLE workflow_steps ADD COLUMN judged BIGINT NOT NULL DEFAULT 0;
CREATE INDEX workflow_steps_judged ON workflow_steps (install_id, id) WHERE judged = 1;

-- What an install does by the clock follows from its config. Counts say whether that was looked at since the config moved.
ALTER TABLE installs ADD COLUMN schedules_wanted BIGINT NOT NULL DEFAULT 1;
ALTER TABLE installs ADD COLUMN schedules_made BIGINT NOT NULL DEFAULT 0;
CREATE INDEX installs_unscheduled ON installs (id) WHERE schedules_wanted > schedules_made;

CREATE TABLE schedules (
    install_id TEXT NOT NULL,
    -- action or drift
    kind TEXT NOT NULL,
    -- Of the action or the component; empty: the sandbox.
    name TEXT NOT NULL,
    cron TEXT NOT NULL,
    org_id TEXT NOT NULL,
    -- The tick that is next, and when this install takes it.
    tick_at BIGINT NOT NULL,
    due_at BIGINT NOT NULL,
    -- The last one that was taken, and what became of it.
    last_at BIGINT,
    note TEXT NOT NULL DEFAULT '',
    workflow_id TEXT,
    PRIMARY KEY (install_id, kind, name, cron)
);
CREATE INDEX schedules_due ON schedules (due_at);
