SELECT coalesce(name, '')
FROM pragma_index_info(?1, ?2)
ORDER BY seqno
