//! An outbox in a PostgreSQL database: shared by processes, and part of an application's own transaction.

use redeliver::tokio_postgres::{Client, NoTls};
use redeliver::{Error, Status, StoreError};
use redeliver_servers::postgres::{Database, PostgresServer};

use crate::stage::{mail, outbox_at, sink, until_status, url};

async fn connect(database: &Database<'_>) -> Client {
    let (client, connection) = redeliver::tokio_postgres::connect(&database.url(), NoTls).await.unwrap();
    tokio::spawn(connection);
    client
}

#[tokio::test(flavor = "multi_thread")]
async fn a_booking_and_its_mail_are_there_together_or_not_at_all() {
    let database = PostgresServer::shared().database();
    database.say("CREATE TABLE bookings (guest text)");
    let sink = sink("accept").await;
    let outbox = || outbox_at(database.url());
    let desk = outbox().accept_only().open().await.unwrap();
    let carrier = outbox().smtp(url(&sink)).open().await.unwrap();
    let worker = carrier.start().unwrap();
    let mut db = connect(&database).await;

    let booking = db.transaction().await.unwrap();
    booking.batch_execute("INSERT INTO bookings VALUES ('ada')").await.unwrap();
    let taken_back = desk.accept_in_postgres(&booking, mail().key("booking-1")).await.unwrap();
    booking.rollback().await.unwrap();
    assert_eq!(desk.status(&taken_back.id).await.unwrap(), None);

    let booking = db.transaction().await.unwrap();
    booking.batch_execute("INSERT INTO bookings VALUES ('ada')").await.unwrap();
    let kept = desk.accept_in_postgres(&booking, mail().key("booking-1")).await.unwrap();
    let again = desk.accept_in_postgres(&booking, mail().key("booking-1")).await.unwrap();
    assert_eq!((again.id.clone(), again.duplicate, kept.duplicate), (kept.id.clone(), true, false));
    let other = desk.accept_in_postgres(&booking, mail().text("Other.").key("booking-1")).await;
    assert!(matches!(other, Err(Error::Conflict(id)) if id == kept.id));
    booking.commit().await.unwrap();
    desk.committed();

    until_status(&carrier, &kept.id, Status::Delivered).await;
    worker.stop().await.unwrap();
    assert_eq!(sink.mails().len(), 1);
    assert_eq!(database.say("SELECT count(*) FROM bookings"), "1");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_transaction_that_a_power_cut_could_undo_is_turned_away() {
    let database = PostgresServer::shared().database();
    let redeliver = outbox_at(database.url()).open().await.unwrap();
    let mut db = connect(&database).await;
    let booking = db.transaction().await.unwrap();
    booking.batch_execute("SET LOCAL synchronous_commit = off").await.unwrap();
    let refused = redeliver.accept_in_postgres(&booking, mail()).await;
    assert!(matches!(refused, Err(Error::Store(StoreError::Unfit(_)))), "{refused:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn two_processes_carry_out_of_one_database_and_each_mail_goes_once() {
    let database = PostgresServer::shared().database();
    let sink = sink("accept").await;
    let outbox = || outbox_at(database.url()).smtp(url(&sink));
    let (ann, bob) = (outbox().open().await.unwrap(), outbox().open().await.unwrap());
    let workers = [ann.start().unwrap(), bob.start().unwrap()];
    let mut kept = Vec::new();
    for _ in 0..20 {
        let mut db = connect(&database).await;
        let booking = db.transaction().await.unwrap();
        kept.push(ann.accept_in_postgres(&booking, mail()).await.unwrap().id);
        booking.commit().await.unwrap();
    }
    ann.committed();
    for id in &kept {
        until_status(&bob, id, Status::Delivered).await;
    }
    for worker in workers {
        worker.stop().await.unwrap();
    }
    assert_eq!(sink.mails().len(), 20);
}
