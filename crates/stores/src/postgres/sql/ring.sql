SELECT pg_notify('redeliver', $1)
