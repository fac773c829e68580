SELECT {status}::text, count(*), count(*) FILTER (WHERE {next_attempt_at} <= {due_by_first})
FROM {table}
GROUP BY {status}
