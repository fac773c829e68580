-- When each workspace lets mails out, and how often something was planned in it.
CREATE TABLE redeliver_workspaces (
    workspace        TEXT    NOT NULL PRIMARY KEY,
    settings         TEXT    NOT NULL,
    settings_version INTEGER NOT NULL,
    plan_version     INTEGER NOT NULL
) WITHOUT ROWID;

-- What a campaign is, and what of it has been planned.
CREATE TABLE redeliver_campaigns (
    id         TEXT    NOT NULL PRIMARY KEY,
    workspace  TEXT    NOT NULL,
    definition TEXT    NOT NULL,
    state      TEXT    NOT NULL,
    ledger     TEXT    NOT NULL,
    prospects  INTEGER NOT NULL,
    scheduled  INTEGER NOT NULL,
    last_at    INTEGER,
    created_at INTEGER NOT NULL
) WITHOUT ROWID;

CREATE INDEX redeliver_campaigns_of ON redeliver_campaigns (workspace, id);

-- Whom a campaign writes to, in the order of their enrolment.
CREATE TABLE redeliver_prospects (
    campaign    TEXT    NOT NULL,
    position    INTEGER NOT NULL,
    id          TEXT    NOT NULL,
    prospect    TEXT    NOT NULL,
    stopped_for TEXT,
    PRIMARY KEY (campaign, position)
) WITHOUT ROWID;

CREATE UNIQUE INDEX redeliver_prospects_by_id ON redeliver_prospects (campaign, id);

-- How many mails went out, or may have: a row for each day or hour.
CREATE TABLE redeliver_quotas (
    workspace TEXT    NOT NULL,
    whose     INTEGER NOT NULL, -- 0 workspace, 1 campaign, 2 sender
    name      TEXT    NOT NULL,
    period    INTEGER NOT NULL, -- 0 day, 1 hour
    number    INTEGER NOT NULL,
    used      INTEGER NOT NULL,
    PRIMARY KEY (workspace, whose, name, period, number)
) WITHOUT ROWID;

CREATE INDEX redeliver_quotas_on ON redeliver_quotas (workspace, period, number);

-- When each sender may send again.
CREATE TABLE redeliver_senders (
    workspace TEXT    NOT NULL,
    sender    TEXT    NOT NULL,
    free_at   INTEGER NOT NULL,
    PRIMARY KEY (workspace, sender)
) WITHOUT ROWID;
