-- Held until the transaction ends, so that it works on whatever connection a pooler gives.
SELECT pg_advisory_xact_lock(7310868735435632481)
