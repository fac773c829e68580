SELECT said.place, k.message_id
FROM unnest($2) WITH ORDINALITY AS said (key, place)
JOIN redeliver.redeliver_keys AS k ON k.key = said.key AND k.workspace = $1
