//! Messages that go out to a file and come back, that are waited for, and that are followed; and what shells are told.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod process;

use std::io::{BufRead, BufReader};
use std::process::Stdio;

use process::face::{Face, ROUTES, lines};
use process::{Signal, until};
use serde_json::{Value, json};

/// Messages of every kind, all for later.
fn messages(count: usize) -> String {
    let message = |n: usize| {
        let mut message =
            json!({ "route": "email", "key": format!("k-{n}"), "due_at": "2999-01-01T00:00:00.000Z" });
        let more = match n % 4 {
            0 => {
                json!({ "email": { "to": ["ada@example.org", { "address": "bob@example.org", "name": "Bob" }],
                "subject": format!("Größe {n}"), "text": "Hallo\n", "bcc": "secret@example.org",
                "attachments": [{ "name": "a.bin", "base64": "AAEC" }] } })
            }
            1 => {
                json!({ "payload": { "n": n, "text": "\"quoted\"\n" }, "priority": "low", "route": "orders" })
            }
            2 => json!({ "payload_base64": "/wD/", "content_type": "image/png", "target": "eu",
                "attributes": { "device_id": format!("d-{n}") } }),
            _ => json!({ "payload": [n], "attempts": 2, "error": "451 try later", "workspace": "other",
                "expires_at": "2999-02-01T00:00:00.000Z" }),
        };
        message.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        format!("{message}\n")
    };
    (0..count).map(message).collect()
}

#[test]
fn a_thousand_messages_go_out_to_a_file_and_come_back_the_same() {
    for [from, to] in [Face::both(ROUTES), [Face::served(ROUTES), Face::local(ROUTES)]] {
        std::fs::write(from.place.path("in.ndjson"), messages(1_000)).unwrap();
        let said = from.tell(&["import", "in.ndjson"], "");
        assert_eq!(said.code, Some(0), "{}", said.err);
        assert!(said.err.starts_with("1000 messages accepted, 0 refused\n"), "{}", said.err);
        let said = from.tell(&["import", "in.ndjson"], "");
        assert!(said.err.starts_with("0 messages accepted, 1000 known already, 0 refused\n"), "{}", said.err);

        let file = from.place.path("out.ndjson");
        let said = from.tell(&["export", "--output", "out.ndjson"], "");
        assert_eq!((said.err.as_str(), said.code), ("1000 messages in out.ndjson\n", Some(0)));
        let said = to.tell(&["import", file.to_str().unwrap()], "");
        assert_eq!(said.code, Some(0), "{}", said.err);

        let sorted = |text: &str| {
            let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
            lines.sort();
            lines
        };
        let (out, back) = (std::fs::read_to_string(&file).unwrap(), to.ask(&["export"]));
        assert_eq!(sorted(&out), sorted(&back));
        assert_eq!(out.lines().count(), 1_000);
        assert_eq!(to.json(&["list", "--json", "--all"]).len(), 1_000);
        let exported = lines(&out);
        let of = |n: usize| exported.iter().find(|line| line["key"] == format!("k-{n}")).unwrap();
        let sent = lines(&messages(4));
        assert_eq!(of(1)["payload"], sent[1]["payload"]);
        assert_eq!((&of(2)["payload_base64"], &of(2)["content_type"]), (&json!("/wD/"), &json!("image/png")));
        for name in ["attempts", "error", "workspace", "expires_at", "due_at"] {
            assert_eq!(of(3)[name], sent[3][name], "{name}");
        }
        let some = to.ask(&["export", "--route", "orders", "--priority", "low"]);
        assert_eq!(some.lines().count(), 250);
        let said = from.tell(&["export", "--output", "out.ndjson"], "");
        assert_eq!(
            (said.err.as_str(), said.code),
            ("redeliver: out.ndjson is there already: name a new file\n", Some(2))
        );
    }
}

#[test]
fn a_bad_line_is_named_and_stops_no_other() {
    for face in Face::both(ROUTES) {
        let good = messages(2);
        let file = format!("{good}\n{{\n\n{{\"route\":\"post\",\"payload\":1}}\n{}", messages(3));
        let said = face.tell(&["import", "-", "--json"], &file);
        assert_eq!(said.code, Some(1));
        let told: Vec<&str> = said.err.lines().collect();
        assert!(told[0].starts_with("line 4: it is not JSON"), "{}", said.err);
        assert_eq!(told[1], "line 6: route names no route of the config: GET /v1/routes has them");
        assert_eq!(told[2], "3 messages accepted, 2 known already, 2 refused");
        let numbers: Vec<Value> = lines(&said.out).iter().map(|line| line["line"].clone()).collect();
        assert_eq!(json!(numbers), json!([1, 2, 4, 6, 7, 8, 9]));
    }
}

#[test]
fn a_line_that_is_too_large_is_named_and_stops_no_other() {
    let face = Face::local(&format!("[http]\nbody_bytes_max = 2048\n{ROUTES}"));
    let large = format!("{}\n", json!({ "route": "email", "payload": "x".repeat(5_000_000) }));
    let said = face.tell(&["import", "-"], &format!("{}{large}{}", messages(1), messages(2)));
    let told: Vec<&str> = said.err.lines().collect();
    assert!(told[0].starts_with("line 2: at most 2048 bytes are taken at once"), "{}", said.err);
    assert_eq!((told[1], said.code), ("2 messages accepted, 1 known already, 1 refused", Some(1)));
}

