//! Callers: each says its mails again, under the same keys and to another instance, until there is an answer.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, RwLock};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::ledger::Ledger;
use crate::story::server::KEY;
use crate::story::{breathe, until};

/// Callers at once.
const CALLERS: usize = 6;
/// Mails that are said together.
const BATCH: usize = 10;
/// How long a caller waits for an answer.
const PATIENCE: Duration = Duration::from_secs(5);
/// Mails that may be answered for and not delivered yet before callers wait.
const BEHIND_MAX: usize = 3_000;
/// Mails that are answered for between two faults, at least.
const BETWEEN: usize = 100;

/// Where the instances answer; nothing for one that is down.
pub type Addresses = Arc<RwLock<Vec<Option<String>>>>;

/// The callers, at work.
pub struct Generators {
    shared: Arc<Shared>,
    threads: Mutex<Vec<JoinHandle<()>>>,
}

struct Shared {
    ledger: Arc<Ledger>,
    addresses: Addresses,
    /// How many mails have arrived.
    arrivals: Arc<AtomicUsize>,
    done: AtomicBool,
}

impl Generators {
    pub fn start(ledger: &Arc<Ledger>, addresses: Addresses, arrivals: Arc<AtomicUsize>) -> Self {
        let _ = rustls::crypto::ring::default_provider().install_default();
        let shared = Arc::new(Shared {
            ledger: Arc::clone(ledger),
            addresses,
            arrivals,
            done: AtomicBool::new(false),
        });
        let threads = (0..CALLERS)
            .map(|caller| {
                let shared = Arc::clone(&shared);
                std::thread::spawn(move || shared.call(caller))
            })
            .collect();
        Self { shared, threads: Mutex::new(threads) }
    }

    /// Waits until mails are answered for again.
    pub fn get_on(&self) {
        let before = self.shared.ledger.answered();
        until("mails are answered for again", || self.shared.ledger.answered() >= before + BETWEEN);
    }

    /// Waits until what was said is answered for, and says nothing more.
    pub fn stop(self) {
        self.shared.done.store(true, Ordering::Relaxed);
        self.threads.into_inner().unwrap().into_iter().for_each(|thread| thread.join().unwrap());
    }
}

impl Shared {
    fn call(&self, caller: usize) {
        let http = reqwest::blocking::Client::builder().no_proxy().timeout(PATIENCE).build().unwrap();
        for batch in 0.. {
            while self.ledger.answered() >= self.arrivals.load(Ordering::Relaxed) + BEHIND_MAX {
                if self.done.load(Ordering::Relaxed) {
                    return;
                }
                breathe();
            }
            if self.done.load(Ordering::Relaxed) {
                return;
            }
            let keys: Vec<String> = (0..BATCH).map(|n| format!("mail-{caller}-{batch}-{n}")).collect();
            let mails: Value = keys.iter().map(|key| mail(key)).collect();
            self.ledger.say(&keys);
            let mut turn = caller + batch;
            let begun = Instant::now();
            while !self.is_answered(&http, turn, &mails) {
                assert!(begun.elapsed() < Duration::from_secs(120), "no instance answers a caller");
                turn += 1;
                breathe();
            }
            self.ledger.answer(&keys);
        }
    }

    /// Says mails to one instance. Anything but a clear yes may mean that they were accepted, or not.
    fn is_answered(&self, http: &reqwest::blocking::Client, turn: usize, mails: &Value) -> bool {
        let address = {
            let addresses = self.addresses.read().unwrap();
            addresses[turn % addresses.len()].clone()
        };
        let Some(address) = address else { return false };
        let answer = http.post(format!("{address}/v1/messages")).bearer_auth(KEY).json(mails).send();
        let Ok(answer) = answer else { return false };
        let status = answer.status().as_u16();
        let Ok(text) = answer.text() else { return false };
        assert!(matches!(status, 200 | 201 | 429 | 500..), "a mail was refused: {status} {text}");
        let kept =
            |answers: Vec<Value>| answers.len() == BATCH && answers.iter().all(|one| one["id"].is_string());
        matches!(status, 200 | 201) && serde_json::from_str(&text).is_ok_and(kept)
    }
}

fn mail(key: &str) -> Value {
    json!({ "route": "email", "key": key,
        "email": { "from": "desk@example.org", "to": "ada@example.net", "subject": key, "text": "hello" } })
}
