//! The whole loop, before your eyes: notifications of four priorities are reported as failed, wait, are handed to the
//! processor by Redis and Kafka, fail again or arrive, and end. What each comes to is known beforehand, and checked.

use std::collections::{BTreeMap, BTreeSet};
use std::error::Error;
use std::io::Write;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::park_timeout;
use std::time::Duration;

use rdkafka::ClientConfig;
use rdkafka::consumer::{BaseConsumer, Consumer};
use rdkafka::message::Message;
use redeliver_servers::free_port;
use redeliver_servers::redis::RedisServer;
use serde_json::{Value, json};

use crate::{devices, worker};

/// The key of this one server, which nobody else reaches and which is gone in a moment.
const KEY: &str = "the-key-of-the-demo";
/// What the profile calls the topics that it reads and writes.
pub const TOPICS: [&str; 5] = [
    "notifications.failed",
    "notifications.reports",
    "notifications.retry.medium",
    "notifications.retry.low",
    DEAD_LETTERS,
];
const DEAD_LETTERS: &str = "notifications.dead-letter";
const PRIORITIES: [&str; 4] = ["critical", "high", "medium", "low"];
/// Short waits, so that it is over soon. How often each priority is retried is as in the profile.
const BACKOFF: &str = r#"{ base = "100ms", factor = 2, cap = "400ms" }"#;
/// How often it is looked whether something has changed.
const LOOK: Duration = Duration::from_millis(100);
/// How often at most, until it is clear that it never will.
const LOOKS_MAX: usize = 1_200;

/// What a device makes of its notification, and what that comes to: a status, and why.
const CASES: [(&str, &str, &str); 5] = [
    ("arrives", "delivered", ""),
    ("arrives-late", "delivered", ""),
    ("never-answers", "dead", "attempts_exhausted"),
    ("refuses", "dead", "refused"),
    ("gone", "cancelled", "ineligible"),
];

/// A notification that a device did not take, as it is reported.
fn notification(priority: &str, case: &str) -> Value {
    let device = format!("{priority}-{case}");
    let arrives_on_try = match case {
        "arrives" => json!(2),
        "arrives-late" => json!(4),
        _ => Value::Null,
    };
    json!({
        "route": "notification", "key": format!("news-1:{device}"), "priority": priority,
        "attempts": 1, "error": "503 no connection to the device", "attributes": { "device_id": device },
        "payload": { "title": "News", "arrives_on_try": arrives_on_try, "refused": case == "refuses" },
    })
}

/// Runs everything but Kafka, which is there already with its topics. Tells what happens, and fails if anything ends as it
/// should not.
pub fn run(redeliver: &Path, brokers: &str, out: &mut dyn Write) -> Result<(), Box<dyn Error>> {
    let redis = RedisServer::start();
    let device_port = free_port();
    devices::serve(device_port)?;
    let server = Server::start(redeliver, &redis.url(), brokers, device_port)?;
    let stop = Arc::new(AtomicBool::new(false));
    let working = {
        let (url, brokers, stop) = (redis.url(), brokers.to_owned(), Arc::clone(&stop));
        std::thread::spawn(move || worker::run(&url, &brokers, &stop))
    };
    writeln!(out, "Redis on port {}, Kafka on {brokers}, Redeliver on {}", redis.port(), server.url)?;

    let reported: Value =
        PRIORITIES.iter().flat_map(|priority| CASES.map(|(case, ..)| notification(priority, case))).collect();
    server.report_failed(&reported)?;
    let ended = watch(&server, out);
    stop.store(true, Ordering::Relaxed);
    working.join().map_err(|_| "the processor has failed")?;
    let ended = ended?;

    let mut dead = BTreeSet::new();
    for priority in PRIORITIES {
        for (case, status, why) in CASES {
            let device = format!("{priority}-{case}");
            let item = &ended[&format!("news-1:{device}")];
            let reason = item["dead_reason"].as_str().or(item["cancelled_for"].as_str()).unwrap_or_default();
            if item["status"] != status || reason != why {
                return Err(format!("{device} should be {status} {why}: {item}").into());
            }
            if status == "dead" {
                dead.insert(device);
            }
        }
    }
    let told = dead_letters(brokers, dead.len())?;
    if told != dead {
        return Err(format!("dead letters came for {told:?} instead of {dead:?}").into());
    }
    writeln!(out, "all {} ended as they should; {} dead letters", ended.len(), told.len())?;
    Ok(())
}

