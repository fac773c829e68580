-- Under the lock under which it was read; the word says once more that it stands as it was.
UPDATE {table} SET {sets}
WHERE {id} = ?1 AND {status} = ?2
