SELECT *
FROM redeliver_messages INDEXED BY redeliver_handed_off
WHERE state = 2 AND report_by <= ?1
ORDER BY report_by
LIMIT ?2
