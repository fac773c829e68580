-- Since when nothing goes out to a prospect until a person resumes them.
ALTER TABLE redeliver_prospects ADD COLUMN paused_at INTEGER;

-- How many mails of a campaign have ended without going out; counted with each change of a message.
CREATE TABLE redeliver_ends (
    campaign  TEXT    NOT NULL PRIMARY KEY,
    dead      INTEGER NOT NULL,
    dismissed INTEGER NOT NULL,
    cancelled INTEGER NOT NULL
) WITHOUT ROWID;
