//! Both halves of an application's table of mails: the scheduler publishes what is due, and a sender, of this house or of
//! another make (pika), takes failed mails to sent through an outage of the mail server.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a story that can't go on has failed"
)]
#![allow(clippy::disallowed_methods, reason = "real processes take real time: what they do is polled for")]

#[path = "story/mod.rs"]
mod story;

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use redeliver_servers::postgres::{Database, PostgresServer};
use redeliver_servers::rabbitmq::RabbitmqServer;
use redeliver_transports::rabbitmq::Broker;
use redeliver_transports::rabbitmq::amqp::method::{Method, flags};
use redeliver_transports::rabbitmq::amqp::properties::Properties;
use redeliver_transports::rabbitmq::amqp::table::{Field, Table};
use redeliver_transports::rabbitmq::amqp::wire::Short;
use redeliver_transports::rabbitmq::amqp::{Address, Confirm, Connection, Options};
use serde_json::json;
use story::mail::Read;
use story::peer::{Aiosmtpd, Peer};
use story::server::{KEY, Place, Server};
use story::{breathe, python, root, until};

const SEND: &str = "email.dispatcher.send";
/// Mails that had failed before the story begins.
const FAILED: usize = 1_200;
/// Mails to nobody, which the mail server refuses.
const NOBODY: usize = 10;
/// Mails that one sender has in the air at once: what its end leaves in doubt.
const IN_THE_AIR: usize = 8;
/// How long nothing may move before the story has failed.
const STUCK: Duration = Duration::from_secs(90);

/// The profile as it is shipped, with less patience.
fn place(database_url: &str, broker: &RabbitmqServer) -> Place {
    Place::profile("email-dispatcher")
        .variable("DATABASE_URL", database_url)
        .variable("RABBITMQ_URL", &broker.url())
        .variable("RetryIntervalSeconds", "1")
        .variable("BackoffSchedule", "1s, 1s")
        .variable("MaxAttempts", "1000")
        .variable("REDELIVER_TABLES__EMAIL_LOG__MAIL__LEASE", "30s")
        .variable("REDELIVER_TABLES__EMAIL_LOG__MAIL__SEND_TIMEOUT", "20s")
        .variable("REDELIVER_TRANSPORTS__SMTP__CONNECT_TIMEOUT", "4s")
        .variable("REDELIVER_TRANSPORTS__SMTP__COMMAND_TIMEOUT", "5s")
        .variable("REDELIVER_TRANSPORTS__SMTP__DATA_TIMEOUT", "10s")
        .variable("REDELIVER_TABLES__EMAIL_LOG__MAIL__CONCURRENCY_MAX", &IN_THE_AIR.to_string())
}

/// A sender that takes what comes.
fn send(place: &Place) -> Server {
    let sender = place.start();
    until("the sender takes what comes", || sender.log().contains("taking what comes"));
    sender
}

fn make_table(url: &str, directory: &Path) {
    let made = Command::new(env!("CARGO_BIN_EXE_redeliver"))
        .args(["table", "init", "--apply", "--profile", "email-dispatcher"])
        .current_dir(directory)
        .env_clear()
        .env("DATABASE_URL", url)
        .output()
        .unwrap();
    assert!(made.status.success(), "{made:?}");
}

/// How many rows have this word.
fn count(database: &Database<'_>, status: &str) -> usize {
    let sql = format!("SELECT count(*) FROM \"EmailLog\" WHERE \"Status\" = '{status}'");
    database.say(&sql).parse().unwrap()
}

/// Waits until so many rows have this word, for as long as there are more of them from time to time.
fn until_count(database: &Database<'_>, status: &str, wanted: usize) {
    let (mut seen, mut moved) = (0, Instant::now());
    loop {
        let now = count(database, status);
        if now >= wanted {
            return;
        }
        if now != seen {
            (seen, moved) = (now, Instant::now());
        }
        assert!(moved.elapsed() < STUCK, "{now} of {wanted} rows are {status}, and no more come");
        breathe();
    }
}

fn run<T>(story: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(story)
}

/// Somebody else on the broker.
async fn visit(url: &str) -> Connection {
    let broker = Broker::parse(url).unwrap();
    let socket = tokio::net::TcpStream::connect((broker.host.as_str(), broker.port)).await.unwrap();
    let options = Options {
        user: "guest".to_owned(),
        password: "guest".to_owned(),
        virtual_host: "/".to_owned(),
        name: "application".to_owned(),
        heartbeat: STUCK,
        body_bytes_max: 1 << 20,
    };
    Connection::open(Box::new(socket), &options).await.unwrap()
}

