//! What people do with messages from the command line, over a server and straight on a store: the same either way.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod process;

use process::face::{Face, KEY, ROUTES};
use serde_json::json;

#[test]
fn a_message_is_sent_listed_shown_and_explained() {
    for face in Face::both(ROUTES) {
        let sent = face.ask(&[
            "send",
            "--to",
            "Ada <ada@example.org>",
            "--cc",
            "bob@example.org",
            "--subject",
            "Your booking",
            "--text",
            "See you",
            "--key",
            "booking-17",
            "--priority",
            "high",
            "--in",
            "5m",
        ]);
        let (id, rest) = sent.split_once("  ").unwrap();
        assert_eq!(rest, "scheduled\n");
        let again = face.ask(&[
            "send",
            "--to",
            "Ada <ada@example.org>",
            "--cc",
            "bob@example.org",
            "--subject",
            "Your booking",
            "--text",
            "See you",
            "--key",
            "booking-17",
        ]);
        assert_eq!(again, format!("{id}  scheduled  (this key was sent before: it is the first message)\n"));
        let later = "2999-01-01T00:00:00Z";
        face.ask(&[
            "send",
            "--payload",
            r#"{"n":1}"#,
            "--route",
            "orders",
            "--target",
            "eu",
            "--due-at",
            later,
        ]);

        let table = face.ask(&["list"]);
        let rows: Vec<Vec<&str>> = table
            .lines()
            .map(|line| line.split("  ").map(str::trim).filter(|cell| !cell.is_empty()).collect())
            .collect();
        assert_eq!(rows[0], ["id", "status", "route", "about", "tries", "when", "trouble"]);
        assert_eq!(rows[1][1..5], ["scheduled", "orders", "eu", "0/3"]);
        assert_eq!(rows[2][1..5], ["scheduled", "email", "ada@example.org: Your booking", "0/3"]);
        assert!(rows[2][5].starts_with("in 4m"), "{table}");
        assert!(id.starts_with(rows[2][0]), "{table}");
        assert!(
            face.ask(&["list", "--utc", "--brief", "--route", "orders"]).contains("2999-01-01T00:00:00.000Z")
        );

        let listed = face.json(&["list", "--json", "--status", "scheduled", "--priority", "high"]);
        assert_eq!(listed.len(), 1);
        assert_eq!((&listed[0]["id"], &listed[0]["key"]), (&json!(id), &json!("booking-17")));
        assert!(face.json(&["list", "--json", "--status", "dead"]).is_empty());
        assert_eq!(face.json(&["list", "--json", "--limit", "1"]).len(), 1);

        let short = rows[2][0];
        let shown = face.ask(&["show", short]);
        for line in ["key         booking-17", "to          ada@example.org", "subject     Your booking"] {
            assert!(shown.contains(line), "{line} in:\n{shown}");
        }
        assert!(!shown.contains("See you"), "{shown}");
        let full = face.json(&["show", id, "--content", "--json"]);
        assert_eq!(full[0]["content"]["email"]["text"], "See you");
        assert_eq!(full[0]["history"], json!([]));
        assert!(
            face.ask(&["explain", short]).contains("earliest    in 4m"),
            "{}",
            face.ask(&["explain", id])
        );
        assert_eq!(face.json(&["explain", id, "--json"])[0]["gates"][0]["gate"], "due");
    }
}

