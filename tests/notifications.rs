//! Notifications, end to end: the shipped binary, a real Redis that is killed and loses everything, a Kafka cluster whose
//! brokers go away, a device service that is down at first, and a worker that fails on purpose and reports.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a story that can't go on has failed")]

#[path = "story/mod.rs"]
mod story;

use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufRead, BufReader, Write};
use std::net::TcpListener;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

use redeliver_servers::free_port;
use redeliver_servers::kafka::KafkaCluster;
use redeliver_servers::redis::RedisServer;
use serde_json::{Value, json};
use story::server::{KEY, Place, Server};
use story::{breathe, until};

const COUNT: usize = 1_000;
const PRIORITIES: [&str; 4] = ["critical", "high", "medium", "low"];
const STREAMS: [&str; 2] = ["notifications.retry.critical", "notifications.retry.high"];
const TOPICS: [&str; 2] = ["notifications.retry.medium", "notifications.retry.low"];
const FAILED: &str = "notifications.failed";
const REPORTS: &str = "notifications.reports";
const DEAD: &str = "notifications.dead-letter";

/// One entry of a stream: its id, and its fields.
type Entry = (String, BTreeMap<String, String>);

/// What becomes of the n-th notification.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
enum Fate {
    Skipped,
    /// Its device was there at first.
    Left,
    Exhausted,
    Refused,
    Delivered,
}

fn fate(n: usize) -> Fate {
    // No priority has a fate of its own.
    match n % 21 {
        3 | 14 => Fate::Skipped,
        6 | 17 => Fate::Exhausted,
        9 => Fate::Refused,
        11 => Fate::Left,
        _ => Fate::Delivered,
    }
}

fn notification(n: usize) -> Value {
    json!({
        "route": "notification", "key": format!("n-{n}:d-{n}"), "priority": PRIORITIES[n % 4], "attempts": 1,
        "error": "503 no connection to the device", "attributes": { "device_id": format!("d-{n}") },
        "payload": { "n": n },
    })
}

