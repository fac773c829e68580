INSERT INTO redeliver_workspaces (workspace, settings, settings_version, plan_version)
VALUES (?1, ?2, 1, 0)
ON CONFLICT (workspace) DO UPDATE
SET settings = excluded.settings, settings_version = settings_version + 1
