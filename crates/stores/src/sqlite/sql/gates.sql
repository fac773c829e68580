SELECT key, version, since, reason, closed
FROM redeliver_gates
ORDER BY key
