-- A person or a program. Two providers may vouch for one e-mail address: who signs in is known by issuer and subject alone.
ALTER TABLE accounts DROP CONSTRAINT accounts_email_key;

-- The roles of an account in an org, each with where it comes from: '' is a person's doing, else the name of the provider whose groups
-- give it. The highest counts.
ALTER TABLE members DROP CONSTRAINT members_role_check;
ALTER TABLE members ADD CONSTRAINT members_role_check CHECK (role IN ('read-only', 'approver', 'operator', 'admin'));
ALTER TABLE members ADD COLUMN source TEXT NOT NULL DEFAULT '';
ALTER TABLE members DROP CONSTRAINT members_pkey;
ALTER TABLE members ADD PRIMARY KEY (org_id, account_id, source);

ALTER TABLE tokens DROP CONSTRAINT tokens_role_check;
ALTER TABLE tokens ADD CONSTRAINT tokens_role_check CHECK (role IN ('read-only', 'approver', 'operator', 'admin'));
CREATE INDEX tokens_account ON tokens (account_id);

-- Who signs in at a provider, and the account that this is. `refresh` is sealed: with it the provider is asked for the groups again.
CREATE TABLE identities (
    issuer TEXT NOT NULL,
    subject TEXT NOT NULL,
    account_id TEXT NOT NULL,
    provider TEXT NOT NULL,
    email TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    seen_at BIGINT NOT NULL,
    refresh BYTEA,
    groups_due_at BIGINT,
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
    spent_at BIGINT,
    name TEXT NOT NULL,
    address TEXT NOT NULL,
    provider TEXT NOT NULL,
    token_id TEXT,
    created_at BIGINT NOT NULL,
    seen_at BIGINT NOT NULL,
    access_until BIGINT NOT NULL,
    idle_s BIGINT NOT NULL,
    expires_at BIGINT NOT NULL,
    ended_at BIGINT,
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
    created_at BIGINT NOT NULL,
    expires_at BIGINT NOT NULL,
    accepted_at BIGINT,
    accepted_by TEXT,
    revoked_at BIGINT
);
CREATE INDEX invites_org ON invites (org_id, id);

-- A link that signs one browser in, once. Without an account it makes the first one.
CREATE TABLE sign_in_links (
    hash TEXT NOT NULL PRIMARY KEY,
    account_id TEXT,
    created_at BIGINT NOT NULL,
    expires_at BIGINT NOT NULL,
    used_at BIGINT,
    session_id TEXT
);

-- A CLI that waits for a person to let it in: by a code that the person types, or by a browser on the same machine.
CREATE TABLE device_logins (
    hash TEXT NOT NULL PRIMARY KEY,
    user_code_hash TEXT UNIQUE,
    challenge TEXT,
    host TEXT NOT NULL,
    address TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    expires_at BIGINT NOT NULL,
    interval_s BIGINT NOT NULL,
    polled_at BIGINT,
    account_id TEXT,
    session_id TEXT,
    answer TEXT CHECK (answer IN ('approved', 'denied', 'taken'))
);
