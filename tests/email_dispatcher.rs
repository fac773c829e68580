//! The retry scheduler of an application's own table: three instances publish what is due, and are killed meanwhile, as is
//! the broker. Every mail is published once for its attempt, apart from repeats that are counted and say so.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a story that can't go on has failed"
)]
#![allow(clippy::disallowed_methods, reason = "real processes take real time: what they do is polled for")]

#[path = "story/mod.rs"]
mod story;

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use redeliver_servers::postgres::{Database, PostgresServer};
use redeliver_servers::rabbitmq::RabbitmqServer;
use redeliver_transports::rabbitmq::Broker;
use redeliver_transports::rabbitmq::amqp::method::{Method, flags};
use redeliver_transports::rabbitmq::amqp::table::Table;
use redeliver_transports::rabbitmq::amqp::wire::Short;
use redeliver_transports::rabbitmq::amqp::{Connection, Delivery, Flow, Options};
use serde_json::Value;
use story::server::{Place, Server};
use story::{breathe, until};

const SEND: &str = "email.dispatcher.send";
const DEAD: &str = "email.dispatcher.dead";
/// As much as there is.
const FLOW: Flow = Flow { prefetch: 1_000, in_hand_bytes_max: usize::MAX };
/// Mails that are due.
const DUE: usize = 10_000;
/// Mails whose tries are used up.
const SPENT: usize = 50;
/// Mails in the air at once on each instance: what a fault leaves in doubt.
const IN_THE_AIR: usize = 4;
/// How long nothing may move before the story has failed.
const STUCK: Duration = Duration::from_secs(90);

/// The scheduler as it is shipped, with less patience.
fn scheduler(database: &Database<'_>, broker: &RabbitmqServer) -> Place {
    Place::profile("email-dispatcher")
        .variable("DATABASE_URL", &database.url())
        .variable("RABBITMQ_URL", &broker.url())
        .variable("RetryIntervalSeconds", "1")
        .variable("BackoffSchedule", "1s, 1s, 1s, 1s, 1s, 1s, 1s")
        .variable("REDELIVER_ROUTES__EMAIL_LOG__LEASE", "9s")
        .variable("REDELIVER_TRANSPORTS__RABBITMQ__CONNECT_TIMEOUT", "2s")
        .variable("REDELIVER_TRANSPORTS__RABBITMQ__CONFIRM_TIMEOUT", "2s")
        .variable("REDELIVER_ROUTES__EMAIL_LOG__SEND_TIMEOUT", "5s")
        .variable("REDELIVER_ROUTES__EMAIL_LOG__CONCURRENCY_MAX", &IN_THE_AIR.to_string())
        .variable("REDELIVER_LOG__FILTER", "warn,redeliver_cli=info")
}

/// How many rows have this word.
fn count(database: &Database<'_>, status: &str) -> usize {
    let sql = format!("SELECT count(*) FROM \"EmailLog\" WHERE \"Status\" = '{status}'");
    database.say(&sql).parse().unwrap()
}

/// Waits until so many rows are with their sender, for as long as there are more of them from time to time.
fn until_pending(database: &Database<'_>, wanted: usize) {
    let (mut seen, mut moved) = (0, Instant::now());
    loop {
        let now = count(database, "Pending");
        if now >= wanted {
            return;
        }
        if now != seen {
            (seen, moved) = (now, Instant::now());
        }
        assert!(moved.elapsed() < STUCK, "{now} of {wanted} rows, and no more come");
        breathe();
    }
}

/// Somebody else on the broker.
async fn visit(url: &str) -> Connection {
    let broker = Broker::parse(url).unwrap();
    let socket = tokio::net::TcpStream::connect((broker.host.as_str(), broker.port)).await.unwrap();
    let options = Options {
        user: "guest".to_owned(),
        password: "guest".to_owned(),
        virtual_host: "/".to_owned(),
        name: "sender".to_owned(),
        heartbeat: STUCK,
        body_bytes_max: 1 << 20,
    };
    Connection::open(Box::new(socket), &options).await.unwrap()
}

async fn declare(connection: &Connection, queue: &str, flags: u8) -> u32 {
    let channel = connection.channel().await.unwrap();
    let queue = Short::new(queue).unwrap();
    let declare = Method::QueueDeclare { reserved: 0, queue, flags, arguments: Table::default() };
    match channel.call(&declare).await.unwrap() {
        Method::QueueDeclareOk { messages, .. } => messages,
        other => panic!("{other:?}"),
    }
}

/// Everything that is in a queue.
async fn drain(connection: &Connection, queue: &str) -> Vec<Delivery> {
    let count = declare(connection, queue, flags::PASSIVE).await as usize;
    let channel = connection.channel().await.unwrap();
    let mut coming = channel.consume(&Short::new(queue).unwrap(), FLOW).await.unwrap();
    let mut all = Vec::new();
    while all.len() < count {
        let next = tokio::time::timeout(STUCK, coming.recv()).await.expect("the queue has more").unwrap();
        channel.ack_up_to(next.tag);
        all.push(next);
    }
    all
}

