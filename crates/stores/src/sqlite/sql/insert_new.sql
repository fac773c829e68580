-- `insert_message` for messages that wait and to which nothing has happened here, as nearly all do: only what they bring is
-- bound, the rest of each row is as it must be.
INSERT INTO redeliver_messages (
    id, workspace, route, lane, state, due_at, ready_at, fence, attempts, losses, cancel_requested, key,
    scheduled_for, created_at, expires_at, generation, attempts_before, max_attempts, unconfirmed,
    possible_duplicates, last_error, is_dead_letter
)
VALUES (
    ?1, ?2, ?3, ?4, 0, ?5, ?5, 0, ?6, 0, 0, ?7,
    ?8, ?9, ?10, 0, ?11, ?12, 0,
    0, ?13, 0
)
ON CONFLICT (id) DO NOTHING
