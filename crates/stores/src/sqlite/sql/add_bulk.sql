INSERT INTO redeliver_bulks (id, version, bulk)
VALUES (?1, 1, ?2)
ON CONFLICT DO NOTHING
