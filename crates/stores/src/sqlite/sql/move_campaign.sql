UPDATE redeliver_campaigns SET state = ?3 WHERE id = ?1 AND state = ?2
