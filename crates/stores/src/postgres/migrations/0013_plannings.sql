-- Which instance plans a campaign, until when its mark holds, how often in a row planning was interrupted without keeping a
-- part, and why a campaign was paused that nobody paused by hand.
ALTER TABLE redeliver.redeliver_campaigns ADD COLUMN planner bigint;
ALTER TABLE redeliver.redeliver_campaigns ADD COLUMN planning_until_at bigint;
ALTER TABLE redeliver.redeliver_campaigns ADD COLUMN interruptions bigint NOT NULL DEFAULT 0;
ALTER TABLE redeliver.redeliver_campaigns ADD COLUMN paused_for text;
