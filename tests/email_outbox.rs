//! The e-mail outbox, end to end: the shipped binary, mail servers of two makes, and a clock that the story moves.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a story that can't go on has failed")]

#[path = "story/mod.rs"]
mod story;

use serde_json::{Value, json};
use story::mail::Read;
use story::peer::{Aiosmtpd, Peer, Sink};
use story::server::{Place, Server};
use story::until;

/// A calendar with everything that a careless hand would bend: CRLF, a long line, letters beyond ASCII.
const ICS: &str = "BEGIN:VCALENDAR\r\nVERSION:2.0\r\nMETHOD:REQUEST\r\nBEGIN:VEVENT\r\nUID:booking-17\r\n\
    SUMMARY:Zimmer mit Blick auf die Förde, zwei Nächte, Frühstück, und eine sehr lange Zeile ohne Umbruch\r\n\
    END:VEVENT\r\nEND:VCALENDAR\r\n";

fn mail(key: &str) -> Value {
    json!({ "route": "email", "key": key, "email": {
        "from": "desk@example.org",
        "to": { "address": format!("{key}@example.net"), "name": "Ada Lovelace" },
        "bcc": "archive@example.org",
        "subject": format!("Booking {key}"),
        "text": "Welcome.\n.\nThis line begins after a lone dot.\n",
        "html": "<p>Welcome</p>",
        "ics": { "content": ICS, "method": "REQUEST" },
        "attachments": [{ "name": "bill.bin", "content_type": "application/octet-stream", "base64": "AAECA/8K" }],
    } })
}

fn id(answer: &Value) -> String {
    answer["id"].as_str().unwrap_or_else(|| panic!("no id in {answer}")).to_owned()
}

/// Has a mail tried before our eyes, in vain.
fn send_in_vain(server: &Server, key: &str) -> String {
    let answer = server.send_and_wait(&mail(key));
    assert_eq!((answer.status, &answer.json["status"]), (202, &json!("retrying")), "{}", answer.json);
    id(&answer.json)
}

/// The story of the document: the mail server is down, mails are accepted, it comes back, and each arrives once.
fn an_outage_and_a_recovery(mut peer: impl Peer) {
    let server = Place::outbox(&peer.url()).with_clock().serve();
    peer.stop();
    let ids: Vec<String> = ["one", "two", "three"].iter().map(|key| send_in_vain(&server, key)).collect();
    let dashboard = server.get("/api/admin/dashboard").json;
    assert_eq!((&dashboard["pendingEmailCount"], &dashboard["failedEmailCount"]), (&json!(3), &json!(0)));
    peer.start();
    server.pass(29);
    assert_eq!(peer.mails().len(), 0, "nothing is early");
    server.pass(2);
    let mails = peer.wait_for(3);
    server.pass(600);
    assert_eq!(peer.mails().len(), 3, "once each");
    for id in &ids {
        assert_eq!(server.message(id)["status"], 404, "what has gone out is not kept");
    }
    for got in mails {
        assert_eq!(got.to.len(), 2, "the blind copy is in the envelope");
        let read = Read::of(&got.data);
        let to = read.header("to").unwrap();
        assert!(to.contains("Ada Lovelace") && !to.contains("archive"), "{to}");
        assert_eq!(read.header("bcc"), None);
        assert!(read.header("message-id").is_some());
        let calendar = read.part("text/calendar");
        assert_eq!(calendar.bytes, ICS.as_bytes(), "byte for byte");
        assert_eq!(calendar.method.as_deref(), Some("REQUEST"));
        let bill = read.parts.iter().find(|part| part.name.as_deref() == Some("bill.bin")).unwrap();
        assert_eq!(bill.bytes, [0, 1, 2, 3, 255, 10]);
        let text = String::from_utf8(read.part("text/plain").bytes.clone()).unwrap();
        assert_eq!(text.replace("\r\n", "\n"), "Welcome.\n.\nThis line begins after a lone dot.\n");
    }
    let log = server.stop();
    for private in ["example.net", "example.org", "Welcome", "Booking"] {
        assert!(!log.contains(private), "{private} is in the log:\n{log}");
    }
}

#[test]
fn mails_survive_an_outage_of_a_server_of_somebody_elses_make() {
    an_outage_and_a_recovery(Aiosmtpd::new());
}

#[test]
fn mails_survive_an_outage_of_the_sink() {
    an_outage_and_a_recovery(Sink::new());
}

