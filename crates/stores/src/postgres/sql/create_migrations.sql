CREATE TABLE IF NOT EXISTS redeliver.redeliver_migrations (
    number   bigint NOT NULL PRIMARY KEY,
    name     text   NOT NULL,
    checksum text   NOT NULL
)