fn run<T>(story: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(story)
}

/// Kills a server in the middle of its work, which is proved: it was alive, and there was more to do.
fn kill_in_the_middle(server: Server, database: &Database<'_>) {
    assert!(server.kill_now(), "it was alive");
    let left = count(database, "Failed") + count(database, "RetryQueued");
    assert!(left > 0, "the fault came too late to be one");
}

#[test]
fn every_due_mail_is_published_once_for_its_attempt_though_brokers_and_instances_are_killed() {
    let database = PostgresServer::shared().database();
    let mut broker = RabbitmqServer::start();
    run(async { declare(&visit(&broker.url()).await, SEND, flags::DURABLE).await });
    let made = std::process::Command::new(env!("CARGO_BIN_EXE_redeliver"))
        .args(["table", "init", "--apply", "--profile", "email-dispatcher"])
        .env_clear()
        .env("DATABASE_URL", database.url())
        .output()
        .unwrap();
    assert!(made.status.success(), "{made:?}");
    database.say(&format!(
        "INSERT INTO \"EmailLog\" (\"EmailId\", \"MessageKey\", \"Status\", \"AttemptCount\", \"NextAttemptAt\", \"LastError\") \
         SELECT n, 'key-' || n, 'Failed', CASE WHEN n <= {DUE} THEN 1 ELSE 8 END, now() - interval '1 m', '451 later' \
         FROM generate_series(1, {DUE} + {SPENT}) AS n"
    ));
    // These are nobody's to publish: not yet due, with their sender, sent.
    database.say(
        "INSERT INTO \"EmailLog\" (\"EmailId\", \"Status\", \"AttemptCount\", \"NextAttemptAt\") VALUES \
         (20001, 'Failed', 1, now() + interval '1 h'), (20002, 'Pending', 0, NULL), (20003, 'Sent', 1, now())",
    );

    let place = scheduler(&database, &broker);
    let (first, second, third) = (place.serve(), place.serve(), place.serve());
    until_pending(&database, 500);
    kill_in_the_middle(first, &database);
    let first = place.serve();
    until_pending(&database, 2_500);
    let pid = broker.pid().expect("the broker runs");
    broker.kill();
    let left = count(&database, "Failed") + count(&database, "RetryQueued");
    assert!(left > 0, "the fault came too late to be one");
    broker.resume();
    assert_ne!(broker.pid(), Some(pid), "it is another process");
    until_pending(&database, 5_000);
    kill_in_the_middle(second, &database);
    let second = place.serve();
    until_pending(&database, DUE + 1);
    until("nothing is claimed any more", || count(&database, "RetryQueued") == 0);
    until("the used up ones are dead", || count(&database, "Dead") == SPENT);

    // The application's rows, and only those that were due.
    assert_eq!(count(&database, "Failed"), 1);
    assert_eq!(
        database.say("SELECT count(*) FROM \"EmailLog\" WHERE \"EmailId\" <= 10000 AND \"AttemptCount\" = 1 AND \"LockedUntil\" IS NULL AND \"LastQueuedAt\" IS NOT NULL"),
        DUE.to_string()
    );
    let kept = "SELECT count(*) FROM \"EmailLog\" WHERE \"DeadReason\" = 'MaxAttemptsExceeded' AND \"LastError\" = '451 later'";
    assert_eq!(database.say(kept), SPENT.to_string());

    // What their sender gets: each mail once for its attempt, and every further time with a word that says so.
    let (sent, dead) = run(async {
        let connection = visit(&broker.url()).await;
        let mut sent = Vec::new();
        let mut dead = Vec::new();
        while sent.len() < DUE || dead.len() < SPENT {
            sent.extend(drain(&connection, SEND).await);
            dead.extend(drain(&connection, DEAD).await);
        }
        (sent, dead)
    });
    let mut receipts: BTreeMap<u64, Vec<(String, bool)>> = BTreeMap::new();
    for delivery in &sent {
        let said: Value = serde_json::from_slice(&delivery.body).unwrap();
        let id = said["EmailId"].as_u64().unwrap();
        assert_eq!(said, serde_json::json!({ "EmailId": id, "MessageKey": format!("key-{id}") }));
        let properties = delivery.properties.as_ref().unwrap();
        assert_eq!(properties.delivery_mode, Some(2), "it survives the broker");
        let attempt = properties.header("x-redeliver-attempt-id").unwrap().to_owned();
        let is_repeat = properties.headers.as_ref().unwrap().get("x-redeliver-possible-duplicate").is_some();
        receipts.entry(id).or_default().push((attempt, is_repeat));
    }
    let wanted: Vec<u64> = (1..=DUE as u64).collect();
    assert_eq!(
        receipts.keys().copied().collect::<Vec<_>>(),
        wanted,
        "none is lost, and none is somebody else's"
    );
    let mut repeats = 0;
    for (id, receipts) in &receipts {
        assert!(
            receipts.iter().all(|(attempt, _)| *attempt == format!("email-log:{id}.0.2")),
            "{receipts:?}"
        );
        let unlabelled = receipts.iter().filter(|(_, is_repeat)| !is_repeat).count();
        assert!(unlabelled <= 1, "{id} was published twice without a word: {receipts:?}");
        repeats += receipts.len() - 1;
        if receipts.len() > 1 {
            let known = third.message(&format!("email-log:{id}"))["possible_duplicates"].as_u64().unwrap();
            assert!(known as usize >= receipts.len() - 1, "{id}: {known} known, {receipts:?}");
        }
    }
    // On a machine that is very busy a confirm may come too late, too; but repeats are the exception.
    assert!(repeats < DUE / 10, "{repeats} repeats");
    let letters: BTreeSet<u64> = dead
        .iter()
        .map(|delivery| serde_json::from_slice::<Value>(&delivery.body).unwrap()["EmailId"].as_u64().unwrap())
        .collect();
    assert_eq!(
        letters.into_iter().collect::<Vec<_>>(),
        (DUE as u64 + 1..=(DUE + SPENT) as u64).collect::<Vec<_>>()
    );

    // What is told about it.
    let metrics = third.get("/metrics").json;
    let metrics = metrics.as_str().unwrap();
    for name in ["email_retries_due", "email_retries_requeued_total", "email_retries_dead_total"] {
        assert!(metrics.lines().any(|line| line.starts_with(&format!("{name} "))), "{name}");
    }
    for age in ["1h", "1d", "1w"] {
        let line = format!("redeliver_rows_pending_old{{route=\"email-log\",older_than=\"{age}\"}} 0");
        assert!(metrics.lines().any(|said| said == line), "{line} in {metrics}");
    }
    let listed = third.get("/v1/messages?route=email-log&status=dead&limit=5").json;
    assert_eq!(listed["items"].as_array().unwrap().len(), 5);
    assert_eq!(listed["items"][0]["id"], format!("email-log:{}", DUE + SPENT));
    println!("{} publishings of {DUE} mails, {repeats} repeats, all of them labelled", sent.len());
    drop((first, second));
}

