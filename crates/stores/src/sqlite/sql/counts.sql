-- Each message is in exactly one of these indexes.
SELECT route, lane, state, dead_reason, sum(total), sum(due), sum(parked)
FROM (
    SELECT route, lane, 0 AS state, NULL AS dead_reason,
        count(*) AS total, sum(ready_at <= ?1) AS due, 0 AS parked
    FROM redeliver_messages INDEXED BY redeliver_ready
    WHERE ready_at IS NOT NULL
    GROUP BY route, lane
    UNION ALL
    SELECT route, lane, 0, NULL, count(*), sum(suspect_at <= ?1), 0
    FROM redeliver_messages INDEXED BY redeliver_suspects
    WHERE suspect_at IS NOT NULL
    GROUP BY route, lane
    UNION ALL
    SELECT route, lane, 0, NULL, count(*), 0, count(*)
    FROM redeliver_messages INDEXED BY redeliver_parked
    WHERE parked_for IS NOT NULL
    GROUP BY route, lane
    UNION ALL
    SELECT route, lane, 1, NULL, count(*), 0, 0
    FROM redeliver_messages INDEXED BY redeliver_claimed
    WHERE lease_until IS NOT NULL
    GROUP BY route, lane
    UNION ALL
    SELECT route, lane, 2, NULL, count(*), 0, 0
    FROM redeliver_messages INDEXED BY redeliver_handed_off
    WHERE handed_off_at IS NOT NULL
    GROUP BY route, lane
    UNION ALL
    SELECT route, lane, 4, dead_reason, count(*), 0, 0
    FROM redeliver_messages INDEXED BY redeliver_dead
    WHERE dead_reason IS NOT NULL AND dismissed_at IS NULL
    GROUP BY route, lane, dead_reason
    UNION ALL
    SELECT route, lane, iif(cancelled_for IS NULL, 3, 5), NULL, count(*), 0, 0
    FROM redeliver_messages INDEXED BY redeliver_put_away
    WHERE put_away_at IS NOT NULL AND dismissed_at IS NULL
    GROUP BY route, lane, cancelled_for IS NULL
)
GROUP BY route, lane, state, dead_reason
ORDER BY route, lane, state, dead_reason
