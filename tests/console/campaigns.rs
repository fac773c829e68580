//! A campaign in a browser, from its draft to its end: what the page draws is what the API counts and what arrives.

use serde_json::{Value, json};

use crate::browser::Visit;
use crate::story::peer::{Peer, Sink};
use crate::story::server::{KEY, Place};
use crate::story::until;

#[test]
fn a_campaign_is_launched_paused_resumed_and_ended_in_a_browser() {
    let sink = Sink::new();
    let place = Place::profile("campaigns").variable("SMTP_URL", &sink.url()).with_clock();
    let server = place.serve();
    let mut visit = Visit::begin(&server.url);
    visit.log_in(KEY);
    visit.go("/admin/campaigns");
    assert!(visit.text(".empty pre").starts_with("redeliver campaign create"));
    visit.look("no-campaigns");

    let steps = json!([ { "order": 1, "subject": "Hi {{ first_name }}", "text": "Hello {{ first_name }}" },
        { "order": 2, "delay_days": 2, "subject": "Did you see this?", "text": "Hello again" },
        { "order": 3, "delay_days": 4, "subject": "The last one", "text": "Goodbye" } ]);
    let settings = json!({ "days": ["mon", "tue", "wed", "thu", "fri"], "start": "09:00", "end": "17:00", "zone": "Europe/Paris",
        "daily_quota": 10, "ramp_up": { "start": 4, "step": 2 }, "spacing": ["30s", "90s"] });
    let made = server.post(
        "/v1/campaigns",
        &json!({ "name": "Spring", "sequence_id": "seq-1", "route": "email", "from": "ada@example.org",
            "steps": steps, "settings": settings }),
    );
    let id = made.json["id"].as_str().unwrap_or_else(|| panic!("{}", made.json)).to_owned();
    let prospect =
        |n| json!({ "id": format!("p-{n}"), "email": format!("p{n}@example.org"), "first_name": "Ada" });
    let lines: String = (1..=40).map(|n| format!("{}\n", prospect(n))).collect();
    server.post_text(&format!("/v1/campaigns/{id}/prospects"), "application/x-ndjson", &lines);
    let campaign = format!("/v1/campaigns/{id}");
    let state = || server.get(&campaign).json["state"].as_str().unwrap().to_owned();
    visit.go("/admin/campaigns");
    visit.browser.press("j");
    assert_eq!(visit.browser.ask("document.activeElement.innerText"), json!("Spring"));
    visit.browser.click_through("a.row");
    let page = visit.path();
    assert_eq!(page, format!("/admin/campaigns/{id}"));
    assert!(
        visit.text(".sentence").contains("Forecast: 120 mails are done on "),
        "{}",
        visit.text(".sentence")
    );
    assert_eq!(state(), "draft");
    visit.confirm(&format!("{page}/launch"));
    assert_eq!((visit.text("#state"), state()), ("running".to_owned(), "running".to_owned()));
    assert_eq!(server.get(&campaign).json["scheduled"], 120);
    // All of them are seen by going on with "More", and then the first again.
    let shown = |visit: &mut Visit| {
        let rows = "[...document.querySelectorAll('a.row')].map(row => row.closest('tr').innerText.split('\\t', 3)).join()";
        visit.browser.ask(rows)
    };
    let first = shown(&mut visit);
    let mut seen = visit.count("a.row");
    while visit.count(".paging a[rel=next]") == 1 {
        visit.browser.click_through(".paging a[rel=next]");
        seen += visit.count("a.row");
    }
    assert_eq!(seen, 120);
    assert_eq!(visit.text(".paging a"), "First");
    visit.browser.click_through(".paging a");
    assert_eq!((visit.path(), shown(&mut visit)), (page.clone(), first));

    // Two days pass: four mails on the first, six on the second. The API says the same as the drawing.
    let next = || {
        let items = server.get(&format!("{campaign}/schedule?limit=500")).json["items"].take();
        let items = items.as_array().unwrap().iter().filter(|item| item["status"] == "scheduled");
        items.map(|item| item["due_at"].as_str().unwrap().parse().unwrap()).min().unwrap()
    };
    visit.leave();
    while sink.mails().len() < 10 {
        server.leap_to(next());
    }
    let days = server.get(&format!("{campaign}/days")).json;
    let first: Vec<[u64; 3]> = days["items"].as_array().unwrap()[..3]
        .iter()
        .map(|day| ["planned", "sent", "quota"].map(|name| day[name].as_u64().unwrap()))
        .collect();
    assert_eq!((first, &days["sent"]), (vec![[4, 4, 4], [6, 6, 6], [8, 0, 8]], &json!(10)));
    // Nobody stays logged in for days.
    visit.log_in(KEY);
    visit.go(&page);
    assert_eq!(visit.text("#sent"), "10");
    assert!(visit.count(".calendar .planned") > 10 && visit.count(".calendar .sent") == 2);
    visit.look("campaign");
    visit.go("/admin/campaigns");
    assert!(visit.text("tbody").contains("10 of 120"), "{}", visit.text("tbody"));
    visit.look("campaigns");

    // Paused, nothing goes out, and who waits says what for; resumed, it goes on; ended, it is over.
    visit.go(&page);
    visit.confirm(&format!("{page}/pause"));
    assert_eq!((visit.text("#state"), state()), ("paused".to_owned(), "paused".to_owned()));
    visit.leave();
    server.leap_to(next());
    assert_eq!(sink.mails().len(), 10);
    visit.log_in(KEY);
    visit.go(&page);
    visit.until("document.body.innerText.includes('campaign is paused')");
    visit.browser.click_through(&format!("form[action='{page}/resume'] button"));
    assert_eq!((visit.text("#state"), state()), ("running".to_owned(), "running".to_owned()));
    visit.leave();
    until("what waited goes out", || {
        server.leap(60);
        sink.mails().len() > 10
    });

    // One prospect is looked up, paused, resumed, and stopped for good.
    visit.go(&page);
    visit.browser.ask("document.querySelector('#prospect').value = 'p-40'");
    visit.browser.click_through("form[role=search] button");
    let found = format!("{page}?prospect=p-40");
    assert_eq!((visit.path(), visit.text("#standing")), (found, "active".to_owned()));
    let one = format!("{page}/prospects/p-40");
    visit.browser.click_through(&format!("form[action='{one}/pause'] button"));
    assert_eq!(visit.text("#standing"), "paused");
    visit.look("prospect");
    visit.browser.click_through(&format!("form[action='{one}/resume'] button"));
    assert_eq!(visit.text("#standing"), "active");
    visit.confirm(&format!("{one}/stop"));
    assert_eq!(visit.text("#standing"), "stopped");
    assert_eq!(server.get(&format!("{campaign}/prospects/p-40")).json["stopped_for"], "replied");
    assert_eq!(
        (visit.text("#cancelled"), &server.get(&campaign).json["cancelled"]),
        ("3".to_owned(), &json!(3))
    );

    // A sender who is stopped is seen here, and let go again.
    assert_eq!(server.post("/v1/senders/ada@example.org/pause", &Value::Null).status, 200);
    visit.go(&page);
    assert!(visit.text(".note.sender").starts_with("The sender ada@example.org is paused"));
    visit.look("sender-stopped");
    visit.browser.click_through(&format!("form[action='{page}/let-go'] button"));
    assert_eq!(visit.count(".note.sender"), 0);
    visit.confirm(&format!("{page}/cancel"));
    assert_eq!((visit.text("#state"), state()), ("cancelled".to_owned(), "cancelled".to_owned()));
    visit.is_content();
}
