//! The overview, the queue and a message's page, and what is done there.

use std::sync::Arc;
use std::time::Duration;

use axum::http::StatusCode;
use redeliver_core::accept::NewMessage;
use redeliver_core::{Content, State};
use redeliver_engine::access::Role;
use redeliver_engine::stop::stop_pair;
use redeliver_engine::store::Store;

use crate::stage::{Stage, mail, sms};

#[tokio::test]
async fn cards_are_muted_until_something_waits_or_has_failed() {
    let stage = Stage::new();
    let mut reader = stage.reader(Role::Viewer, None).await;
    let moods = async |reader: &mut crate::reader::Reader| {
        let page = reader.get("/admin").await;
        ["muted", "warning", "alarm"].map(|mood| page.body.matches(&format!("class=\"card {mood}\"")).count())
    };
    assert_eq!(moods(&mut reader).await, [7, 0, 0]);
    stage.pending("Reminder").await;
    assert_eq!(moods(&mut reader).await, [6, 1, 0]);
    stage.failed("Invoice").await;
    assert_eq!(moods(&mut reader).await, [5, 1, 1]);
    stage.accept(sms()).await;
    assert_eq!(moods(&mut reader).await, [4, 1, 2], "what is no mail is dead by itself");
    let page = reader.get("/admin").await;
    for show in ["pending", "failed"] {
        assert!(page.says(&format!("href=\"/admin/email-queue?show={show}\"")));
    }
    assert!(page.says(">Other messages dead<") && page.says("href=\"/admin/dead-letters\""));
}

#[tokio::test]
async fn what_a_route_carries_and_not_its_newest_message_says_whether_it_has_mails() {
    let (stage, clock) = Stage::with_hand_on_clock();
    stage.failed("Invoice").await;
    clock.advance(Duration::from_millis(5));
    // The newest of the route is a mail of a campaign, which nobody has written yet, and behind it something that is no mail.
    stage.campaign("default", "Spring", "ada@example.org", &["p-1"]).await;
    clock.advance(Duration::from_millis(5));
    stage.accept(NewMessage::new("email", Content::of_bytes("no mail"))).await;
    for workspace in [None, Some("default")] {
        let mut reader = stage.reader(Role::Viewer, workspace).await;
        let page = reader.get("/admin").await;
        assert!(page.says("class=\"card alarm\"") && page.says("class=\"card warning\""), "{}", page.body);
        let queue = reader.get("/admin/email-queue").await;
        assert!(queue.says(">Invoice<") && queue.says("p@example.org"), "{}", queue.body);
    }
}

#[tokio::test]
async fn what_is_late_or_dead_is_seen_on_routes_without_mails_too() {
    let (stage, clock) = Stage::with_hand_on_clock();
    stage.accept(NewMessage { attempts: 0, ..sms() }).await;
    clock.advance(Duration::from_secs(61));
    for workspace in [None, Some("default")] {
        let page = stage.reader(Role::Viewer, workspace).await.get("/admin").await;
        assert!(
            page.says("late: is an instance running?") && page.says(">1 min 1 s ago</time>"),
            "{}",
            page.body
        );
        assert!(page.says("href=\"/admin/messages?status=due\""));
    }
}

#[tokio::test]
async fn the_queue_has_what_is_pending_and_what_has_failed_newest_first() {
    let (stage, clock) = Stage::with_hand_on_clock();
    stage.failed("Invoice").await;
    clock.advance(Duration::from_millis(5));
    stage.pending("Reminder").await;
    stage.accept(sms()).await;
    let mut reader = stage.reader(Role::Operator, None).await;
    let all = reader.get("/admin/email-queue").await;
    assert!(all.body.find("Reminder") < all.body.find("Invoice"));
    assert_eq!(all.body.matches("<tr>").count(), 3, "the head and two mails");
    assert!(all.says("Ada Lovelace &#60;ada@example.org&#62;"), "{}", all.body);
    assert!(all.says("1 of 6") && all.says("6 of 6"));
    assert!(all.says("451 4.3.2 try again later") && all.says("452 4.2.2 mailbox full"));
    assert!(all.says(">in 30 min</time>") && all.says("datetime=\"2026-12-01T09:30:00.005Z\""));
    assert_eq!(all.body.matches(">Retry now</button>").count(), 1, "only what has failed can be retried");
    let has = |answer: &crate::reader::Answer| ["Reminder", "Invoice"].map(|subject| answer.says(subject));
    assert_eq!(has(&reader.get("/admin/email-queue?show=pending").await), [true, false]);
    assert_eq!(has(&reader.get("/admin/email-queue?show=failed").await), [false, true]);
    assert_eq!(has(&reader.get("/admin/email-queue?show=delivered").await), [false, false]);
}

#[tokio::test]
async fn an_empty_queue_teaches() {
    let stage = Stage::new();
    let mut reader = stage.reader(Role::Viewer, None).await;
    let page = reader.get("/admin/email-queue").await;
    assert!(page.says("No waiting or failed e-mails") && page.says("redeliver send --route email"));
    assert!(reader.get("/admin/email-queue?show=failed").await.says("No failed e-mails"));
}

