COPY redeliver.redeliver_messages (
    id, workspace, route, lane, state, due_at, ready_at, fence, attempts, losses, cancel_requested, scheduled_for,
    created_at, generation, attempts_before, unconfirmed, possible_duplicates, is_dead_letter, key
) FROM STDIN (FORMAT binary)
