-- Whoever looks at the past, the furthest back first: no row that died since can be cleared away.
SELECT who, since_s, transactions
FROM (
    SELECT format('process %s of user %s (%s, %s)', pid, usename, application_name, state) AS who,
        extract(epoch FROM clock_timestamp() - xact_start)::bigint AS since_s,
        greatest(age(backend_xid), age(backend_xmin))::bigint AS transactions
    FROM pg_stat_activity
    WHERE datname = current_database() AND pid <> pg_backend_pid() AND backend_type = 'client backend'
    UNION ALL
    SELECT format('prepared transaction %s of user %s', gid, owner),
        extract(epoch FROM clock_timestamp() - prepared)::bigint,
        age(transaction)::bigint
    FROM pg_prepared_xacts
    WHERE database = current_database()
    UNION ALL
    -- What a slot holds of the catalogs is not ours.
    SELECT format('replication slot %s', slot_name), NULL, age(xmin)::bigint
    FROM pg_replication_slots
    UNION ALL
    -- A standby without a slot that lets us know what it reads (hot_standby_feedback).
    SELECT format('standby %s at %s', application_name, client_addr), NULL, age(backend_xmin)::bigint
    FROM pg_stat_replication
) AS holders
WHERE transactions IS NOT NULL
ORDER BY transactions DESC, since_s DESC NULLS LAST
LIMIT 20
