SELECT name, type, pk
FROM pragma_table_info(?1, ?2)
