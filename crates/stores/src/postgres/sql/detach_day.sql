ALTER TABLE redeliver.redeliver_attempts
    DETACH PARTITION redeliver.redeliver_attempts_{day}
