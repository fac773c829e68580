INSERT INTO redeliver_prospects (campaign, position, id, prospect)
VALUES (?1, ?2, ?3, ?4)
ON CONFLICT (campaign, id) DO NOTHING
