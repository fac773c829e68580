SELECT note
FROM redeliver_notes
WHERE id = ?1
