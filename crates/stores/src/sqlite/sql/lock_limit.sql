SELECT free_at_us, gap_us
FROM redeliver_limits
WHERE destination = ?1
