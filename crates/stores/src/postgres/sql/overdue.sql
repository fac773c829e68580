SELECT *
FROM redeliver.redeliver_messages
WHERE handed_off_at IS NOT NULL AND report_by <= $1
ORDER BY report_by
LIMIT $2
