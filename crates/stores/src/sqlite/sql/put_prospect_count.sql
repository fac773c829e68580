UPDATE redeliver_campaigns SET prospects = ?2 WHERE id = ?1