/// The devices that dead letters are about, once there are so many.
fn dead_letters(brokers: &str, count: usize) -> Result<BTreeSet<String>, Box<dyn Error>> {
    let mut settings = ClientConfig::new();
    settings.set("bootstrap.servers", brokers).set("group.id", "undertaker");
    let reader: BaseConsumer = settings.set("auto.offset.reset", "earliest").create()?;
    reader.subscribe(&[DEAD_LETTERS])?;
    let mut devices = BTreeSet::new();
    for _ in 0..LOOKS_MAX {
        if devices.len() == count {
            return Ok(devices);
        }
        if let Some(Ok(letter)) = reader.poll(LOOK) {
            devices.insert(String::from_utf8(letter.key().unwrap_or_default().to_vec())?);
        }
    }
    Err(format!("dead letters came only for {devices:?}").into())
}

/// Tells of every notification when its status changes, until all have ended.
fn watch(server: &Server, out: &mut dyn Write) -> Result<BTreeMap<String, Value>, Box<dyn Error>> {
    let mut known: BTreeMap<String, Value> = BTreeMap::new();
    for _ in 0..LOOKS_MAX {
        for item in server.notifications()? {
            let key = item["key"].as_str().unwrap_or_default().to_owned();
            let before = known.insert(key.clone(), item.clone());
            let has_changed = |field: &str| before.as_ref().is_none_or(|before| before[field] != item[field]);
            if ["status", "attempts"].into_iter().any(has_changed) {
                let word = |field: &str| item[field].as_str().unwrap_or_default().to_owned();
                let why = format!("{}{}", word("dead_reason"), word("cancelled_for"));
                let tries = format!("{} of {} tries", item["attempts"], item["max_attempts"]);
                writeln!(out, "{key:<30} {:<10} {tries:<15} {why}", word("status"))?;
            }
        }
        let is_end =
            |item: &Value| ["delivered", "dead", "cancelled"].iter().any(|end| item["status"] == *end);
        if known.len() == PRIORITIES.len() * CASES.len() && known.values().all(is_end) {
            return Ok(known);
        }
        park_timeout(LOOK);
    }
    Err(format!("some have not ended: {known:#?}").into())
}

/// Redeliver, for as long as this lives.
struct Server {
    process: Child,
    url: String,
    http: reqwest::blocking::Client,
    _files: tempfile::TempDir,
}

impl Server {
    fn start(redeliver: &Path, redis: &str, brokers: &str, devices: u16) -> Result<Self, Box<dyn Error>> {
        let files = tempfile::tempdir()?;
        let port = free_port();
        let mut command = Command::new(redeliver);
        command.args(["serve", "--profile", "notifications"]).current_dir(files.path()).env_clear();
        command.env("DATABASE_URL", "sqlite:notifications.db").env("HTTP_PORT", port.to_string());
        command.env("REDIS_URL", redis).env("KAFKA_BROKERS", brokers).env("REDELIVER_ADMIN_KEY", KEY);
        command.env("DEVICE_SERVICE_URL", format!("http://127.0.0.1:{devices}"));
        command.env("REDELIVER_ROUTES__NOTIFICATION__REPORT_WITHIN", "10s");
        for priority in PRIORITIES {
            command.env(format!("REDELIVER_POLICIES__{}__BACKOFF", priority.to_uppercase()), BACKOFF);
        }
        let log = std::fs::File::create(files.path().join("log"))?;
        let process = command.stdout(Stdio::null()).stderr(log).spawn()?;
        // Nobody is asked for a certificate here, and still something must stand ready to check one.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let http = reqwest::blocking::Client::builder().no_proxy().build()?;
        let mut server = Self { process, url: format!("http://127.0.0.1:{port}"), http, _files: files };
        for _ in 0..LOOKS_MAX {
            if server.get("/readyz").is_ok_and(|answer| answer["carrying"] == true) {
                return Ok(server);
            }
            if server.process.try_wait()?.is_some() {
                break;
            }
            park_timeout(LOOK);
        }
        Err(std::fs::read_to_string(server._files.path().join("log"))?.into())
    }

    fn get(&self, path: &str) -> Result<Value, reqwest::Error> {
        self.http.get(format!("{}{path}", self.url)).bearer_auth(KEY).send()?.json()
    }

    fn report_failed(&self, notifications: &Value) -> Result<(), reqwest::Error> {
        let call = self.http.post(format!("{}/v1/messages", self.url)).bearer_auth(KEY);
        call.json(notifications).send()?.error_for_status().map(|_| ())
    }

    fn notifications(&self) -> Result<Vec<Value>, reqwest::Error> {
        let page = self.get("/v1/messages?route=notification&limit=500")?;
        Ok(page["items"].as_array().cloned().unwrap_or_default())
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
