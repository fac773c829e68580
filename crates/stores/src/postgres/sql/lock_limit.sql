-- Makes the row if there is none, and locks it either way.
INSERT INTO redeliver.redeliver_limits (destination, free_at_us, gap_us)
VALUES ($1, 0, 0)
ON CONFLICT (destination) DO UPDATE SET destination = excluded.destination
RETURNING free_at_us, gap_us
