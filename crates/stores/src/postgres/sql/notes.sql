SELECT id, note
FROM redeliver.redeliver_notes
WHERE id = ANY ($1::text[])
