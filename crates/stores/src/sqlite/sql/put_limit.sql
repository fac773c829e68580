INSERT INTO redeliver_limits (destination, free_at_us, gap_us)
VALUES (?1, ?2, ?3)
ON CONFLICT (destination) DO UPDATE SET
    free_at_us = excluded.free_at_us,
    gap_us = excluded.gap_us
