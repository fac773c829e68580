COPY redeliver.redeliver_keys (key, workspace, message_id, hash) FROM STDIN (FORMAT binary)