#[test]
fn mails_come_from_flags_and_from_files() {
    for face in Face::both(ROUTES) {
        let calendar = "BEGIN:VCALENDAR\r\nEND:VCALENDAR\r\n";
        std::fs::write(face.place.path("tea.ics"), calendar).unwrap();
        std::fs::write(face.place.path("plan.pdf"), [0, 1, 2]).unwrap();
        let flags = "send --to ada@example.org --subject Tea --html - --ics tea.ics --method cancel --attach plan.pdf --in 1h --json";
        let said = face.tell(&flags.split(' ').collect::<Vec<_>>(), "<p>Tea</p>");
        let id = process::face::lines(&said.out)[0]["id"].as_str().unwrap().to_owned();
        let email = &face.json(&["show", &id, "--content", "--json"])[0]["content"]["email"];
        assert_eq!(email["html"], "<p>Tea</p>");
        assert_eq!(email["ics"], json!({ "content": calendar, "method": "CANCEL" }));
        let file = json!([{ "name": "plan.pdf", "content_type": "application/pdf", "base64": "AAEC" }]);
        assert_eq!(email["attachments"], file);

        let eml =
            "From: grace@example.org\nTo: ada@example.org\nBcc: secret@example.org\nSubject: Kept\n\nHello\n";
        let said = face.tell(&["send", "--eml", "--in", "1h", "--json"], eml);
        assert_eq!(said.code, Some(0), "{}", said.err);
        let id = process::face::lines(&said.out)[0]["id"].as_str().unwrap().to_owned();
        let email = &face.json(&["show", &id, "--content", "--json"])[0]["content"]["email"];
        assert_eq!((&email["bcc"], &email["subject"]), (&json!(["secret@example.org"]), &json!("Kept")));
    }
}

#[test]
fn people_retry_cancel_dismiss_and_restore_several_at_once() {
    for face in Face::both(ROUTES) {
        let later = "2999-01-01T00:00:00Z";
        let dead =
            json!({ "route": "email", "payload": 1, "attempts": 3, "error": "550 gone", "due_at": later });
        let (one, two) = (face.send(&dead), face.send(&dead));
        let waiting = face.send(&json!({ "route": "email", "payload": 1, "due_at": later }));
        let listed = face.ask(&["list", "--status", "dead"]);
        assert_eq!(listed.matches("attempts_exhausted: 550 gone").count(), 2, "{listed}");

        assert_eq!(face.ask(&["dismiss", &one, &two]), format!("{one}  dismissed\n{two}  dismissed\n"));
        assert!(face.json(&["list", "--json", "--status", "dead"]).is_empty());
        assert_eq!(face.json(&["list", "--json", "--with-dismissed"]).len(), 3);
        assert_eq!(face.ask(&["restore", &one]), format!("{one}  dead\n"));

        // Two that can't be cancelled don't stop the one that can.
        let said =
            face.tell(&["cancel", "-"], &format!("{one}\n00000000-0000-0000-0000-000000000001\n{waiting}\n"));
        assert_eq!((said.out.as_str(), said.code), (format!("{waiting}  cancelled\n").as_str(), Some(1)));
        assert_eq!(said.err.matches("redeliver: cannot cancel").count(), 2, "{}", said.err);

        face.ask(&["routes", "pause", "email"]);
        assert_eq!(face.ask(&["retry", &one]), format!("{one}  due\n"));
        let shown = face.ask(&["explain", &one]);
        assert!(shown.contains("paused by"), "{shown}");
    }
}

#[test]
fn a_wrong_address_is_corrected_and_what_it_was_is_shown() {
    for face in Face::both(ROUTES) {
        let sent =
            face.ask(&["send", "--to", "ada@exmaple.org", "--subject", "Hi", "--text", "x", "--in", "5m"]);
        let (id, _) = sent.split_once("  ").unwrap();
        let corrected = ["edit", id, "--to", "Ada <ada@example.org>", "--attribute", "tour=7"];
        let planned = face.ask(&[&corrected[..], &["--dry-run"]].concat());
        assert!(planned.contains("email.to") && planned.contains("nothing was done"), "{planned}");
        assert!(!face.ask(&["show", id]).contains("corrected"));
        let done = face.ask(&corrected);
        assert!(done.contains("ada@exmaple.org") && done.contains(id), "{done}");
        let shown = face.ask(&["show", id]);
        assert!(shown.contains("corrected ") && shown.contains("ada@exmaple.org"), "{shown}");
        let json = face.json(&["show", "--json", id]).remove(0);
        assert_eq!(
            json["edits"][0]["differences"][0],
            json!({ "field": "attributes.tour", "before": null, "after": "7" })
        );
        assert!(face.ask(&["audit"]).contains("attributes.tour, email.to"));
        let wrong = face.tell(&["edit", id, "--to", "nobody"], "");
        assert!(wrong.code == Some(1) && wrong.err.contains("email.to[0].address"), "{}", wrong.err);
        assert_eq!(face.tell(&["edit", id], "").code, Some(2), "nothing is to be otherwise");
    }
}

