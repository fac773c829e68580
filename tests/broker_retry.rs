//! Broker retries, end to end: the shipped binary, a real RabbitMQ, and a publisher and a consumer of another make (pika).
#![allow(clippy::unwrap_used, clippy::panic, reason = "a story that can't go on has failed")]

#[path = "story/mod.rs"]
mod story;

use std::process::Command;
use std::sync::{Mutex, PoisonError};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use redeliver_servers::postgres::PostgresServer;
use redeliver_servers::rabbitmq::RabbitmqServer;
use serde_json::{Value, json};
use story::broker::{Arrivals, Peer, consumer, ids, late_ms};
use story::server::{Place, Server};
use story::{python, root, until};

/// One story at a time: each has a broker, a database and two clients of its own, and they are to be quick.
static STAGE: Mutex<()> = Mutex::new(());
/// How much later every second message is due, so that the faults come while they wait.
const LATER_MS: &str = "15000";
const QUEUES: &str = "orders,invoices";
/// The document's floor ten times over: so many a second for a while, and so many at once, none later than this.
const SUSTAINED_PER_S: usize = 500;
const SUSTAINED: usize = 2_500;
const BURST: usize = 2_000;
const LATE_MS_MAX: i64 = 5_000;
/// How often that is measured, at most: once must do, and a machine may be busy with something else.
const MEASURED_MAX: usize = 4;

/// Publishes messages of these numbers that failed once, and waits until the broker has them all.
fn publish(url: &str, first: usize, count: usize, when: &[&str]) {
    let what = ["publish", "--url", url, "--queue", "retry.scheduled", "--to", QUEUES];
    let (first, count) = (first.to_string(), count.to_string());
    Peer::start(&[&what[..], &["--first", &first, "--count", &count], when].concat()).says("published");
}

fn serve(place: &Place) -> Server {
    let server = place.serve();
    until("the intake takes what comes", || server.log().contains("taking what comes"));
    server
}

#[test]
fn every_message_comes_back_to_its_queue_though_scheduler_and_broker_are_killed() {
    let _alone = STAGE.lock().unwrap_or_else(PoisonError::into_inner);
    killed_in_the_middle(Place::profile("broker-retry"), 20_000);
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
    let _consumer = consumer(&url, QUEUES, &out, &[]);
    let mut arrivals = Arrivals::of(&out);
    let server = serve(&place);
    broker.write_down_queues();
    let half = count / 2;
    publish(&url, 0, half, &["--later-ms", LATER_MS]);

    assert!(ids(&arrivals.all()).len() < half, "the scheduler is killed in the middle");
    assert!(server.kill_now(), "it was alive");
    drop(server);
    // What comes while nobody takes it waits in the queue.
    publish(&url, half, count - half, &["--later-ms", LATER_MS]);
    let server = serve(&place);

    assert!(ids(&arrivals.all()).len() < count, "the broker is killed in the middle");
    let pid = broker.pid();
    broker.kill();
    broker.resume();
    assert_ne!(broker.pid(), pid, "it is another one now");

    let all = arrivals.wait_for(count);
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
        assert!(late_ms(first) >= 0, "{id} came before its time: {first}");
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
    println!("{count} messages back, {} deliveries, 0 lost, 0 early", all.len());
    is_never_late(&url, count, &mut arrivals);
    let metrics = server.get("/metrics").json;
    let metrics = metrics.as_str().unwrap();
    assert!(metrics.contains("retry_queue_depth "), "{metrics}");
    assert!(metrics.contains("retries_scheduled_total{queue=\"orders\"}"), "{metrics}");
    assert!(metrics.contains("retries_executed_total{queue=\"invoices\",status=\"success\"}"), "{metrics}");
    server.stop();
}

