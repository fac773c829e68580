-- What counts in a period, and on how many days before it there was a mail.
SELECT
    (
        SELECT coalesce(sum(used), 0)
        FROM redeliver_quotas
        WHERE workspace = ?1 AND whose = ?2 AND name = ?3 AND period = ?4 AND number >= ?5 AND number <= ?6
    ),
    (
        SELECT count(*)
        FROM redeliver_quotas
        WHERE workspace = ?1 AND whose = ?2 AND name = ?3 AND period = 0 AND ?4 = 0 AND number < ?6 AND used > 0
    )
