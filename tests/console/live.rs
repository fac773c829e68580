//! Open lists find out by themselves what has changed, and take nothing out of anybody's hands.

use serde_json::json;

use crate::Desk;
use crate::story::server::KEY;

/// The lists, each with a text that is there once something has failed, and none of them when they are opened.
const LISTS: [(&str, &str); 4] = [
    ("/admin/email-queue", "The tour was moved"),
    ("/admin/messages", "The tour was moved"),
    ("/admin/dead-letters", "no such user here"),
    ("/admin/bulk", "one message"),
];

#[test]
fn open_lists_find_out_by_themselves_and_take_nothing_out_of_anybodys_hands() {
    let mut desk = Desk::open();
    desk.visit.log_in(KEY);
    for (page, text) in LISTS {
        desk.visit.go(page);
        assert!(!desk.visit.text("main").contains(text), "{page}");
        let id = desk.refused("The tour was moved");
        if page == "/admin/bulk" {
            desk.server.post("/v1/bulk", &json!({ "action": "dismiss", "ids": [id] }));
        }
        desk.visit.until(&format!("document.querySelector('main').innerText.includes({})", json!(text)));
        // Whoever has an empty list before them the next time sees that it fills.
        desk.server.post(
            "/v1/bulk",
            &json!({ "action": "dismiss", "filter": { "status": "dead" }, "rate_per_s": 1000 }),
        );
        desk.visit.go("/admin/email-queue");
        desk.visit.until("document.querySelector('.empty') !== null");
    }

    // Whoever stands on a row stands on it still, wherever it has come to.
    desk.put_off("The first");
    desk.visit.go("/admin/messages?status=retrying");
    desk.visit.browser.press("j");
    desk.put_off("The second");
    desk.visit.until("document.querySelectorAll('tbody tr').length === 2");
    assert_eq!(desk.visit.browser.ask("document.activeElement.innerText"), json!("The first"));

    // Whoever has chosen something has it until they let go of it.
    desk.visit.browser.click("tbody tr:last-child input");
    desk.put_off("The third");
    desk.visit.browser.ask(
        "window.heard = 0; new EventSource('/admin/live').addEventListener('changed', () => window.heard++), 0",
    );
    desk.visit.until("window.heard >= 1");
    assert_eq!((desk.visit.count("tbody tr"), desk.visit.count("tbody :checked")), (2, 1));
    desk.visit.browser.click("tbody tr:last-child input");
    desk.visit.browser.click("h1");
    desk.visit.until("document.querySelectorAll('tbody tr').length === 3");

    // A list without a filter of its own leads to that of all messages.
    desk.visit.go("/admin/dead-letters");
    desk.visit.browser.press_through("/");
    assert_eq!(desk.visit.browser.ask("location.pathname"), json!("/admin/messages"));
    assert_eq!(desk.visit.browser.ask("document.activeElement?.id"), json!("recipient"));
    desk.visit.is_content();
}
