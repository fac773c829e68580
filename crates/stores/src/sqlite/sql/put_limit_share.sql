INSERT INTO redeliver_limit_shares (destination, instance, held, turn, until_at, wants_until)
VALUES (?1, ?2, ?3, ?4, ?5, ?6)
ON CONFLICT (destination, instance) DO UPDATE SET
    held = excluded.held,
    turn = excluded.turn,
    until_at = excluded.until_at,
    wants_until = excluded.wants_until