/// Makes the queue where it isn't there, and says how many messages are ready in it.
async fn ready(connection: &Connection) -> u32 {
    let channel = connection.channel().await.unwrap();
    let queue = Short::new(SEND).unwrap();
    let declare =
        Method::QueueDeclare { reserved: 0, queue, flags: flags::DURABLE, arguments: Table::default() };
    match channel.call(&declare).await.unwrap() {
        Method::QueueDeclareOk { messages, .. } => messages,
        other => panic!("{other:?}"),
    }
}

/// Hands a row to its sender, for a try if it says so.
fn hand_off(broker: &RabbitmqServer, body: &str, attempt: Option<&str>) {
    run(async {
        let connection = visit(&broker.url()).await;
        let channel = connection.channel().await.unwrap();
        channel.confirm().await.unwrap();
        let headers = attempt
            .map(|name| Table::default().with("x-redeliver-attempt-id", Field::string(name.to_owned())));
        let properties = Properties { headers, delivery_mode: Some(2), ..Properties::default() };
        let address = Address { exchange: Short::default(), routing_key: Short::new(SEND).unwrap() };
        let head = properties.head(body.len());
        let said = channel.publish(&address, "hand-off".into(), &head, body.as_bytes()).unwrap();
        assert!(matches!(said.await.unwrap(), Confirm::Taken), "the broker has it");
    });
}

#[test]
fn failed_mails_are_sent_though_the_mail_server_is_away_and_a_sender_is_killed() {
    let database = PostgresServer::shared().database();
    let broker = RabbitmqServer::start();
    run(async { ready(&visit(&broker.url()).await).await });
    let mut mail_server = Aiosmtpd::new();
    let schedulers = place(&database.url(), &broker).variable("SMTP_URL", &mail_server.url());
    let senders =
        place(&database.url(), &broker).variable("SMTP_URL", &mail_server.url()).arg("--role").arg("sender");
    make_table(&database.url(), &schedulers.path(""));
    let total = FAILED + NOBODY;
    database.say(&format!(
        "INSERT INTO \"EmailLog\" (\"EmailId\", \"Status\", \"AttemptCount\", \"NextAttemptAt\", \"LastError\", \
         \"ToAddress\", \"Subject\", \"TextBody\", \"HtmlBody\") \
         SELECT n, 'Failed', 1, now() - interval '1 m', '451 later', \
         CASE WHEN n <= {FAILED} THEN 'user-' || n || '@example.org' ELSE 'nobody@' || n || '.example.org' END, \
         'Mail ' || n, 'Hello ' || n, CASE WHEN n % 2 = 0 THEN '<p>Hello ' || n || '</p>' END \
         FROM generate_series(1, {total}) AS n"
    ));

    // Not reaching the mail server is a failed try, and is counted as one.
    mail_server.stop();
    let scheduler = schedulers.serve();
    let first = send(&senders);
    until("tries have failed", || {
        let tried = "SELECT count(*) FROM \"EmailLog\" WHERE \"Status\" = 'Failed' AND \"AttemptCount\" > 1 \
                     AND \"LastError\" <> '451 later' AND \"NextAttemptAt\" IS NOT NULL AND \"LockedUntil\" IS NULL";
        database.say(tried).parse::<usize>().unwrap() > 0
    });
    assert_eq!(count(&database, "Sent"), 0);
    mail_server.start();

    // A sender is killed in the middle of its work; what it was sending is sent by the next.
    until_count(&database, "Sent", 20);
    assert!(first.kill_now(), "it was alive");
    assert!(count(&database, "Sent") < FAILED, "the fault came too late to be one");
    drop(first);
    let second = send(&senders);
    until_count(&database, "Sent", FAILED);
    until_count(&database, "Dead", NOBODY);

    assert_eq!(count(&database, "Sent") + count(&database, "Dead"), total, "every mail has come to its end");
    let refused = "SELECT count(*) FROM \"EmailLog\" WHERE \"EmailId\" > 1200 AND \"DeadReason\" = 'PermanentFailure' \
                   AND \"LastError\" LIKE '%550%' AND \"LockedUntil\" IS NULL";
    assert_eq!(database.say(refused), NOBODY.to_string());
    let sent = "SELECT count(*) FROM \"EmailLog\" WHERE \"Status\" = 'Sent' AND \"LockedUntil\" IS NULL";
    assert_eq!(database.say(sent), FAILED.to_string());

    // Each mail has arrived, and again only what the killed sender had in the air.
    let mails = mail_server.mails();
    let mut arrived: BTreeMap<String, Vec<&[u8]>> = BTreeMap::new();
    for mail in &mails {
        arrived.entry(mail.to[0].clone()).or_default().push(&mail.data);
    }
    assert_eq!(arrived.len(), FAILED);
    let repeats = mails.len() - FAILED;
    assert!(repeats <= IN_THE_AIR, "{repeats} mails came again");
    for copies in arrived.values().filter(|copies| copies.len() > 1) {
        let ids: Vec<_> =
            copies.iter().map(|data| Read::of(data).header("Message-ID").unwrap().to_owned()).collect();
        assert!(ids.windows(2).all(|two| two[0] == two[1]), "a receiver can tell: {ids:?}");
    }
    let mail = Read::of(arrived["user-2@example.org"][0]);
    assert_eq!(mail.header("Subject"), Some("Mail 2"));
    assert_eq!(mail.part("text/plain").bytes.trim_ascii(), b"Hello 2");
    assert_eq!(mail.part("text/html").bytes.trim_ascii(), b"<p>Hello 2</p>");
    println!("{FAILED} mails sent, {repeats} of them twice");

    // It finishes what it has begun, and the other half goes on without it.
    assert!(second.stop().contains("nothing is being sent"));
    drop(scheduler);
}

