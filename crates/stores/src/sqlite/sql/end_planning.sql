UPDATE redeliver_campaigns
SET planner = NULL, planning_until_at = NULL, interruptions = 0
WHERE id = ?1 AND planner = ?2
