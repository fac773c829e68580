SELECT {row}
FROM {table}
WHERE {status} = {retry_queued} AND {locked_until} <= {lapsed_by}
LIMIT $2