/// A broker that is away costs nothing; a person's retry goes at the next look; a report counts.
#[test]
fn a_broker_that_is_away_loses_nothing_and_a_dead_mail_is_started_over() {
    let database = PostgresServer::shared().database();
    let mut broker = RabbitmqServer::start();
    run(async { declare(&visit(&broker.url()).await, SEND, flags::DURABLE).await });
    let made = std::process::Command::new(env!("CARGO_BIN_EXE_redeliver"))
        .args(["table", "init", "--apply", "--profile", "email-dispatcher"])
        .env_clear()
        .env("DATABASE_URL", database.url())
        .output()
        .unwrap();
    assert!(made.status.success(), "{made:?}");
    let place = scheduler(&database, &broker).variable("REDELIVER_LOG__FILTER", "info");
    broker.stop();
    let server = place.serve();
    database.say(
        "INSERT INTO \"EmailLog\" (\"EmailId\", \"Status\", \"AttemptCount\", \"NextAttemptAt\") \
         VALUES (1, 'Failed', 2, now() - interval '1 s')",
    );
    let row = || database.say("SELECT \"Status\", \"AttemptCount\" FROM \"EmailLog\" WHERE \"EmailId\" = 1");
    until("it was tried without a broker", || server.log().contains("row not published"));
    broker.resume();
    until("it is published", || row() == "Pending|2");

    // An outside sender reports, and the eighth failure is the last.
    for attempt in 3..=8 {
        let id = format!("email-log:1.0.{attempt}");
        let body = serde_json::json!({ "attempt_id": id, "outcome": "failed", "error": "451 later" });
        let answer = server.post("/v1/messages/email-log:1/report", &body);
        assert_eq!((answer.status, &answer.json["applied"]), (200, &true.into()), "{:?}", answer.json);
        let stale = server.post("/v1/messages/email-log:1/report", &body);
        assert_eq!(stale.json["applied"], false, "said twice, it counts once");
        if attempt < 8 {
            until("it goes to its sender again", || row() == format!("Pending|{attempt}"));
        }
    }
    assert_eq!(row(), "Dead|8");
    let answer = server.post("/v1/messages/email-log:1/retry", &Value::Null);
    assert_eq!(answer.status, 200, "{:?}", answer.json);
    until("it starts over", || row() == "Pending|0");
    let connection_url = broker.url();
    let attempts: Vec<String> = run(async {
        let connection = visit(&connection_url).await;
        let all = drain(&connection, SEND).await;
        all.iter()
            .map(|delivery| {
                delivery.properties.as_ref().unwrap().header("x-redeliver-attempt-id").unwrap().to_owned()
            })
            .collect()
    });
    let wanted: Vec<String> =
        (3..=8).map(|n| format!("email-log:1.0.{n}")).chain(["email-log:1.1.1".to_owned()]).collect();
    assert_eq!(attempts, wanted);
}
