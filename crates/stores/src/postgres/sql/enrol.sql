-- Whoever enrols holds the campaign's row: positions come in the order in which they are committed, without gaps.
WITH given AS MATERIALIZED (
    SELECT DISTINCT ON (id) id, prospect, place
    FROM unnest($3, $4) WITH ORDINALITY AS given (id, prospect, place)
    ORDER BY id, place
),
fresh AS MATERIALIZED (
    SELECT id, prospect, row_number() OVER (ORDER BY place) AS place
    FROM given
    WHERE NOT EXISTS (
        SELECT 1 FROM redeliver.redeliver_prospects AS known WHERE known.campaign = $1 AND known.id = given.id
    )
)
INSERT INTO redeliver.redeliver_prospects (campaign, position, id, prospect)
SELECT $1, $2 + place, id, prospect
FROM fresh
ORDER BY place
RETURNING id
