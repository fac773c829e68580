//! A small booking desk that must not lose its mails: each booking and its invitation are one transaction.
//!
//! `cargo run -p redeliver --example booking -- --smtp smtp://127.0.0.1:2525`, with any mail server there or none.

use std::error::Error;
use std::path::Path;
use std::time::Duration;

use redeliver::{Backoff, Jitter, Mail, MessageId, Outgoing, Policy, Redeliver, Sent, Status, rusqlite};
use rusqlite::{Connection, TransactionBehavior};

/// How long the example waits for a mail server that isn't there.
const PATIENCE: Duration = Duration::from_secs(20);

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    run(&server()?, &std::env::temp_dir().join("redeliver-booking.db")).await
}

/// Books, with the mails and the bookings in this file and this mail server.
pub async fn run(server: &str, database: &Path) -> Result<(), Box<dyn Error>> {
    println!("bookings and mails are in {}", database.display());

    let redeliver = Redeliver::builder(format!("sqlite:{}", database.display()))
        .smtp(server)
        .from("Booking desk <desk@example.org>")
        .policy(every_two_seconds())
        .open()
        .await?;
    let worker = redeliver.start()?;
    let mut desk = Desk::open(database)?;

    // The booking, its seats and its mail: all of it, or nothing.
    let (number, mail) = desk.book(&redeliver, "Ada", "ada@example.org", 2)?;
    println!("booked: number {number}, two seats for Ada; her invitation is in the same transaction");
    if let Err(full) = desk.book(&redeliver, "Charles", "charles@example.org", 100) {
        println!("not booked: {full}; what was written for Charles was rolled back, his mail with it");
    }

    // A mail without a booking is tried at once, before our eyes.
    let sent = redeliver.send_or_queue(reminder(number)).await?;
    match &sent {
        Sent::Delivered { .. } => println!("reminder: delivered at once"),
        Sent::Queued { last_error, .. } => {
            let why = last_error.as_ref().map_or("it is still being tried", |error| &error.text);
            println!("reminder: not delivered yet ({why}), but safe; it is tried again");
        }
        Sent::Refused { reason, .. } => println!("reminder: the server will never take it: {reason}"),
        Sent::Duplicate { .. } => println!("reminder: sent before, and so not again"),
    }

    println!(
        "waiting for the mails, at most {} s; start a mail server meanwhile if you like",
        PATIENCE.as_secs()
    );
    let waiting = async { tokio::join!(ended(&redeliver, &mail), ended(&redeliver, sent.id())) };
    match tokio::time::timeout(PATIENCE, waiting).await {
        Ok((invitation, reminder)) => {
            println!("invitation: {}, reminder: {}", invitation.name(), reminder.name());
        }
        Err(_) => {
            println!("no mail server: both mails wait in {}, and go out in the next run", database.display())
        }
    }
    worker.stop().await?;
    Ok(())
}

/// The application's own half of the database.
struct Desk(Connection);

impl Desk {
    fn open(database: &Path) -> rusqlite::Result<Self> {
        let db = Connection::open(database)?;
        db.execute_batch(
            "CREATE TABLE IF NOT EXISTS bookings (number INTEGER PRIMARY KEY, guest TEXT, seats INTEGER)",
        )?;
        Ok(Self(db))
    }

    /// Books, and invites the guest. An error on the way drops the transaction, which takes everything back.
    fn book(
        &mut self,
        redeliver: &Redeliver,
        guest: &str,
        address: &str,
        seats: u32,
    ) -> Result<(i64, MessageId), Box<dyn Error>> {
        // Immediate, because the worker writes to the same file.
        let booking = self.0.transaction_with_behavior(TransactionBehavior::Immediate)?;
        booking.execute("INSERT INTO bookings (guest, seats) VALUES (?1, ?2)", (guest, seats))?;
        let number = booking.last_insert_rowid();
        let invitation = Mail::to(format!("{guest} <{address}>"))
            .subject(format!("Your booking {number}"))
            .text(format!("Dear {guest},\n\n{seats} seats are yours.\n"))
            .ics("REQUEST", calendar(number));
        let kept = redeliver.accept_in(&booking, invitation.key(format!("booking-{number}")))?;
        if seats > 10 {
            return Err(format!("{seats} seats are too many").into());
        }
        booking.commit()?;
        Ok((number, kept.id))
    }
}

fn reminder(number: i64) -> Outgoing {
    let mail = Mail::to("Ada <ada@example.org>").subject(format!("Reminder: booking {number}"));
    mail.text("We look forward to seeing you.\n").key(format!("reminder-{number}"))
}

fn calendar(number: i64) -> String {
    [
        "BEGIN:VCALENDAR",
        "VERSION:2.0",
        "PRODID:-//redeliver//booking example//EN",
        "METHOD:REQUEST",
        "BEGIN:VEVENT",
        &format!("UID:booking-{number}@example.org"),
        "DTSTAMP:20261201T090000Z",
        "DTSTART:20261224T190000Z",
        "DTEND:20261224T220000Z",
        "SUMMARY:Dinner",
        "ORGANIZER:mailto:desk@example.org",
        "ATTENDEE:mailto:ada@example.org",
        "END:VEVENT",
        "END:VCALENDAR",
        "",
    ]
    .join("\r\n")
}

/// Waits until a mail was delivered or given up.
async fn ended(redeliver: &Redeliver, id: &MessageId) -> Status {
    let mut looks = tokio::time::interval(Duration::from_millis(100));
    loop {
        looks.tick().await;
        match redeliver.status(id).await {
            Ok(Some(status @ (Status::Delivered | Status::Dead | Status::Cancelled))) => return status,
            // A mail that has gone out is not kept.
            Ok(None) => return Status::Delivered,
            Ok(Some(_)) | Err(_) => {}
        }
    }
}

/// So that the example needs no patience; leave it out, and the tries take 15.5 minutes.
fn every_two_seconds() -> Policy {
    Policy {
        backoff: Backoff::Table(vec![Duration::from_secs(2)]),
        jitter: Jitter::None,
        max_attempts: 1_000,
        expires_after: None,
    }
}

fn server() -> Result<String, String> {
    let mut args = std::env::args().skip(1);
    match (args.next().as_deref(), args.next()) {
        (None, _) => Ok("smtp://127.0.0.1:2525".to_owned()),
        (Some("--smtp"), Some(url)) => Ok(url),
        _ => Err("say --smtp smtp://HOST:PORT, or nothing for smtp://127.0.0.1:2525".to_owned()),
    }
}
