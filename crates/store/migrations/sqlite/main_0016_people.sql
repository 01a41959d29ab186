-- A person or a program. Two providers may vouch for one e-mail address: who signs in is known by issuer and subject alone.
CREATE TABLE accounts_2 (
    id TEXT NOT NULL PRIMARY KEY,
    email TEXT NOT NULL,
    created_at INTEGER NOT NULL
);
INSERT INTO accounts_2 (id, email, created_at) SELECT id, email, created_at FROM accounts;
DROP TABLE accounts;
ALTER TABLE accounts_2 RENAME TO accounts;

-- The roles of an account in an org, each with where it comes from: '' is a person's doing, else the name of the provider whose groups
-- give it. The highest counts.
CREATE TABLE members_2 (
    org_id TEXT NOT NULL,
    account_id TEXT NOT NULL,
    role TEXT NOT NULL CHECK (role IN ('read-only', 'approver', 'operator', 'admin')),
    created_at INTEGER NOT NULL,
    source TEXT NOT NULL DEFAULT '',
    PRIMARY KEY (org_id, account_id, source)
);
INSERT INTO members_2 (org_id, account_id, role, created_at) SELECT org_id, account_id, role, created_at FROM members;
DROP TABLE members;
ALTER TABLE members_2 RENAME TO members;
CREATE INDEX members_account ON members (account_id);

CREATE TABLE tokens_2 (
    id TEXT NOT NULL PRIMARY KEY,
    account_id TEXT NOT NULL,
    org_id TEXT,
    role TEXT NOT NULL CHECK (role IN ('read-only', 'approver', 'operator', 'admin')),
    name TEXT NOT NULL,
    hint TEXT NOT NULL,
    hash TEXT NOT NULL UNIQUE,
    created_at INTEGER NOT NULL,
    expires_at INTEGER,
    revoked_at INTEGER,
    last_used_at INTEGER,
    runner_id TEXT
);
INSERT INTO tokens_2 (id, account_id, org_id, role, name, hint, hash, created_at, expires_at, revoked_at, last_used_at, runner_id)
    SELECT id, account_id, org_id, role, name, hint, hash, created_at, expires_at, revoked_at, last_used_at, runner_id FROM tokens;
DROP TABLE tokens;
ALTER TABLE tokens_2 RENAME TO tokens;
CREATE INDEX tokens_org ON tokens (org_id, id);
CREATE INDEX tokens_runner ON tokens (runner_id) WHERE runner_id IS NOT NULL;
CREATE INDEX tokens_account ON tokens (account_id);

-- Who signs in at a provider, and the account that this is. `refresh` is sealed: with it the provider is asked for the groups again.
CREATE TABLE identities (
    issuer TEXT NOT NULL,
    subject TEXT NOT NULL,
    account_id TEXT NOT NULL,
    provider TEXT NOT NULL,
    email TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    seen_at INTEGER NOT NULL,
    refresh BLOB,
    groups_due_at INTEGER,
    PRIMARY KEY (issuer, subject)
);
CREATE INDEX identities_account ON identities (account_id);
CREATE INDEX identities_groups ON identities (groups_due_at) WHERE groups_due_at IS NOT NULL;

-- A browser or a CLI that is signed in. Secrets are here as hashes. A CLI has an access token that is good for an hour, and a refresh
-- token that is good once.
CREATE TABLE account_sessions (
    id TEXT NOT NULL PRIMARY KEY,
    account_id TEXT NOT NULL,
    kind TEXT NOT NULL CHECK (kind IN ('browser', 'cli')),
    hash TEXT NOT NULL UNIQUE,
    refresh_hash TEXT UNIQUE,
    spent_hash TEXT,
    spent_at INTEGER,
    name TEXT NOT NULL,
    address TEXT NOT NULL,
    provider TEXT NOT NULL,
    token_id TEXT,
    created_at INTEGER NOT NULL,
    seen_at INTEGER NOT NULL,
    access_until INTEGER NOT NULL,
    idle_s INTEGER NOT NULL,
    expires_at INTEGER NOT NULL,
    ended_at INTEGER,
    ended_why TEXT
);
CREATE INDEX account_sessions_account ON account_sessions (account_id, id);

-- Somebody is asked to join an org. The link's secret is here as a hash.
CREATE TABLE invites (
    id TEXT NOT NULL PRIMARY KEY,
    org_id TEXT NOT NULL,
    email TEXT NOT NULL,
    role TEXT NOT NULL CHECK (role IN ('read-only', 'approver', 'operator', 'admin')),
    hash TEXT NOT NULL UNIQUE,
    created_by TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    expires_at INTEGER NOT NULL,
    accepted_at INTEGER,
    accepted_by TEXT,
    revoked_at INTEGER
);
CREATE INDEX invites_org ON invites (org_id, id);

-- A link that signs one browser in, once. Without an account it makes the first one.
CREATE TABLE sign_in_links (
    hash TEXT NOT NULL PRIMARY KEY,
    account_id TEXT,
    created_at INTEGER NOT NULL,
    expires_at INTEGER NOT NULL,
    used_at INTEGER,
    session_id TEXT
);

-- A CLI that waits for a person to let it in: by a code that the person types, or by a browser on the same machine.
CREATE TABLE device_logins (
    hash TEXT NOT NULL PRIMARY KEY,
    user_code_hash TEXT UNIQUE,
    challenge TEXT,
    host TEXT NOT NULL,
    address TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    expires_at INTEGER NOT NULL,
    interval_s INTEGER NOT NULL,
    polled_at INTEGER,
    account_id TEXT,
    session_id TEXT,
    answer TEXT CHECK (answer IN ('approved', 'denied', 'taken'))
);
