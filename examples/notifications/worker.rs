//! The processor of notifications: takes them from Redis and Kafka when Redeliver says that their time has come, tries to bring
//! them to their devices, and reports what became of each. It has no timetable and remembers nothing: that is Redeliver's part.
//!
//! A report goes out before the notification is acknowledged. Whoever crashes in between takes it again and reports again,
//! which does no harm: reports are about attempts, and each counts once.

use std::collections::HashMap;
use std::error::Error;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::park_timeout;
use std::time::Duration;

use rdkafka::ClientConfig;
use rdkafka::consumer::{BaseConsumer, CommitMode, Consumer};
use rdkafka::message::{Headers, Message};
use rdkafka::producer::{BaseRecord, DefaultProducerContext, Producer, ThreadedProducer};
use serde_json::{Value, json};

/// Where the notifications are whose time has come.
const STREAMS: [&str; 2] = ["notifications.retry.critical", "notifications.retry.high"];
const TOPICS: [&str; 2] = ["notifications.retry.medium", "notifications.retry.low"];
/// Where it is told what became of them: a stream, and a topic.
const REPORTS: &str = "notifications.reports";
/// All processors are members of one group, in Redis as in Kafka.
const GROUP: &str = "notification-processor";
/// How long it is waited for something to do.
const POLL: Duration = Duration::from_millis(200);
/// How long it is waited for a server that is away.
const AWAY: Duration = Duration::from_secs(1);
/// How long the cluster may take to take a report.
const WITHIN: Duration = Duration::from_secs(10);

type Trouble = Box<dyn Error>;

/// One entry of a stream: its id, and its fields.
type Entry = (String, HashMap<String, String>);

/// Works until it is told to stop. Servers may go away and come back meanwhile.
pub fn run(redis_url: &str, brokers: &str, stop: &AtomicBool) {
    std::thread::scope(|threads| {
        threads.spawn(|| again_and_again("Redis", stop, || work_on_streams(redis_url, stop)));
        threads.spawn(|| again_and_again("Kafka", stop, || work_on_topics(brokers, stop)));
    });
}

fn again_and_again(name: &str, stop: &AtomicBool, work: impl Fn() -> Result<(), Trouble>) {
    while !stop.load(Ordering::Relaxed) {
        if let Err(trouble) = work() {
            eprintln!("{name}: {trouble}; trying again");
            park_timeout(AWAY);
        }
    }
}

fn work_on_streams(url: &str, stop: &AtomicBool) -> Result<(), Trouble> {
    let mut server = redis::Client::open(url)?.get_connection()?;
    for stream in STREAMS {
        let mut make = redis::cmd("XGROUP");
        make.arg("CREATE").arg(stream).arg(GROUP).arg("0").arg("MKSTREAM");
        let made: Result<(), redis::RedisError> = make.query(&mut server);
        // One that is there already is just as good.
        made.or_else(|error| if error.code() == Some("BUSYGROUP") { Ok(()) } else { Err(error) })?;
    }
    // What this member took and never acknowledged comes first.
    let mut from = "0";
    while !stop.load(Ordering::Relaxed) {
        let mut read = redis::cmd("XREADGROUP");
        read.arg("GROUP").arg(GROUP).arg("processor-1").arg("COUNT").arg(100);
        read.arg("BLOCK").arg(POLL.as_millis() as u64).arg("STREAMS").arg(&STREAMS).arg(from).arg(from);
        let found: Vec<(String, Vec<Entry>)> = read.query(&mut server)?;
        let is_all = found.iter().all(|(_, entries)| entries.is_empty());
        for (stream, entries) in found {
            for (id, fields) in entries {
                let field = |name: &str| fields.get(name).map_or("", String::as_str);
                if let Some(report) = tried(field("attempt_id"), field("payload").as_bytes()) {
                    let mut tell = redis::cmd("XADD");
                    tell.arg(REPORTS).arg("*").arg("message").arg(report.to_string());
                    let _: String = tell.query(&mut server)?;
                }
                let _: u64 = redis::cmd("XACK").arg(&stream).arg(GROUP).arg(&id).query(&mut server)?;
            }
        }
        if is_all {
            from = ">";
        }
    }
    Ok(())
}

fn work_on_topics(brokers: &str, stop: &AtomicBool) -> Result<(), Trouble> {
    let mut settings = ClientConfig::new();
    settings.set("bootstrap.servers", brokers);
    let teller: ThreadedProducer<DefaultProducerContext> = settings.create()?;
    settings.set("group.id", GROUP).set("enable.auto.commit", "false").set("auto.offset.reset", "earliest");
    let reader: BaseConsumer = settings.create()?;
    reader.subscribe(&TOPICS)?;
    while !stop.load(Ordering::Relaxed) {
        let Some(record) = reader.poll(POLL).transpose()? else { continue };
        let attempt = record.headers().and_then(|headers| {
            let header = headers.iter().find(|header| header.key == "attempt_id")?;
            std::str::from_utf8(header.value?).ok()
        });
        if let Some(report) = tried(attempt.unwrap_or_default(), record.payload().unwrap_or_default()) {
            let report = report.to_string();
            let told = teller.send(BaseRecord::<str, str>::to(REPORTS).payload(&report));
            told.map_err(|(error, _)| error)?;
            teller.flush(WITHIN)?;
        }
        reader.commit_message(&record, CommitMode::Sync)?;
    }
    Ok(())
}

/// Tries to bring a notification to its device, and says what came of it. Nothing if it is no notification of ours.
///
/// A real processor would talk to the device here. This one does as the notification says: it arrives on a certain try,
/// or never, or is refused.
fn tried(attempt_id: &str, payload: &[u8]) -> Option<Value> {
    let payload: Value = serde_json::from_slice(payload).ok()?;
    let attempt: u64 = attempt_id.rsplit('.').next()?.parse().ok()?;
    Some(match (payload["refused"] == true, payload["arrives_on_try"].as_u64()) {
        (true, _) => {
            json!({ "attempt_id": attempt_id, "outcome": "refused", "error": "the device knows no such app" })
        }
        (false, Some(wanted)) if attempt >= wanted => {
            json!({ "attempt_id": attempt_id, "outcome": "delivered" })
        }
        (false, _) => {
            json!({ "attempt_id": attempt_id, "outcome": "failed", "error": "the device does not answer" })
        }
    })
}
