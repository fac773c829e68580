"""Somebody else's publisher and consumer on RabbitMQ: pika, from the Python Package Index.

broker.py publish --url URL --queue QUEUE --to ORDERS,INVOICES --first N --count N --later-ms MS
    says `published` when the broker has confirmed all of them. Every second message names the time of its retry.
broker.py consume --url URL --queues ORDERS,INVOICES --out FILE
    makes the queues, says `ready`, and writes a line for every message that comes, until it is killed.
"""

import argparse
import base64
import json
import sys
import time

import pika
import pika.exceptions


def varint(number):
    out = bytearray()
    while True:
        byte, number = number & 0x7F, number >> 7
        out.append(byte | (0x80 if number else 0))
        if not number:
            return bytes(out)


def field(tag, value):
    if isinstance(value, int):
        return varint(tag << 3) + varint(value) if value else b""
    return varint(tag << 3 | 2) + varint(len(value)) + value


def retry_message(message_id, payload, queue, error, next_retry_at_ms):
    parts = [(1, message_id.encode()), (2, payload), (3, queue.encode()), (4, error.encode()), (7, next_retry_at_ms)]
    return b"".join(field(tag, value) for tag, value in parts)


def connect(url):
    while True:
        try:
            return pika.BlockingConnection(pika.URLParameters(url))
        except (pika.exceptions.AMQPError, OSError):
            time.sleep(0.1)


def publish(args):
    connection = connect(args.url)
    channel = connection.channel()
    channel.confirm_delivery()
    queues = args.to.split(",")
    for n in range(args.first, args.first + args.count):
        now_ms = int(time.time() * 1000)
        next_ms = now_ms + args.later_ms if n % 2 else 0
        # By the policy it waits two seconds at least.
        body = json.dumps({"id": f"m-{n}", "not_before_ms": next_ms or now_ms + 2000}).encode() + b"\0\xff"
        queue = queues[n % len(queues)]
        properties = pika.BasicProperties(
            delivery_mode=2,
            content_type="application/x-protobuf",
            headers={"x-original-content-type": "application/x-order", "n": n, "x-death": [{"count": 1}]},
        )
        message = retry_message(f"m-{n}", body, queue, "timeout", next_ms)
        channel.basic_publish("", args.queue, message, properties, mandatory=True)
    connection.close()
    print("published", flush=True)


def consume(args):
    queues = args.queues.split(",")
    said = False
    with open(args.out, "a", encoding="utf-8") as out:

        def on_message(channel, method, properties, body):
            line = {
                "queue": method.routing_key,
                "id": properties.message_id,
                "at_ms": int(time.time() * 1000),
                "redelivered": method.redelivered,
                "content_type": properties.content_type,
                "headers": {name: str(value) for name, value in (properties.headers or {}).items()},
                "body": base64.b64encode(body).decode(),
            }
            out.write(json.dumps(line) + "\n")
            out.flush()
            channel.basic_ack(method.delivery_tag)

        while True:
            try:
                connection = connect(args.url)
                channel = connection.channel()
                channel.basic_qos(prefetch_count=200)
                for queue in queues:
                    channel.queue_declare(queue, durable=True)
                    channel.basic_consume(queue, on_message)
                if not said:
                    print("ready", flush=True)
                    said = True
                channel.start_consuming()
            except (pika.exceptions.AMQPError, OSError) as error:
                print(f"interrupted: {error!r}", file=sys.stderr, flush=True)
                time.sleep(0.1)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("job", choices=["publish", "consume"])
    parser.add_argument("--url", required=True)
    parser.add_argument("--queue")
    parser.add_argument("--to")
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--count", type=int, default=0)
    parser.add_argument("--later-ms", type=int, default=0)
    parser.add_argument("--queues")
    parser.add_argument("--out")
    args = parser.parse_args()
    publish(args) if args.job == "publish" else consume(args)


if __name__ == "__main__":
    main()
