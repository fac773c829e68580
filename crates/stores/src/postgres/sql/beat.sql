INSERT INTO redeliver.redeliver_instances AS i (id, silent_at)
VALUES ($1, $2)
ON CONFLICT (id) DO UPDATE SET silent_at = greatest(i.silent_at, excluded.silent_at)
RETURNING floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint
