SELECT number, name, checksum
FROM redeliver_migrations
ORDER BY number
