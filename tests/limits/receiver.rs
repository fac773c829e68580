//! A mail server that notes when each mail arrives.

use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};

use redeliver_sink::{Options, Seen, Sink, WatcherFn};

use crate::story::until_some;

/// Time since 1970 by the clock of this machine, which the database follows too.
pub fn now() -> Duration {
    SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap()
}

/// A mail that arrived.
#[derive(Clone, Debug)]
pub struct Arrival {
    /// The key of its message.
    pub key: String,
    pub at: Duration,
}

pub struct Receiver {
    /// Dropped before the runtime that it runs on.
    sink: Sink,
    _runtime: tokio::runtime::Runtime,
    arrivals: Arc<Mutex<Vec<Arrival>>>,
}

impl Receiver {
    pub fn start(script: &str) -> Self {
        let arrivals: Arc<Mutex<Vec<Arrival>>> = Arc::default();
        let notes = Arc::clone(&arrivals);
        let watcher: WatcherFn = Arc::new(move |seen| {
            let to = match seen {
                Seen::Kept(mail) => mail.to.first().cloned(),
                Seen::Played { to, .. } => to.first().cloned(),
                Seen::Dropped(_) => None,
            };
            if let Some((key, _)) = to.as_deref().and_then(|to| to.split_once('@')) {
                notes.lock().unwrap().push(Arrival { key: key.to_owned(), at: now() });
            }
        });
        let script = script.parse().unwrap();
        let options = Options { script, watcher: Some(watcher), ..Options::default() };
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build();
        let runtime = runtime.unwrap();
        let sink = runtime.block_on(Sink::start(options)).unwrap();
        Self { sink, _runtime: runtime, arrivals }
    }

    pub fn url(&self) -> String {
        format!("smtp://127.0.0.1:{}", self.sink.address().port())
    }

    /// All arrivals so far, in their order.
    pub fn arrivals(&self) -> Vec<Arrival> {
        self.arrivals.lock().unwrap().clone()
    }

    /// Waits for the first mail.
    pub fn first_arrival(&self) -> Duration {
        until_some("a mail arrives", || self.arrivals().first().map(|arrival| arrival.at))
    }
}
