INSERT INTO redeliver.redeliver_instances AS i (id, silent_at, beat_at)
VALUES ($1, $2, $3)
ON CONFLICT (id) DO UPDATE SET
    silent_at = greatest(i.silent_at, excluded.silent_at),
    beat_at = greatest(i.beat_at, excluded.beat_at)
RETURNING floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint
