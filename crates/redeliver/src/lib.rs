//! An outbox inside an application: every mail that must not be lost is stored first, tried at once, and tried again
//! until it is delivered or given up, in front of whoever looks.
//!
//! ```
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), redeliver::Error> {
//! use redeliver::{Mail, Redeliver, Sent};
//!
//! // Nobody listens at this port: what follows works all the same.
//! let redeliver =
//!     Redeliver::builder("memory:").smtp("smtp://127.0.0.1:9").from("desk@example.org").open().await?;
//! let worker = redeliver.start()?;
//!
//! let mail = Mail::to("Ada <ada@example.org>").subject("Your table").text("See you at eight.");
//! match redeliver.send_or_queue(mail.key("booking-17")).await? {
//!     Sent::Delivered { .. } => println!("on its way"),
//!     Sent::Queued { due_at, .. } => println!("stored, and tried again at {due_at}"),
//!     Sent::Refused { reason, .. } => println!("it will never arrive: {reason}"),
//!     Sent::Duplicate { .. } => println!("said before, and sent once"),
//! }
//!
//! worker.stop().await?;
//! # Ok(())
//! # }
//! ```
//!
//! An error means that the message was not stored, and never that the mail server is down. With the store in the
//! application's own database, [`Redeliver::accept_in`] makes the message part of the application's transaction:
//!
//! ```no_run
//! # use redeliver::{Mail, Redeliver, rusqlite};
//! # fn book(redeliver: &Redeliver, db: &mut rusqlite::Connection) -> Result<(), Box<dyn std::error::Error>> {
//! let booking = db.transaction_with_behavior(rusqlite::TransactionBehavior::Immediate)?;
//! booking.execute("INSERT INTO bookings (guest, seats) VALUES ('ada', 2)", [])?;
//! redeliver.accept_in(&booking, Mail::to("ada@example.org").subject("Booked").text("Two seats."))?;
//! booking.commit()?;
//! # Ok(())
//! # }
//! ```
//!
//! On `postgres://…`, [`Redeliver::accept_in_postgres`] does the same in a transaction of tokio-postgres, and any
//! number of processes may carry messages out of the one database.
//!
//! Everything runs on the caller's tokio runtime, whose time and I/O must be enabled, and on three threads of the
//! store's own. What happens in a transaction is decided by the same code that runs behind `redeliver serve`: the
//! same file can be carried by either, one at a time.

mod absent;
mod builder;
mod error;
mod handle;
mod mail;
mod outgoing;
pub mod profile;
mod sending;
mod sent;
mod smtp;
mod store;
mod transaction;
mod worker;

pub use builder::RedeliverBuilder;
pub use error::Error;
pub use handle::Redeliver;
pub use mail::Mail;
pub use outgoing::Outgoing;
pub use sending::Sending;
pub use sent::{Kept, Sent};
pub use worker::Worker;

// What appears in the signatures above, so that an application needs no other crate of ours.
/// For implementing [`Transport`].
pub use async_trait::async_trait;
pub use redeliver_core::email::{Attachment, Email, EmailProblem, Ics, Mailbox};
pub use redeliver_core::explain::Explanation;
pub use redeliver_core::outcome::{Blame, Until};
pub use redeliver_core::policy::{Backoff, Jitter};
pub use redeliver_core::route::{OnAuthError, OnLost, Travel};
pub use redeliver_core::status::Status;
pub use redeliver_core::{
    Content, DeadReason, Event, Failure, Lane, Message, MessageId, Name, Outcome, Policy, Route, State,
    Timestamp,
};
pub use redeliver_engine::emit::Observer;
pub use redeliver_engine::store::StoreError;
pub use redeliver_engine::transport::{Envelope, Transport};
pub use redeliver_engine::{Engine, Settings};
pub use redeliver_stores::{Durability, OpenError};
/// The version of rusqlite whose transactions [`Redeliver::accept_in`] takes.
pub use rusqlite;
pub use smtp::SmtpConfig;
/// The version of tokio-postgres whose transactions [`Redeliver::accept_in_postgres`] takes.
pub use tokio_postgres;
