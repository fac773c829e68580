//! The first try, before the caller's eyes or behind its back.

use std::future::{IntoFuture, poll_fn};
use std::pin::pin;
use std::task::Poll;
use std::time::Duration;

use redeliver::{Error, Sent, Status};

use crate::desk::Desk;
use crate::stage::{DEADLINE, Stage, mail, sink, until, until_status, url};

#[tokio::test]
async fn a_mail_is_delivered_before_the_callers_eyes() {
    let (stage, sink) = (Stage::new(), sink("accept").await);
    let redeliver = stage.outbox().smtp(url(&sink)).open().await.unwrap();
    let worker = redeliver.start().unwrap();

    let sent = redeliver.send_or_queue(mail()).await.unwrap();

    assert!(matches!(sent, Sent::Delivered { .. }), "{sent:?}");
    let mails = sink.mails();
    assert_eq!(mails.len(), 1);
    assert_eq!((&*mails[0].from, &*mails[0].to), ("desk@example.org", &["ada@example.org".to_owned()][..]));
    assert_eq!(redeliver.status(sent.id()).await.unwrap(), Some(Status::Delivered));
    worker.stop().await.unwrap();
}

#[tokio::test]
async fn a_mail_that_has_gone_out_is_not_kept_but_its_key_is() {
    let (stage, sink) = (Stage::new(), sink("accept").await);
    let redeliver = stage.usual_outbox().smtp(url(&sink)).open().await.unwrap();
    let _worker = redeliver.start().unwrap();

    let sent = redeliver.send_or_queue(mail().key("booking-17")).await.unwrap();

    assert!(matches!(sent, Sent::Delivered { .. }), "{sent:?}");
    until(async || redeliver.status(sent.id()).await.unwrap().is_none()).await;
    let again = redeliver.send_or_queue(mail().key("booking-17")).await.unwrap();
    assert_eq!(again, Sent::Duplicate { id: sent.id().clone(), status: None });
}

#[tokio::test]
async fn a_mail_that_the_server_refuses_is_said_to_be_refused() {
    let (stage, sink) = (Stage::new(), sink("refuse 550 5.1.1 no such user").await);
    let redeliver = stage.outbox().smtp(url(&sink)).open().await.unwrap();
    let _worker = redeliver.start().unwrap();

    let sent = redeliver.send_or_queue(mail()).await.unwrap();

    assert!(matches!(&sent, Sent::Refused { reason, .. } if reason.contains("no such user")), "{sent:?}");
    assert_eq!(redeliver.status(sent.id()).await.unwrap(), Some(Status::Dead));
}

#[tokio::test]
async fn the_same_key_sends_once_and_never_something_else() {
    let (stage, sink) = (Stage::new(), sink("accept").await);
    let redeliver = stage.outbox().smtp(url(&sink)).open().await.unwrap();
    let _worker = redeliver.start().unwrap();
    let first = redeliver.send_or_queue(mail().key("booking-17")).await.unwrap();
    until_status(&redeliver, first.id(), Status::Delivered).await;

    let again = redeliver.send_or_queue(mail().key("booking-17")).await.unwrap();
    let other = redeliver.send_or_queue(mail().subject("Other").key("booking-17")).await;

    assert_eq!(again, Sent::Duplicate { id: first.id().clone(), status: Some(Status::Delivered) });
    assert!(matches!(other, Err(Error::Conflict(id)) if id == *first.id()));
    assert_eq!(sink.mails().len(), 1);
}

#[tokio::test]
async fn a_caller_who_wants_no_waiting_is_answered_while_the_mail_is_carried() {
    let (stage, desk) = (Stage::new(), Desk::new());
    let redeliver = stage.outbox().transport("smtp", desk.clone()).open().await.unwrap();
    let worker = redeliver.start().unwrap();

    let sent = redeliver.send_or_queue(mail()).without_waiting().await.unwrap();

    assert!(matches!(sent, Sent::Queued { .. }), "{sent:?}");
    desk.wait_for_one().await;
    desk.take_one();
    until_status(&redeliver, sent.id(), Status::Delivered).await;
    worker.stop().await.unwrap();
}

#[tokio::test]
async fn a_wait_that_runs_out_ends_no_carrying() {
    let (stage, desk) = (Stage::new(), Desk::new());
    let redeliver = stage.outbox().transport("smtp", desk.clone()).open().await.unwrap();
    let _worker = redeliver.start().unwrap();

    let sent = redeliver.send_or_queue(mail()).waiting_at_most(Duration::from_millis(20)).await.unwrap();

    assert!(matches!(sent, Sent::Queued { .. }), "{sent:?}");
    desk.wait_for_one().await;
    desk.take_one();
    until_status(&redeliver, sent.id(), Status::Delivered).await;
    assert!(!desk.has_one(), "it was carried once");
}

#[tokio::test]
async fn a_caller_who_goes_away_leaves_a_mail_that_is_sent() {
    let (stage, desk) = (Stage::new(), Desk::new());
    let redeliver = stage.outbox().transport("smtp", desk.clone()).open().await.unwrap();
    let worker = redeliver.start().unwrap();

    {
        // Dropped at the first chance, before the store can have answered.
        let mut sending = pin!(redeliver.send_or_queue(mail()).into_future());
        poll_fn(|context| Poll::Ready(sending.as_mut().poll(context).is_pending())).await;
    }

    tokio::time::timeout(DEADLINE, desk.wait_for_one()).await.expect("it is carried");
    desk.take_one();
    worker.stop().await.unwrap();
}

#[tokio::test]
async fn a_stop_waits_for_what_is_in_the_air() {
    let (stage, desk) = (Stage::new(), Desk::new());
    let redeliver = stage.outbox().transport("smtp", desk.clone()).open().await.unwrap();
    let worker = redeliver.start().unwrap();
    let sent = redeliver.send_or_queue(mail()).without_waiting().await.unwrap();
    desk.wait_for_one().await;

    let stopping = tokio::spawn(worker.stop());
    assert!(!stopping.is_finished());
    desk.take_one();
    stopping.await.unwrap().unwrap();

    assert_eq!(redeliver.status(sent.id()).await.unwrap(), Some(Status::Delivered));
    let late = redeliver.send_or_queue(mail()).await.unwrap();
    assert!(matches!(late, Sent::Queued { .. }), "what comes after the stop is kept: {late:?}");
}
