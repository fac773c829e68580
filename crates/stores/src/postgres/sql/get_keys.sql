SELECT k.message_id, k.hash, k.attempts_before, k.attempts, k.generation, k.possible_duplicates, k.fence, k.key, k.workspace
FROM unnest($1, $2) AS said (key, workspace)
JOIN redeliver.redeliver_keys AS k ON k.key = said.key AND k.workspace = said.workspace
