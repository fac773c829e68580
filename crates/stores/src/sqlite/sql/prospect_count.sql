SELECT prospects FROM redeliver_campaigns WHERE id = ?1
