//! Threads that read, each with a connection of its own: they see every commit that was answered.

use std::io;
use std::thread::{Builder, JoinHandle};

use rusqlite::Connection;
use tokio::sync::mpsc;

use super::calls::Call;
use super::errors::store_error;
use super::health::Health;

/// Calls that wait for one reader, at most.
const QUEUE_MAX: usize = 256;

/// The way to a thread that reads.
pub(super) struct Reader {
    pub(super) queue: mpsc::Sender<Box<dyn Call>>,
    pub(super) thread: JoinHandle<()>,
}

/// Starts a thread. It ends when nobody holds its queue any more and the queue is empty.
pub(super) fn start(db: Connection, health: &Health) -> io::Result<Reader> {
    let (queue, mut calls) = mpsc::channel::<Box<dyn Call>>(QUEUE_MAX);
    let health = health.clone();
    let thread = Builder::new().name("sqlite-reader".to_owned()).spawn(move || {
        let _watched = health.watch("sqlite-reader");
        while let Some(mut call) = calls.blocking_recv() {
            let done = call.execute(&db).map_err(|fault| store_error(&db, fault));
            call.answer(done);
        }
    })?;
    Ok(Reader { queue, thread })
}
