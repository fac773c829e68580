SELECT
    c.id, c.workspace, c.definition, c.state, c.ledger, c.prospects, c.scheduled, c.last_at, c.created_at,
    max(coalesce(e.dead, 0), 0), max(coalesce(e.dismissed, 0), 0), max(coalesce(e.cancelled, 0), 0), c.paused_for
FROM redeliver_campaigns AS c
LEFT JOIN redeliver_ends AS e ON e.campaign = c.id
WHERE c.id = ?1
