SELECT {row}
FROM {table}
WHERE {id} = ANY ($1::text[]::{id_type}[])
ORDER BY {id}
FOR UPDATE
