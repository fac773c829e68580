"""Somebody else's publisher and consumer on RabbitMQ: pika, from the Python Package Index.

broker.py publish --url URL --queue QUEUE --to ORDERS,INVOICES --first N --count N ...
    says `published` when the broker has confirmed all of them; what was not confirmed before a connection went is said again.
    --later-ms MS            every second message names a time so much later
    --in-ms MS --per-s N     each names its own time: so many a second, beginning so much later; 0: all at once
    --base-ms MS             what the policy waits at least, 2000 by default
    --pace N                 no more than so many a second are published
    --until FILE             goes on until there is such a file, instead of --count
    --log FILE               writes down what was said, and what was confirmed
broker.py consume --url URL --queues ORDERS,INVOICES --out FILE [--type quorum]
    makes the queues, says `ready`, and writes a line for every message that comes, until it is killed.

Where there are several nodes, --url has several addresses: who loses one goes to the next.
"""

import argparse
import base64
import itertools
import json
import os
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


def connect(urls):
    for url in itertools.cycle(urls.split(",")):
        try:
            return pika.BlockingConnection(pika.URLParameters(url))
        except (pika.exceptions.AMQPError, OSError):
            time.sleep(0.1)


def hang_up(connection):
    """Whatever is left of it goes; it may be gone already."""
    try:
        connection.close()
    except (pika.exceptions.AMQPError, OSError):
        pass


class Publisher:
    """Publishes with hundreds of confirms under way."""

    UNCONFIRMED_MAX = 500
    LOOK_S = 0.02

    def __init__(self, args):
        self.args = args
        self.queues = args.to.split(",")
        self.log = open(args.log, "a", encoding="utf-8") if args.log else None
        self.begun_ms = int(time.time() * 1000)
        self.next = args.first
        self.tag = 0
        self.waiting = {}
        self.again = []

    def run(self):
        for url in itertools.cycle(self.args.url.split(",")):
            self.tag, self.waiting = 0, {}
            connection = pika.SelectConnection(
                pika.URLParameters(url),
                on_open_callback=lambda connection: connection.channel(on_open_callback=self.on_channel),
                on_open_error_callback=lambda connection, error: connection.ioloop.stop(),
                on_close_callback=lambda connection, error: connection.ioloop.stop(),
            )
            connection.ioloop.start()
            if self.is_done():
                return
            self.again.extend(self.waiting.values())
            time.sleep(0.1)

    def on_channel(self, channel):
        channel.add_on_return_callback(self.on_return)
        channel.add_on_close_callback(lambda channel, error: self.end(channel.connection))
        channel.confirm_delivery(lambda frame: self.on_word(channel, frame.method), lambda _: self.look(channel))

    def on_return(self, channel, method, properties, body):
        print(f"came back: {method}", file=sys.stderr, flush=True)
        os._exit(1)

    def end(self, connection):
        if connection.is_open:
            connection.close()

    def look(self, channel):
        self.fill(channel)
        if channel.is_open:
            channel.connection.ioloop.call_later(self.LOOK_S, lambda: self.look(channel))

    def fill(self, channel):
        while channel.is_open and len(self.waiting) < self.UNCONFIRMED_MAX and (n := self.take()) is not None:
            self.tag += 1
            self.waiting[self.tag] = n
            self.note("said", n)
            channel.basic_publish("", self.args.queue, *self.message(n), mandatory=True)
        if self.is_done():
            self.end(channel.connection)

    def on_word(self, channel, word):
        tags = [tag for tag in self.waiting if tag <= word.delivery_tag] if word.multiple else [word.delivery_tag]
        for tag in tags:
            n = self.waiting.pop(tag)
            if isinstance(word, pika.spec.Basic.Ack):
                self.note("confirmed", n)
            else:
                self.again.append(n)
        if isinstance(word, pika.spec.Basic.Ack):
            self.fill(channel)
        else:
            # A channel that was opened while a queue lost its leader says no for as long as that node is away.
            self.end(channel.connection)

    def take(self):
        """The number of the next message, if it may go out now."""
        if self.again:
            return self.again.pop()
        spent_ms = int(time.time() * 1000) - self.begun_ms
        too_fast = self.args.pace and self.next - self.args.first >= spent_ms * self.args.pace / 1000
        if too_fast or self.has_all_said():
            return None
        self.next += 1
        return self.next - 1

    def has_all_said(self):
        if self.args.until:
            return os.path.exists(self.args.until)
        return self.next >= self.args.first + self.args.count

    def is_done(self):
        return self.has_all_said() and not self.again and not self.waiting

    def message(self, n):
        now_ms = int(time.time() * 1000)
        next_ms = now_ms + self.args.later_ms if self.args.later_ms and n % 2 else 0
        if self.args.in_ms:
            per_s = self.args.per_s
            next_ms = self.begun_ms + self.args.in_ms + ((n - self.args.first) * 1000 // per_s if per_s else 0)
        # By the policy it waits for the base at least.
        not_before_ms = next_ms or now_ms + self.args.base_ms
        body = json.dumps({"id": f"m-{n}", "not_before_ms": not_before_ms}).encode() + b"\0\xff"
        properties = pika.BasicProperties(
            delivery_mode=2,
            content_type="application/x-protobuf",
            headers={"x-original-content-type": "application/x-order", "n": n, "x-death": [{"count": 1}]},
        )
        return retry_message(f"m-{n}", body, self.queues[n % len(self.queues)], "timeout", next_ms), properties

    def note(self, what, n):
        if self.log:
            self.log.write(f"{what} m-{n}\n")
            self.log.flush()


def publish(args):
    Publisher(args).run()
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

        arguments = {"x-queue-type": args.type} if args.type else None
        while True:
            connection = connect(args.url)
            try:
                channel = connection.channel()
                channel.basic_qos(prefetch_count=200)
                for queue in queues:
                    channel.queue_declare(queue, durable=True, arguments=arguments)
                    channel.basic_consume(queue, on_message)
                if not said:
                    print("ready", flush=True)
                    said = True
                channel.start_consuming()
            except (pika.exceptions.AMQPError, OSError) as error:
                print(f"interrupted: {error!r}", file=sys.stderr, flush=True)
                hang_up(connection)
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
    parser.add_argument("--in-ms", type=int, default=0)
    parser.add_argument("--per-s", type=int, default=0)
    parser.add_argument("--base-ms", type=int, default=2000)
    parser.add_argument("--pace", type=int, default=0)
    parser.add_argument("--until")
    parser.add_argument("--log")
    parser.add_argument("--queues")
    parser.add_argument("--out")
    parser.add_argument("--type")
    args = parser.parse_args()
    publish(args) if args.job == "publish" else consume(args)


if __name__ == "__main__":
    main()