#[test]
fn what_is_over_is_exported_only_when_it_is_asked_for() {
    let face = Face::local(ROUTES);
    let id = face.send(&json!({ "route": "email", "payload": 1, "due_at": "2999-01-01T00:00:00Z" }));
    let exported = lines(&face.ask(&["export"]));
    assert_eq!(exported[0]["key"], format!("exported-{id}"));
    face.ask(&["cancel", &id]);
    assert_eq!(face.ask(&["export"]), "");
    assert_eq!(face.ask(&["export", "--status", "cancelled"]).lines().count(), 1);
}

#[test]
fn what_was_given_up_comes_back_as_given_up_and_is_not_sent_again() {
    let scripted = |step: &str| {
        let config =
            ROUTES.replace("kind = \"scripted\"", &format!("kind = \"scripted\"\nscript = [{step:?}]"));
        config.replace("[routes.email]", "[routes.email]\non_lost = \"hold\"")
    };
    for step in ["refuse 550 gone", "lose"] {
        let from = Face::served(&scripted(step));
        let id = from.send(&json!({ "route": "email", "payload": 1 }));
        from.until(&id, "dead");
        assert_eq!(from.ask(&["export"]), "", "{step}: it is over");
        let given_up = from.ask(&["export", "--status", "dead"]);
        let to = Face::served(ROUTES);
        assert_eq!(to.tell(&["import", "-"], &given_up).code, Some(0), "{step}");
        let imported = to.json(&["list", "--json"]);
        assert_eq!(imported[0]["status"], "dead", "{step}");
        let id = imported[0]["id"].as_str().unwrap();
        to.ask(&["retry", id]);
        to.until(id, "delivered");
    }
}

#[test]
fn whoever_waits_hears_what_the_first_try_came_to() {
    let check = |script: &str, state: &'static str, trouble: &str, code: i32| {
        let config =
            ROUTES.replace("kind = \"scripted\"", &format!("kind = \"scripted\"\nscript = [{script:?}]"));
        let face = Face::served(&config);
        // A server answers before it carries; one that has carried something has begun to.
        face.send(&json!({ "route": "email", "payload": 1 }));
        until("the server carries", || face.place.count(state) == 1);
        let said = face.tell(&["send", "--to", "ada@example.org", "--text", "Hi", "--wait", "30s"], "");
        let (_, rest) = said.out.split_once("  ").unwrap_or_else(|| panic!("{}", said.err));
        assert_eq!((rest, said.code), (format!("{state}{trouble}\n").as_str(), Some(code)), "{}", said.err);
    };
    check("deliver", "delivered", "", 0);
    check("refuse 550 gone", "dead", "  refused: 550 gone", 1);
}

#[test]
fn what_is_sent_to_a_store_without_a_server_is_said_to_wait() {
    let face = Face::local(ROUTES);
    let said = face.tell(&["send", "--to", "ada@example.org", "--text", "Hi", "--wait", "1s"], "");
    assert!(said.out.ends_with("  due\n"), "{}", said.out);
    assert_eq!(said.err, "no server has this store: it goes out once `redeliver serve` runs on it\n");
    let engine = face.place.serve();
    until("the server carries it", || face.place.count("delivered") == 1);
    drop(engine);
}

#[test]
fn a_tail_prints_messages_as_they_come_and_change() {
    for face in Face::both(ROUTES) {
        let old = face.send(&json!({ "route": "email", "payload": 1, "due_at": "2999-01-01T00:00:00Z" }));
        let mut tail =
            face.command(&["tail", "--json", "--every", "20ms"]).stdout(Stdio::piped()).spawn().unwrap();
        let mut out = BufReader::new(tail.stdout.take().unwrap()).lines();
        let mut next = || -> (String, String) {
            let line: Value = serde_json::from_str(&out.next().unwrap().unwrap()).unwrap();
            let word = |name: &str| line[name].as_str().unwrap().to_owned();
            (word("id"), word("status"))
        };
        assert_eq!(next(), (old.clone(), "scheduled".to_owned()));
        let new = face.send(&json!({ "route": "email", "payload": 1, "due_at": "2999-01-01T00:00:00Z" }));
        assert_eq!(next(), (new, "scheduled".to_owned()));
        face.ask(&["cancel", &old]);
        assert_eq!(next(), (old, "cancelled".to_owned()));
        rustix::process::kill_process(rustix::process::Pid::from_child(&tail), Signal::INT).unwrap();
        assert_eq!(tail.wait().unwrap().code(), Some(0));
    }
}

#[test]
fn shells_and_readers_are_told_the_command_line() {
    let face = Face::local(ROUTES);
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let script = face.ask(&["completions", shell]);
        assert!(script.contains("redeliver") && script.contains("explain"), "{shell}");
    }
    assert!(face.ask(&["man"]).starts_with(".ie"), "{}", face.ask(&["man"]).lines().next().unwrap());
    face.ask(&["man", "--dir", "man/man1"]);
    for page in ["redeliver.1", "redeliver-send.1", "redeliver-routes-pause.1"] {
        assert!(face.place.path("man/man1").join(page).exists(), "{page}");
    }
}
