UPDATE redeliver_instances SET name = ?2, version = ?3, started_at = ?4
WHERE id = ?1
