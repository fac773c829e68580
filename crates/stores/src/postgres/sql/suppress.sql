INSERT INTO redeliver.redeliver_suppressions (workspace, address, reason, since)
SELECT $1, given.address, given.reason, $4
FROM (SELECT DISTINCT ON (address) address, reason FROM unnest($2, $3) AS said (address, reason) ORDER BY address) AS given
ORDER BY given.address
ON CONFLICT (workspace, address) DO NOTHING
