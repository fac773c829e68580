INSERT INTO redeliver_notes (id, note)
VALUES (?1, ?2)
ON CONFLICT (id) DO UPDATE SET note = excluded.note