#[test]
fn who_lives_is_told_and_what_they_did() {
    let [local, served] = Face::both(ROUTES);
    // The first message makes the store.
    local.send(&json!({ "route": "email", "payload": 1 }));
    assert!(local.tell(&["instances"], "").err.contains("no instance lives"));
    let named = |told: &[serde_json::Value]| told.first().is_some_and(|one| one["name"].is_string());
    process::until("the server is heard of", || named(&served.json(&["instances", "--json"])));
    let told = served.json(&["instances", "--json"]).remove(0);
    assert_eq!((&told["is_this"], &told["version"]), (&json!(true), &json!(env!("CARGO_PKG_VERSION"))));
    assert!(served.ask(&["instances"]).contains(", process "), "{told}");
    assert_eq!(served.json(&["stats", "--minutes", "--json"]).len(), 180);
    let id = served.send(&json!({ "route": "email", "payload": 1 }));
    served.until(&id, "delivered");
    process::until("it is counted", || served.ask(&["stats", "--minutes"]).contains("delivered"));
    assert_eq!(served.ask(&["senders", "pause", "ada@example.org"]), "ada@example.org  paused\n");
    assert_eq!(served.ask(&["senders", "resume", "ada@example.org"]), "ada@example.org  running\n");
    assert_eq!(served.ask(&["destinations", "pause", "smtp://mx:25"]), "smtp://mx:25  paused\n");
    let listed = served.ask(&["destinations", "list"]);
    assert!(listed.contains("smtp://mx:25") && listed.contains("when a person resumes it"), "{listed}");
    assert_eq!(served.ask(&["destinations", "resume", "smtp://mx:25"]), "smtp://mx:25  running\n");
    assert!(served.json(&["destinations", "list", "--json"]).is_empty());
    assert_eq!(served.tell(&["destinations", "resume", "mx"], "").code, Some(1));
    assert!(served.json(&["senders", "list", "--json"]).is_empty());
    assert!(
        served.ask(&["campaign", "quotas", "--date", "2026-12-01"]).starts_with("2026-12-01 of default\n")
    );
}

#[test]
fn somebody_says_what_became_of_a_message_that_was_handed_off() {
    let config = ROUTES.replace("kind = \"scripted\"", "kind = \"scripted\"\nscript = [\"hand_off\"]");
    let face = Face::served(&config);
    let id = face.send(&json!({ "route": "email", "payload": 1 }));
    face.until(&id, "handed_off");
    let other = format!("{id}.0.9");
    let said = face.ask(&["report", &id, "delivered", "--attempt-id", &other]);
    assert!(said.starts_with(&format!("{id}  handed_off  (nobody waits for this report")), "{said}");
    let flags = ["report", &id, "failed", "--error", "busy", "--error-code", "EBUSY", "--retry-after", "1h"];
    assert_eq!(face.ask(&flags), format!("{id}  retrying\n"));
    let told = face.json(&["report", &id, "delivered", "--json"]);
    assert_eq!(
        (&told[0]["applied"], &told[0]["message"]["last_error"]["code"]),
        (&json!(false), &json!("EBUSY"))
    );
}

#[test]
fn an_id_may_be_cut_short_while_it_is_the_only_one() {
    let face = Face::local(ROUTES);
    face.place.accept("email", 1..3);
    let said = face.tell(&["show", "0000"], "");
    assert_eq!(said.code, Some(1));
    let both = "00000000-0000-0000-0000-000000000002 and 00000000-0000-0000-0000-000000000001";
    assert_eq!(
        said.err,
        format!("redeliver: several messages' ids begin with 0000, such as {both}: say more of it\n")
    );
    let said = face.tell(&["show", "ffff"], "");
    assert_eq!(said.err, "redeliver: no message's id begins with ffff\n");
    for text in ["000", "ada", "00000000-0000-0000-0000-0000000000001"] {
        assert!(face.tell(&["show", text], "").err.contains("is no message id"), "{text}");
    }
}

