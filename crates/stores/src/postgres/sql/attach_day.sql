ALTER TABLE redeliver.redeliver_attempts
    ATTACH PARTITION redeliver.redeliver_attempts_{day} FOR VALUES FROM ({from}) TO ({to})
