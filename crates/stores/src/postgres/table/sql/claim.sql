-- Takes what nobody else is taking at this moment. Rows are found again by their ids in an array, which no planner can
-- turn into a scan of the table.
WITH due AS MATERIALIZED (
    SELECT {id} AS id
    FROM {table}
    WHERE {status} = {failed} AND {next_attempt_at} <= {due_by} AND coalesce({attempts}, 0) < $3
        AND ({locked_until} IS NULL OR {locked_until} <= {locked_by})
    ORDER BY {next_attempt_at}
    LIMIT $4
    FOR UPDATE SKIP LOCKED
)
UPDATE {table} SET {status} = {retry_queued}, {locked_until} = {until}
WHERE {id} = ANY (ARRAY (SELECT id FROM due))
RETURNING {row}
