-- A mail counts for a campaign of its own workspace only. Rows are taken in the order of their keys, so that those who
-- count at once wait for each other and never in a circle.
INSERT INTO redeliver.redeliver_ends AS e (campaign, dead, dismissed, cancelled)
SELECT c.id, said.dead, said.dismissed, said.cancelled
FROM unnest($1, $2, $3, $4, $5) AS said (campaign, workspace, dead, dismissed, cancelled)
JOIN redeliver.redeliver_campaigns AS c ON c.id = said.campaign AND c.workspace = said.workspace
ORDER BY c.id
ON CONFLICT (campaign) DO UPDATE SET
    dead = e.dead + excluded.dead,
    dismissed = e.dismissed + excluded.dismissed,
    cancelled = e.cancelled + excluded.cancelled
