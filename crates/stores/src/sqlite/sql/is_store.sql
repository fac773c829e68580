-- Asked of the file: what a connection remembers of the tables may be older than ours.
SELECT EXISTS (SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = 'redeliver_messages');