/// A table in SQLite: each row stands for one rule of what a sender takes and what it writes.
#[test]
fn a_sender_takes_only_what_is_its_own_and_gives_up_when_the_tries_are_used_up() {
    let broker = RabbitmqServer::start();
    run(async { ready(&visit(&broker.url()).await).await });
    let mail_server = Aiosmtpd::new();
    let home = tempfile::tempdir().unwrap();
    let url = format!("sqlite:{}", home.path().join("app.db").display());
    make_table(&url, home.path());
    let app = rusqlite::Connection::open(home.path().join("app.db")).unwrap();
    app.busy_timeout(Duration::from_secs(60)).unwrap();
    app.execute_batch(
        "INSERT INTO \"EmailLog\" (\"EmailId\", \"Status\", \"AttemptCount\", \"LockedUntil\", \"ToAddress\", \"TextBody\") VALUES \
         (1, 'Pending', 0, NULL, 'first@example.org', 'Hi'), \
         (2, 'Sent', 1, NULL, 'sent@example.org', 'Hi'), \
         (3, 'Pending', 2, NULL, 'other-attempt@example.org', 'Hi'), \
         (4, 'Pending', 0, '2099-01-01 00:00:00', 'locked@example.org', 'Hi'), \
         (5, 'RetryQueued', 1, '2099-01-01 00:00:00', 'claimed@example.org', 'Hi'), \
         (6, 'Failed', 1, NULL, 'failed@example.org', 'Hi'), \
         (7, 'Pending', 2, NULL, 'used-up@example.org', 'Hi'), \
         (8, 'Pending', 1, NULL, 'again@example.org', 'Hi'), \
         (9, 'Pending', 0, NULL, 'one@example.org, two@example.org', 'Hi')",
    )
    .unwrap();
    let row = |id: u32| -> String {
        let sql = format!(
            "SELECT \"Status\" || '|' || \"AttemptCount\" FROM \"EmailLog\" WHERE \"EmailId\" = {id}"
        );
        app.query_row(&sql, [], |row| row.get(0)).unwrap()
    };
    let senders = place(&url, &broker)
        .variable("SMTP_URL", &mail_server.url())
        .variable("MaxAttempts", "3")
        .variable("BackoffSchedule", "1h, 1h")
        .arg("--role")
        .arg("sender");
    let sender = send(&senders);
    let to = |id: u32| format!("{{\"EmailId\":{id},\"MessageKey\":null}}");

    hand_off(&broker, &to(1), None);
    hand_off(&broker, &to(2), None);
    hand_off(&broker, &to(3), Some("email-log:3.0.2"));
    hand_off(&broker, &to(4), None);
    hand_off(&broker, &to(5), Some("email-log:5.0.2"));
    hand_off(&broker, &to(6), Some("email-log:6.0.2"));
    hand_off(&broker, "no JSON", None);
    hand_off(&broker, &to(77), None);
    until("what can be sent is sent", || row(1) == "Sent|1" && row(5) == "Sent|2");
    until("the rest is dropped", || sender.log().matches("nothing is sent").count() == 5);
    assert!(sender.log().contains("nobody can tell what to send"));
    for (id, stands) in [(2, "Sent|1"), (3, "Pending|2"), (4, "Pending|0"), (6, "Failed|1")] {
        assert_eq!(row(id), stands, "row {id}");
    }

    mail_server.tell("defer");
    hand_off(&broker, &to(7), Some("email-log:7.0.3"));
    hand_off(&broker, &to(8), Some("email-log:8.0.2"));
    hand_off(&broker, &to(9), None);
    until("the last try has failed", || row(7) == "Dead|3");
    until("the one before has failed", || row(8) == "Failed|2");
    until("what can never be sent is given up at once", || row(9) == "Dead|1");
    let why = |id: u32, column: &str| -> Option<String> {
        let sql = format!("SELECT \"{column}\" FROM \"EmailLog\" WHERE \"EmailId\" = {id}");
        app.query_row(&sql, [], |row| row.get(0)).unwrap()
    };
    assert_eq!(why(7, "DeadReason").as_deref(), Some("MaxAttemptsExceeded"));
    assert_eq!(why(9, "DeadReason").as_deref(), Some("PermanentFailure"));
    assert!(why(8, "LastError").unwrap().contains("451"), "{:?}", why(8, "LastError"));
    assert!(why(8, "NextAttemptAt").is_some() && why(8, "LockedUntil").is_none());
    let hour = "SELECT (julianday(\"NextAttemptAt\") - julianday('now')) * 24 FROM \"EmailLog\" WHERE \"EmailId\" = 8";
    let hours: f64 = app.query_row(hour, [], |row| row.get(0)).unwrap();
    assert!((0.8..=1.01).contains(&hours), "{hours} h to the next try");
    assert_eq!(mail_server.mails().len(), 2, "nothing else went out");
    // What was acknowledged is gone from the queue, also when its receiver is.
    sender.stop();
    assert_eq!(run(async { ready(&visit(&broker.url()).await).await }), 0);
}