#[test]
fn without_a_mail_server_mails_wait_and_say_so_and_go_out_once_there_is_one() {
    let place = Place::profile("email-outbox").with_clock();
    let server = place.serve();
    let answer = server.send_and_wait(&mail("early"));
    assert_eq!((answer.status, &answer.json["attempts"]), (202, &json!(0)), "{}", answer.json);
    let explained = server.get(&format!("/v1/messages/{}/explain", id(&answer.json))).json;
    let sentence = explained["sentence"].as_str().unwrap();
    assert!(sentence.contains("no SMTP server is configured: set SMTP_URL"), "{explained}");
    server.pass(600);
    let outbox = server.get("/api/admin/outbox").json;
    assert_eq!((&outbox[0]["attempts"], &outbox[0]["maxAttempts"]), (&json!(0), &json!(5)), "{outbox}");
    server.stop();

    let peer = Sink::new();
    peer.tell("defer");
    let server = place.variable("SMTP_URL", &peer.url()).serve();
    server.pass(31);
    let outbox = server.get("/api/admin/outbox").json;
    assert_eq!((&outbox[0]["attempts"], &outbox[0]["maxAttempts"]), (&json!(1), &json!(5)), "{outbox}");
    peer.tell("accept");
    server.pass(31);
    assert_eq!(peer.wait_for(1).len(), 1);
    server.stop();
}

fn refused_deferred_and_greylisted(peer: impl Peer) {
    let server = Place::outbox(&peer.url()).with_clock().serve();
    peer.tell("refuse");
    let answer = server.send_and_wait(&mail("refused"));
    assert_eq!((answer.status, &answer.json["status"]), (200, &json!("dead")), "{}", answer.json);
    assert_eq!(answer.json["dead_reason"], "refused");

    peer.tell("defer");
    let deferred = send_in_vain(&server, "deferred");
    assert_eq!(server.message(&deferred)["last_error"]["code"], "451");
    peer.tell("accept");
    server.pass(31);
    assert_eq!(peer.wait_for(1).len(), 1);

    peer.tell("greylist");
    send_in_vain(&server, "greylisted");
    server.pass(31);
    assert_eq!(peer.wait_for(2).len(), 2);
    let counts = server.get("/api/admin/dashboard").json;
    assert_eq!((&counts["pendingEmailCount"], &counts["failedEmailCount"]), (&json!(0), &json!(1)));
    server.stop();
}

#[test]
fn a_550_is_dead_at_once_and_a_451_and_a_greylisting_are_retried() {
    refused_deferred_and_greylisted(Aiosmtpd::new());
}

#[test]
fn the_sink_refuses_defers_and_greylists_just_as_well() {
    refused_deferred_and_greylisted(Sink::new());
}

#[test]
fn the_timetable_is_the_documents_and_then_it_is_failed() {
    let peer = Aiosmtpd::new();
    peer.tell("defer");
    let server = Place::outbox(&peer.url()).with_clock().serve();
    let id = send_in_vain(&server, "patience");
    let begun = server.get("/v1/stats").json["at"].as_str().unwrap().to_owned();
    server.pass(929);
    let outbox = server.get("/api/admin/outbox").json;
    assert_eq!((&outbox[0]["status"], &outbox[0]["attempts"]), (&json!("pending"), &json!(4)));
    assert_eq!(
        (&outbox[0]["maxAttempts"], &outbox[0]["toAddress"]),
        (&json!(5), &json!("patience@example.net"))
    );
    server.pass(2);
    let seconds = |text: &str| text.parse::<redeliver_core::Timestamp>().unwrap().as_ms() / 1_000;
    let history = server.get(&format!("/v1/messages/{id}/attempts")).json;
    let at: Vec<i64> = history["items"]
        .as_array()
        .unwrap()
        .iter()
        .map(|attempt| seconds(attempt["at"].as_str().unwrap()) - seconds(&begun))
        .collect();
    assert_eq!(at, [0, 30, 90, 210, 450, 930]);
    let outbox = server.get("/api/admin/outbox").json;
    assert_eq!((&outbox[0]["status"], &outbox[0]["attempts"]), (&json!("failed"), &json!(5)));

    let retry = format!("/api/admin/outbox/{id}/retry");
    assert_eq!(server.post(&retry, &json!({})).status, 200);
    server.pass(1);
    let outbox = server.get("/api/admin/outbox").json;
    assert_eq!(
        (&outbox[0]["status"], &outbox[0]["attempts"]),
        (&json!("pending"), &json!(1)),
        "a fresh budget"
    );
    assert_eq!(server.post(&retry, &json!({})).status, 409, "only a failed one");
    server.pass(1_000);
    assert_eq!(server.get("/api/admin/dashboard").json["failedEmailCount"], 1);
    assert_eq!(server.delete(&format!("/api/admin/outbox/{id}")).status, 204);
    assert_eq!(server.get("/api/admin/outbox").json, json!([]));
    server.stop();
}

