SELECT current_setting('synchronous_commit'), current_setting('fsync'), pg_is_in_recovery()
