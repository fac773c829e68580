SELECT {row}
FROM {table}
WHERE {status} = {failed} AND {attempts} >= ?1
ORDER BY {next_attempt_at}
LIMIT ?2
