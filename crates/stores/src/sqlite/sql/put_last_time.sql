INSERT INTO redeliver_meta (name, value)
VALUES ('last_time_ms', ?1)
ON CONFLICT (name) DO UPDATE SET value = max(value, excluded.value)
