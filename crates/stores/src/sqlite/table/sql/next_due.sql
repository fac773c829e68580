SELECT {next_attempt_at}
FROM {table}
WHERE {status} = {failed} AND {next_attempt_at} IS NOT NULL AND coalesce({attempts}, 0) < ?1
ORDER BY {next_attempt_at}
LIMIT 1
