//! Several handles on one outbox, ways of one's own, and a store for tests.

use std::sync::Arc;

use redeliver::profile::email_policy;
use redeliver::{Content, Error, Event, Observer, OpenError, Outgoing, Redeliver, Route, Sent, Status};

use crate::desk::Desk;
use crate::stage::{Stage, mail, sink, until, until_status, url};

#[tokio::test]
async fn one_who_only_accepts_leaves_the_carrying_to_another() {
    let (stage, sink) = (Stage::new(), sink("accept").await);
    let carrier = stage.outbox().smtp(url(&sink)).open().await.unwrap();
    let client = stage.outbox().accept_only().open().await.unwrap();
    assert!(matches!(client.start(), Err(Error::Misused(_))));

    let sent = client.send_or_queue(mail().key("booking-1")).await.unwrap();

    assert!(matches!(sent, Sent::Queued { .. }), "{sent:?}");
    let worker = carrier.start().unwrap();
    until_status(&client, sent.id(), Status::Delivered).await;
    worker.stop().await.unwrap();
    assert_eq!(sink.mails().len(), 1);
}

#[tokio::test]
async fn a_store_is_carried_by_one_at_a_time() {
    let stage = Stage::new();
    let first = stage.outbox().open().await.unwrap();

    let second = stage.outbox().open().await;
    assert!(matches!(second, Err(Error::Open(OpenError::Taken { .. }))));

    drop(first);
    stage.outbox().open().await.unwrap();
}

#[tokio::test]
async fn clones_are_the_same_outbox() {
    let stage = Stage::new();
    let redeliver = stage.outbox().open().await.unwrap();
    let sent = redeliver.clone().send_or_queue(mail()).await.unwrap();

    assert_eq!(redeliver.status(sent.id()).await.unwrap(), Some(Status::Due));

    let _worker = redeliver.start().unwrap();
    assert!(matches!(redeliver.clone().start(), Err(Error::Misused(_))), "it is started once");
}

#[tokio::test]
async fn an_application_has_routes_and_transports_of_its_own() {
    let desk = Desk::new();
    let redeliver = Redeliver::builder("memory:")
        .route(Route::new("paper", "desk", email_policy()))
        .transport("desk", desk.clone())
        .open()
        .await
        .unwrap();
    let worker = redeliver.start().unwrap();
    desk.take_one();

    let letter = Outgoing::new("paper", Content::of_bytes("Dear Ada")).key("letter-1");
    let sent = redeliver.send_or_queue(letter).await.unwrap();

    assert!(matches!(&sent, Sent::Delivered { receipt: Some(said), .. } if said == "taken"), "{sent:?}");
    worker.stop().await.unwrap();
}

/// Falls over when a message is delivered, and takes the route that tells it down with it.
struct Fainting;

impl Observer for Fainting {
    fn observe(&self, event: &Event) {
        assert_ne!(event.kind.name(), "message.delivered", "on purpose");
    }
}

#[tokio::test]
async fn a_worker_that_fails_says_so_and_what_was_accepted_stays() {
    let (stage, desk) = (Stage::new(), Desk::new());
    let outbox = stage.outbox().transport("smtp", desk.clone()).observer(Arc::new(Fainting));
    let redeliver = outbox.open().await.unwrap();
    let worker = redeliver.start().unwrap();
    desk.take_one();

    redeliver.send_or_queue(mail()).await.unwrap();

    until(async || !worker.is_running()).await;
    assert!(matches!(worker.stop().await, Err(Error::WorkerEnded(_))));
    let next = redeliver.send_or_queue(mail()).await.unwrap();
    assert_eq!(redeliver.status(next.id()).await.unwrap(), Some(Status::Due));
}
