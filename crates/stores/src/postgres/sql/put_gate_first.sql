INSERT INTO redeliver.redeliver_gates (key, version, since, reason, closed)
VALUES ($1, greatest($2, 1), $2, $3, $4)
ON CONFLICT (key) DO NOTHING
