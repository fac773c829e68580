"""A mail server of somebody else's make (aiosmtpd) for the end-to-end stories.

It keeps every mail as a line of JSON in --out, and answers as the word in --rules says, which is read again for each
command: accept, defer, refuse, greylist, or lose (the mail is kept, the reply never sent).
"""

import argparse
import asyncio
import base64
import json
import ssl

from aiosmtpd.smtp import SMTP, AuthResult


class Desk:
    def __init__(self, out, rules):
        self.out, self.rules, self.seen = out, rules, set()

    def rule(self):
        with open(self.rules, encoding="utf-8") as file:
            return file.read().strip() or "accept"

    async def handle_RCPT(self, server, session, envelope, address, options):
        rule = self.rule()
        if rule == "defer":
            return "451 4.3.0 try again later"
        if rule == "refuse" or address.startswith("nobody@"):
            return "550 5.1.1 no such user"
        if rule == "greylist" and (envelope.mail_from, address) not in self.seen:
            self.seen.add((envelope.mail_from, address))
            return "450 4.2.0 greylisted, come back"
        envelope.rcpt_tos.append(address)
        return "250 2.1.5 ok"

    async def handle_DATA(self, server, session, envelope):
        mail = {
            "from": envelope.mail_from,
            "to": envelope.rcpt_tos,
            "data": base64.b64encode(envelope.content).decode(),
            "tls": session.ssl is not None,
            "login": session.auth_data.login.decode() if session.auth_data else None,
        }
        with open(self.out, "a", encoding="utf-8") as file:
            file.write(json.dumps(mail) + "\n")
        if self.rule() == "lose":
            server.transport.abort()
        return "250 2.0.0 kept"


def authenticator(wanted):
    def check(server, session, envelope, mechanism, data):
        login = getattr(data, "login", b""), getattr(data, "password", b"")
        return AuthResult(success=login == wanted, handled=False, auth_data=data)

    return check


async def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--out", required=True)
    parser.add_argument("--rules", required=True)
    parser.add_argument("--cert")
    parser.add_argument("--key")
    parser.add_argument("--login", help="user:password, asked for after STARTTLS")
    args = parser.parse_args()
    settings = {"hostname": "localhost", "ident": "peer", "data_size_limit": 64 << 20}
    if args.cert:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(args.cert, args.key)
        settings |= {"tls_context": context, "require_starttls": True}
    if args.login:
        wanted = tuple(part.encode() for part in args.login.split(":", 1))
        settings |= {"authenticator": authenticator(wanted), "auth_required": True}
    desk = Desk(args.out, args.rules)
    loop = asyncio.get_running_loop()
    server = await loop.create_server(lambda: SMTP(desk, loop=loop, **settings), "127.0.0.1", args.port)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


asyncio.run(main())
