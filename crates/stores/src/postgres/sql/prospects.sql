SELECT position, prospect, stopped_for, paused_at
FROM redeliver.redeliver_prospects
WHERE campaign = $1 AND position > $2
ORDER BY position
LIMIT $3
