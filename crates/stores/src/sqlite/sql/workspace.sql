SELECT settings, settings_version, plan_version FROM redeliver_workspaces WHERE workspace = ?1
