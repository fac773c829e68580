-- Everything is in a schema of its own, because an application may keep its tables in the same database. Texts are
-- compared byte by byte, whatever the database's own collation is or becomes.

-- Where messages stand. Narrow, because every claim and every result writes it, with room in each page for the next
-- version of a row. No index here covers every row but the key: each change of state would write it again.
CREATE TABLE redeliver.redeliver_messages (
    id                  uuid     NOT NULL PRIMARY KEY,
    workspace           text     NOT NULL COLLATE "C",
    route               text     NOT NULL COLLATE "C",
    lane                smallint NOT NULL,
    state               smallint NOT NULL, -- 0 waiting, 1 claimed, 2 handed_off, 3 delivered, 4 dead, 5 cancelled
    due_at              bigint   NOT NULL,
    ready_at            bigint,            -- due_at while it can be claimed with others
    suspect_at          bigint,            -- due_at while it can be claimed alone
    fence               bigint   NOT NULL,
    attempts            integer  NOT NULL,
    losses              integer  NOT NULL,
    -- waiting
    parked_for          text     COLLATE "C",
    -- claimed
    instance            bigint,
    claim               bigint,
    lease_until         bigint,
    started_at          bigint,
    cancel_requested    boolean  NOT NULL,
    -- handed_off
    handed_off_at       bigint,
    report_by           bigint,
    -- delivered, dead, cancelled
    ended_at            bigint,
    put_away_at         bigint,            -- delivered, cancelled or dismissed: what retention counts from
    receipt             text     COLLATE "C",
    dead_reason         smallint,          -- 0 attempts_exhausted, 1 refused, 2 expired, 3 uncertain, 4 poison
    dismissed_at        bigint,
    cancelled_for       text     COLLATE "C",
    -- what it is, and what has happened so far
    key                 text     COLLATE "C",
    scheduled_for       bigint   NOT NULL,
    created_at          bigint   NOT NULL,
    expires_at          bigint,
    generation          integer  NOT NULL,
    attempts_before     integer  NOT NULL,
    max_attempts        integer,
    unconfirmed         integer  NOT NULL,
    possible_duplicates integer  NOT NULL,
    settled_claim       bigint,
    last_error          text     COLLATE "C",
    recipients          text     COLLATE "C",
    is_dead_letter      boolean  NOT NULL
) WITH (
    fillfactor = 75,
    autovacuum_vacuum_scale_factor = 0.02,
    autovacuum_vacuum_insert_scale_factor = 0.05,
    autovacuum_analyze_scale_factor = 0.02,
    autovacuum_vacuum_cost_delay = 0
);

-- Each message is in exactly one of the next seven, by which work is found.

-- claim, trusted messages; a list of the due, which wants their ids and of which workspace they are
CREATE INDEX redeliver_ready ON redeliver.redeliver_messages (route, lane, ready_at) INCLUDE (id, workspace)
    WHERE ready_at IS NOT NULL;

-- claim, suspects
CREATE INDEX redeliver_suspects ON redeliver.redeliver_messages (route, lane, suspect_at)
    WHERE suspect_at IS NOT NULL;

-- parked, release
CREATE INDEX redeliver_parked ON redeliver.redeliver_messages (parked_for, due_at)
    WHERE parked_for IS NOT NULL;

-- lapsed
CREATE INDEX redeliver_claimed ON redeliver.redeliver_messages (instance, lease_until)
    WHERE lease_until IS NOT NULL;

-- overdue
CREATE INDEX redeliver_handed_off ON redeliver.redeliver_messages (report_by)
    WHERE handed_off_at IS NOT NULL;

-- list of the dead
CREATE INDEX redeliver_dead ON redeliver.redeliver_messages (id)
    WHERE dead_reason IS NOT NULL AND dismissed_at IS NULL;

-- prune
CREATE INDEX redeliver_put_away ON redeliver.redeliver_messages (route, put_away_at)
    WHERE put_away_at IS NOT NULL;

-- expired
CREATE INDEX redeliver_expiring ON redeliver.redeliver_messages (expires_at)
    WHERE expires_at IS NOT NULL AND ended_at IS NULL;

-- Each message is in at most one of the next seven or among the dead, by which people find it, the newest first. Those
-- that are claimed are few.

-- list of the scheduled
CREATE INDEX redeliver_untried ON redeliver.redeliver_messages (id)
    WHERE state = 0 AND parked_for IS NULL AND attempts = 0;

-- list of the retrying
CREATE INDEX redeliver_retried ON redeliver.redeliver_messages (id)
    WHERE state = 0 AND parked_for IS NULL AND attempts <> 0;

-- list of the held
CREATE INDEX redeliver_held ON redeliver.redeliver_messages (id)
    WHERE parked_for IS NOT NULL;

