-- Messages are numbered as they come, and their contents have the same numbers: what is new is written at the end of both tables,
-- most indexes have a small number for each message instead of its id, and a content needs no index at all.

CREATE TABLE redeliver_numbered_messages (
    id                  BLOB    NOT NULL UNIQUE,
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
    is_dead_letter      INTEGER NOT NULL,
    number              INTEGER PRIMARY KEY
);

INSERT INTO redeliver_numbered_messages (
    id, workspace, route, lane, state, due_at, ready_at, suspect_at, fence, attempts, losses, parked_for,
    instance, claim, lease_until, started_at, cancel_requested, handed_off_at, report_by, ended_at,
    put_away_at, receipt, dead_reason, dismissed_at, cancelled_for, key, scheduled_for, created_at,
    expires_at, generation, attempts_before, max_attempts, unconfirmed, possible_duplicates, settled_claim,
    last_error, recipients, is_dead_letter
)
SELECT
    id, workspace, route, lane, state, due_at, ready_at, suspect_at, fence, attempts, losses, parked_for,
    instance, claim, lease_until, started_at, cancel_requested, handed_off_at, report_by, ended_at,
    put_away_at, receipt, dead_reason, dismissed_at, cancelled_for, key, scheduled_for, created_at,
    expires_at, generation, attempts_before, max_attempts, unconfirmed, possible_duplicates, settled_claim,
    last_error, recipients, is_dead_letter
FROM redeliver_messages
ORDER BY id;

CREATE TABLE redeliver_numbered_contents (
    number       INTEGER PRIMARY KEY,
    target       TEXT,
    attributes   TEXT,
    headers      BLOB,
    content_type TEXT,
    bytes        BLOB NOT NULL
);

-- A content without a message, which nobody could ask for, stays behind.
INSERT INTO redeliver_numbered_contents (number, target, attributes, headers, content_type, bytes)
SELECT m.number, c.target, c.attributes, c.headers, c.content_type, c.bytes
FROM redeliver_numbered_messages AS m
CROSS JOIN redeliver_contents AS c ON c.id = m.id
ORDER BY m.number;

DROP TABLE redeliver_messages;
ALTER TABLE redeliver_numbered_messages RENAME TO redeliver_messages;
DROP TABLE redeliver_contents;
ALTER TABLE redeliver_numbered_contents RENAME TO redeliver_contents;

-- Each message is in exactly one of the next seven, so that a change of state costs one entry out and one in, and
-- counting reads nothing but entries (and the few rows that are claimed). Each depends only on columns that other
-- changes leave alone: a statement looks at every index that depends on a column it sets, whether or not the row
-- is in it.

-- claim, trusted messages
CREATE INDEX redeliver_ready ON redeliver_messages (route, lane, ready_at, id)
    WHERE ready_at IS NOT NULL;

-- claim, suspects
CREATE INDEX redeliver_suspects ON redeliver_messages (route, lane, suspect_at, id)
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
