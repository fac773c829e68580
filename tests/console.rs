//! The console of the shipped binary in a real browser, with real mails to a real mail server: every page, and everything that
//! people do there, held against what the API and the mail server say happened.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a story that can't go on has failed")]

#[path = "browser/mod.rs"]
mod browser;
#[path = "console/campaigns.rs"]
mod campaigns;
#[path = "console/lists.rs"]
mod lists;
#[path = "console/live.rs"]
mod live;
#[path = "console/newcomer.rs"]
mod newcomer;
#[path = "story/mod.rs"]
mod story;

use browser::Visit;
use serde_json::{Value, json};
use story::peer::{Peer, Sink};
use story::server::{KEY, Place, Server};
use story::{until, until_some};

/// What the mail server does until it is mended: it refuses those who are lost, and asks for the others later.
const BROKEN: &str = "refuse 550 5.1.1 no such user here for lost@*\ndefer 451 4.3.2 try again later";

/// The outbox before a mail server that is out of order, and somebody before its console.
struct Desk {
    sink: Sink,
    server: Server,
    visit: Visit,
}

impl Desk {
    fn open() -> Self {
        Self::open_with(|place| place)
    }

    /// The same, with something else about its place.
    fn open_with(other: impl FnOnce(Place) -> Place) -> Self {
        let sink = Sink::new();
        sink.tell(BROKEN);
        // Nothing is tried again while the story goes on, unless somebody says so.
        let place = Place::outbox(&sink.url())
            .variable("REDELIVER_POLICIES__EMAIL__BACKOFF", "30m")
            .variable("REDELIVER_ROUTES__EMAIL__RETENTION", "1h");
        let server = other(place).serve();
        let visit = Visit::begin(&server.url);
        Self { sink, server, visit }
    }

    /// A new key of this role.
    fn key(&self, name: &str, role: &str) -> String {
        let made = self.server.post("/v1/keys", &json!({ "name": name, "role": role }));
        made.json["key"].as_str().unwrap_or_else(|| panic!("{}", made.json)).to_owned()
    }

    /// Has a mail accepted, and waits until it has been tried once.
    fn send(&self, mail: &Value) -> String {
        let email = json!({ "route": "email", "email": mail });
        let answer = self.server.post("/v1/messages", &email);
        let id = answer.json["id"].as_str().unwrap_or_else(|| panic!("{}", answer.json)).to_owned();
        until("it has been tried", || self.server.message(&id)["attempts"] == 1);
        until("its try is written down", || {
            ["retrying", "dead"].map(Value::from).contains(&self.server.message(&id)["status"])
        });
        id
    }

    /// A mail that is put off.
    fn put_off(&self, subject: &str) -> String {
        self.send(&mail("ada@example.org", subject))
    }

    /// A mail that is refused.
    fn refused(&self, subject: &str) -> String {
        self.send(&mail("lost@example.org", subject))
    }

    /// What people did to this, newest first: who and what.
    fn deeds(&self, subject: &str) -> Vec<(String, String)> {
        let audit = self.server.get("/v1/audit?limit=500").json;
        let items = audit["items"].as_array().unwrap().iter();
        let text = |value: &Value| value.as_str().unwrap().to_owned();
        let of = items.filter(|deed| deed["subject"] == subject);
        of.map(|deed| (text(&deed["actor"]), text(&deed["action"]))).collect()
    }

    /// The bulk operation whose page is open, once it has ended.
    fn bulk_ended(&mut self) -> Value {
        let id = self.visit.path().rsplit('/').next().unwrap().to_owned();
        until_some("the bulk operation has ended", || {
            let bulk = self.server.get(&format!("/v1/bulk/{id}")).json;
            (bulk["standing"] == "done" || bulk["standing"] == "stopped").then_some(bulk)
        })
    }

    /// How often the mail server got a mail about this.
    fn arrived(&self, subject: &str) -> usize {
        let line = format!("Subject: {subject}");
        let is_about = |data: &[u8]| String::from_utf8_lossy(data).contains(&line);
        self.sink.mails().iter().filter(|mail| is_about(&mail.data)).count()
    }
}

fn mail(to: &str, subject: &str) -> Value {
    let to = json!({ "address": to, "name": "Ada Lovelace" });
    json!({ "from": "desk@example.org", "to": [to], "subject": subject, "text": "Your booking is confirmed." })
}

