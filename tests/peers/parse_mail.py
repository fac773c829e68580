"""Reads a mail on standard input by Python's own parser, and prints what is in it as JSON: a third party's eyes."""

import base64
import email
import email.policy
import json
import sys

mail = email.message_from_binary_file(sys.stdin.buffer, policy=email.policy.default)
parts = [
    {
        "type": part.get_content_type(),
        "disposition": part.get_content_disposition(),
        "name": part.get_filename(),
        "method": part.get_param("method"),
        "base64": base64.b64encode(part.get_payload(decode=True)).decode(),
    }
    for part in mail.walk()
    if not part.is_multipart()
]
headers = [[name, str(value)] for name, value in mail.items()]
print(json.dumps({"headers": headers, "parts": parts, "defects": [str(d) for d in mail.defects]}))
