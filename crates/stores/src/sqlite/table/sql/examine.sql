SELECT
    (SELECT count(*) FROM {table} WHERE {status} = {failed} AND {next_attempt_at} IS NULL),
    (SELECT count(*) FROM {table} WHERE {attempts} < 0),
    (SELECT count(*) FROM {table} WHERE {status} = {retry_queued} AND {locked_until} IS NULL),
    (SELECT count(*) FROM {table} WHERE {status} = {failed} AND {next_attempt_at} IS NOT NULL AND NOT ({is_time}))
