INSERT INTO redeliver.redeliver_tallies (route, lane, state, dead_reason, is_parked, delta)
SELECT route, lane, state, dead_reason, parked_for IS NOT NULL, count(*)
FROM redeliver.redeliver_messages
WHERE dismissed_at IS NULL
GROUP BY route, lane, state, dead_reason, parked_for IS NOT NULL
