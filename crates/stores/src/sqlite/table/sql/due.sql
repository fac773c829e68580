SELECT {id}
FROM {table}
WHERE {status} = {failed} AND {next_attempt_at} <= ?1 AND coalesce({attempts}, 0) < ?2
    AND ({locked_until} IS NULL OR {locked_until} <= ?3)
ORDER BY {next_attempt_at}
LIMIT ?4