#[test]
fn routes_are_paused_and_resumed_and_messages_counted() {
    for face in Face::both(ROUTES) {
        face.send(&json!({ "route": "orders", "payload": 1, "due_at": "2999-01-01T00:00:00Z" }));
        assert_eq!(face.ask(&["routes", "pause", "email"]), "email  paused\n");
        let listed = face.json(&["routes", "list", "--json"]);
        let paused: Vec<bool> = listed.iter().map(|route| route["paused"] == true).collect();
        assert_eq!(paused, [true, false]);
        assert!(face.ask(&["routes", "list"]).contains("paused by"));
        assert_eq!(face.ask(&["routes", "resume", "email"]), "email  running\n");
        let said = face.tell(&["routes", "pause", "emial"], "");
        assert_eq!((said.err.as_str(), said.code), ("redeliver: there is no route \"emial\"\n", Some(1)));

        let stats = face.json(&["stats", "--json"]);
        assert_eq!(
            (&stats[0]["total"]["waiting"], &stats[0]["routes"]["orders"]["waiting"]),
            (&json!(1), &json!(1))
        );
        let table = face.ask(&["stats"]);
        assert!(table.lines().any(|line| line.trim_start().starts_with("orders        1")), "{table}");
    }
}

#[test]
fn a_store_that_a_server_holds_is_asked_through_the_server() {
    let face = Face::served(ROUTES);
    let ask = |args: &str, variables: &[(&str, &str)]| {
        let output = face.place.command(args).envs(variables.iter().copied()).output().unwrap();
        let text = |bytes| String::from_utf8(bytes).unwrap();
        (text(output.stdout), text(output.stderr), output.status.code())
    };
    let held = |url: &str| {
        format!(
            "redeliver: a server holds the store sqlite:store.db: ask the server, with --url {url} and a key in \
             REDELIVER_KEY\n"
        )
    };
    let (_, err, code) = ask("list --store sqlite:store.db", &[("REDELIVER_KEY", KEY)]);
    assert_eq!((err, code), (held("URL"), Some(1)));
    let port = face.url().rsplit(':').next().unwrap();
    let (_, err, _) = ask("list", &[("HTTP_PORT", port)]);
    assert_eq!(err, held(face.url()));
    // With a key, the config is enough.
    let (out, err, code) = ask("routes list --json", &[("HTTP_PORT", port), ("REDELIVER_KEY", KEY)]);
    assert_eq!((out.lines().count(), code), (2, Some(0)), "{err}");

    let (_, err, code) = ask("list", &[("REDELIVER_URL", face.url()), ("REDELIVER_KEY", "rdk_0_0")]);
    assert!(err.starts_with("redeliver: the key is unknown or revoked") && code == Some(1), "{err}");
    assert!(!err.contains("rdk_0_0"), "{err}");
    std::fs::write(face.place.path("key"), format!("{KEY}\n")).unwrap();
    let (_, err, code) = ask(&format!("stats --key-file key --url {}", face.url()), &[]);
    assert_eq!((err.as_str(), code), ("", Some(0)));
    assert!(!face.log().contains(KEY), "{}", face.log());
}

