//! Broker retries, end to end: the shipped binary, a real RabbitMQ, and a publisher and a consumer of another make (pika).
#![allow(clippy::unwrap_used, clippy::panic, reason = "a story that can't go on has failed")]

#[path = "story/mod.rs"]
mod story;

use std::collections::HashMap;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Mutex, PoisonError};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use redeliver_servers::postgres::PostgresServer;
use redeliver_servers::rabbitmq::RabbitmqServer;
use serde_json::Value;
use story::server::{Place, Server};
use story::{python, root, until};

/// One story at a time: each has a broker, a database and two clients of its own, and they are to be quick.
static STAGE: Mutex<()> = Mutex::new(());
/// How much later every second message is due, so that the faults come while they wait.
const LATER_MS: &str = "15000";
const QUEUES: &str = "orders,invoices";

/// Python's client at work.
struct Peer(Child);

impl Peer {
    fn start(args: &[&str]) -> Self {
        let mut command = Command::new(python());
        command.arg(root().join("tests/peers/broker.py")).args(args).stdout(Stdio::piped());
        Self(command.spawn().unwrap())
    }

    /// Waits until it says this word.
    fn says(&mut self, word: &str) {
        let mut line = String::new();
        BufReader::new(self.0.stdout.take().unwrap()).read_line(&mut line).unwrap();
        assert_eq!(line.trim(), word);
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn consumer(url: &str, queues: &str, out: &Path) -> Peer {
    let mut peer =
        Peer::start(&["consume", "--url", url, "--queues", queues, "--out", &out.display().to_string()]);
    peer.says("ready");
    peer
}

fn arrived(out: &PathBuf) -> Vec<Value> {
    let text = std::fs::read_to_string(out).unwrap_or_default();
    // A line that is being written has no end yet.
    let whole = text.split_inclusive('\n').filter(|line| line.ends_with('\n'));
    whole.map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn ids(arrived: &[Value]) -> HashMap<String, Vec<&Value>> {
    let mut ids: HashMap<String, Vec<&Value>> = HashMap::new();
    for line in arrived {
        ids.entry(line["id"].as_str().unwrap_or_default().to_owned()).or_default().push(line);
    }
    ids
}

fn serve(place: &Place) -> Server {
    let server = place.serve();
    until("the intake takes what comes", || server.log().contains("taking what comes"));
    server
}

#[test]
fn every_message_comes_back_to_its_queue_though_scheduler_and_broker_are_killed() {
    let _alone = STAGE.lock().unwrap_or_else(PoisonError::into_inner);
    killed_in_the_middle(Place::profile("broker-retry"), 6_000);
}

#[test]
fn and_so_it_does_with_postgresql() {
    let _alone = STAGE.lock().unwrap_or_else(PoisonError::into_inner);
    let postgres = PostgresServer::start();
    let database = postgres.database();
    killed_in_the_middle(Place::profile("broker-retry").variable("DATABASE_URL", &database.url()), 2_000);
}

fn killed_in_the_middle(place: Place, count: usize) {
    let mut broker = RabbitmqServer::start();
    let url = broker.url();
    let place = place.variable("RABBITMQ_URL", &url);
    let out = place.path("arrived");
    let _consumer = consumer(&url, QUEUES, &out);
    let server = serve(&place);

    let (half, rest) = ((count / 2).to_string(), (count - count / 2).to_string());
    let publish = |first: &str, count: &str| {
        let what = ["publish", "--url", &url, "--queue", "retry.scheduled", "--to", QUEUES];
        let which = ["--first", first, "--count", count, "--later-ms", LATER_MS];
        Peer::start(&[&what[..], &which[..]].concat())
    };
    publish("0", &half).says("published");

    assert!(ids(&arrived(&out)).len() < count / 2, "the scheduler is killed in the middle");
    assert!(server.kill_now(), "it was alive");
    drop(server);
    // What comes while nobody takes it waits in the queue.
    publish(&half, &rest).says("published");
    let server = serve(&place);

    let before = ids(&arrived(&out)).len();
    assert!(before < count, "the broker is killed in the middle");
    let pid = broker.pid();
    broker.kill();
    broker.resume();
    assert_ne!(broker.pid(), pid, "it is another one now");

    let lines = || std::fs::read(&out).unwrap_or_default().iter().filter(|byte| **byte == b'\n').count();
    until("every message is back in its queue", || lines() >= count && ids(&arrived(&out)).len() >= count);
    let all = arrived(&out);
    let ids = ids(&all);
    assert_eq!(ids.len(), count, "and none that nobody sent");
    for n in 0..count {
        let id = format!("m-{n}");
        let came = ids.get(&id).unwrap_or_else(|| panic!("{id} is lost"));
        let first = came[0];
        let body = STANDARD.decode(first["body"].as_str().unwrap()).unwrap();
        let (json, tail) = body.split_at(body.len() - 2);
        assert_eq!(tail, b"\0\xff", "byte for byte");
        let said: Value = serde_json::from_slice(json).unwrap();
        assert_eq!(said["id"], id.as_str());
        assert!(
            first["at_ms"].as_i64() >= said["not_before_ms"].as_i64(),
            "{id} came before its time: {first}"
        );
        let queue = if n % 2 == 0 { "orders" } else { "invoices" };
        assert_eq!(first["queue"], queue);
        let headers = &first["headers"];
        assert_eq!((&headers["x-retry-count"], &headers["x-max-retries"]), (&"1".into(), &"3".into()));
        assert_eq!((&headers["n"], &headers["x-death"]), (&n.to_string().into(), &Value::Null));
        assert_eq!(first["content_type"], "application/x-order");
        // A repeat is known as one: by the broker, which had no acknowledgement, or by us, who had no confirm.
        for again in &came[1..] {
            let known =
                again["redelivered"] == true || again["headers"]["x-redeliver-possible-duplicate"] == "true";
            assert!(known, "{id} came twice and nobody says so: {again}");
        }
    }
    let metrics = server.get("/metrics").json;
    let metrics = metrics.as_str().unwrap();
    assert!(metrics.contains("retry_queue_depth "), "{metrics}");
    assert!(metrics.contains("retries_scheduled_total{queue=\"orders\"}"), "{metrics}");
    assert!(metrics.contains("retries_executed_total{queue=\"invoices\",status=\"success\"}"), "{metrics}");
    server.stop();
}

#[test]
fn what_is_retried_too_often_goes_to_review_and_what_nobody_can_read_is_set_aside() {
    let _alone = STAGE.lock().unwrap_or_else(PoisonError::into_inner);
    let broker = RabbitmqServer::start();
    let url = broker.url();
    let place = Place::profile("broker-retry")
        .variable("RABBITMQ_URL", &url)
        .variable("BASE_DELAY_MS", "10")
        .variable("MAX_DELAY_MS", "10")
        .variable("DEFAULT_MAX_RETRIES", "2")
        .variable("MANUAL_REVIEW_QUEUE", "review.here");
    let server = serve(&place);
    let script = format!(
        r#"
import base64, json, sys
sys.path.insert(0, {peers:?})
import broker, pika
connection = broker.connect({url:?})
channel = connection.channel()
channel.confirm_delivery()
def send(body, content_type):
    channel.basic_publish("", "retry.scheduled", body, pika.BasicProperties(content_type=content_type), mandatory=True)
def take(queue):
    for method, properties, body in channel.consume(queue, inactivity_timeout=60):
        assert method is not None, "nothing came to " + queue
        channel.basic_ack(method.delivery_tag)
        channel.cancel()
        return properties, body
    raise AssertionError(queue)
send(broker.retry_message("lost", b"payload", "nowhere", "timeout", 0), "application/x-protobuf")
send(json.dumps({{"message_id": "spent", "original_payload": base64.b64encode(b"x").decode(),
    "original_queue": "orders", "retry_count": 2}}), "application/json")
seen = {{}}
for _ in range(2):
    properties, body = take("review.here")
    seen[properties.message_id] = properties.headers
assert set(seen) == {{"lost", "spent"}}, seen
for headers in seen.values():
    assert headers["x-dead-reason"] == "attempts_exhausted" and headers["x-attempts"] == 3, headers
assert "nowhere" in seen["lost"]["x-history"], seen
send(b"\x07garbage", "application/x-protobuf")
properties, body = take("retry.rejected")
assert body == b"\x07garbage" and properties.headers["x-dead-reason"] == "refused", (properties, body)
connection.close()
print("done", flush=True)
"#,
        peers = root().join("tests/peers").display().to_string(),
    );
    let output = Command::new(python()).arg("-c").arg(script).output().unwrap();
    let words = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{words}\n{}", server.log());
    let dead = server.get("/v1/messages?status=dead").json;
    let routes: Vec<&str> =
        dead["items"].as_array().unwrap().iter().filter_map(|it| it["route"].as_str()).collect();
    assert_eq!(routes.iter().filter(|route| **route == "retry").count(), 2, "{dead}");
    assert_eq!(routes.iter().filter(|route| **route == "unreadable").count(), 1, "{dead}");
    let metrics = server.get("/metrics").json;
    let metrics = metrics.as_str().unwrap();
    assert!(metrics.contains("retries_exhausted_total{queue=\"nowhere\"} 1"), "{metrics}");
    assert!(!metrics.contains("retries_scheduled_total{queue=\"orders\"}"), "dead on arrival: {metrics}");
    server.stop();
}
