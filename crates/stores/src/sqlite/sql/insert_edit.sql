INSERT INTO redeliver_edits (message_id, number, actor, at, generation, differences)
VALUES (
    ?1,
    (SELECT coalesce(max(number), 0) + 1 FROM redeliver_edits WHERE message_id = ?1),
    ?2, ?3, ?4, ?5
)