/// Ten times the load that the document names comes back in the time that it names.
fn is_never_late(url: &str, known: usize, arrivals: &mut Arrivals) {
    for measured in 0..MEASURED_MAX {
        let first = known + measured * (SUSTAINED + BURST);
        let before = arrivals.all().len();
        let per_s = SUSTAINED_PER_S.to_string();
        publish(url, first, SUSTAINED, &["--in-ms", "4000", "--per-s", &per_s]);
        arrivals.wait_for(first + SUSTAINED);
        publish(url, first + SUSTAINED, BURST, &["--in-ms", "4000"]);
        let all = arrivals.wait_for(first + SUSTAINED + BURST);
        let mut late: Vec<i64> = all[before..].iter().map(late_ms).collect();
        late.sort_unstable();
        let at = |share: f64| late[((late.len() - 1) as f64 * share) as usize];
        println!(
            "{SUSTAINED_PER_S} a second and {BURST} at once: p50 {} ms, p99 {} ms, longest {} ms late",
            at(0.5),
            at(0.99),
            at(1.0)
        );
        assert!(late[0] >= 0, "one came {} ms before its time", -late[0]);
        if at(1.0) <= LATE_MS_MAX {
            return;
        }
    }
    panic!("never were all back within {LATE_MS_MAX} ms");
}

