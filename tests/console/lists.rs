//! Lists as people use them: page by page, by everything that can be asked for, and what is done to all that match; and what
//! is stopped, let go.

use serde_json::{Value, json};

use crate::story::peer::Peer;
use crate::story::server::KEY;
use crate::story::until;
use crate::{Desk, mail};

/// The subjects of the mails that a list shows.
fn subjects(desk: &mut Desk) -> Vec<String> {
    let shown = desk.visit.browser.ask("[...document.querySelectorAll('a.row')].map((a) => a.innerText)");
    shown.as_array().unwrap().iter().map(|text| text.as_str().unwrap().to_owned()).collect()
}

/// A mail whose tries were used up elsewhere: it is dead when it comes.
fn dead(subject: &str) -> Value {
    json!({ "route": "email", "attempts": 6, "error": "451 try again later", "email": mail("ada@example.org", subject) })
}

#[test]
fn a_long_list_is_read_to_its_end_by_clicking_older_and_each_message_is_seen_once() {
    let mut desk = Desk::open();
    let all: Vec<String> = (0..120).map(|n| format!("Tour {n}")).collect();
    let answer = desk.server.post("/v1/messages", &all.iter().map(|subject| dead(subject)).collect());
    assert_eq!(answer.json.as_array().map(Vec::len), Some(120), "{}", answer.json);
    desk.visit.log_in(KEY);
    for list in ["/admin/messages", "/admin/email-queue"] {
        desk.visit.go(list);
        let first = subjects(&mut desk);
        let (mut seen, mut pages) = (first.clone(), 1);
        while desk.visit.count(".paging a[rel=next]") == 1 {
            desk.visit.browser.click_through(".paging a[rel=next]");
            seen.extend(subjects(&mut desk));
            pages += 1;
        }
        assert_eq!((pages, seen.len()), (3, 120), "{list}");
        seen.sort();
        seen.dedup();
        assert_eq!(seen.len(), 120, "{list}");
        assert_eq!(desk.visit.text(".paging a"), "Newest");
        desk.visit.browser.click_through(".paging a");
        assert_eq!(subjects(&mut desk), first, "{list}");
    }
    desk.visit.is_content();
}

#[test]
fn messages_are_filtered_in_a_browser_by_route_priority_workspace_key_recipient_and_time() {
    let mut desk = Desk::open_with(|place| {
        place
            .variable("REDELIVER_ROUTES__LETTERS__TRANSPORT", "smtp")
            .variable("REDELIVER_ROUTES__LETTERS__POLICY", "email")
    });
    let mut tour = dead("Tour");
    tour["key"] = json!("tour-17");
    tour["priority"] = json!("low");
    let mut letter = dead("Letter");
    letter["route"] = json!("letters");
    letter["workspace"] = json!("acme");
    letter["email"]["to"] = json!("grace@example.org");
    let answer = desk.server.post("/v1/messages", &json!([tour, letter]));
    assert_eq!(answer.json.as_array().map(Vec::len), Some(2), "{}", answer.json);
    desk.visit.log_in(KEY);
    desk.visit.go("/admin/messages");
    for (field, wanted, found) in [
        ("route", "letters", &["Letter"][..]),
        ("priority", "low", &["Tour"]),
        ("workspace", "acme", &["Letter"]),
        ("key", "tour-17", &["Tour"]),
        ("recipient", "GRACE@", &["Letter"]),
        ("since", "1h", &["Letter", "Tour"]),
        ("before", "1h", &[]),
    ] {
        if desk.visit.count(&format!("select#{field}")) == 1 {
            desk.visit.choose(field, wanted);
        } else {
            desk.visit.browser.click(&format!("#{field}"));
            desk.visit.browser.write(wanted);
        }
        desk.visit.browser.click_through("#filter button");
        let mut seen = subjects(&mut desk);
        seen.sort();
        assert_eq!(seen, found, "{field} {wanted}");
        let asked = desk.visit.browser.ask(&format!("document.getElementById('{field}').value"));
        assert_eq!(asked, json!(wanted), "the form still says what was asked for");
        desk.visit.browser.click_through("#filter a.reset");
        assert_eq!(subjects(&mut desk).len(), 2);
    }
    desk.visit.is_content();
}

#[test]
fn a_group_of_dead_letters_is_dismissed_in_a_browser_and_the_others_stay() {
    let mut desk = Desk::open();
    let group = [desk.refused("A letter"), desk.refused("Another letter")];
    let other = desk.server.post("/v1/messages", &dead("Tour")).json["id"].as_str().unwrap().to_owned();
    desk.visit.log_in(KEY);
    desk.visit.go("/admin/dead-letters");
    assert_eq!(desk.visit.count("tbody tr"), 2);
    desk.visit.browser.ask(
        "[...document.querySelectorAll('tbody tr')].find((row) => row.innerText.includes('no such user')).id = 'lost', 0",
    );
    desk.visit.browser.click_through("#lost button[value=dismiss]");
    assert_eq!(desk.visit.text("#count"), "2");
    assert!(desk.server.message(&group[0])["dismissed_at"].is_null(), "nothing has happened yet");
    desk.visit.browser.click_through(".sure button");
    assert_eq!(desk.bulk_ended()["done"], 2);
    for id in &group {
        assert!(desk.server.message(id)["dismissed_at"].is_string());
    }
    assert!(desk.server.message(&other)["dismissed_at"].is_null());
    desk.visit.go("/admin/dead-letters");
    assert_eq!(desk.visit.count("tbody tr"), 1);
    assert!(desk.visit.text("a.row").contains("try again later"));
    desk.visit.is_content();
}

#[test]
fn a_destination_and_a_sender_that_are_stopped_are_released_in_a_browser_and_their_mails_go_out() {
    let mut desk = Desk::open();
    desk.sink.tell("accept");
    let destination = desk.sink.url().trim_start_matches("smtp://").to_owned();
    desk.visit.log_in(KEY);
    for (scope, name) in [("destination", destination.as_str()), ("sender", "desk@example.org")] {
        let paused = desk.server.post(&format!("/v1/{scope}s/{name}/pause"), &Value::Null);
        assert_eq!(paused.status, 200, "{}", paused.json);
        let subject = format!("For the {scope}");
        let mail = mail("ada@example.org", &subject);
        let held = desk.server.post(
            "/v1/messages",
            &json!({ "route": "email", "attributes": { "sender": "desk@example.org" }, "email": mail }),
        );
        let held = held.json["id"].as_str().unwrap_or_else(|| panic!("{}", held.json)).to_owned();
        until("it waits for that", || desk.server.message(&held)["status"] == "held");
        desk.visit.go("/admin");
        let stopped = desk.visit.text("#stopped + table");
        assert!(stopped.contains(name) && stopped.contains("paused"), "{stopped}");
        desk.visit.look("stopped");
        assert_eq!(desk.arrived(&subject), 0);
        desk.visit.browser.click("#stopped + table summary");
        desk.visit.browser.click_through("#stopped + table form button");
        desk.server.wait_for_status(&held, "delivered");
        assert_eq!(desk.arrived(&subject), 1);
        assert_eq!(desk.visit.count("#stopped"), 0, "nothing is stopped any more");
        assert_eq!(desk.deeds(&format!("{scope}:{name}"))[0].1, "resume");
    }
    desk.visit.is_content();
}
