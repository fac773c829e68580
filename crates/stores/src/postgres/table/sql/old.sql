SELECT
    count(*) FILTER (WHERE {queued_at} <= {hour_ago}),
    count(*) FILTER (WHERE {queued_at} <= {day_ago}),
    count(*) FILTER (WHERE {queued_at} <= {week_ago}),
    count(*) FILTER (WHERE {queued_at} IS NULL)
FROM {table}
WHERE {status} = {pending}