#[test]
fn a_broker_without_room_has_messages_wait_for_it_with_the_reason_and_without_a_try() {
    let _alone = STAGE.lock().unwrap_or_else(PoisonError::into_inner);
    let broker = RabbitmqServer::start();
    let place = Place::profile("broker-retry").variable("RABBITMQ_URL", &broker.url());
    let out = place.path("arrived");
    let _consumer = consumer(&broker.url(), QUEUES, &out, &[]);
    let mut arrivals = Arrivals::of(&out);
    let server = serve(&place);
    let post = |count: usize| {
        let one = json!({ "route": "retry", "target": "orders", "payload": { "for": "orders" } });
        let answer = server.post("/v1/messages", &Value::Array(vec![one; count])).json;
        let ids = answer.as_array().unwrap_or_else(|| panic!("{answer}")).iter();
        ids.map(|it| it["id"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    let explain = |id: &str| server.get(&format!("/v1/messages/{id}/explain")).json;

    broker.control(&["set_vm_memory_high_watermark", "absolute", "1"]);
    // The notice comes in answer to a message, which stays on its way until there is room.
    let first = post(1).remove(0);
    until("the notice has come", || explain(&first).to_string().contains("takes nothing for now"));
    let waiting = post(200);
    for id in &waiting {
        until("it waits, and says why", || {
            let sentence = explain(id)["sentence"].to_string();
            sentence.contains("the broker takes nothing for now: low on memory")
                && sentence.contains("0 of 4 attempts made")
        });
    }
    assert_eq!(arrivals.count(), 0, "there was no room for any");

    broker.control(&["set_vm_memory_high_watermark", "0.6"]);
    let all = arrivals.wait_for(1 + waiting.len());
    for id in &waiting {
        let message = server.wait_for_status(id, "delivered");
        assert_eq!(
            (&message["attempts"], &message["possible_duplicates"]),
            (&1.into(), &0.into()),
            "{message}"
        );
        let came =
            all.iter().filter(|line| line["id"].as_str().is_some_and(|it| it.starts_with(id.as_str())));
        assert_eq!(came.count(), 1, "{id}: it was never on its way before");
    }
    assert_eq!(server.wait_for_status(&first, "delivered")["attempts"], 1);
    server.stop();
}

/// Has somebody of another make say things to the queue of the intake, and look at what comes of it.
fn talk(url: &str, queue: &str, script: &str, server: Option<&Server>) {
    let peers = root().join("tests/peers").display().to_string();
    let script = format!(
        r#"
import base64, json, sys
sys.path.insert(0, {peers:?})
import broker, pika
connection = broker.connect({url:?})
channel = connection.channel()
channel.confirm_delivery()
def send(body, content_type):
    channel.basic_publish("", {queue:?}, body, pika.BasicProperties(content_type=content_type), mandatory=True)
def send_json(**fields):
    send(json.dumps(dict(original_payload=base64.b64encode(b"x").decode(), **fields)), "application/json")
def take(queue):
    for method, properties, body in channel.consume(queue, inactivity_timeout=60):
        assert method is not None, "nothing came to " + queue
        channel.basic_ack(method.delivery_tag)
        channel.cancel()
        return properties, body
    raise AssertionError(queue)
{script}
connection.close()
"#
    );
    let output = Command::new(python()).arg("-c").arg(script).output().unwrap();
    let words = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{words}\n{}", server.map(Server::log).unwrap_or_default());
}

#[test]
fn a_message_that_failed_again_is_the_same_one_and_what_the_broker_brings_twice_is_none() {
    let _alone = STAGE.lock().unwrap_or_else(PoisonError::into_inner);
    let broker = RabbitmqServer::start();
    let url = broker.url();
    let place = Place::profile("broker-retry")
        .variable("RABBITMQ_URL", &url)
        .variable("RETRY_QUEUE", "retry.here")
        .variable("RETRY_POLL_INTERVAL_MS", "200")
        .variable("BASE_DELAY_MS", "10")
        .variable("MAX_DELAY_MS", "10");
    let server = serve(&place);
    let known = || server.get("/v1/messages?route=retry").json["items"].as_array().unwrap().clone();
    // The last one is of a handler that forgets to count.
    for (said, retry_count) in [("", 1), (", retry_count=1", 2), ("", 3)] {
        let failed_again = format!(
            r#"
channel.queue_declare("orders", durable=True)
send_json(message_id="m-1", original_queue="orders"{said})
properties, body = take("orders")
assert (properties.message_id, properties.headers["x-retry-count"]) == ("m-1", {retry_count}), properties
"#
        );
        talk(&url, "retry.here", &failed_again, Some(&server));
        until("this try is written down", || known()[0]["status"] == "delivered");
    }
    let [message] = <[Value; 1]>::try_from(known()).unwrap();
    assert_eq!((&message["key"], &message["attempts"]), (&"orders:m-1".into(), &4.into()), "{message}");
    server.stop();

    // What was said and stored comes once more, and the broker says that it was on its way before.
    let brought_before = r#"
send_json(message_id="m-1", original_queue="orders")
method, properties, body = channel.basic_get("retry.here")
channel.basic_nack(method.delivery_tag, requeue=True)
"#;
    talk(&url, "retry.here", brought_before, None);
    let server = serve(&place);
    let next = r#"
send_json(message_id="m-2", original_queue="orders")
properties, body = take("orders")
assert properties.message_id == "m-2", properties
"#;
    talk(&url, "retry.here", next, Some(&server));
    let message = server.message(message["id"].as_str().unwrap());
    assert_eq!((&message["status"], &message["attempts"]), (&"delivered".into(), &4.into()), "{message}");
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
    let queues = ["retry.rejected", "retry.scheduled", "review.here"];
    for word in ["made", "there already, left as it is"] {
        let said = place.say(&["queues", "init"]);
        assert_eq!(said, queues.map(|queue| format!("{queue}: {word}\n")).concat());
    }
    let known =
        broker.control(&["--quiet", "list_queues", "--no-table-headers", "name", "type", "arguments"]);
    for queue in queues {
        let line = known.lines().find(|line| line.starts_with(queue)).unwrap_or_default();
        assert!(line.contains("quorum") && line.contains("redeliver.dead-letters"), "{queue}: {known}");
    }
    let server = serve(&place);
    let kept = json!({ "route": "manual-review", "key": "orders:mine", "payload": "kept", "due_at": "2100-01-01T00:00:00Z" });
    let kept = server.post("/v1/messages", &kept).json["id"].as_str().unwrap().to_owned();
    let script = r#"
send(broker.retry_message("lost", b"payload", "nowhere", "timeout", 0), "application/x-protobuf")
send_json(message_id="spent", original_queue="orders", retry_count=2)
seen = {}
for _ in range(2):
    properties, body = take("review.here")
    seen[properties.message_id] = properties.headers
assert set(seen) == {"lost", "spent"}, seen
for headers in seen.values():
    assert headers["x-dead-reason"] == "attempts_exhausted" and headers["x-attempts"] == 3, headers
history = json.loads(seen["lost"]["x-history"])
assert "nowhere" in history["error"], history
assert [one["attempt"] for one in history["tries"]] == [2, 3], history
assert all(one["outcome"] == "failed" and "nowhere" in one["error"] for one in history["tries"]), history
send(b"\x07garbage", "application/x-protobuf")
properties, body = take("retry.rejected")
assert body == b"\x07garbage" and properties.headers["x-dead-reason"] == "refused", (properties, body)
send_json(message_id="nul\0", original_queue="orders")
properties, body = take("retry.rejected")
assert b"nul" in body and "control characters" in properties.headers["x-history"], (properties, body)
send_json(message_id="mine", original_queue="orders")
properties, body = take("retry.rejected")
assert b"mine" in body and "another way" in properties.headers["x-history"], (properties, body)
"#;
    talk(&url, "retry.scheduled", script, Some(&server));
    let mine = server.message(&kept);
    assert_eq!((&mine["route"], &mine["status"]), (&"manual-review".into(), &"scheduled".into()), "{mine}");
    let dead = server.get("/v1/messages?status=dead").json;
    let routes: Vec<&str> =
        dead["items"].as_array().unwrap().iter().filter_map(|it| it["route"].as_str()).collect();
    assert_eq!(routes.iter().filter(|route| **route == "retry").count(), 2, "{dead}");
    assert_eq!(routes.iter().filter(|route| **route == "unreadable").count(), 3, "{dead}");
    let metrics = server.get("/metrics").json;
    let metrics = metrics.as_str().unwrap();
    assert!(metrics.contains("retries_exhausted_total{queue=\"nowhere\"} 1"), "{metrics}");
    let failed = "retries_executed_total{queue=\"nowhere\",status=\"failed\"} 2";
    assert!(metrics.contains(failed), "{metrics}");
    assert!(!metrics.contains("retries_scheduled_total{queue=\"orders\"}"), "dead on arrival: {metrics}");
    server.stop();
}

#[test]
fn messages_of_one_id_for_two_queues_both_come_back_and_another_of_the_same_is_set_aside() {
    let _alone = STAGE.lock().unwrap_or_else(PoisonError::into_inner);
    let broker = RabbitmqServer::start();
    let place = Place::profile("broker-retry").variable("RABBITMQ_URL", &broker.url());
    let server = serve(&place);
    let script = r#"
import time
for queue in ["orders", "emails"]:
    channel.queue_declare(queue, durable=True)
def fails(payload, queue):
    later_ms = int(time.time() * 1000) + 4000
    send(broker.retry_message("42", payload, queue, "timeout", later_ms), "application/x-protobuf")
fails(b"first", "orders")
fails(b"second", "emails")
# The handler of the first crashed, and another one has said the same.
fails(b"first", "orders")
# Somebody else calls theirs the same, and the first is not back yet.
fails(b"third", "orders")
properties, body = take("retry.rejected")
assert b"third" in body and "other content" in properties.headers["x-history"], (properties, body)
for queue, payload in [("orders", b"first"), ("emails", b"second")]:
    properties, body = take(queue)
    assert (properties.message_id, body) == ("42", payload), (queue, properties, body)
for queue in ["orders", "emails", "retry.rejected"]:
    assert channel.basic_get(queue) == (None, None, None), queue
"#;
    talk(&broker.url(), "retry.scheduled", script, Some(&server));
    for queue in ["orders", "emails"] {
        let page = server.get(&format!("/v1/messages?key={queue}:42")).json;
        let [message] = <[Value; 1]>::try_from(page["items"].as_array().unwrap().clone()).unwrap();
        server.wait_for_status(message["id"].as_str().unwrap(), "delivered");
    }
    let dead = server.get("/v1/messages?status=dead").json;
    let routes: Vec<&Value> = dead["items"].as_array().unwrap().iter().map(|it| &it["route"]).collect();
    assert_eq!(routes, ["unreadable"], "{dead}");
    server.stop();
}
