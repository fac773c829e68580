SELECT {dead_reason}::text, count(*)
FROM {table}
WHERE {status} = {dead}
GROUP BY {dead_reason}
