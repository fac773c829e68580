INSERT INTO redeliver.redeliver_campaigns (
    id, workspace, definition, state, ledger, prospects, scheduled, last_at, created_at
)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)
ON CONFLICT (id) DO NOTHING
