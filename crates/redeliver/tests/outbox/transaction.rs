//! Same database, same transaction: the mail is there if and only if the booking is.

use redeliver::{Durability, Error, Status, rusqlite};

use crate::stage::{DEADLINE, Stage, mail, sink, until_status, url};

const INVITATION: &str = "BEGIN:VCALENDAR\r\nVERSION:2.0\r\nMETHOD:REQUEST\r\nEND:VCALENDAR\r\n";

#[tokio::test]
async fn a_commit_sends_the_mail_once() {
    let (stage, sink) = (Stage::new(), sink("accept").await);
    let redeliver = stage.outbox().smtp(url(&sink)).open().await.unwrap();
    let worker = redeliver.start().unwrap();
    let mut db = stage.connection();

    let booking = db.transaction().unwrap();
    booking.execute("INSERT INTO bookings VALUES ('ada')", []).unwrap();
    let kept = redeliver.accept_in(&booking, mail().ics("REQUEST", INVITATION).key("booking-1")).unwrap();
    assert!(!kept.duplicate);
    booking.commit().unwrap();

    until_status(&redeliver, &kept.id, Status::Delivered).await;
    worker.stop().await.unwrap();
    let mails = sink.mails();
    assert_eq!(mails.len(), 1);
    assert!(String::from_utf8_lossy(&mails[0].data).contains("text/calendar"));
}

#[tokio::test]
async fn a_rollback_takes_the_mail_back() {
    let (stage, sink) = (Stage::new(), sink("accept").await);
    let redeliver = stage.outbox().smtp(url(&sink)).open().await.unwrap();
    let worker = redeliver.start().unwrap();
    let mut db = stage.connection();

    let booking = db.transaction().unwrap();
    booking.execute("INSERT INTO bookings VALUES ('ada')", []).unwrap();
    let taken_back = redeliver.accept_in(&booking, mail().subject("Taken back").key("booking-1")).unwrap();
    booking.rollback().unwrap();
    // The key is free again, too.
    let booking = db.transaction().unwrap();
    let kept = redeliver.accept_in(&booking, mail().key("booking-1")).unwrap();
    booking.commit().unwrap();

    until_status(&redeliver, &kept.id, Status::Delivered).await;
    worker.stop().await.unwrap();
    assert_eq!(redeliver.status(&taken_back.id).await.unwrap(), None);
    let mails = sink.wait_for(1, DEADLINE).await;
    assert_eq!(mails.len(), 1);
    assert!(!String::from_utf8_lossy(&mails[0].data).contains("Taken back"));
}

#[tokio::test]
async fn a_key_said_twice_is_a_duplicate_and_another_content_under_it_an_error() {
    let stage = Stage::new();
    let redeliver = stage.outbox().open().await.unwrap();
    let mut db = stage.connection();
    let booking = db.transaction().unwrap();
    let first = redeliver.accept_in(&booking, mail().key("booking-1")).unwrap();

    let again = redeliver.accept_in(&booking, mail().key("booking-1")).unwrap();
    let other = redeliver.accept_in(&booking, mail().text("Other.").key("booking-1"));

    assert!(again.duplicate && again.id == first.id);
    assert!(matches!(other, Err(Error::Conflict(id)) if id == first.id));
}

#[tokio::test]
async fn a_connection_that_may_forget_a_commit_is_turned_away_unless_it_is_allowed() {
    let stage = Stage::new();
    let mut db = stage.connection();
    db.pragma_update(None, "synchronous", "NORMAL").unwrap();
    let mut accept = |redeliver: &redeliver::Redeliver| {
        let booking = db.transaction().unwrap();
        redeliver.accept_in(&booking, mail())
    };

    let careful = stage.outbox().open().await.unwrap();
    let said = accept(&careful).unwrap_err().to_string();
    assert!(said.contains("synchronous = FULL"), "{said}");
    drop(careful);

    let relaxed = stage.outbox().durability(Durability::Relaxed).open().await.unwrap();
    accept(&relaxed).unwrap();
}

#[tokio::test]
async fn another_database_is_no_outbox() {
    let stage = Stage::new();
    let redeliver = stage.outbox().open().await.unwrap();
    let mut other = rusqlite::Connection::open_in_memory().unwrap();
    let booking = other.transaction().unwrap();

    let said = redeliver.accept_in(&booking, mail()).unwrap_err().to_string();

    assert!(said.contains("isn't a store"), "{said}");
}
