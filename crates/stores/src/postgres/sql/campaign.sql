SELECT
    c.id, c.workspace, c.definition, c.state, c.ledger, c.prospects, c.scheduled, c.last_at, c.created_at,
    greatest(coalesce(e.dead, 0), 0), greatest(coalesce(e.dismissed, 0), 0), greatest(coalesce(e.cancelled, 0), 0), c.paused_for
FROM redeliver.redeliver_campaigns AS c
LEFT JOIN redeliver.redeliver_ends AS e ON e.campaign = c.id
WHERE c.id = $1
