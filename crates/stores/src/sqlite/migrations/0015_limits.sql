-- The slots of each destination that are taken, for all engines together.
CREATE TABLE redeliver_limits (
    destination TEXT    NOT NULL PRIMARY KEY,
    free_at_us  INTEGER NOT NULL, -- where the first free slot begins, in microseconds
    gap_us      INTEGER NOT NULL  -- the length of the last slot before that
) WITHOUT ROWID;

-- How many sends to a destination each engine may have under way.
CREATE TABLE redeliver_limit_shares (
    destination TEXT    NOT NULL,
    instance    INTEGER NOT NULL,
    held        INTEGER NOT NULL,
    turn        INTEGER NOT NULL, -- the engine's last call: an earlier one that arrives late changes nothing
    until_at    INTEGER NOT NULL, -- until when it counts although nothing was heard of the engine
    PRIMARY KEY (destination, instance)
) WITHOUT ROWID;