/// Whether or not its sends were confirmed: each is the same mail.
#[test]
fn a_mail_is_dated_when_it_is_first_sent_and_keeps_that_date() {
    let peer = Sink::new();
    peer.tell("lose");
    let place = Place::outbox(&peer.url()).with_clock();
    let server = place.serve();
    assert_eq!(server.post("/v1/routes/email/pause", &json!({})).status, 200);
    server.post("/v1/messages", &mail("waits"));
    // Whatever is due waits for the route, so that nothing here can wait until nothing is due.
    let later = place.path("later");
    std::fs::write(&later, "2026-12-06T09:00:00Z").unwrap();
    std::fs::rename(&later, place.path("clock")).unwrap();
    let has_moved = |at: &Value| at.as_str().is_some_and(|at| at.starts_with("2026-12-06T09:00:00"));
    until("the clock has moved", || has_moved(&server.get("/v1/stats").json["at"]));
    until("the route is resumed", || server.post("/v1/routes/email/resume", &json!({})).status == 200);
    server.leap(3);
    let date = |number: usize| {
        let mails = peer.wait_for(number);
        Read::of(&mails[number - 1].data).header("date").unwrap().to_owned()
    };
    let first = date(1);
    assert!(first.starts_with("Sun, 06 Dec 2026 09:"), "dated {first}");

    peer.tell("accept");
    server.leap(86_400);
    assert_eq!(date(2), first, "a later try is the same mail");
    server.stop();
}

#[test]
fn a_lost_reply_is_sent_again_under_the_same_message_id_or_held_as_the_route_says() {
    for peer in [Box::new(Aiosmtpd::new()) as Box<dyn Peer>, Box::new(Sink::new())] {
        peer.tell("lose");
        let server = Place::outbox(&peer.url()).with_clock().serve();
        let answer = server.send_and_wait(&mail("again"));
        assert_eq!(answer.status, 202, "{}", answer.json);
        peer.wait_for(1);
        peer.tell("accept");
        server.pass(31);
        let ids: Vec<String> = peer
            .wait_for(2)
            .iter()
            .map(|got| Read::of(&got.data).header("message-id").unwrap().to_owned())
            .collect();
        assert_eq!(ids[0], ids[1], "the receiver can recognise it");
        server.stop();

        peer.tell("lose");
        let hold =
            Place::outbox(&peer.url()).with_clock().variable("REDELIVER_ROUTES__EMAIL__ON_LOST", "hold");
        let server = hold.serve();
        let answer = server.send_and_wait(&mail("held"));
        assert_eq!(
            (answer.status, &answer.json["dead_reason"]),
            (200, &json!("uncertain")),
            "{}",
            answer.json
        );
        peer.tell("accept");
        server.pass(1_000);
        assert_eq!(peer.mails().len(), 3, "never twice");
        server.stop();
    }
}

#[test]
fn a_login_is_sent_over_tls_only_and_a_wrong_one_holds_the_relay_until_it_is_right() {
    let dir = tempfile::tempdir().unwrap();
    let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    let (cert, key) = (dir.path().join("cert.pem"), dir.path().join("key.pem"));
    std::fs::write(&cert, made.cert.pem()).unwrap();
    std::fs::write(&key, made.signing_key.serialize_pem()).unwrap();
    let mut peer = Aiosmtpd::with_login(&cert, &key, "ada:secret-of-ada");
    let url = |password: &str| format!("smtp+starttls://ada:{password}@localhost:{}", peer.port());
    let place = |password: &str| {
        Place::outbox(&url(password))
            .with_clock()
            .variable("REDELIVER_TRANSPORTS__SMTP__CA_FILE", &cert.display().to_string())
    };

    let server = place("secret-of-ada").serve();
    let answer = server.send_and_wait(&mail("right"));
    assert_eq!((answer.status, &answer.json["status"]), (200, &json!("delivered")), "{}", answer.json);
    let got = &peer.wait_for(1)[0];
    assert!(got.tls);
    assert_eq!(got.login.as_deref(), Some("ada"));
    server.stop();

    let wrong = place("secret-of-eve");
    let server = wrong.serve();
    let answer = server.send_and_wait(&mail("wrong"));
    assert_eq!((answer.status, &answer.json["status"]), (202, &json!("held")), "{}", answer.json);
    assert_eq!(answer.json["attempts"], 0, "a login costs no try");
    let explained = server.get(&format!("/v1/messages/{}/explain", id(&answer.json))).json;
    assert!(explained["sentence"].as_str().unwrap().contains("does not accept the login"), "{explained}");
    // Somebody mends the relay: its next login is good, and lets everything go.
    let port = peer.port();
    peer.stop();
    let mended = Aiosmtpd::with_login(&cert, &key, "ada:secret-of-eve").on(port);
    server.pass(310);
    assert_eq!(mended.wait_for(1).len(), 1);
    let log = server.stop();
    assert!(!log.contains("secret-of"), "{log}");
}
