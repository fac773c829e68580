INSERT INTO redeliver.redeliver_contents (id, target, bytes, workspace, route, lane)
SELECT id, 'somewhere', convert_to(repeat('x', 200), 'UTF8'), workspace, route, lane
FROM redeliver.redeliver_messages