#[test]
fn whoever_asks_wrongly_is_told_what_to_do() {
    let face = Face::local(ROUTES);
    let check = |args: &[&str], code: i32, words: &str| {
        let said = face.tell(args, "{");
        assert_eq!(said.code, Some(code), "{args:?}: {}", said.err);
        assert!(said.err.contains(words), "{args:?}: {}", said.err);
    };
    check(&["list"], 1, "there is no store sqlite:store.db: `redeliver serve` makes it");
    check(&["list", "--url", "localhost:8086"], 2, "a server's URL is written like http://127.0.0.1:8086");
    check(
        &["list", "--url", "http://127.0.0.1:1"],
        1,
        "cannot reach http://127.0.0.1:1 (is `redeliver serve`",
    );
    check(&["list", "--url", "http://x", "--store", "sqlite:x.db"], 2, "cannot be used with");
    check(&["list", "--store", "memory:"], 2, "are in their server's process only: give its --url");
    check(&["list", "--status", "ded"], 2, "dead");
    check(&["show"], 2, "<ID>");
    check(&["send"], 2, "--to");
    check(&["send", "--to", "ada@example.org", "--eml", "x.eml"], 2, "cannot be used with");
    check(&["send", "--from-json", "-"], 2, "- is not JSON");
    check(&["send", "--eml", "gone.eml"], 2, "cannot read gone.eml: No such file");
    check(&["send", "--to", "ada@example.org", "--attach", "gone.pdf"], 2, "cannot read gone.pdf");
    check(&["send", "--to", "ada", "--subject", "x\ny"], 1, "\n  email.to[0].address has no @");
    check(&["send", "--to", "ada@example.org", "--text", "x", "--route", "post"], 1, "route names no route");
    check(
        &["send", "--to", "ada@example.org", "--text", "x", "--wait", "0s"],
        2,
        "must be longer than nothing",
    );
    std::fs::remove_file(face.place.path("redeliver.toml")).unwrap();
    std::fs::remove_file(face.place.path("store.db")).unwrap();
    check(&["list"], 2, "say where the messages are: --url URL");
}

#[test]
fn what_was_given_up_is_grouped_and_dismissed_together_and_deeds_are_told() {
    for face in Face::both(ROUTES) {
        for to in ["ada@example.org", "bob@example.org"] {
            let email = json!({ "to": to, "subject": "Hi", "text": "x" });
            face.send(
                &json!({ "route": "email", "attempts": 3, "error": format!("550 no user {to}"), "email": email }),
            );
        }
        let groups = face.json(&["dead", "--json"]);
        assert_eq!(
            (&groups[0]["count"], &groups[0]["error"]),
            (&json!(2), &json!("550 no user (address)")),
            "{groups:?}"
        );
        let fingerprint = groups[0]["fingerprint"].as_str().unwrap();
        assert!(face.ask(&["dead"]).contains(fingerprint));
        assert_eq!(face.json(&["list", "--json", "--recipient", "ada@"]).len(), 1);
        assert_eq!(face.json(&["list", "--json", "--error", "no user", "--since", "1h"]).len(), 2);
        assert!(face.json(&["list", "--json", "--before", "1h"]).is_empty());

        let meant = face.ask(&["bulk", "dismiss", "--fingerprint", fingerprint, "--dry-run"]);
        assert!(meant.starts_with("dismiss 2 messages") && meant.ends_with("nothing was done\n"), "{meant}");
        let begun = face.ask(&["bulk", "dismiss", "--fingerprint", fingerprint, "--rate", "1"]);
        let (id, _) = begun.split_once("  ").unwrap();
        assert_eq!(face.json(&["bulk", "show", id, "--json"])[0]["action"], "dismiss");
        assert!(face.ask(&["bulk", "list"]).contains(id));

        let deeds = face.json(&["audit", "--json"]);
        assert!(deeds.iter().any(|deed| deed["subject"] == format!("bulk:{id}")), "{deeds:?}");
        assert!(face.ask(&["audit", "--utc"]).contains("bulk_dismiss"));
        assert_eq!(face.json(&["audit", "--json", "--subject", &format!("bulk:{id}")]).len(), 1);
        assert_eq!(face.json(&["audit", "--json", "--action", "bulk_dismiss", "--all"]).len(), 1);
        assert!(face.json(&["audit", "--json", "--actor", "nobody"]).is_empty());
        let said = face.tell(&["bulk", "stop", "nonsense"], "");
        assert_eq!((said.err.as_str(), said.code), ("redeliver: there is no such bulk operation\n", Some(1)));
    }
}

