-- Who may come in. Secrets are known by their digests only.
CREATE TABLE redeliver_access_keys (
    id         TEXT    NOT NULL PRIMARY KEY,
    name       TEXT    NOT NULL,
    digest     BLOB    NOT NULL,
    workspace  TEXT,
    role       INTEGER NOT NULL, -- 0 viewer, 1 sender, 2 operator, 3 admin
    created_at INTEGER NOT NULL,
    revoked_at INTEGER
) WITHOUT ROWID;

-- Who has logged in to the console.
CREATE TABLE redeliver_sessions (
    digest     BLOB    NOT NULL PRIMARY KEY,
    key_id     TEXT,
    name       TEXT    NOT NULL,
    workspace  TEXT,
    role       INTEGER NOT NULL,
    created_at INTEGER NOT NULL,
    expires_at INTEGER NOT NULL
) WITHOUT ROWID;

CREATE INDEX redeliver_sessions_expiring ON redeliver_sessions (expires_at);
