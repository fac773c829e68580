SELECT {row}
FROM {table}
WHERE {status} = {retry_queued} AND {locked_until} <= ?1
LIMIT ?2
