SELECT {dead_reason}, count(*)
FROM {table}
WHERE {status} = {dead}
GROUP BY {dead_reason}
