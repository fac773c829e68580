//! What can't be delivered now is delivered later: after the server's absence, and after the application's own.

use std::time::Duration;

use redeliver::{Sent, Status};
use tokio::runtime::{Builder, Runtime};

use crate::desk::Desk;
use crate::stage::{DEADLINE, Stage, mail, sink, sink_at, until_status, url};

#[tokio::test]
async fn mails_that_find_no_server_arrive_once_each_when_it_is_back() {
    let stage = Stage::new();
    let gone = sink("accept").await;
    let (server, address) = (url(&gone), gone.address());
    gone.stop().await;
    let redeliver = stage.outbox().smtp(server).open().await.unwrap();
    let worker = redeliver.start().unwrap();

    let mut ids = Vec::new();
    for key in ["one", "two", "three"] {
        let sent = redeliver.send_or_queue(mail().key(key)).await.unwrap();
        assert!(matches!(sent, Sent::Queued { last_error: Some(_), .. }), "{sent:?}");
        ids.push(sent.id().clone());
    }

    let back = sink_at(address, "accept").await;
    for id in &ids {
        until_status(&redeliver, id, Status::Delivered).await;
    }
    worker.stop().await.unwrap();
    assert_eq!(back.mails().len(), 3);
}

#[tokio::test]
async fn a_server_that_asks_to_come_later_is_asked_again() {
    let (stage, sink) = (Stage::new(), sink("defer 451 4.3.0 try later x2").await);
    let redeliver = stage.outbox().smtp(url(&sink)).open().await.unwrap();
    let _worker = redeliver.start().unwrap();

    let sent = redeliver.send_or_queue(mail()).await.unwrap();

    assert!(
        matches!(&sent, Sent::Queued { last_error: Some(error), .. } if error.text.contains("try later"))
    );
    until_status(&redeliver, sent.id(), Status::Delivered).await;
    assert_eq!(sink.mails().len(), 1);
}

#[tokio::test]
async fn without_a_server_mails_wait_and_say_why() {
    let stage = Stage::new();
    let redeliver = stage.outbox().open().await.unwrap();
    let worker = redeliver.start().unwrap();

    let sent = redeliver.send_or_queue(mail()).await.unwrap();

    assert!(matches!(sent, Sent::Queued { .. }), "{sent:?}");
    let message = redeliver.message(sent.id()).await.unwrap().unwrap();
    assert_eq!(message.attempts, 0, "no try was counted");
    assert!(redeliver.explain(sent.id()).await.unwrap().is_some());
    worker.stop().await.unwrap();
}

#[test]
fn what_an_application_that_died_had_accepted_is_delivered_by_the_next_one() {
    let (stage, desk) = (Stage::new(), Desk::new());
    let first_life = runtime();
    let id = first_life.block_on(async {
        let redeliver = stage.outbox().transport("smtp", desk.clone()).open().await.unwrap();
        let worker = redeliver.start().unwrap();
        let sent = redeliver.send_or_queue(mail()).without_waiting().await.unwrap();
        desk.wait_for_one().await;
        // Neither stopped nor dropped: it ends with its runtime, in the middle of a carrying.
        std::mem::forget(worker);
        sent.id().clone()
    });
    first_life.shutdown_timeout(Duration::from_secs(1));

    runtime().block_on(async {
        let sink = sink("accept").await;
        let redeliver = stage.outbox().smtp(url(&sink)).open().await.unwrap();
        let worker = redeliver.start().unwrap();
        until_status(&redeliver, &id, Status::Delivered).await;
        worker.stop().await.unwrap();
        assert_eq!(sink.mails().len(), 1);
    });
}

#[test]
fn what_was_committed_just_before_the_end_is_delivered_by_the_next_life() {
    let stage = Stage::new();
    let first_life = runtime();
    let redeliver = first_life.block_on(async { stage.outbox().open().await.unwrap() });
    let mut db = stage.connection();
    let booking = db.transaction().unwrap();
    booking.execute("INSERT INTO bookings VALUES ('ada')", []).unwrap();
    let kept = redeliver.accept_in(&booking, mail()).unwrap();
    booking.commit().unwrap();
    drop((redeliver, first_life));

    runtime().block_on(async {
        let sink = sink("accept").await;
        let redeliver = stage.outbox().smtp(url(&sink)).open().await.unwrap();
        let _worker = redeliver.start().unwrap();
        assert_eq!(sink.wait_for(1, DEADLINE).await.len(), 1);
        until_status(&redeliver, &kept.id, Status::Delivered).await;
    });
}

fn runtime() -> Runtime {
    Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap()
}
