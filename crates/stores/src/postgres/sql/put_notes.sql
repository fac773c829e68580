INSERT INTO redeliver.redeliver_notes (id, note)
SELECT id, note
FROM unnest($1::text[], $2::text[]) AS said (id, note)
ORDER BY id
ON CONFLICT (id) DO UPDATE SET note = excluded.note
