-- What people corrected in messages before they were sent again, each as one text; it goes with its message.
CREATE TABLE redeliver.redeliver_edits (
    message_id  uuid    NOT NULL,
    number      bigint  GENERATED ALWAYS AS IDENTITY,
    actor       text    NOT NULL COLLATE "C",
    at          bigint  NOT NULL,
    generation  integer NOT NULL,
    differences text    NOT NULL COLLATE "C",
    PRIMARY KEY (message_id, number)
);

-- What else is to be known of a deed.
ALTER TABLE redeliver.redeliver_audit ADD COLUMN detail text COLLATE "C";
