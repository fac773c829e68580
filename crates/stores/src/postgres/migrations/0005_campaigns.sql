-- When each workspace lets mails out, and how often something was planned in it.
CREATE TABLE redeliver.redeliver_workspaces (
    workspace        text   NOT NULL COLLATE "C" PRIMARY KEY,
    settings         text   NOT NULL COLLATE "C",
    settings_version bigint NOT NULL,
    plan_version     bigint NOT NULL
);

-- What a campaign is, and what of it has been planned.
CREATE TABLE redeliver.redeliver_campaigns (
    id         text   NOT NULL COLLATE "C" PRIMARY KEY,
    workspace  text   NOT NULL COLLATE "C",
    definition text   NOT NULL COLLATE "C",
    state      text   NOT NULL COLLATE "C",
    ledger     text   NOT NULL COLLATE "C",
    prospects  bigint NOT NULL,
    scheduled  bigint NOT NULL,
    last_at    bigint,
    created_at bigint NOT NULL
);

CREATE INDEX redeliver_campaigns_of ON redeliver.redeliver_campaigns (workspace, id);

-- Whom a campaign writes to, in the order of their enrolment.
CREATE TABLE redeliver.redeliver_prospects (
    campaign    text   NOT NULL COLLATE "C",
    position    bigint NOT NULL,
    id          text   NOT NULL COLLATE "C",
    prospect    text   NOT NULL COLLATE "C",
    stopped_for text   COLLATE "C",
    PRIMARY KEY (campaign, position)
);

CREATE UNIQUE INDEX redeliver_prospects_by_id ON redeliver.redeliver_prospects (campaign, id);

-- How many mails went out, or may have: a row for each day or hour.
CREATE TABLE redeliver.redeliver_quotas (
    workspace text     NOT NULL COLLATE "C",
    whose     smallint NOT NULL, -- 0 workspace, 1 campaign, 2 sender
    name      text     NOT NULL COLLATE "C",
    period    smallint NOT NULL, -- 0 day, 1 hour
    number    bigint   NOT NULL,
    used      bigint   NOT NULL,
    PRIMARY KEY (workspace, whose, name, period, number)
);

CREATE INDEX redeliver_quotas_on ON redeliver.redeliver_quotas (workspace, period, number);

-- When each sender may send again.
CREATE TABLE redeliver.redeliver_senders (
    workspace text   NOT NULL COLLATE "C",
    sender    text   NOT NULL COLLATE "C",
    free_at   bigint NOT NULL,
    PRIMARY KEY (workspace, sender)
);
