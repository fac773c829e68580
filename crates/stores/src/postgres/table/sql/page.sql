SELECT {row}
FROM {table}
WHERE {status} = ANY ($1::text[]::{status_type}[]){asked}
ORDER BY {id} DESC
LIMIT $2
