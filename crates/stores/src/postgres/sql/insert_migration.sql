INSERT INTO redeliver.redeliver_migrations (number, name, checksum)
VALUES ($1, $2, $3)
