//! The server is killed fifty times while mails come in. Everything that was answered for arrives, and what arrives twice
//! is known to have been in doubt.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a story that can't go on has failed")]

#[path = "story/mod.rs"]
mod story;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, RwLock};
use std::time::Duration;

use serde_json::{Value, json};
use story::peer::{Got, Peer, Sink};
use story::server::{Place, Server};
use story::{breathe, until, until_some, until_some_within};

const KILLS: usize = 50;
const PRODUCERS: usize = 4;
/// Mails that must have been answered for between two kills, so that each kill finds the server at work.
const ANSWERED_BETWEEN: usize = 40;
/// A mail that was lost twice waits for a minute, and for two if it was lost once more.
const AFTER_LOSSES: Duration = Duration::from_secs(300);

fn mail(key: &str) -> Value {
    json!({ "route": "email", "key": key,
        "email": { "from": "desk@example.org", "to": "ada@example.net", "subject": key, "text": "hello" } })
}

/// What producers share: the server of the moment, and what it has answered for.
struct Shared {
    server: RwLock<Option<Arc<Server>>>,
    /// Message ids by key, each added only after its answer.
    answered: Mutex<BTreeMap<String, String>>,
    count: AtomicUsize,
    done: AtomicBool,
}

impl Shared {
    /// Says each mail again under its key until there is an answer.
    fn produce(&self, producer: usize) {
        for number in 0.. {
            let key = format!("mail-{producer}-{number}");
            let id = loop {
                if self.done.load(Ordering::Relaxed) {
                    return;
                }
                let server = self.server.read().unwrap().clone();
                let answer = server.and_then(|server| server.try_post("/v1/messages", &mail(&key)));
                match answer {
                    Some(answer) if answer.status == 201 || answer.status == 200 => {
                        break answer.json["id"].as_str().unwrap().to_owned();
                    }
                    _ => breathe(),
                }
            };
            self.answered.lock().unwrap().insert(key, id);
            self.count.fetch_add(1, Ordering::Relaxed);
        }
    }

    fn replace(&self, server: Option<Server>) -> Option<Arc<Server>> {
        std::mem::replace(&mut *self.server.write().unwrap(), server.map(Arc::new))
    }
}

/// How often each mail arrived, by its subject.
fn receipts(mails: &[Got]) -> BTreeMap<String, usize> {
    let mut receipts = BTreeMap::new();
    for got in mails {
        let text = String::from_utf8_lossy(&got.data);
        let subject = text.lines().find_map(|line| line.strip_prefix("Subject: ")).unwrap().to_owned();
        *receipts.entry(subject).or_default() += 1;
    }
    receipts
}

#[test]
fn fifty_kills_lose_nothing_and_double_only_what_is_known_to_be_in_doubt() {
    let sink = Sink::new();
    let place = Place::outbox(&sink.url())
        .variable("REDELIVER_ROUTES__EMAIL__RETENTION", "1h")
        .variable("REDELIVER_LOG__FILTER", "warn,redeliver_cli=info");
    let shared = Arc::new(Shared {
        server: RwLock::new(None),
        answered: Mutex::default(),
        count: AtomicUsize::new(0),
        done: AtomicBool::new(false),
    });
    let producers: Vec<_> = (0..PRODUCERS)
        .map(|producer| {
            let shared = Arc::clone(&shared);
            std::thread::spawn(move || shared.produce(producer))
        })
        .collect();
    let mut kills = 0;
    while kills < KILLS {
        let before = shared.count.load(Ordering::Relaxed);
        shared.replace(Some(place.serve()));
        until("mails are answered for", || shared.count.load(Ordering::Relaxed) >= before + ANSWERED_BETWEEN);
        let killed = shared.replace(None).unwrap();
        kills += usize::from(killed.kill_now());
    }
    shared.done.store(true, Ordering::Relaxed);
    producers.into_iter().for_each(|producer| producer.join().unwrap());

    let server = place.serve();
    until_some_within(AFTER_LOSSES, "nothing waits any more", || {
        let total = &server.get("/v1/stats").json["total"];
        (total["waiting"] == 0 && total["sending"] == 0).then_some(())
    });
    let stats = server.get("/v1/stats").json;
    let answered = shared.answered.lock().unwrap().clone();
    let receipts = receipts(&sink.mails());
    let lost: Vec<&String> = answered.keys().filter(|key| !receipts.contains_key(*key)).collect();
    assert_eq!(lost, Vec::<&String>::new(), "answered for and never arrived");
    assert_eq!(stats["total"]["dead"], 0);

    // What was stored but never answered for may arrive: it is in the store, and was said.
    let stored: u64 = stats["total"]["delivered"].as_u64().unwrap();
    assert_eq!(
        receipts.len() as u64,
        stored,
        "nothing arrives that is not in the store, and the other way round"
    );
    let doubled: BTreeSet<&String> =
        receipts.iter().filter(|(_, count)| **count > 1).map(|(key, _)| key).collect();
    for key in &doubled {
        let message = until_some("the message", || {
            let page = server.get(&format!("/v1/messages?key={key}")).json;
            page["items"].as_array()?.first().cloned()
        });
        let doubts = message["possible_duplicates"].as_u64().unwrap();
        assert!(doubts as usize >= receipts[*key] - 1, "{key} arrived {} times: {message}", receipts[*key]);
    }
    println!(
        "{KILLS} kills, {} mails answered for, {stored} stored, 0 lost, {} arrived twice and were known to be in doubt",
        answered.len(),
        doubled.len()
    );
    assert_eq!(server.stop().matches("panicked").count(), 0);
}
