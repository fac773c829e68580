SELECT value FROM redeliver_meta WHERE name = 'last_time_ms'