#[test]
fn an_operator_mends_in_a_browser_what_has_failed() {
    let mut desk = Desk::open();
    let key = desk.key("ada", "operator");

    // In.
    desk.visit.browser.tell("Emulation.setTimezoneOverride", json!({ "timezoneId": "Asia/Kathmandu" }));
    desk.visit.go("/");
    assert_eq!(desk.visit.path(), "/login");
    desk.visit.look("login");
    desk.visit.log_in(&key);
    assert_eq!(desk.visit.browser.ask("document.cookie"), json!(""), "no script can read the session");

    // Who has nothing yet is told how to begin.
    desk.visit.go("/admin/email-queue");
    assert!(desk.visit.text(".empty pre").starts_with("redeliver send"));
    desk.visit.look("empty");

    // What is wrong is seen at once.
    desk.put_off("Your booking of 1 December");
    desk.put_off("Reminder: the tour begins at nine");
    let (invoice, letter) = (desk.refused("Invoice 17"), desk.refused("A letter that came back"));
    desk.visit.go("/admin");
    assert!(desk.visit.text(".card.warning").contains('2'), "pending");
    assert!(desk.visit.text(".card.alarm").contains('2'), "failed");
    let lately = desk.visit.text("#lately + .charts");
    assert!(lately.contains("2 retried") && lately.contains("2 dead"), "{lately}");

    // Whoever listens is told that something has changed, and the page finds out by itself.
    desk.visit.browser.ask(
        "window.heard = 0; new EventSource('/admin/live').addEventListener('changed', () => window.heard++), 0",
    );
    desk.visit.until("window.heard >= 1");
    desk.put_off("A note");
    desk.visit.until("window.heard >= 2");
    desk.visit.until("document.querySelector('.card.warning .number').innerText === '3'");
    desk.visit.look("overview");
    desk.visit.browser.click_through(".card.alarm a");
    assert_eq!(desk.visit.path(), "/admin/email-queue?show=failed");
    desk.visit.browser.click_through("#filter a");
    desk.visit.look("queue");

    // Times are the reader's own, and exact on hover.
    let created = "document.querySelector('td.when[data-label=Accepted] time').title";
    let created = desk.visit.browser.ask(created);
    assert!(created.as_str().unwrap().contains("GMT+5:45"), "{created}");

    // Keys.
    for key in ["j", "j", "k"] {
        desk.visit.browser.press(key);
    }
    let first = desk.visit.text("a.row");
    assert_eq!(desk.visit.browser.ask("document.activeElement.innerText"), json!(first));
    desk.visit.browser.press("/");
    assert_eq!(desk.visit.browser.ask("document.activeElement.innerText"), json!("All open"));
    desk.visit.browser.press("?");
    assert_eq!(desk.visit.browser.ask("document.getElementById('keys').open"), json!(true));
    desk.visit.look("keys");
    desk.visit.browser.click("#keys button");

    // The mail server is mended, and a failed mail goes out.
    desk.sink.tell("accept");
    let retry = format!("/admin/messages/{invoice}/retry");
    desk.visit.browser.click(&format!("details:has(form[action='{retry}']) summary"));
    desk.visit.look("retry");
    desk.visit.browser.click_through(&format!("form[action='{retry}'] button"));
    assert!(desk.visit.text("[role=status]").starts_with("Retried"), "{}", desk.visit.text("main"));
    desk.server.wait_for_status(&invoice, "delivered");
    assert_eq!(desk.arrived("Invoice 17"), 1);
    assert_eq!(desk.deeds(&invoice), [("ada".to_owned(), "retry".to_owned())]);

    // The other one is put away, without script.
    desk.visit.go(&format!("/admin/messages/{letter}"));
    desk.visit.look("message");
    desk.visit.browser.tell("Emulation.setScriptExecutionDisabled", json!({ "value": true }));
    desk.visit.go("/admin/email-queue?show=failed");
    assert!(desk.visit.text("td.when").contains("none"));
    assert!(desk.visit.text("td[data-label=Accepted]").ends_with("UTC"));
    desk.visit.confirm(&format!("/admin/messages/{letter}/dismiss"));
    assert!(desk.visit.text("[role=status]").starts_with("Dismissed"));
    assert_eq!(desk.server.get("/api/admin/dashboard").json["failedEmailCount"], 0);
    assert_eq!(desk.visit.text(".empty h2"), "No failed e-mails");
    desk.visit.look("nothing-failed");
    desk.visit.browser.tell("Emulation.setScriptExecutionDisabled", json!({ "value": false }));
    desk.visit.is_content();

    // What is not there is said, and then out.
    desk.visit.go("/admin/nothing");
    desk.visit.look("refusal");
    desk.visit.go("/admin");
    desk.visit.browser.click_through(".who button");
    assert_eq!(desk.visit.path(), "/login");
    desk.visit.go("/admin/messages");
    assert_eq!(desk.visit.path(), "/login", "whoever is out is out");
}

