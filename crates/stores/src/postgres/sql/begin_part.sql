-- The one row that everybody who plans in a workspace writes: of two at once, the second finds another version.
INSERT INTO redeliver.redeliver_workspaces (workspace, settings, settings_version, plan_version)
SELECT $1, '{}', 0, 1
WHERE $2 = 0 OR EXISTS (SELECT 1 FROM redeliver.redeliver_workspaces WHERE workspace = $1)
ON CONFLICT (workspace) DO UPDATE
SET plan_version = redeliver_workspaces.plan_version + 1
WHERE redeliver_workspaces.plan_version = $2
