SELECT position, prospect, stopped_for
FROM redeliver.redeliver_prospects
WHERE campaign = $1 AND position > $2
ORDER BY position
LIMIT $3