#[test]
fn one_message_is_cancelled_put_away_brought_back_and_retried_in_a_browser_and_its_page_knows() {
    let mut desk = Desk::open();
    let key = desk.key("ada", "operator");
    let (reminder, letter) = (desk.put_off("Reminder: the tour begins at nine"), desk.refused("A letter"));
    let mut invitation = mail("ada@example.org", "Invitation");
    invitation["html"] =
        json!("<h1>Come</h1><script>parent.hacked=1</script><img src=x onerror=parent.hacked=1>");
    invitation["ics"] = json!({ "content": "BEGIN:VCALENDAR\r\nEND:VCALENDAR\r\n", "method": "REQUEST" });
    let invitation = desk.send(&invitation);
    desk.visit.log_in(&key);

    // What comes is drawn ahead, until a person says that nothing comes.
    desk.visit.go(&format!("/admin/messages/{reminder}"));
    assert_eq!(desk.visit.count("li.ahead"), 3);
    assert!(desk.visit.text(".sentence").contains("451 4.3.2 try again later"));
    desk.visit.look("waiting");
    desk.visit.confirm(&format!("/admin/messages/{reminder}/cancel"));
    assert!(desk.visit.text("[role=status]").starts_with("Cancelled"));
    assert_eq!(desk.server.message(&reminder)["status"], "cancelled");
    assert_eq!(desk.visit.count("li.ahead"), 0);

    // A failed one is put away, brought back, and retried; the page sees it arrive.
    desk.visit.go(&format!("/admin/messages/{letter}"));
    desk.visit.confirm(&format!("/admin/messages/{letter}/dismiss"));
    assert!(desk.server.message(&letter)["dismissed_at"].is_string());
    desk.visit.browser.click_through(&format!("form[action='/admin/messages/{letter}/restore'] button"));
    assert!(desk.server.message(&letter)["dismissed_at"].is_null());
    desk.sink.tell("accept");
    desk.visit.confirm(&format!("/admin/messages/{letter}/retry"));
    desk.visit.until("document.querySelector('.badge').innerText === 'delivered'");
    assert_eq!(desk.arrived("A letter"), 1);
    let deeds: Vec<String> = desk.deeds(&letter).into_iter().map(|(_, what)| what).collect();
    assert_eq!(deeds, ["retry", "restore", "dismiss"]);
    desk.visit.is_content();

    // A wrong address is corrected: first the difference is seen, then it goes out to the right one.
    desk.sink.tell(BROKEN);
    let astray = desk.refused("A letter astray");
    desk.sink.tell("accept");
    desk.visit.go(&format!("/admin/messages/{astray}"));
    desk.visit.browser.click_through("a.button[href$='/edit']");
    desk.visit.browser.ask("document.getElementById('to').value = 'grace@example.org'");
    desk.visit.look("edit");
    desk.visit.browser.click_through(".correct button");
    assert!(desk.visit.text("main").contains("grace@example.org"));
    assert_eq!(desk.server.message(&astray)["status"], "dead", "nothing has happened yet");
    desk.visit.look("edit-plan");
    desk.visit.browser.click_through(".sure button");
    desk.server.wait_for_status(&astray, "delivered");
    assert_eq!(desk.arrived("A letter astray"), 1);
    assert!(desk.sink.mails().iter().any(|mail| mail.to == ["grace@example.org"]));
    desk.visit.is_content();

    // A mail's HTML is seen and does nothing.
    desk.visit.go(&format!("/admin/messages/{invitation}"));
    desk.visit.browser.click("details.frame summary");
    desk.visit.until("performance.getEntriesByType('resource').some((e) => e.name.endsWith('/body'))");
    desk.visit.look("carries");
    assert_eq!(desk.visit.browser.ask("typeof window.hacked"), json!("undefined"));
    let is_blocked = |said: &String| {
        ["sandbox", "Content Security Policy", "frame"].iter().any(|word| said.contains(word))
    };
    desk.visit.browser.complaints.retain(|said| !is_blocked(said));
    desk.visit.is_content();

    // A viewer sees where it stands, and neither what it says nor a button.
    let key = desk.key("eve", "viewer");
    desk.visit.browser.tell("Network.clearBrowserCookies", json!({}));
    desk.visit.log_in(&key);
    desk.visit.go(&format!("/admin/messages/{invitation}"));
    assert!(!desk.visit.text("main").contains("Your booking is confirmed"));
    assert_eq!(desk.visit.count("main form"), 0);
}

