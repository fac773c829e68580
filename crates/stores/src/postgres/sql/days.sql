SELECT child.relname::text
FROM pg_catalog.pg_inherits AS i
JOIN pg_catalog.pg_class AS child ON child.oid = i.inhrelid
WHERE i.inhparent = 'redeliver.redeliver_attempts'::regclass
