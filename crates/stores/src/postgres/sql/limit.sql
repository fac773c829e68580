SELECT setting::bigint FROM pg_settings WHERE name = 'idle_in_transaction_session_timeout'
