-- How much of a day belongs to messages that are still there, as far as that matters.
SELECT count(*)
FROM (
    SELECT 1
    FROM redeliver.redeliver_attempts_{day} AS a
    WHERE EXISTS (SELECT 1 FROM redeliver.redeliver_messages AS m WHERE m.id = a.message_id)
    LIMIT $1
) AS wanted
