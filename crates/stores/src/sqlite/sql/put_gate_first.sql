INSERT INTO redeliver_gates (key, version, since, reason, closed)
VALUES (?1, max(?2, 1), ?2, ?3, ?4)
ON CONFLICT (key) DO NOTHING
