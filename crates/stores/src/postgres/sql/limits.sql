SELECT name, setting FROM pg_settings WHERE name = ANY ($1)
