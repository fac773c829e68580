DELETE FROM redeliver_suppressions WHERE workspace = ?1 AND address = ?2