#[test]
fn many_messages_are_found_looked_at_and_done_at_once_in_a_browser() {
    let mut desk = Desk::open();
    let (reminder, note) = (desk.put_off("Reminder: the tour begins at nine"), desk.put_off("A note"));
    let letter = desk.refused("A letter that came back");
    let second = desk.refused("Another letter that came back");
    desk.visit.log_in(KEY);

    // By an error, from the keyboard.
    desk.visit.go("/admin/messages");
    assert_eq!(desk.visit.count("tbody tr"), 4);
    desk.visit.look("messages");
    desk.visit.browser.press("/");
    assert_eq!(desk.visit.browser.ask("document.activeElement.id"), json!("recipient"));
    desk.visit.browser.click("#error");
    desk.visit.browser.write("no such user");
    desk.visit.browser.click_through("#filter button");
    assert_eq!(desk.visit.count("tbody tr"), 2);
    assert_eq!(desk.visit.text("a.row"), "Another letter that came back");
    desk.visit.browser.click_through(&format!("a.row[href$='{letter}']"));
    assert_eq!(desk.visit.path(), format!("/admin/messages/{letter}"));

    // One of those that wait is chosen and cancelled; the other one goes on waiting.
    desk.visit.go("/admin/messages?status=retrying");
    desk.visit.browser.click(&format!("input[value='{note}']"));
    desk.visit.browser.click_through("#chosen button[value=cancel]");
    assert_eq!(desk.visit.text("#count"), "1");
    assert_eq!(desk.server.message(&note)["status"], "retrying", "nothing has happened yet");
    desk.visit.browser.click_through(".sure button");
    assert_eq!(desk.bulk_ended()["done"], 1);
    assert_eq!(desk.server.message(&note)["status"], "cancelled");
    assert_eq!(desk.server.message(&reminder)["status"], "retrying");

    // All that match are retried, carefully, and it stops by itself: the mail server still refuses.
    desk.visit.go("/admin/messages?status=dead");
    desk.visit.choose("all", "all");
    desk.visit.browser.click_through("#chosen button[value=retry]");
    assert_eq!(desk.visit.text("#count"), "2");
    desk.visit.look("bulk-plan");
    desk.visit.browser.click_through(".sure button");
    let ended = desk.bulk_ended();
    assert_eq!((&ended["standing"], &ended["done"]), (&json!("stopped"), &json!(1)), "{ended}");
    // The page finds out by itself.
    desk.visit.until("document.getElementById('standing').innerText === 'stopped'");
    assert!(desk.visit.text(".sentence").contains("failed again"));
    desk.visit.look("bulk");
    desk.visit.go("/admin/bulk");
    assert_eq!(desk.visit.count("tbody tr"), 2);
    desk.visit.look("bulks");

    // Once it is mended, the whole group of that error goes out, by one deed.
    desk.sink.tell("accept");
    desk.visit.go("/admin/dead-letters");
    assert!(desk.visit.text("a.row").contains("no such user"));
    assert_eq!(desk.visit.text("td[data-label=Messages]"), "2");
    desk.visit.look("dead-letters");
    desk.visit.browser.click_through("td.act button[value=retry]");
    assert_eq!(desk.visit.text("#count"), "2");
    desk.visit.browser.click_through(".sure button");
    assert_eq!(desk.bulk_ended()["standing"], "done");
    for id in [&letter, &second] {
        desk.server.wait_for_status(id, "delivered");
    }
    assert_eq!((desk.arrived("A letter that came back"), desk.arrived("Another letter")), (1, 1));
    desk.visit.go("/admin/dead-letters");
    assert_eq!(desk.visit.text(".empty h2"), "No dead messages");
    desk.visit.is_content();
}

