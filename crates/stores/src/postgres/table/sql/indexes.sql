-- The first two columns of each index that answers for every row, and whether the first alone is unique.
SELECT
    (SELECT attname::text FROM pg_attribute WHERE attrelid = i.indrelid AND attnum = i.indkey[0]),
    (SELECT attname::text FROM pg_attribute WHERE attrelid = i.indrelid AND attnum = i.indkey[1]),
    i.indisunique AND i.indnkeyatts = 1
FROM pg_index AS i
JOIN pg_class AS c ON c.oid = i.indexrelid
JOIN pg_am AS a ON a.oid = c.relam
WHERE i.indrelid = to_regclass($1) AND i.indisvalid AND i.indpred IS NULL AND a.amname = 'btree'
