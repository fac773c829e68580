UPDATE redeliver_campaigns
SET state = ?3, paused_for = ?4, planner = NULL, planning_until_at = NULL, interruptions = 0
WHERE id = ?1 AND state = ?2
