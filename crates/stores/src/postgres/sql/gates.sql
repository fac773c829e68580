SELECT key, version, since, reason, closed
FROM redeliver.redeliver_gates
ORDER BY key
