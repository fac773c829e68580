SELECT prospects FROM redeliver.redeliver_campaigns WHERE id = $1 FOR UPDATE
