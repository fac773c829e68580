SELECT {row}
FROM {table}
WHERE {status} = {pending} AND {last_queued_at} <= ?1 AND ({locked_until} IS NULL OR {locked_until} <= ?2)
ORDER BY {last_queued_at}
LIMIT ?3
