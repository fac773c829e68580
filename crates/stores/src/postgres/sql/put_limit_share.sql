INSERT INTO redeliver.redeliver_limit_shares (destination, instance, held, turn, until_at)
VALUES ($1, $2, $3, $4, $5)
ON CONFLICT (destination, instance) DO UPDATE SET
    held = excluded.held,
    turn = excluded.turn,
    until_at = excluded.until_at
