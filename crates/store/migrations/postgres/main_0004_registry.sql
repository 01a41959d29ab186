CREATE TABLE registry_repositories (
    org_id TEXT NOT NULL,
    name TEXT COLLATE "C" NOT NULL,
    created_at BIGINT NOT NULL,
    PRIMARY KEY (org_id, name)
);

-- What a digest of an org stands for: the object `registry/ORG/ID`. The id is that of the upload which brought the bytes, so
-- no later push of the same digest ever touches the object of an earlier one.
CREATE TABLE registry_blobs (
    id TEXT NOT NULL PRIMARY KEY,
    org_id TEXT NOT NULL,
    digest TEXT NOT NULL,
    size_bytes BIGINT NOT NULL,
    -- Since when no manifest refers to it; a push, a mount or a look at it begins this anew. Empty while one does.
    idle_since BIGINT,
    created_at BIGINT NOT NULL,
    UNIQUE (org_id, digest)
);
CREATE INDEX registry_blobs_idle ON registry_blobs (idle_since);
CREATE INDEX registry_blobs_size ON registry_blobs (org_id, size_bytes);

-- Which blobs a repository shows.
CREATE TABLE registry_links (
    org_id TEXT NOT NULL,
    repository TEXT NOT NULL,
    digest TEXT NOT NULL,
    PRIMARY KEY (org_id, repository, digest)
);
CREATE INDEX registry_links_digest ON registry_links (org_id, digest);

CREATE TABLE registry_manifests (
    org_id TEXT NOT NULL,
    repository TEXT NOT NULL,
    digest TEXT COLLATE "C" NOT NULL,
    media_type TEXT NOT NULL,
    size_bytes BIGINT NOT NULL,
    body BYTEA NOT NULL,
    -- What it says about another manifest.
    subject TEXT,
    artifact_type TEXT,
    annotations TEXT,
    created_at BIGINT NOT NULL,
    PRIMARY KEY (org_id, repository, digest)
);
CREATE INDEX registry_manifests_subject ON registry_manifests (org_id, repository, subject, digest);
CREATE INDEX registry_manifests_size ON registry_manifests (org_id, size_bytes);

-- What a manifest needs: blobs and other manifests.
CREATE TABLE registry_references (
    org_id TEXT NOT NULL,
    repository TEXT NOT NULL,
    manifest TEXT NOT NULL,
    digest TEXT NOT NULL,
    PRIMARY KEY (org_id, repository, manifest, digest)
);
CREATE INDEX registry_references_digest ON registry_references (org_id, digest);

CREATE TABLE registry_tags (
    org_id TEXT NOT NULL,
    repository TEXT NOT NULL,
    name TEXT COLLATE "C" NOT NULL,
    digest TEXT NOT NULL,
    updated_at BIGINT NOT NULL,
    PRIMARY KEY (org_id, repository, name)
);
CREATE INDEX registry_tags_digest ON registry_tags (org_id, repository, digest);

-- Uploads that are not finished.
CREATE TABLE registry_uploads (
    id TEXT NOT NULL PRIMARY KEY,
    org_id TEXT NOT NULL,
    repository TEXT NOT NULL,
    -- What is there so far, where the blob store can't be asked: parts, and the state of the hash.
    progress TEXT,
    -- Who writes now, and until when nobody else may.
    busy_until BIGINT NOT NULL,
    created_at BIGINT NOT NULL
);
CREATE INDEX registry_uploads_age ON registry_uploads (created_at);
CREATE INDEX registry_uploads_org ON registry_uploads (org_id);

-- Objects that nothing refers to any more, and that are still to be deleted.
CREATE TABLE registry_doomed (
    object_key TEXT NOT NULL PRIMARY KEY,
    -- The multipart upload to be ended, where there is one.
    multipart TEXT,
    doomed_at BIGINT NOT NULL
);
