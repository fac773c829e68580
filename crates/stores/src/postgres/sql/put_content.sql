-- A message that comes back by another route brings its content with it, and so the names it is listed by.
INSERT INTO redeliver.redeliver_contents (
    id, target, attributes, headers, content_type, bytes, workspace, route, lane
)
SELECT *
FROM unnest($1, $2, $3, $4, $5, $6, $7, $8, $9)
ON CONFLICT (id) DO UPDATE SET
    target = excluded.target,
    attributes = excluded.attributes,
    headers = excluded.headers,
    content_type = excluded.content_type,
    bytes = excluded.bytes,
    workspace = excluded.workspace,
    route = excluded.route,
    lane = excluded.lane
