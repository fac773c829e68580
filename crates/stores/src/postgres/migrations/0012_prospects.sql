-- Since when nothing goes out to a prospect until a person resumes them.
ALTER TABLE redeliver.redeliver_prospects ADD COLUMN paused_at bigint;

-- How many mails of a campaign have ended without going out; counted with each change of a message.
CREATE TABLE redeliver.redeliver_ends (
    campaign  text   NOT NULL COLLATE "C" PRIMARY KEY,
    dead      bigint NOT NULL,
    dismissed bigint NOT NULL,
    cancelled bigint NOT NULL
) WITH (
    fillfactor = 75
);
