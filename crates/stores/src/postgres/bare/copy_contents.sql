COPY redeliver.redeliver_contents (id, target, bytes, workspace, route, lane) FROM STDIN (FORMAT binary)
