SELECT p.position, p.prospect, p.stopped_for, p.paused_at, c.state, w.settings_version, c.workspace
FROM redeliver_prospects AS p
JOIN redeliver_campaigns AS c ON c.id = p.campaign
LEFT JOIN redeliver_workspaces AS w ON w.workspace = c.workspace
WHERE p.campaign = ?1 AND p.id = ?2
