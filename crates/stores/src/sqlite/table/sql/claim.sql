UPDATE {table} SET {status} = {retry_queued}, {locked_until} = ?2
WHERE {id} = ?1
RETURNING {row}
