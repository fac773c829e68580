-- What people corrected in messages before they were sent again, each as one text; it goes with its message.
CREATE TABLE redeliver_edits (
    message_id  BLOB    NOT NULL,
    number      INTEGER NOT NULL,
    actor       TEXT    NOT NULL,
    at          INTEGER NOT NULL,
    generation  INTEGER NOT NULL,
    differences TEXT    NOT NULL,
    PRIMARY KEY (message_id, number)
) WITHOUT ROWID;

-- What else is to be known of a deed.
ALTER TABLE redeliver_audit ADD COLUMN detail TEXT;
