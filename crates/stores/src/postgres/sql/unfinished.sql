SELECT id, (ledger::json #>> '{plan,after}')::bigint >= prospects AS is_planned
FROM redeliver.redeliver_campaigns
WHERE state = 'running'
  AND ((ledger::json #>> '{plan,after}')::bigint < prospects OR (prospects > 0 AND coalesce(last_at, 0) <= $1))
ORDER BY id
