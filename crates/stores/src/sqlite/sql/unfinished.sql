SELECT id, json_extract(ledger, '$.plan.after') >= prospects AS is_planned
FROM redeliver_campaigns
WHERE state = 'running'
  AND (json_extract(ledger, '$.plan.after') < prospects OR (prospects > 0 AND coalesce(last_at, 0) <= ?1))
ORDER BY id
