-- What is done to many messages at once, each as one text: it is read and written whole, and there are few.
CREATE TABLE redeliver_bulks (
    id      TEXT    NOT NULL PRIMARY KEY,
    version INTEGER NOT NULL,
    bulk    TEXT    NOT NULL
) WITHOUT ROWID;
