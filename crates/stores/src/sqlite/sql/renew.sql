UPDATE redeliver_messages SET lease_until = max(lease_until, ?3)
WHERE id = ?1 AND claim = ?2 AND state = 1