/// Says which devices are active: those of notifications that are to be skipped are not, every other one of them because
/// nobody has heard of it; and some are only until they were asked about once.
fn device_service(port: u16) {
    let listener = TcpListener::bind(("127.0.0.1", port)).unwrap();
    let left: Arc<Mutex<BTreeSet<usize>>> = Arc::default();
    std::thread::spawn(move || {
        for stream in listener.incoming().map_while(Result::ok) {
            let left = Arc::clone(&left);
            std::thread::spawn(move || {
                let mut lines = BufReader::new(&stream).lines();
                let Some(Ok(first)) = lines.next() else { return };
                let _rest: Vec<_> = lines.map_while(Result::ok).take_while(|line| !line.is_empty()).collect();
                let device = first.split(' ').nth(1).and_then(|path| path.strip_prefix("/devices/d-"));
                let n: usize = device.unwrap().parse().unwrap();
                let (status, body) = match fate(n) {
                    Fate::Skipped if n.is_multiple_of(2) => ("404 Not Found", ""),
                    Fate::Skipped => ("200 OK", r#"{"active": false}"#),
                    Fate::Left if !left.lock().unwrap().insert(n) => ("404 Not Found", ""),
                    _ => ("200 OK", r#"{"active": true}"#),
                };
                let head = format!(
                    "HTTP/1.1 {status}\r\nconnection: close\r\ncontent-length: {}\r\n\r\n",
                    body.len()
                );
                // Whoever asked may have gone, and asks again.
                let _ = (&stream).write_all(format!("{head}{body}").as_bytes());
            });
        }
    });
}

/// Takes from Redis and Kafka, and reports by the way that it came, or by HTTP.
struct Worker {
    at_work: Arc<Mutex<()>>,
    ended: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Worker {
    /// One that does nothing before it is let.
    fn start(redis_url: &str, cluster: &Arc<KafkaCluster>, url: &str) -> Self {
        let (at_work, ended) = (Arc::new(Mutex::new(())), Arc::new(AtomicBool::new(false)));
        let mut hands = Hands {
            redis_url: redis_url.to_owned(),
            cluster: Arc::clone(cluster),
            url: url.to_owned(),
            http: reqwest::blocking::Client::builder().no_proxy().build().unwrap(),
            last: [String::from("0"), String::from("0")],
            seen: BTreeSet::new(),
        };
        let (work, end) = (Arc::clone(&at_work), Arc::clone(&ended));
        let thread = std::thread::spawn(move || {
            while !end.load(Ordering::Relaxed) {
                drop(work.lock().unwrap_or_else(PoisonError::into_inner));
                breathe();
                let _working = work.lock().unwrap_or_else(PoisonError::into_inner);
                // Redis may be away; what was not told by then is handed over again.
                let _ = hands.take_from_redis();
                hands.take_from_kafka();
            }
        });
        Self { at_work, ended, thread: Some(thread) }
    }

    /// Keeps it from doing anything for as long as this is held.
    fn hold(&self) -> MutexGuard<'_, ()> {
        self.at_work.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn end(mut self) {
        self.ended.store(true, Ordering::Relaxed);
        self.thread.take().unwrap().join().unwrap();
    }
}

struct Hands {
    redis_url: String,
    cluster: Arc<KafkaCluster>,
    url: String,
    http: reqwest::blocking::Client,
    /// The last entry of each stream that was taken.
    last: [String; 2],
    /// What was taken from each topic.
    seen: BTreeSet<(&'static str, i32, i64)>,
}

impl Hands {
    fn take_from_redis(&mut self) -> redis::RedisResult<()> {
        let mut server = redis::Client::open(self.redis_url.as_str())?.get_connection()?;
        for (stream, last) in STREAMS.into_iter().zip(&mut self.last) {
            let mut read = redis::cmd("XREAD");
            read.arg("COUNT").arg(1_000).arg("STREAMS").arg(stream).arg(&*last);
            let found: Vec<(String, Vec<Entry>)> = read.query(&mut server)?;
            for (id, fields) in found.into_iter().flat_map(|(_, entries)| entries) {
                let report = report(&fields["attempt_id"], &fields["payload"]).to_string();
                let mut tell = redis::cmd("XADD");
                let _: String = tell.arg(REPORTS).arg("*").arg("message").arg(report).query(&mut server)?;
                *last = id;
            }
        }
        Ok(())
    }

    fn take_from_kafka(&mut self) {
        for topic in TOPICS {
            let mut reports = Vec::new();
            for record in self.cluster.records(topic) {
                if self.seen.insert((topic, record.partition, record.offset)) {
                    let attempt = record.header("attempt_id").or(record.header("x-redeliver-attempt-id"));
                    reports.push(report(attempt.unwrap(), &String::from_utf8(record.bytes.clone()).unwrap()));
                }
            }
            // Every other one is told over HTTP.
            let (by_http, by_topic): (Vec<_>, Vec<_>) =
                reports.into_iter().enumerate().partition(|(i, _)| i.is_multiple_of(2));
            let by_topic: Vec<String> = by_topic.into_iter().map(|(_, report)| report.to_string()).collect();
            let records: Vec<_> = by_topic.iter().map(|report| (None, report.as_bytes())).collect();
            if !records.is_empty() {
                self.cluster.put_all(REPORTS, &records);
            }
            for (_, report) in by_http {
                self.tell(report);
            }
        }
    }

    fn tell(&self, mut report: Value) {
        let attempt = report["attempt_id"].as_str().unwrap().to_owned();
        let id = attempt.rsplitn(3, '.').last().unwrap().to_owned();
        report.as_object_mut().unwrap().remove("id");
        let call = self.http.post(format!("{}/v1/messages/{id}/report", self.url));
        let answer = call.bearer_auth(KEY).json(&report).send();
        assert_eq!(answer.unwrap().status().as_u16(), 200);
    }
}

/// What is said of a try: some fail always, some are refused, every third fails the first time.
fn report(attempt: &str, payload: &str) -> Value {
    let payload: Value = serde_json::from_str(payload).unwrap();
    let n = usize::try_from(payload["n"].as_u64().unwrap()).unwrap();
    let is_first = attempt.ends_with(".2");
    let outcome = match fate(n) {
        Fate::Refused => "refused",
        Fate::Exhausted | Fate::Left => "failed",
        Fate::Skipped => panic!("n-{n} went out to a device that is not active"),
        Fate::Delivered if n.is_multiple_of(3) && is_first => "failed",
        Fate::Delivered => "delivered",
    };
    match outcome {
        "delivered" => json!({ "attempt_id": attempt, "outcome": outcome }),
        _ => {
            json!({ "attempt_id": attempt, "outcome": outcome, "error": "the device says no", "error_code": "EDEVICE" })
        }
    }
}

/// The number of a notification, from its key.
fn number(item: &Value) -> usize {
    let key = item["key"].as_str().unwrap();
    key.split(':').next().unwrap().strip_prefix("n-").unwrap().parse().unwrap()
}

/// Every notification as it stands, by its number.
fn all(server: &Server) -> BTreeMap<usize, Value> {
    listed(server, "limit=500").into_iter().map(|item| (number(&item), item)).collect()
}

/// The notifications that somebody asks for, page by page.
fn listed(server: &Server, query: &str) -> Vec<Value> {
    let mut found = Vec::new();
    let mut after = String::new();
    loop {
        let page = server.get(&format!("/v1/messages?route=notification&{query}{after}")).json;
        found.extend(page["items"].as_array().unwrap_or_else(|| panic!("{page}")).iter().cloned());
        match page["next"].as_str() {
            Some(next) => after = format!("&after={next}"),
            None => return found,
        }
    }
}

fn ended(server: &Server) -> usize {
    let is_end = |item: &Value| ["delivered", "dead", "cancelled"].iter().any(|end| item["status"] == *end);
    all(server).values().filter(|item| is_end(item)).count()
}

#[test]
fn every_notification_ends_as_it_should_though_redis_loses_everything_and_brokers_and_devices_are_away() {
    let mut redis = RedisServer::start();
    let topics = [&TOPICS[..], &[FAILED, REPORTS, DEAD]].concat();
    let cluster = Arc::new(KafkaCluster::start_with_topics(&topics));
    let devices = free_port();
    let quick = r#"{ base = "50ms", factor = 2, cap = "200ms" }"#;
    let mut place = Place::profile("notifications")
        .variable("REDIS_URL", &redis.url())
        .variable("KAFKA_BROKERS", cluster.brokers())
        .variable("DEVICE_SERVICE_URL", &format!("http://127.0.0.1:{devices}"))
        .variable("REDELIVER_ROUTES__NOTIFICATION__REPORT_WITHIN", "5s")
        .variable("REDELIVER_ROUTES__NOTIFICATION__ELIGIBILITY__CACHE_FOR", "1ms")
        .variable("REDELIVER_ROUTES__NOTIFICATION__ELIGIBILITY__AGAIN_AFTER", "200ms")
        .variable("REDELIVER_ROUTES__NOTIFICATION__ELIGIBILITY__OPEN_FOR", "200ms")
        .variable("REDELIVER_ROUTES__NOTIFICATION__ELIGIBILITY__OPEN_FOR_MAX", "1s")
        // A busy machine is no device service that is away.
        .variable("REDELIVER_ROUTES__NOTIFICATION__ELIGIBILITY__TIMEOUT", "15s");
    for policy in PRIORITIES {
        place = place.variable(&format!("REDELIVER_POLICIES__{}__BACKOFF", policy.to_uppercase()), quick);
    }
    let server = place.serve();
    let worker = Worker::start(&redis.url(), &cluster, &server.url);

    // Failures are told in three ways, while nobody says which devices are active.
    let working = worker.hold();
    let half = COUNT / 2;
    let (by_redis, by_kafka) = (50, 100);
    for n in 0..by_redis {
        redis.say(&["XADD", FAILED, "*", "message", &notification(n).to_string()]);
    }
    let records: Vec<String> = (by_redis..by_kafka).map(|n| notification(n).to_string()).collect();
    cluster.put_all(FAILED, &records.iter().map(|record| (None, record.as_bytes())).collect::<Vec<_>>());
    let said = server.post("/v1/messages", &(by_kafka..half).map(notification).collect());
    assert!(said.status < 300, "{said:?}");
    until("every failure has been taken", || all(&server).len() == half);
    let id = all(&server)[&(half - 4)]["id"].as_str().unwrap().to_owned();
    until("a notification says that it waits for the device service", || {
        let why = server.get(&format!("/v1/messages/{id}/explain")).json;
        let is_it = |gate: &Value| gate["gate"] == "eligibility" && gate["open"] == false;
        why["gates"].as_array().is_some_and(|gates| gates.iter().any(is_it))
    });
    assert!(all(&server).values().all(|item| item["attempts"] == 1 && item["state"] != "handed_off"));

    // Devices are known again. Redis is given some, and loses them all before anybody took them.
    device_service(devices);
    until("some are handed over to Redis", || {
        let is_there = |item: &Value| item["status"] == "handed_off" && item["priority"] == "critical";
        all(&server).values().any(is_there)
    });
    let is_with_redis = |item: &&Value| item["status"] == "handed_off" && item["priority"] == "critical";
    let flushed: Vec<String> =
        all(&server).values().filter(is_with_redis).map(|item| item["id"].to_string()).collect();
    redis.flush();
    redis.kill();
    redis.resume();
    drop(working);
    assert!(!flushed.is_empty());

    // Brokers go away while the second half comes: what goes to Redis goes on, the rest waits.
    let second = |item: &&Value| number(item) >= half;
    {
        let _working = worker.hold();
        cluster.take_down();
        let said = server.post("/v1/messages", &(half..COUNT).map(notification).collect());
        assert!(said.status < 300, "{said:?}");
        until("Redis is given some of the second half", || {
            all(&server).values().filter(second).any(|item| item["status"] == "handed_off")
        });
        let found = all(&server);
        let to_kafka = |item: &&&Value| item["priority"] == "medium" || item["priority"] == "low";
        let taken = found.values().filter(|item| second(item)).collect::<Vec<_>>();
        let wrong: Vec<_> =
            taken.iter().filter(to_kafka).filter(|item| item["status"] == "handed_off").collect();
        assert!(wrong.is_empty(), "nobody is there to take {wrong:?}");
        cluster.bring_up();
    }

    let mut before = 0;
    while before < COUNT {
        until(&format!("more than {before} of {COUNT} have ended"), || ended(&server) > before);
        before = ended(&server);
    }
    worker.end();
    let found = all(&server);
    assert_eq!(found.len(), COUNT, "none is lost, and none is there that nobody sent");
    let mut dead = BTreeSet::new();
    for (n, item) in &found {
        let (status, why) = match fate(*n) {
            Fate::Skipped | Fate::Left => ("cancelled", &item["cancelled_for"] == "ineligible"),
            Fate::Exhausted => ("dead", &item["dead_reason"] == "attempts_exhausted"),
            Fate::Refused => ("dead", &item["dead_reason"] == "refused"),
            Fate::Delivered => ("delivered", true),
        };
        assert!(item["status"] == status && why, "n-{n}: {item}");
        if status == "dead" {
            dead.insert(format!("d-{n}"));
        }
    }
    let is_left = |(n, item): &(&usize, &Value)| fate(**n) == Fate::Left && item["attempts"] == 2;
    assert!(found.iter().any(|one| is_left(&one)), "devices are asked about before each retry");
    let metrics = server.get("/metrics").json;
    for reason in ["attempts_exhausted", "refused"] {
        let count = found.values().filter(|item| item["dead_reason"] == reason).count();
        let line = format!("redeliver_dead_total{{route=\"notification\",reason=\"{reason}\"}} {count}\n");
        assert!(metrics.as_str().unwrap().contains(&line), "{line} in {metrics}");
    }
    // How one stands is seen by notification and device, and by the device alone.
    for wanted in [Fate::Delivered, Fate::Exhausted, Fate::Skipped] {
        let n = (half..COUNT).find(|n| fate(*n) == wanted).unwrap();
        for query in [format!("key=n-{n}:d-{n}"), format!("recipient=d-{n}")] {
            let seen: Vec<_> = listed(&server, &query).iter().map(|item| item["status"].clone()).collect();
            assert_eq!(seen, [found[&n]["status"].clone()], "{query}");
        }
    }
    let again = found.values().filter(|item| item["possible_duplicates"].as_u64() > Some(0));
    let again: BTreeSet<String> = again.map(|item| item["id"].to_string()).collect();
    assert!(flushed.iter().all(|id| again.contains(id)), "what Redis lost was handed over again");
    until("every death is told", || {
        let told: BTreeSet<String> = cluster
            .records(DEAD)
            .iter()
            .map(|record| String::from_utf8(record.key.clone().unwrap_or_default()).unwrap())
            .collect();
        told == dead
    });
    server.stop();
}
