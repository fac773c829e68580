SELECT count(*)
FROM redeliver_messages AS m
WHERE NOT EXISTS (SELECT 1 FROM redeliver_contents AS c WHERE c.number = m.number)
