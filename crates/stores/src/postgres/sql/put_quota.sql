INSERT INTO redeliver.redeliver_quotas (workspace, whose, name, period, number, used)
VALUES ($1, $2, $3, $4, $5, 1)
ON CONFLICT (workspace, whose, name, period, number) DO UPDATE SET used = redeliver_quotas.used + 1