#[test]
fn a_campaign_is_made_filled_looked_at_launched_and_ended_by_the_command_line() {
    let config = ROUTES.replacen("policy = \"quick\"", "policy = \"quick\"\nkey_retention = \"forever\"", 1);
    let face = Face::served(&config);
    let file = |name: &str, text: &str| {
        let path = face.place.path(name);
        std::fs::write(&path, text).unwrap();
        path.display().to_string()
    };
    let campaign = json!({ "name": "Spring", "sequence_id": "s", "route": "email", "from": "ada@example.org", "start_at": "2099-03-02T00:00:00Z",
        "steps": [ { "order": 1, "subject": "Hi {{ first_name }}", "text": "Hello" }, { "order": 2, "delay_days": 2, "subject": "Again", "text": "Hello" } ] });
    let settings = file("settings.json", r#"{ "zone": "Europe/Paris", "daily_quota": 2 }"#);
    assert!(face.ask(&["campaign", "settings", &settings]).contains("Europe/Paris"));
    let made = face.ask(&["campaign", "create", &file("spring.json", &campaign.to_string())]);
    let id = made.trim();
    let people = "id,email,first_name\np-1,p1@example.org,Ada\np:2,nobody,Bob\np-3,p3@example.org,\n";
    let imported = face.tell(&["campaign", "import", id, &file("people.csv", people)], "");
    assert_eq!(imported.code, Some(1), "{}", imported.err);
    for line in ["line 3: id", "line 3: email", "2 prospects enrolled, 1 refused"] {
        assert!(imported.err.contains(line), "{line}: {}", imported.err);
    }
    assert!(face.ask(&["campaign", "list"]).contains("draft"));
    assert!(face.ask(&["campaign", "forecast", id]).contains("4 mails"));
    let launched = face.tell(&["campaign", "launch", id], "");
    assert!(launched.code == Some(1) && launched.err.contains("prospect p-3: step 1"), "{}", launched.err);
    let shown = face.tell(&["campaign", "show", id], "");
    assert!(shown.err.contains("prospect p-3: step 1") && shown.out.contains("running"), "{}", shown.err);
    let corrected = file("people.csv", "id,email,first_name\np-3,p3@example.org,Eve\n");
    face.ask(&["campaign", "import", id, &corrected]);
    assert!(face.tell(&["campaign", "launch", id], "").err.is_empty());
    assert!(face.ask(&["campaign", "days", id]).contains("2099-03-02"));
    let mails = face.json(&["campaign", "schedule", id, "--json"]);
    assert_eq!((mails.len(), &mails[0]["key"]), (4, &json!("p-1:s:1")));
    assert!(face.ask(&["campaign", "pause", id]).contains("paused"));
    assert!(face.ask(&["campaign", "resume", id]).contains("running"));
    assert!(face.ask(&["campaign", "pause", id, "p-1"]).starts_with("p-1  paused since "));
    assert_eq!(face.json(&["campaign", "show", id, "p-1", "--json"])[0]["state"], "paused");
    assert_eq!(face.ask(&["campaign", "resume", id, "p-1"]), "p-1  active\n");
    assert_eq!(face.tell(&["campaign", "pause", id, "p-9"], "").code, Some(1), "there is no such prospect");
    assert_eq!(
        face.ask(&["campaign", "stop", id, "p-1", "--reason", "unsubscribed"]),
        "p-1  stopped: unsubscribed\n"
    );
    let statuses = face.json(&["campaign", "schedule", id, "--json"]);
    assert!(statuses.iter().take(2).all(|mail| mail["status"] == "cancelled"), "{statuses:?}");
    assert!(face.ask(&["campaign", "cancel", id]).contains("cancelled"));
    assert_eq!(face.tell(&["campaign", "launch", id], "").code, Some(1), "it is ended");
    let listed = face.ask(&["suppressions", "list"]);
    assert!(listed.contains("p1@example.org") && listed.contains("unsubscribed"), "{listed}");
    let added = face.tell(&["suppressions", "add", "x@example.org", "p1@example.org"], "").err;
    assert!(added.contains("1 address added, 1 known already"), "{added}");
    let exported: String =
        face.json(&["suppressions", "list", "--json"]).iter().map(|one| format!("{one}\n")).collect();
    face.ask(&["suppressions", "remove", "x@example.org"]);
    assert!(!face.ask(&["suppressions", "list"]).contains("x@example.org"));
    let brought = face.tell(&["suppressions", "import", &file("list.jsonl", &exported)], "");
    assert_eq!(brought.code, Some(0), "what was listed can be brought back: {}", brought.err);
    assert!(face.ask(&["suppressions", "list"]).contains("x@example.org"));
}
