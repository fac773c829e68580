-- How the tables are, as PostgreSQL counts them.
SELECT c.relname::text,
    coalesce(s.n_live_tup, 0),
    coalesce(s.n_dead_tup, 0),
    coalesce(s.seq_scan, 0),
    coalesce(s.idx_scan, 0),
    pg_total_relation_size(c.oid)
FROM pg_class AS c
JOIN pg_namespace AS n ON n.oid = c.relnamespace
LEFT JOIN pg_stat_all_tables AS s ON s.relid = c.oid
WHERE n.nspname = 'redeliver' AND c.relkind = 'r'
ORDER BY c.relname
