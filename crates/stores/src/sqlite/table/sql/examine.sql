SELECT
    (SELECT count(*) FROM {table} WHERE {status} = {failed} AND {next_attempt_at} IS NULL),
    (SELECT count(*) FROM {table} WHERE {attempts} < 0),
    (SELECT count(*) FROM {table} WHERE {status} = {retry_queued} AND {locked_until} IS NULL),
    (SELECT count(*) FROM {table} WHERE {status} = {failed} AND {next_attempt_at} IS NOT NULL AND NOT ({is_time})),
    count(*) FILTER (WHERE {queued_at} <= ?1),
    count(*) FILTER (WHERE {queued_at} <= ?2),
    count(*) FILTER (WHERE {queued_at} <= ?3)
FROM {table}
WHERE {status} = {pending}
