SELECT {row}
FROM {table}
WHERE {status} IN ({words}){asked}
ORDER BY {id} DESC
LIMIT ?1
