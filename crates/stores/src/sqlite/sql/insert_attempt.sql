INSERT INTO redeliver_attempts (
    message_id, number, generation, attempt, verdict, at, instance, failure, due_at, claimed_at, sent_at
)
VALUES (
    ?1,
    (SELECT coalesce(max(number), 0) + 1 FROM redeliver_attempts WHERE message_id = ?1),
    ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10
)
