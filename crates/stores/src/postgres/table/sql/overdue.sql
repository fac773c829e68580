SELECT {row}
FROM {table}
WHERE {status} = {pending} AND {last_queued_at} <= {overdue_by} AND ({locked_until} IS NULL OR {locked_until} <= {locked_now})
ORDER BY {last_queued_at}
LIMIT $3
