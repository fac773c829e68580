DELETE FROM redeliver_contents WHERE number = ?1
