SELECT {row}
FROM {table}
WHERE {id} = ANY ($1::text[]::{id_type}[])
LIMIT $2