/// Another language's sender at work.
struct Outsider(Child);

impl Outsider {
    fn start(broker: &RabbitmqServer, api: &Server, mail_server: &Aiosmtpd) -> Self {
        let mut child = Command::new(python())
            .arg(root().join("tests/peers/email_sender.py"))
            .args(["--url", &broker.url(), "--queue", SEND, "--api", &api.url])
            .args(["--smtp-port", &mail_server.port().to_string()])
            .env("REDELIVER_KEY", KEY)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        assert_eq!(line.trim(), "ready");
        Self(child)
    }
}

impl Drop for Outsider {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn a_sender_of_another_make_reports_and_the_scheduler_sees_its_mails_to_their_ends() {
    const MAILS: usize = 100;
    let database = PostgresServer::shared().database();
    let broker = RabbitmqServer::start();
    run(async { ready(&visit(&broker.url()).await).await });
    let mail_server = Aiosmtpd::new();
    let schedulers = place(&database.url(), &broker);
    make_table(&database.url(), &schedulers.path(""));
    database.say(&format!(
        "INSERT INTO \"EmailLog\" (\"EmailId\", \"MessageKey\", \"Status\", \"AttemptCount\", \"NextAttemptAt\") \
         SELECT n, 'key-' || n, 'Failed', 1, now() FROM generate_series(1, {MAILS}) AS n"
    ));
    mail_server.tell("defer");
    let scheduler = schedulers.serve();
    let _sender = Outsider::start(&broker, &scheduler, &mail_server);
    until("reports of failures have come", || {
        let failed =
            "SELECT count(*) FROM \"EmailLog\" WHERE \"AttemptCount\" > 1 AND \"LastError\" LIKE '451%'";
        database.say(failed).parse::<usize>().unwrap() > 0
    });
    assert_eq!(count(&database, "Sent"), 0);
    mail_server.tell("accept");
    until_count(&database, "Sent", MAILS - MAILS / 10);
    until_count(&database, "Dead", MAILS / 10);
    let refused = "SELECT count(*) FROM \"EmailLog\" WHERE \"EmailId\" % 10 = 0 AND \"DeadReason\" = 'PermanentFailure' \
                   AND \"LastError\" LIKE '550%'";
    assert_eq!(database.say(refused), (MAILS / 10).to_string());
    let mut arrived: Vec<String> = mail_server.mails().iter().map(|mail| mail.to[0].clone()).collect();
    arrived.sort();
    arrived.dedup();
    assert_eq!(arrived.len(), MAILS - MAILS / 10);
    // Rows are the application's to write, and a word about an attempt that is over changes nothing.
    let posted =
        scheduler.post("/v1/messages", &json!({ "route": "email-log", "payload": { "EmailId": 1 } }));
    assert_eq!(
        (posted.status, &posted.json["errors"][0]["field"]),
        (422, &"route".into()),
        "{:?}",
        posted.json
    );
    assert!(posted.json["detail"].as_str().unwrap().contains("application's table"), "{:?}", posted.json);
    let late = json!({ "attempt_id": "email-log:1.0.2", "outcome": "failed", "error": "too late" });
    let answer = scheduler.post("/v1/messages/email-log:1/report", &late);
    assert_eq!((answer.status, &answer.json["applied"]), (200, &false.into()), "{:?}", answer.json);
    assert_eq!(scheduler.post("/v1/messages/email-log:4711/report", &late).status, 404);
    let shown = scheduler.message("email-log:1");
    assert_eq!((&shown["status"], &shown["route"]), (&"delivered".into(), &"email-log".into()));
}
