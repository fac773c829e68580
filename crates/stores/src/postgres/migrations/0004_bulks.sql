-- What is done to many messages at once, each as one text: it is read and written whole, and there are few.
CREATE TABLE redeliver.redeliver_bulks (
    id      text   NOT NULL COLLATE "C" PRIMARY KEY,
    version bigint NOT NULL,
    bulk    text   NOT NULL COLLATE "C"
);
