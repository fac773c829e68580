-- When each message was first sent, where that is kept: the Date of a mail.
ALTER TABLE redeliver_messages ADD COLUMN first_sent_at INTEGER;
