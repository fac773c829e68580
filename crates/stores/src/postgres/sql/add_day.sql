CREATE TABLE redeliver.redeliver_attempts_{day} (LIKE redeliver.redeliver_attempts INCLUDING DEFAULTS)
