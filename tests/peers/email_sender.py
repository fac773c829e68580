"""Somebody else's sender of an application's mails: pika from the Python Package Index, smtplib, and the report API.

It takes what comes to --queue, sends a mail to the address that belongs to the EmailId, reports what came of it to
--api, and acknowledges when the report was taken. It says `ready` when it takes what comes, until it is killed.
"""

import argparse
import email.message
import json
import os
import smtplib
import time
import urllib.request

import pika
import pika.exceptions


def send(port, email_id):
    mail = email.message.EmailMessage()
    mail["From"], mail["Subject"] = "sender@example.org", f"mail {email_id}"
    # Every tenth address is nobody's.
    mail["To"] = f"nobody@{email_id}.example.org" if email_id % 10 == 0 else f"user-{email_id}@example.org"
    mail.set_content("hello")
    try:
        with smtplib.SMTP("127.0.0.1", port, timeout=30) as server:
            server.send_message(mail)
        return {"outcome": "delivered"}
    except smtplib.SMTPRecipientsRefused as refused:
        [(code, text)] = refused.recipients.values()
        outcome = "refused" if code >= 500 else "failed"
        return {"outcome": outcome, "error": f"{code} {text.decode()}", "error_code": str(code)}
    except OSError as error:
        return {"outcome": "failed", "error": str(error) or repr(error)}


def report(api, key, email_id, attempt_id, word):
    body = json.dumps(word | {"attempt_id": attempt_id}).encode()
    request = urllib.request.Request(f"{api}/v1/messages/email-log:{email_id}/report", body, method="POST")
    request.add_header("authorization", f"Bearer {key}")
    request.add_header("content-type", "application/json")
    with urllib.request.urlopen(request, timeout=60) as answer:
        return json.load(answer)["applied"]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--url", required=True)
    parser.add_argument("--queue", required=True)
    parser.add_argument("--api", required=True)
    parser.add_argument("--smtp-port", type=int, required=True)
    args = parser.parse_args()
    key = os.environ["REDELIVER_KEY"]
    # Another sender would look at its table; what was sent here once is not sent again for the same attempt.
    sent = {}

    def on_message(channel, method, properties, body):
        email_id = json.loads(body)["EmailId"]
        attempt_id = properties.headers["x-redeliver-attempt-id"]
        if attempt_id not in sent:
            sent[attempt_id] = send(args.smtp_port, email_id)
        report(args.api, key, email_id, attempt_id, sent[attempt_id])
        channel.basic_ack(method.delivery_tag)

    said = False
    while True:
        try:
            channel = pika.BlockingConnection(pika.URLParameters(args.url)).channel()
            channel.basic_qos(prefetch_count=20)
            channel.queue_declare(args.queue, durable=True)
            channel.basic_consume(args.queue, on_message)
            if not said:
                print("ready", flush=True)
                said = True
            channel.start_consuming()
        except pika.exceptions.AMQPError:
            time.sleep(0.1)


if __name__ == "__main__":
    main()