-- list of those handed off
CREATE INDEX redeliver_awaited ON redeliver.redeliver_messages (id)
    WHERE handed_off_at IS NOT NULL;

-- list of the delivered
CREATE INDEX redeliver_delivered ON redeliver.redeliver_messages (id)
    WHERE state = 3;

-- list of the cancelled
CREATE INDEX redeliver_cancelled ON redeliver.redeliver_messages (id)
    WHERE state = 5;

-- list of the dismissed
CREATE INDEX redeliver_dismissed ON redeliver.redeliver_messages (id)
    WHERE dismissed_at IS NOT NULL;

-- What messages carry: large, written once and rarely looked at. It also has the names that lists are asked by, with
-- their indexes, which are then written once as well.
CREATE TABLE redeliver.redeliver_contents (
    id           uuid  NOT NULL PRIMARY KEY,
    target       text  COLLATE "C",
    attributes   text  COLLATE "C",
    headers      bytea,
    content_type text  COLLATE "C",
    bytes        bytea NOT NULL,
    workspace    text  NOT NULL COLLATE "C",
    route        text  NOT NULL COLLATE "C",
    lane         smallint NOT NULL
) WITH (
    autovacuum_vacuum_insert_scale_factor = 0.05
);

-- list of a workspace
CREATE INDEX redeliver_contents_workspace ON redeliver.redeliver_contents (workspace, id);

-- list of a route
CREATE INDEX redeliver_contents_route ON redeliver.redeliver_contents (route, id);

-- list of a lane
CREATE INDEX redeliver_contents_lane ON redeliver.redeliver_contents (lane, id);

-- What senders call their messages. Outlives them.
CREATE TABLE redeliver.redeliver_keys (
    key             text  NOT NULL COLLATE "C",
    workspace       text  NOT NULL COLLATE "C",
    message_id      uuid  NOT NULL,
    hash            bytea,
    -- what the message had come to when it was pruned
    ended_state     smallint,
    attempts_before integer,
    attempts        integer,
    generation      integer,
    possible_duplicates integer,
    fence           bigint,
    expires_at      bigint,
    PRIMARY KEY (key, workspace)
);

CREATE INDEX redeliver_keys_expiring ON redeliver.redeliver_keys (expires_at)
    WHERE expires_at IS NOT NULL;

-- Tries that did not simply succeed, a table for each day: a day goes as a whole when nothing of it is asked for any
-- more. Rows of days that have no table are among the others.
CREATE SEQUENCE redeliver.redeliver_attempts_number;

CREATE TABLE redeliver.redeliver_attempts (
    message_id uuid     NOT NULL,
    number     bigint   NOT NULL DEFAULT nextval('redeliver.redeliver_attempts_number'),
    generation integer  NOT NULL,
    attempt    integer  NOT NULL,
    verdict    smallint NOT NULL, -- 0 failed, 1 refused, 2 partial, 3 lost, 4 late
    at         bigint   NOT NULL,
    instance   bigint,
    failure    text     COLLATE "C"
) PARTITION BY RANGE (at);

CREATE INDEX redeliver_attempts_message ON redeliver.redeliver_attempts (message_id, number);

CREATE TABLE redeliver.redeliver_attempts_others PARTITION OF redeliver.redeliver_attempts DEFAULT;

CREATE INDEX redeliver_attempts_others_at ON redeliver.redeliver_attempts_others (at);

-- How many messages stand where, as additions and subtractions: a transaction adds its own and waits for nobody. The
-- sum is what counts; folding makes few rows of many.
CREATE TABLE redeliver.redeliver_tallies (
    route       text     NOT NULL COLLATE "C",
    lane        smallint NOT NULL,
    state       smallint NOT NULL,
    dead_reason smallint,
    is_parked   boolean  NOT NULL,
    delta       bigint   NOT NULL
) WITH (
    autovacuum_vacuum_scale_factor = 0,
    autovacuum_vacuum_threshold = 2000,
    autovacuum_vacuum_cost_delay = 0
);

-- Gates that aren't simply open.
CREATE TABLE redeliver.redeliver_gates (
    key     text   NOT NULL COLLATE "C" PRIMARY KEY,
    version bigint NOT NULL,
    since   bigint NOT NULL,
    reason  text   NOT NULL COLLATE "C",
    closed  text   NOT NULL COLLATE "C"
);

-- Engines that live, each until nothing was heard of it for too long.
CREATE TABLE redeliver.redeliver_instances (
    id        bigint NOT NULL PRIMARY KEY,
    silent_at bigint NOT NULL
);

-- What people did.
CREATE TABLE redeliver.redeliver_audit (
    number  bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    actor   text   NOT NULL COLLATE "C",
    action  text   NOT NULL COLLATE "C",
    subject text   NOT NULL COLLATE "C",
    at      bigint NOT NULL
);
