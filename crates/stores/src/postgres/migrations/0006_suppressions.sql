-- Whom a workspace writes to no more, whatever the campaign.
CREATE TABLE redeliver.redeliver_suppressions (
    workspace text   NOT NULL COLLATE "C",
    address   text   NOT NULL COLLATE "C",
    reason    text   NOT NULL COLLATE "C",
    since     bigint NOT NULL,
    PRIMARY KEY (workspace, address)
);

-- unfinished
CREATE INDEX redeliver_campaigns_running ON redeliver.redeliver_campaigns (id)
    WHERE state = 'running';
