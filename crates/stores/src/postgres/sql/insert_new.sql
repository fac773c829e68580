-- `insert` for messages that wait for their first try, as nearly all do: only what they bring is written, the rest of
-- each row is as it must be. Nobody has said their ids before; if somebody has, the statement fails. Says whose keys
-- are theirs.
WITH given AS MATERIALIZED (
    SELECT *
    FROM unnest($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16) WITH ORDINALITY AS given (
        id, workspace, route, lane, due_at, key, scheduled_for, created_at, expires_at, max_attempts,
        target, attributes, headers, content_type, bytes, hash, place
    )
),
keyed AS (
    INSERT INTO redeliver.redeliver_keys (key, workspace, message_id, hash)
    SELECT key, workspace, id, hash
    FROM given
    WHERE key IS NOT NULL
    ORDER BY key, workspace, place
    ON CONFLICT (key, workspace) DO NOTHING
    RETURNING message_id
),
kept AS (
    INSERT INTO redeliver.redeliver_messages (
        id, workspace, route, lane, state, due_at, ready_at, fence, attempts, losses, cancel_requested, key,
        scheduled_for, created_at, expires_at, generation, attempts_before, max_attempts, unconfirmed,
        possible_duplicates, is_dead_letter
    )
    SELECT
        id, workspace, route, lane, 0, due_at, due_at, 0, 0, 0, false, key,
        scheduled_for, created_at, expires_at, 0, 0, max_attempts, 0,
        0, false
    FROM given
    WHERE key IS NULL OR id IN (SELECT message_id FROM keyed)
),
contents AS (
    INSERT INTO redeliver.redeliver_contents (
        id, target, attributes, headers, content_type, bytes, workspace, route, lane
    )
    SELECT id, target, attributes, headers, content_type, bytes, workspace, route, lane
    FROM given
    WHERE key IS NULL OR id IN (SELECT message_id FROM keyed)
),
tallied AS (
    INSERT INTO redeliver.redeliver_tallies (route, lane, state, is_parked, delta)
    SELECT route, lane, 0, false, count(*)
    FROM given
    WHERE key IS NULL OR id IN (SELECT message_id FROM keyed)
    GROUP BY route, lane
)
SELECT message_id FROM keyed
