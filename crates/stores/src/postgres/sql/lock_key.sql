SELECT 1 FROM redeliver.redeliver_keys WHERE key = $1 AND workspace = $2 FOR UPDATE
