//! The example of the library does what it says.

use tempfile::TempDir;

use crate::booking;
use crate::stage::{sink, until, url};

#[tokio::test]
async fn the_booking_desk_invites_and_reminds_whoever_has_booked_and_nobody_else() {
    let (place, sink) = (TempDir::new().unwrap(), sink("accept").await);

    booking::run(&url(&sink), &place.path().join("booking.db")).await.unwrap();

    until(async || sink.mails().len() == 2).await;
    let mails = sink.mails();
    assert!(mails.iter().all(|mail| mail.to == ["ada@example.org"]), "{mails:?}");
    let says =
        |words: &str| mails.iter().filter(|mail| String::from_utf8_lossy(&mail.data).contains(words)).count();
    assert_eq!((says("Your booking 1"), says("text/calendar"), says("Reminder: booking 1")), (1, 1, 1));
}
