-- Bulk operations that go on are found however many have begun since.
CREATE INDEX redeliver_running_bulks ON redeliver_bulks (id)
WHERE json_extract(bulk, '$.standing') = 'running';
