-- Every table has our name before its own, because an application may keep its tables in the same file.

-- Where messages stand. Narrow, because every claim and every result writes it.
CREATE TABLE redeliver_messages (
    id                  BLOB    NOT NULL PRIMARY KEY,
    workspace           TEXT    NOT NULL,
    route               TEXT    NOT NULL,
    lane                INTEGER NOT NULL,
    state               INTEGER NOT NULL, -- 0 waiting, 1 claimed, 2 handed_off, 3 delivered, 4 dead, 5 cancelled
    due_at              INTEGER NOT NULL,
    ready_at            INTEGER,          -- due_at while it can be claimed with others
    suspect_at          INTEGER,          -- due_at while it can be claimed alone
    fence               INTEGER NOT NULL,
    attempts            INTEGER NOT NULL,
    losses              INTEGER NOT NULL,
    -- waiting
    parked_for          TEXT,
    -- claimed
    instance            INTEGER,
    claim               INTEGER,
    lease_until         INTEGER,
    started_at          INTEGER,
    cancel_requested    INTEGER NOT NULL,
    -- handed_off
    handed_off_at       INTEGER,
    report_by           INTEGER,
    -- delivered, dead, cancelled
    ended_at            INTEGER,
    put_away_at         INTEGER,          -- delivered, cancelled or dismissed: what retention counts from
    receipt             TEXT,
    dead_reason         INTEGER,          -- 0 attempts_exhausted, 1 refused, 2 expired, 3 uncertain, 4 poison
    dismissed_at        INTEGER,
    cancelled_for       TEXT,
    -- what it is, and what has happened so far
    key                 TEXT,
    scheduled_for       INTEGER NOT NULL,
    created_at          INTEGER NOT NULL,
    expires_at          INTEGER,
    generation          INTEGER NOT NULL,
    attempts_before     INTEGER NOT NULL,
    max_attempts        INTEGER,
    unconfirmed         INTEGER NOT NULL,
    possible_duplicates INTEGER NOT NULL,
    settled_claim       INTEGER,
    last_error          TEXT,
    recipients          TEXT,
    is_dead_letter      INTEGER NOT NULL
) WITHOUT ROWID;

-- Each message is in exactly one of the next seven, so that a change of state costs one entry out and one in, and
-- counting reads nothing but entries (and the few rows that are claimed). Each depends only on columns that other
-- changes leave alone: a statement looks at every index that depends on a column it sets, whether or not the row
-- is in it.

-- claim, trusted messages
CREATE INDEX redeliver_ready ON redeliver_messages (route, lane, ready_at)
    WHERE ready_at IS NOT NULL;

-- claim, suspects
CREATE INDEX redeliver_suspects ON redeliver_messages (route, lane, suspect_at)
    WHERE suspect_at IS NOT NULL;

-- parked, release
CREATE INDEX redeliver_parked ON redeliver_messages (parked_for, due_at, route, lane)
    WHERE parked_for IS NOT NULL;

-- lapsed
CREATE INDEX redeliver_claimed ON redeliver_messages (instance, lease_until)
    WHERE lease_until IS NOT NULL;

-- overdue
CREATE INDEX redeliver_handed_off ON redeliver_messages (report_by, handed_off_at, route, lane)
    WHERE handed_off_at IS NOT NULL;

-- list of the dead
CREATE INDEX redeliver_dead ON redeliver_messages (route, id, lane, dead_reason, dismissed_at)
    WHERE dead_reason IS NOT NULL AND dismissed_at IS NULL;

-- prune
CREATE INDEX redeliver_put_away ON redeliver_messages (route, put_away_at, lane, dismissed_at, cancelled_for)
    WHERE put_away_at IS NOT NULL;

-- expired
CREATE INDEX redeliver_expiring ON redeliver_messages (expires_at)
    WHERE expires_at IS NOT NULL AND ended_at IS NULL;

-- What messages carry: large and rarely looked at.
CREATE TABLE redeliver_contents (
    id           BLOB NOT NULL PRIMARY KEY,
    target       TEXT,
    attributes   TEXT,
    headers      BLOB,
    content_type TEXT,
    bytes        BLOB NOT NULL
) WITHOUT ROWID;

-- What senders call their messages. Outlives them.
CREATE TABLE redeliver_keys (
    key             TEXT NOT NULL,
    workspace       TEXT NOT NULL,
    message_id      BLOB NOT NULL,
    hash            BLOB,
    -- what the message had come to when it was pruned
    ended_state     INTEGER,
    attempts_before INTEGER,
    attempts        INTEGER,
    generation      INTEGER,
    possible_duplicates INTEGER,
    fence           INTEGER,
    expires_at      INTEGER,
    PRIMARY KEY (key, workspace)
) WITHOUT ROWID;

CREATE INDEX redeliver_keys_expiring ON redeliver_keys (expires_at)
    WHERE expires_at IS NOT NULL;

-- Tries that did not simply succeed.
CREATE TABLE redeliver_attempts (
    message_id BLOB    NOT NULL,
    number     INTEGER NOT NULL,
    generation INTEGER NOT NULL,
    attempt    INTEGER NOT NULL,
    verdict    INTEGER NOT NULL, -- 0 failed, 1 refused, 2 partial, 3 lost, 4 late
    at         INTEGER NOT NULL,
    instance   INTEGER,
    failure    TEXT,
    PRIMARY KEY (message_id, number)
) WITHOUT ROWID;

-- Gates that aren't simply open.
CREATE TABLE redeliver_gates (
    key     TEXT    NOT NULL PRIMARY KEY,
    version INTEGER NOT NULL,
    since   INTEGER NOT NULL,
    reason  TEXT    NOT NULL,
    closed  TEXT    NOT NULL
) WITHOUT ROWID;

-- Engines that live, each until nothing was heard of it for too long.
CREATE TABLE redeliver_instances (
    id        INTEGER NOT NULL PRIMARY KEY,
    silent_at INTEGER NOT NULL
);

-- What people did.
CREATE TABLE redeliver_audit (
    number  INTEGER PRIMARY KEY AUTOINCREMENT,
    actor   TEXT    NOT NULL,
    action  TEXT    NOT NULL,
    subject TEXT    NOT NULL,
    at      INTEGER NOT NULL
);

-- Single facts: `last_time_ms`, the latest time that was seen.
CREATE TABLE redeliver_meta (
    name  TEXT NOT NULL PRIMARY KEY,
    value INTEGER NOT NULL
) WITHOUT ROWID;
