SELECT to_regclass('redeliver.redeliver_migrations') IS NOT NULL