#[tokio::test]
async fn a_long_queue_is_read_page_by_page_and_every_mail_is_seen_once() {
    let stage = Stage::new();
    for n in 0..120 {
        match n % 3 {
            0 => stage.pending(&format!("Mail-{n}.")).await,
            _ => stage.failed(&format!("Mail-{n}.")).await,
        };
    }
    let mut reader = stage.reader(Role::Viewer, None).await;
    let mut seen = vec![0; 120];
    let (mut path, mut pages) = (Some("/admin/email-queue".to_owned()), 0);
    while let Some(next) = path {
        let page = reader.get(&next).await;
        for (n, seen) in seen.iter_mut().enumerate() {
            *seen += page.body.matches(&format!(">Mail-{n}.<")).count();
        }
        let older = page.body.split_once("\" rel=\"next\"").map(|(before, _)| before);
        path = older.map(|before| before.rsplit_once('"').unwrap().1.replace("&#38;", "&"));
        pages += 1;
    }
    assert_eq!(pages, 3);
    assert!(seen.iter().all(|count| *count == 1), "{seen:?}");
}

#[tokio::test]
async fn a_retry_starts_a_failed_mail_over_and_says_so_once() {
    let stage = Stage::new();
    let id = stage.failed("Invoice").await;
    let mut reader = stage.reader(Role::Operator, None).await;
    let path = format!("/admin/messages/{id}/retry");
    let answer = reader.press("/admin/email-queue", &path, "failed").await;
    assert_eq!((answer.status, answer.location()), (StatusCode::SEE_OTHER, "/admin/email-queue?show=failed"));
    let message = stage.get(&id).await;
    assert_eq!((message.state, message.generation), (State::Waiting { parked_for: None }, 1));
    assert_eq!(stage.deeds(&id).await, [("operator".to_owned(), "retry")]);
    let page = reader.get("/admin/email-queue").await;
    assert!(page.says("Retried: the message is due now") && page.says("class=\"badge active\">due<"));
    assert!(!reader.get("/admin/email-queue").await.says("Retried: the message is due now"), "once");
    let again = reader.press("/admin/email-queue", &path, "failed").await;
    assert_eq!(again.status, StatusCode::CONFLICT);
    assert!(again.says("Only dead messages can be retried"));
}

#[tokio::test]
async fn a_dismissed_mail_is_out_of_the_queue_and_can_be_brought_back() {
    let stage = Stage::new();
    let id = stage.failed("Invoice").await;
    let mut reader = stage.reader(Role::Operator, None).await;
    let page = format!("/admin/messages/{id}");
    let answer = reader.press("/admin/email-queue", &format!("{page}/dismiss"), "all").await;
    assert_eq!(answer.location(), "/admin/email-queue?show=all");
    assert!(matches!(stage.get(&id).await.state, State::Dead { dismissed_at: Some(_), .. }));
    let queue = reader.get("/admin/email-queue").await;
    assert!(queue.says("Dismissed: the message left") && queue.says(&page) && !queue.says("Invoice"));
    assert!(reader.get(&page).await.says("Restore"));
    assert_eq!(reader.press(&page, &format!("{page}/restore"), "message").await.location(), page);
    assert!(reader.get("/admin/email-queue").await.says("Invoice"));
    assert_eq!(
        stage.deeds(&id).await.iter().map(|(_, action)| *action).collect::<Vec<_>>(),
        ["restore", "dismiss"]
    );
    let pending = stage.pending("Reminder").await;
    let unfit = reader.press(&page, &format!("/admin/messages/{pending}/dismiss"), "all").await;
    assert_eq!(unfit.status, StatusCode::CONFLICT);
}

#[tokio::test]
async fn a_mails_page_says_what_was_tried_and_why_it_was_given_up() {
    let stage = Stage::new();
    let (stopper, stop) = stop_pair();
    let running = tokio::spawn(Arc::clone(&stage.engine).run(stop));
    let id = stage.accept(mail("A lost letter")).await;
    let ended = async {
        while stage.store.attempts(id.clone()).await.unwrap().is_empty() {
            stage.engine.clock().sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(20), ended).await.unwrap();
    stopper.stop();
    running.await.unwrap();
    let page = stage.reader(Role::Operator, None).await.get(&format!("/admin/messages/{id}")).await;
    assert!(page.says("It died at") && page.says("the receiver refused it"));
    assert!(page.says("Attempt 1: refused") && page.says("550 5.1.1 no such user here"));
    assert!(
        page.says(&format!("<span class=\"by\">by instance {}", stage.engine.instance())),
        "{}",
        page.body
    );
    assert!(page.says("<span class=\"course\">due <time") && page.says(", sent <time"), "{}", page.body);
    assert!(page.says("text of 26 bytes") && page.says("Your booking is confirmed"));
    assert!(page.says(">Retry now</button>") && page.says(">Dismiss it</button>"));
}
