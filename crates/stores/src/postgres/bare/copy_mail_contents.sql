COPY redeliver.redeliver_contents (id, attributes, content_type, bytes, workspace, route, lane) FROM STDIN (FORMAT binary)
