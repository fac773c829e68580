SELECT {row}
FROM {table}
WHERE {id} = ?1
