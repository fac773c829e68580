-- One row after the other, as far as its key lets it in: a key that is known keeps its message out, one that is said
-- twice here keeps the second one out. Keys are written in their order, so that two who say the same ones wait for each
-- other instead of for ever. A message that comes back has had its key seen to before.
WITH given AS MATERIALIZED (
    SELECT *
    FROM unnest(
        $1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20, $21, $22,
        $23, $24, $25, $26, $27, $28, $29, $30, $31, $32, $33, $34, $35, $36, $37, $38, $39, $40, $41, $42,
        $43, $44, $45, $46
    ) WITH ORDINALITY AS given (
        id, workspace, route, lane, state, due_at, ready_at, suspect_at, fence, attempts, losses, parked_for,
        instance, claim, lease_until, started_at, cancel_requested, handed_off_at, report_by, ended_at,
        put_away_at, receipt, dead_reason, dismissed_at, cancelled_for, key, scheduled_for, created_at,
        expires_at, generation, attempts_before, max_attempts, unconfirmed, possible_duplicates, settled_claim,
        last_error, recipients, is_dead_letter, first_sent_at, target, attributes, headers, content_type, bytes,
        hash, revives, place
    )
),
keyed AS (
    INSERT INTO redeliver.redeliver_keys (key, workspace, message_id, hash)
    SELECT key, workspace, id, hash
    FROM given
    WHERE key IS NOT NULL AND NOT revives
    ORDER BY key, workspace, place
    ON CONFLICT (key, workspace) DO NOTHING
    RETURNING message_id
),
kept AS (
    INSERT INTO redeliver.redeliver_messages
    SELECT
        id, workspace, route, lane, state, due_at, ready_at, suspect_at, fence, attempts, losses, parked_for,
        instance, claim, lease_until, started_at, cancel_requested, handed_off_at, report_by, ended_at,
        put_away_at, receipt, dead_reason, dismissed_at, cancelled_for, key, scheduled_for, created_at,
        expires_at, generation, attempts_before, max_attempts, unconfirmed, possible_duplicates, settled_claim,
        last_error, recipients, is_dead_letter, first_sent_at
    FROM given
    WHERE key IS NULL OR revives OR id IN (SELECT message_id FROM keyed)
    ORDER BY place
    ON CONFLICT (id) DO NOTHING
    RETURNING id, route, lane, state, dead_reason, parked_for, dismissed_at
),
contents AS (
    INSERT INTO redeliver.redeliver_contents (
        id, target, attributes, headers, content_type, bytes, workspace, route, lane
    )
    SELECT id, target, attributes, headers, content_type, bytes, workspace, route, lane
    FROM given
    WHERE (id IN (SELECT id FROM kept)) IS TRUE
    ORDER BY place
    ON CONFLICT (id) DO NOTHING
),
tallied AS (
    INSERT INTO redeliver.redeliver_tallies (route, lane, state, dead_reason, is_parked, delta)
    SELECT route, lane, state, dead_reason, parked_for IS NOT NULL, count(*)
    FROM kept
    WHERE dismissed_at IS NULL
    GROUP BY route, lane, state, dead_reason, parked_for IS NOT NULL
)
SELECT id FROM kept
