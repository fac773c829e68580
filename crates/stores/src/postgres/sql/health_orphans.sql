-- Rows that miss each other, up to $1 of each kind.
SELECT
    (
        SELECT count(*)
        FROM (
            SELECT 1
            FROM redeliver.redeliver_contents AS c
            WHERE NOT EXISTS (SELECT 1 FROM redeliver.redeliver_messages AS m WHERE m.id = c.id)
            LIMIT $1
        ) AS first
    ),
    (
        SELECT count(*)
        FROM (
            SELECT 1
            FROM redeliver.redeliver_keys AS k
            WHERE k.ended_state IS NULL
                AND NOT EXISTS (SELECT 1 FROM redeliver.redeliver_messages AS m WHERE m.id = k.message_id)
            LIMIT $1
        ) AS first
    ),
    (
        SELECT count(*)
        FROM (
            SELECT 1
            FROM redeliver.redeliver_messages AS m
            WHERE NOT EXISTS (SELECT 1 FROM redeliver.redeliver_contents AS c WHERE c.id = m.id)
            LIMIT $1
        ) AS first
    )
