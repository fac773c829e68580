SELECT row_to_json(mail)::text
FROM ({mail}) AS mail
LIMIT 1
