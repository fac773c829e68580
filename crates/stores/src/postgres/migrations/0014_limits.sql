-- The slots of each destination that are taken, for all engines together.
CREATE TABLE redeliver.redeliver_limits (
    destination text   NOT NULL COLLATE "C" PRIMARY KEY,
    free_at_us  bigint NOT NULL, -- where the first free slot begins, in microseconds
    gap_us      bigint NOT NULL  -- the length of the last slot before that
) WITH (
    fillfactor = 50
);

-- How many sends to a destination each engine may have under way.
CREATE TABLE redeliver.redeliver_limit_shares (
    destination text   NOT NULL COLLATE "C",
    instance    bigint NOT NULL,
    held        bigint NOT NULL,
    turn        bigint NOT NULL, -- the engine's last call: an earlier one that arrives late changes nothing
    until_at    bigint NOT NULL, -- until when it counts although nothing was heard of the engine
    PRIMARY KEY (destination, instance)
) WITH (
    fillfactor = 50
);