#[test]
fn a_long_bulk_operation_is_paused_resumed_and_stopped_in_a_browser() {
    const DEAD: usize = 300;
    let mut desk = Desk::open();
    // Their tries were used up elsewhere: they are dead when they come.
    let dead = |n: usize| {
        let email = mail("ada@example.org", &format!("Tour {n}"));
        json!({ "route": "email", "attempts": 6, "error": "451 try again later", "email": email })
    };
    let answer = desk.server.post("/v1/messages", &(0..DEAD).map(dead).collect());
    assert_eq!(answer.json.as_array().map(Vec::len), Some(DEAD), "{}", answer.json);
    desk.visit.log_in(KEY);
    desk.visit.go("/admin/messages?status=dead");
    desk.visit.choose("all", "all");
    desk.visit.browser.click_through("#chosen button[value=dismiss]");
    assert_eq!(desk.visit.text("#count"), DEAD.to_string());
    desk.visit.browser.ask("document.getElementById('rate_per_s').value = 1");
    desk.visit.browser.click_through(".sure button");
    let page = desk.visit.path();
    let bulk = format!("/v1/bulk/{}", page.rsplit('/').next().unwrap());
    // The page shows how far it has come, without being asked again.
    desk.visit.until("Number(document.getElementById('done').innerText) >= 1");
    for (deed, standing) in [("pause", "paused"), ("resume", "running")] {
        desk.visit.browser.click_through(&format!("form[action='{page}/{deed}'] button"));
        assert_eq!(desk.visit.text("#standing"), standing);
        assert_eq!(desk.server.get(&bulk).json["standing"], standing);
    }
    desk.visit.confirm(&format!("{page}/stop"));
    assert_eq!(desk.visit.text("#standing"), "stopped");
    let ended = desk.server.get(&bulk).json;
    let done = ended["done"].as_u64().unwrap() as usize;
    assert!(ended["standing"] == "stopped" && (1..DEAD).contains(&done), "{ended}");
    let bulk = format!("bulk:{}", page.rsplit('/').next().unwrap());
    let deeds: Vec<String> = desk.deeds(&bulk).into_iter().map(|(_, what)| what).collect();
    assert_eq!(deeds.len(), 4, "{deeds:?}");
    desk.visit.is_content();
}

#[test]
fn an_admin_pauses_a_route_and_makes_and_revokes_a_key_in_a_browser() {
    let mut desk = Desk::open();
    let reminder = desk.put_off("Reminder: the tour begins at nine");
    let key = desk.key("grace", "admin");
    desk.visit.log_in(&key);

    // A route is stopped: what comes now waits. It goes on, and all of that is written down.
    desk.sink.tell("accept");
    desk.visit.go("/admin/routes");
    desk.visit.confirm("/admin/routes/email/pause");
    assert!(desk.visit.text(".note.warning").starts_with("paused by grace"), "{}", desk.visit.text("main"));
    desk.visit.look("routes");
    let held = desk
        .server
        .post("/v1/messages", &json!({ "route": "email", "email": mail("ada@example.org", "Held") }));
    let held = held.json["id"].as_str().unwrap().to_owned();
    let why = desk.server.get(&format!("/v1/messages/{held}/explain")).json["sentence"].to_string();
    assert!(why.contains("paused by grace"), "{why}");
    desk.visit.go("/admin");
    assert!(desk.visit.text("#stopped + table").contains("paused"));
    assert_eq!(desk.arrived("Held"), 0);
    desk.visit.go("/admin/routes");
    desk.visit.browser.click_through("form[action='/admin/routes/email/resume'] button");
    desk.server.wait_for_status(&held, "delivered");
    assert_eq!(desk.arrived("Held"), 1);
    assert_eq!(desk.server.message(&reminder)["status"], "retrying");
    desk.visit.go("/admin/audit");
    assert_eq!(desk.visit.text("td.deed"), "resume");
    desk.visit.look("audit");

    // A key is made and shown once, opens the door, and no longer once it is revoked.
    desk.visit.go("/admin/keys");
    desk.visit.browser.click("#name");
    desk.visit.browser.write("booking");
    desk.visit.browser.click_through(".fields button");
    let made = desk.visit.text("#made");
    assert!(made.starts_with("rdk_"), "{made}");
    desk.visit.look("keys-made");
    desk.visit.go("/admin/keys");
    assert_eq!(desk.visit.text("#made"), "");
    let booking = |desk: &Desk| {
        let keys = desk.server.get("/v1/keys").json;
        keys["items"].as_array().unwrap().iter().find(|key| key["name"] == "booking").unwrap().clone()
    };
    let id = booking(&desk)["id"].as_str().unwrap().to_owned();
    let mut other = Visit::begin(&desk.server.url);
    other.log_in(&made);
    desk.visit.confirm(&format!("/admin/keys/{id}/revoke"));
    assert!(booking(&desk)["revoked_at"].is_string());
    other.go("/admin/messages");
    assert_eq!(other.path(), "/login", "whoever came in by it is out");
    desk.visit.is_content();
}
