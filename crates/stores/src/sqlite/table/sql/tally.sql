SELECT {status}, count(*), count(*) FILTER (WHERE {next_attempt_at} <= ?1)
FROM {table}
GROUP BY {status}
