SELECT number, name, checksum
FROM redeliver.redeliver_migrations
ORDER BY number
