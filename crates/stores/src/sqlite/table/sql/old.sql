SELECT
    count(*) FILTER (WHERE {queued_at} <= ?1),
    count(*) FILTER (WHERE {queued_at} <= ?2),
    count(*) FILTER (WHERE {queued_at} <= ?3),
    count(*) FILTER (WHERE {queued_at} IS NULL)
FROM {table}
WHERE {status} = {pending}
