-- What is remembered of the rows of an application's own table, beside that table: only of rows for which there is
-- something to say, such as a person's retry or a publishing that nobody confirmed.
CREATE TABLE redeliver_notes (
    id   TEXT NOT NULL PRIMARY KEY, -- table:row
    note TEXT NOT NULL
) WITHOUT ROWID;
