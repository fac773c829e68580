-- Who may come in. Secrets are known by their digests only.
CREATE TABLE redeliver.redeliver_access_keys (
    id         text     NOT NULL COLLATE "C" PRIMARY KEY,
    name       text     NOT NULL COLLATE "C",
    digest     bytea    NOT NULL,
    workspace  text     COLLATE "C",
    role       smallint NOT NULL, -- 0 viewer, 1 sender, 2 operator, 3 admin
    created_at bigint   NOT NULL,
    revoked_at bigint
);

-- Who has logged in to the console.
CREATE TABLE redeliver.redeliver_sessions (
    digest     bytea    NOT NULL PRIMARY KEY,
    key_id     text     COLLATE "C",
    name       text     NOT NULL COLLATE "C",
    workspace  text     COLLATE "C",
    role       smallint NOT NULL,
    created_at bigint   NOT NULL,
    expires_at bigint   NOT NULL
);

CREATE INDEX redeliver_sessions_expiring ON redeliver.redeliver_sessions (expires_at);
