INSERT INTO redeliver_messages (
    id, workspace, route, lane, state, due_at, ready_at, suspect_at, fence, attempts, losses, parked_for,
    instance, claim, lease_until, started_at, cancel_requested, handed_off_at, report_by, ended_at,
    put_away_at, receipt, dead_reason, dismissed_at, cancelled_for, key, scheduled_for, created_at,
    expires_at, generation, attempts_before, max_attempts, unconfirmed, possible_duplicates, settled_claim,
    last_error, recipients, is_dead_letter, first_sent_at
)
VALUES (
    ?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, ?19,
    ?20, ?21, ?22, ?23, ?24, ?25, ?26, ?27, ?28, ?29, ?30, ?31, ?32, ?33, ?34, ?35, ?36, ?37, ?38, ?39
)
ON CONFLICT (id) DO NOTHING
