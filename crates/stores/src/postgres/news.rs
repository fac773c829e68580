//! News from one instance to the others: that there is something to look at. Only ever shortens a sleep.
//!
//! Word is given outside of any transaction that writes, and not more often than every few milliseconds: inside, it
//! would make all writers wait for each other.

use std::future::poll_fn;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::Duration;

use tokio::sync::{Notify, oneshot};
use tokio::task::JoinHandle;
use tokio_postgres::AsyncMessage;
use tokio_postgres::types::Type;

use super::connections::Connections;
use super::errors::Fault;
use super::open::Address;

/// The shortest time between two words of one instance.
const RING_INTERVAL: Duration = Duration::from_millis(20);

/// The waits before news is listened for again, after the line was lost.
const WAIT_MIN: Duration = Duration::from_millis(100);
const WAIT_MAX: Duration = Duration::from_secs(5);

/// Own words that did not come back, from which on nobody is taken to be listening. A pooler hands them to anybody.
const UNHEARD_MAX: u32 = 3;

/// While nobody listens, every so many questions are answered with yes: somebody has to look.
const ASKED_MAX: u32 = 3;

/// What one instance hears of the others, and lets them hear.
pub(super) struct News {
    heard: Arc<Heard>,
    rung: Arc<Notify>,
    tasks: Vec<JoinHandle<()>>,
}

/// What was heard so far.
struct Heard {
    /// What this instance calls itself, so that it knows its own words.
    name: String,
    something_new: AtomicBool,
    is_listening: AtomicBool,
    unheard: AtomicU32,
    asked: AtomicU32,
}

impl News {
    /// Begins to ring and to listen. Listens already when this returns, if it can.
    pub(super) async fn start(name: String, connections: Arc<Connections>, direct: Address) -> Self {
        let heard = Arc::new(Heard {
            name,
            something_new: AtomicBool::new(false),
            is_listening: AtomicBool::new(false),
            unheard: AtomicU32::new(0),
            asked: AtomicU32::new(0),
        });
        let rung = Arc::new(Notify::new());
        let ringing = tokio::spawn(ring(connections, rung.clone(), heard.clone()));
        let (first, is_first) = oneshot::channel();
        let listening = tokio::spawn(keep_listening(direct, heard.clone(), first));
        // Where it can't, that is known now, too.
        let _ = is_first.await;
        Self { heard, rung, tasks: vec![ringing, listening] }
    }

    /// Lets the others know, soon.
    pub(super) fn ring(&self) {
        self.rung.notify_one();
    }

    /// Has this instance look, too: what is new came by another way than its own writes.
    pub(super) fn hear_own(&self) {
        self.heard.something_new.store(true, Ordering::Relaxed);
    }

    /// Whether there was anything new since the last question.
    pub(super) fn is_there_any(&self) -> bool {
        let heard = &self.heard;
        let is_deaf = !heard.is_listening.load(Ordering::Relaxed)
            || heard.unheard.load(Ordering::Relaxed) > UNHEARD_MAX;
        let must_look = is_deaf && heard.asked.fetch_add(1, Ordering::Relaxed) % ASKED_MAX == ASKED_MAX - 1;
        heard.something_new.swap(false, Ordering::Relaxed) || must_look
    }
}

impl Drop for News {
    fn drop(&mut self) {
        for task in &self.tasks {
            task.abort();
        }
    }
}

impl Heard {
    fn hear(&self, word: &str) {
        if word == self.name {
            self.unheard.store(0, Ordering::Relaxed);
        } else {
            self.something_new.store(true, Ordering::Relaxed);
        }
    }
}

async fn ring(connections: Arc<Connections>, rung: Arc<Notify>, heard: Arc<Heard>) {
    loop {
        rung.notified().await;
        // Where it doesn't work, the others find out by looking.
        if let Ok(mut held) = connections.hold().await
            && let Some((mut line, call)) = held.parts()
        {
            let params = [(&heard.name as _, Type::TEXT)];
            let word = async {
                let db = line.lone().await?;
                db.query_typed(include_str!("sql/ring.sql"), &params).await?;
                db.finish().await
            };
            if call.within(word).await.is_ok() {
                heard.unheard.fetch_add(1, Ordering::Relaxed);
            }
        }
        tokio::time::sleep(RING_INTERVAL).await;
    }
}

/// Listens, and again whenever the line was lost. Says when it listens first, or can't.
async fn keep_listening(direct: Address, heard: Arc<Heard>, first: oneshot::Sender<()>) {
    let mut first = Some(first);
    let mut wait = WAIT_MIN;
    loop {
        let lost = listen(&direct, &heard, &mut first).await;
        if heard.is_listening.swap(false, Ordering::Relaxed) {
            wait = WAIT_MIN;
        }
        if let Err(fault) = lost {
            tracing::debug!(error = %fault, "cannot hear of other instances, and looks instead");
        }
        first = None;
        tokio::time::sleep(wait).await;
        wait = (wait * 2).min(WAIT_MAX);
    }
}

/// Hears what comes in until the line is lost.
async fn listen(
    direct: &Address,
    heard: &Heard,
    first: &mut Option<oneshot::Sender<()>>,
) -> Result<(), Fault> {
    let (client, mut connection) = direct.config.connect(direct.tls.clone()).await?;
    let mut subscribed = pin!(client.batch_execute("LISTEN redeliver"));
    loop {
        tokio::select! {
            message = poll_fn(|context| connection.poll_message(context)) => match message {
                Some(Ok(AsyncMessage::Notification(word))) => heard.hear(word.payload()),
                Some(message) => drop(message?),
                None => return Ok(()),
            },
            done = &mut subscribed, if !heard.is_listening.load(Ordering::Relaxed) => {
                done?;
                heard.unheard.store(0, Ordering::Relaxed);
                heard.is_listening.store(true, Ordering::Relaxed);
                match first.take() {
                    // Whoever waited for it may have gone.
                    Some(first) => drop(first.send(())),
                    // Whatever was said in between was missed.
                    None => heard.something_new.store(true, Ordering::Relaxed),
                }
            }
        }
    }
}
