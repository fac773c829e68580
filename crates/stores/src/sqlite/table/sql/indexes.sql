-- Those that answer for every row.
SELECT name, "unique"
FROM pragma_index_list(?1, ?2)
WHERE NOT partial
