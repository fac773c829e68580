SELECT id, workspace, definition, state, ledger, prospects, scheduled, last_at, created_at
FROM redeliver_campaigns
WHERE workspace = ?1
ORDER BY id
