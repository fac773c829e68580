DELETE FROM redeliver_messages;
DELETE FROM redeliver_contents;
DELETE FROM redeliver_keys;
DELETE FROM redeliver_attempts;
DELETE FROM redeliver_gates;
DELETE FROM redeliver_instances;
DELETE FROM redeliver_audit;
DELETE FROM redeliver_meta;
