UPDATE redeliver.redeliver_campaigns
SET interruptions = interruptions + CASE WHEN planner <> $2 THEN 1 ELSE 0 END, planner = $2, planning_until_at = $4
WHERE id = $1 AND (planner IS NULL OR planner = $2 OR planning_until_at <= $3)
RETURNING interruptions
