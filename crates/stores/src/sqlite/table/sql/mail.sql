SELECT *
FROM ({mail}) AS mail
LIMIT 1
