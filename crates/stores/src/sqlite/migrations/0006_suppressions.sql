-- Whom a workspace writes to no more, whatever the campaign.
CREATE TABLE redeliver_suppressions (
    workspace TEXT    NOT NULL,
    address   TEXT    NOT NULL,
    reason    TEXT    NOT NULL,
    since     INTEGER NOT NULL,
    PRIMARY KEY (workspace, address)
) WITHOUT ROWID;

-- unfinished
CREATE INDEX redeliver_campaigns_running ON redeliver_campaigns (id)
    WHERE state = 'running';
