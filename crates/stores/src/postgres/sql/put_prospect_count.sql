UPDATE redeliver.redeliver_campaigns SET prospects = prospects + $2 WHERE id = $1
