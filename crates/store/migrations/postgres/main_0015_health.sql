-- How well what is deployed in an install is: a document with what the rules remember, the worst verdict in it, and when to look again
-- though nobody reports.
CREATE TABLE install_health (
    install_id TEXT PRIMARY KEY,
    org_id TEXT NOT NULL,
    verdict TEXT NOT NULL,
    body TEXT NOT NULL,
    version BIGINT NOT NULL,
    due_at BIGINT,
    updated_at BIGINT NOT NULL
);
CREATE INDEX install_health_due ON install_health (due_at) WHERE due_at IS NOT NULL;
CREATE INDEX install_health_org ON install_health (org_id);

-- Verdicts that became others. The version is that of the document, so that one change is written once.
CREATE TABLE health_transitions (
    install_id TEXT NOT NULL,
    version BIGINT NOT NULL,
    component TEXT NOT NULL,
    org_id TEXT NOT NULL,
    at BIGINT NOT NULL,
    was TEXT,
    verdict TEXT NOT NULL,
    reason TEXT NOT NULL,
    downstream_of TEXT,
    PRIMARY KEY (install_id, version, component)
);
CREATE INDEX health_transitions_at ON health_transitions (at);

-- Counts how often what the runner is to observe has changed.
ALTER TABLE runners ADD COLUMN watch BIGINT NOT NULL DEFAULT 0;
-- Runners of installs ask what it is: something may be deployed there already.
UPDATE runners SET watch = 1 WHERE install_id IS NOT NULL;
