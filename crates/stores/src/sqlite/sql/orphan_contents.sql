SELECT count(*)
FROM redeliver_contents AS c
WHERE NOT EXISTS (SELECT 1 FROM redeliver_messages AS m WHERE m.number = c.number)
