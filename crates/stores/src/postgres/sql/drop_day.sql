DROP TABLE redeliver.redeliver_attempts_{day}
