-- A mail counts for a campaign of its own workspace only.
INSERT INTO redeliver_ends (campaign, dead, dismissed, cancelled)
SELECT id, ?3, ?4, ?5
FROM redeliver_campaigns
WHERE id = ?1 AND workspace = ?2
ON CONFLICT (campaign) DO UPDATE SET
    dead = dead + excluded.dead,
    dismissed = dismissed + excluded.dismissed,
    cancelled = cancelled + excluded.cancelled
