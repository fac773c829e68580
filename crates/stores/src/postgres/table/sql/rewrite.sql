-- Each row only if it still stands as it was read: its lock is its fence.
UPDATE {table} AS kept SET {sets}
FROM unnest(
    $1::text[], $2::text[], $3::bigint[], $4::text[], $5::bigint[], $6::bigint[], $7::bigint[], $8::text[], $9::text[],
    $10::bigint[]
) AS said (
    id, was_status, was_locked_until, status, attempts, next_attempt_at, locked_until, last_error, dead_reason,
    last_queued_at
)
WHERE kept.{id} = said.id::{id_type}
    AND kept.{status}::text = said.was_status
    AND {kept_locked_until_us} IS NOT DISTINCT FROM said.was_locked_until
