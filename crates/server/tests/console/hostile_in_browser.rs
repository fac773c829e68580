//! Whatever mails, people and other sides say, nothing of it runs in a real browser. Within this process, because much of it
//! would never pass the API. What people do in a browser is done to the shipped binary: `tests/console.rs`.

use std::sync::Arc;

use redeliver_core::bulk::Bulk;
use redeliver_core::gate::Scope;
use redeliver_engine::access::Role;
use redeliver_engine::stop::stop_pair;
use redeliver_engine::store::Store;
use redeliver_server::limits::Limits;
use redeliver_server::serve::serve;
use serde_json::json;
use tokio::net::TcpListener;
use tokio::runtime::Runtime;

use crate::browser::Visit;
use crate::hostile::{
    NASTY, drafts_saying, ended_saying, hostile_bulk, id_of, mail_saying, payload_saying, tried_saying,
};
use crate::stage::Stage;

/// Pages about everything.
const PAGES: [&str; 10] = [
    "",
    "/messages",
    "/dead-letters",
    "/bulk",
    "/campaigns",
    "/routes",
    "/audit",
    "/keys",
    "/email-queue?show=failed",
    "/email-queue",
];

#[test]
fn hostile_words_run_nowhere_in_a_browser() {
    let (runtime, stage) = (Runtime::new().unwrap(), Stage::new());
    let listener = runtime.block_on(TcpListener::bind("127.0.0.1:0")).unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    let (_stopper, stop) = stop_pair();
    runtime.spawn(serve(listener, stage.router.clone(), Arc::new(Limits::default()), stop));
    let mut visit = Visit::begin(&address);
    visit.log_in(&runtime.block_on(stage.key("ada", Role::Admin, None)).text);
    for (number, nasty) in NASTY.into_iter().enumerate() {
        let bulk = Bulk { id: format!("nasty-{number}").into(), ..hostile_bulk(nasty) };
        let ids = runtime.block_on(async {
            stage.key(nasty, Role::Viewer, None).await;
            assert!(stage.store.put_bulk(bulk, None).await.unwrap());
            stage.engine.pause(Scope::Destination, nasty, &nasty.into()).await.unwrap();
            stage.engine.pause(Scope::Sender, nasty, &nasty.into()).await.unwrap();
            let prospects: Vec<String> = (0..=number).map(|n| format!("{n}{}", id_of(nasty))).collect();
            let prospects: Vec<&str> = prospects.iter().map(String::as_str).collect();
            stage.campaign("default", nasty, nasty, &prospects).await;
            let [delivered, cancelled] = ended_saying(&stage, nasty, || {}).await;
            let paged = stage.accept(payload_saying(nasty)).await;
            let tried = tried_saying(&stage, nasty).await;
            let [draft, nowhere] = drafts_saying(&stage, &format!("drafts-{number}"), nasty, || {}).await;
            [stage.accept(mail_saying(nasty)).await, paged, delivered, cancelled, tried, draft, nowhere]
        });
        let messages = ids.iter().map(|id| format!("/admin/messages/{id}"));
        let others = [format!("/admin/bulk/nasty-{number}"), format!("/admin/campaigns/of-{}", number + 1)];
        for page in others.into_iter().chain(messages) {
            visit.go(&page);
            assert_eq!(visit.browser.ask("typeof window.hacked"), json!("undefined"), "{nasty}");
        }
    }
    for page in PAGES {
        visit.go(&format!("/admin{page}"));
        // What would run by a mouse or a focus has had its chance.
        visit.browser.ask(
            "document.querySelectorAll('*').forEach((e) => ['mouseover', 'focus', 'load', 'error'].forEach((k) => e.dispatchEvent(new Event(k)))), 0",
        );
        assert_eq!(visit.browser.ask("typeof window.hacked"), json!("undefined"), "{page}");
    }
    visit.look("hostile");
    visit.is_content();
}
