SELECT {row}
FROM {table}
WHERE {status} = {failed} AND {next_attempt_at} IS NULL
LIMIT ?1
