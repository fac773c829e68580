-- Writes each message that still has its fence. Rows are found by their ids in an array, and never by where they
-- stand: no planner can turn that into a scan of the table or of a partial index. `IS TRUE` keeps what is looked up from
-- becoming a join, which would be planned for one row and compare each with each.
WITH given AS MATERIALIZED (
    SELECT *
    FROM unnest(
        $1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20, $21, $22,
        $23, $24, $25, $26, $27, $28, $29, $30, $31, $32, $33, $34, $35, $36, $37, $38, $39, $40
    ) AS given (
        id, workspace, route, lane, state, due_at, ready_at, suspect_at, fence, attempts, losses, parked_for,
        instance, claim, lease_until, started_at, cancel_requested, handed_off_at, report_by, ended_at,
        put_away_at, receipt, dead_reason, dismissed_at, cancelled_for, key, scheduled_for, created_at,
        expires_at, generation, attempts_before, max_attempts, unconfirmed, possible_duplicates, settled_claim,
        last_error, recipients, is_dead_letter, first_sent_at, expected_fence
    )
),
held AS MATERIALIZED (
    SELECT id, route, lane, state, dead_reason, parked_for, dismissed_at
    FROM redeliver.redeliver_messages
    WHERE id = ANY (ARRAY (SELECT id FROM given))
),
written AS (
    UPDATE redeliver.redeliver_messages AS m SET
        workspace = given.workspace,
        route = given.route,
        lane = given.lane,
        state = given.state,
        due_at = given.due_at,
        ready_at = given.ready_at,
        suspect_at = given.suspect_at,
        fence = given.fence,
        attempts = given.attempts,
        losses = given.losses,
        parked_for = given.parked_for,
        instance = given.instance,
        claim = given.claim,
        lease_until = given.lease_until,
        started_at = given.started_at,
        cancel_requested = given.cancel_requested,
        handed_off_at = given.handed_off_at,
        report_by = given.report_by,
        ended_at = given.ended_at,
        put_away_at = given.put_away_at,
        receipt = given.receipt,
        dead_reason = given.dead_reason,
        dismissed_at = given.dismissed_at,
        cancelled_for = given.cancelled_for,
        key = given.key,
        scheduled_for = given.scheduled_for,
        created_at = given.created_at,
        expires_at = given.expires_at,
        generation = given.generation,
        attempts_before = given.attempts_before,
        max_attempts = given.max_attempts,
        unconfirmed = given.unconfirmed,
        possible_duplicates = given.possible_duplicates,
        settled_claim = given.settled_claim,
        last_error = given.last_error,
        recipients = given.recipients,
        is_dead_letter = given.is_dead_letter,
        first_sent_at = given.first_sent_at
    FROM given
    WHERE m.id = ANY (ARRAY (SELECT id FROM given))
        AND m.id = given.id
        AND m.fence = given.expected_fence
    RETURNING m.id, m.route, m.lane, m.state, m.dead_reason, m.parked_for, m.dismissed_at
),
moved AS (
    SELECT held.*, -1 AS delta
    FROM held
    WHERE (id IN (SELECT id FROM written)) IS TRUE
    UNION ALL
    SELECT written.*, 1
    FROM written
),
tallied AS (
    INSERT INTO redeliver.redeliver_tallies (route, lane, state, dead_reason, is_parked, delta)
    SELECT route, lane, state, dead_reason, parked_for IS NOT NULL, sum(delta)
    FROM moved
    WHERE dismissed_at IS NULL
    GROUP BY route, lane, state, dead_reason, parked_for IS NOT NULL
    HAVING sum(delta) <> 0
)
SELECT id FROM written
