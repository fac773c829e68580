SELECT id, workspace, definition, state, ledger, prospects, scheduled, last_at, created_at
FROM redeliver.redeliver_campaigns
WHERE id = $1
