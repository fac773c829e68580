//! The binary on a PostgreSQL database: many processes at once, commands beside servers, and a database that goes away.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod process;

use process::face::{KEY, ROUTES, lines};
use process::{Place, Process, Said, Signal, until};
use redeliver_servers::postgres::{Database, PostgresServer};

/// Nobody's password here is asked for, but none is ever to be seen.
const SECRET: &str = "hunter2";

/// A place whose messages are in this database.
fn place_at(url: &str) -> Place {
    let url = url.replace("postgres@", &format!("postgres:{SECRET}@"));
    Place::new(ROUTES).with_variable("DATABASE_URL", url.leak()).with_variable("REDELIVER_ADMIN_KEY", KEY)
}

fn place(database: &Database<'_>) -> Place {
    place_at(&database.url())
}

/// Runs a command that goes well.
fn ask(place: &Place, args: &str) -> String {
    let said = place.run(args);
    assert_eq!(said.code, Some(0), "{args}: {}{}", said.out, said.err);
    said.out
}

/// How ready a server says it is.
fn readiness(server: &Process) -> (u16, String) {
    let _ = rustls::crypto::ring::default_provider().install_default();
    let client = reqwest::blocking::Client::builder().no_proxy().build().unwrap();
    let answer = client.get(format!("{}/readyz", server.url())).send().unwrap();
    (answer.status().as_u16(), answer.text().unwrap())
}

#[test]
fn servers_that_start_at_once_make_the_tables_once_and_all_serve() {
    let database = PostgresServer::shared().database();
    let place = place(&database);
    let servers: Vec<Process> = (0..5).map(|_| place.start("serve")).collect();
    for server in &servers {
        server.logs("serving 2 routes");
    }
    assert_eq!(
        database.say("SELECT count(DISTINCT number) = count(*) FROM redeliver.redeliver_migrations"),
        "t"
    );
    until("all of them live", || database.say("SELECT count(*) FROM redeliver.redeliver_instances") == "5");
    for server in &servers {
        server.signal(Signal::TERM);
    }
    for server in servers {
        let (status, log) = server.end();
        assert!(status.success() && !log.contains(SECRET), "{log}");
    }
    assert_eq!(
        database.say("SELECT count(*) FROM redeliver.redeliver_instances"),
        "0",
        "each has said goodbye"
    );
}

#[test]
fn migrate_makes_the_tables_once_however_many_do_it() {
    let database = PostgresServer::shared().database();
    let place = place(&database);
    let refused = place.run("list");
    assert_eq!(refused.code, Some(1));
    assert!(refused.err.contains("`redeliver migrate` makes it"), "{}", refused.err);
    let said: Vec<Said> = std::thread::scope(|scope| {
        let runs: Vec<_> = (0..6).map(|_| scope.spawn(|| place.run("migrate"))).collect();
        runs.into_iter().map(|run| run.join().unwrap()).collect()
    });
    for said in &said {
        assert_eq!((said.code, said.err.as_str()), (Some(0), ""), "{}", said.out);
    }
    let made = said.iter().filter(|said| said.out.contains(" after ")).count();
    assert_eq!(made, 1, "one made them, the others found them");
    assert!(ask(&place, "migrate").ends_with("has this version's tables already\n"));
    assert!(ask(&place, "list --json").is_empty());
}

#[test]
fn commands_work_straight_on_the_database_beside_its_servers() {
    let database = PostgresServer::shared().database();
    let place = place(&database);
    let servers = [place.serve(), place.serve()];
    std::fs::write(place.path("some.json"), "{\"route\":\"orders\",\"payload\":1,\"key\":\"a\"}\n").unwrap();
    let many: String =
        (0..50).map(|n| format!("{{\"route\":\"orders\",\"payload\":{n},\"key\":\"k{n}\"}}\n")).collect();
    std::fs::write(place.path("many.json"), many).unwrap();
    let sent = lines(&ask(&place, "send --from-json some.json --json"));
    ask(&place, "import many.json");
    until("a server delivers them", || {
        lines(&ask(&place, "list --status delivered --limit 100 --json")).len() == 51
    });
    let id = sent[0]["id"].as_str().unwrap();
    assert!(ask(&place, &format!("show {id}")).contains("delivered"));
    assert!(ask(&place, &format!("explain {id}")).contains("delivered"));
    let again = lines(&ask(&place, "send --from-json some.json --json"));
    assert_eq!((&again[0]["id"], &again[0]["duplicate"]), (&sent[0]["id"], &true.into()));
    ask(&place, "routes pause email");
    let paused = ask(&place, "routes list");
    assert!(paused.contains("paused"), "{paused}");
    ask(&place, "routes resume email");
    assert!(ask(&place, "stats").contains("51"));
    let exported = ask(&place, "export --status delivered");
    assert_eq!(exported.lines().count(), 51);
    let key = ask(&place, "keys create --name ada --role viewer");
    let listed = ask(&place, "keys list --json");
    assert!(listed.contains("\"ada\"") && !listed.contains(key.trim()), "{listed}");
    for server in servers {
        server.signal(Signal::TERM);
        let (status, log) = server.end();
        assert!(status.success() && !log.contains(SECRET), "{log}");
    }
}

#[test]
fn readyz_tells_when_the_database_is_away_and_when_it_is_back() {
    let mut server = PostgresServer::start();
    let place = place_at(&server.url("postgres"));
    let process = place.serve();
    until("the first heartbeat is confirmed", || readiness(&process).0 == 200);
    let (status, text) = readiness(&process);
    assert!(status == 200 && text.contains("\"durability\":\"full\""), "{status} {text}");
    server.kill();
    until("it says that the store is away", || readiness(&process).0 == 503);
    let (_, text) = readiness(&process);
    assert!(
        !text.contains("127.0.0.1") && !text.contains(SECRET),
        "where it is is nobody's business: {text}"
    );
    server.resume();
    until("it is ready again", || readiness(&process).0 == 200);
    std::fs::write(place.path("one.json"), "{\"route\":\"orders\",\"payload\":1}").unwrap();
    ask(&place, "send --from-json one.json");
    until("messages go out again", || !ask(&place, "list --status delivered --json").is_empty());
    process.signal(Signal::TERM);
    let (status, log) = process.end();
    assert!(status.success() && !log.contains(SECRET), "{log}");
}

#[test]
fn a_database_that_cannot_be_reached_is_named_without_its_password() {
    let port = redeliver_servers::free_port();
    let place = place_at(&format!("postgres://postgres@127.0.0.1:{port}/mail"));
    let place_name = format!("postgres://127.0.0.1:{port}/mail");
    for command in ["serve", "migrate", "list", "keys list", "doctor"] {
        let said = place.run(command);
        let words = format!("{}{}", said.out, said.err);
        assert_eq!(said.code, Some(1), "{command}: {words}");
        assert!(words.contains(&place_name) && !words.contains(SECRET), "{command}: {words}");
    }
    let checked = ask(&place, "check");
    assert!(checked.contains(&place_name) && !checked.contains(SECRET), "{checked}");
}

/// The lines of a doctor's report that begin like this.
fn found<'a>(said: &'a Said, level: &str, what: &str) -> Vec<&'a str> {
    let words = |line: &&str| line.trim_start().starts_with(level) && line.contains(&format!("  {what}"));
    said.out.lines().filter(words).collect()
}

#[test]
fn the_doctor_finds_a_good_database_well_and_changes_nothing() {
    let database = PostgresServer::shared().database();
    let place = place(&database);
    let empty = place.run("doctor");
    assert_eq!(empty.code, Some(1), "{}", empty.out);
    assert!(found(&empty, "problem", "store")[0].contains("there is no store in it yet"), "{}", empty.out);
    assert_eq!(database.say("SELECT count(*) FROM pg_namespace WHERE nspname = 'redeliver'"), "0");
    ask(&place, "migrate");
    let well = place.run("doctor");
    assert_eq!((well.code, well.err.as_str()), (Some(0), ""), "{}", well.out);
    assert!(well.out.ends_with("all is well\n") && !well.out.contains(SECRET), "{}", well.out);
    for what in ["store", "clock", "indexes", "dead rows", "vacuum", "integrity", "engine", "due"] {
        assert_eq!(found(&well, "ok", what).len(), 1, "{what} in {}", well.out);
    }
}

#[test]
fn the_doctor_sees_missing_indexes_orphans_and_messages_that_nobody_carries() {
    let database = PostgresServer::shared().database();
    let place = place(&database);
    let old = "{\"route\":\"orders\",\"payload\":1,\"due_at\":\"2026-01-01T00:00:00Z\"}\n";
    std::fs::write(place.path("two.json"), old.repeat(2)).unwrap();
    ask(&place, "import two.json");
    let idle = place.run("doctor");
    assert_eq!(idle.code, Some(1), "{}", idle.out);
    assert!(found(&idle, "problem", "engine")[0].contains("2 messages due"), "{}", idle.out);
    assert!(found(&idle, "warning", "due")[0].contains("on route orders"), "{}", idle.out);
    database.say("DROP INDEX redeliver.redeliver_ready");
    database.say("DELETE FROM redeliver.redeliver_contents WHERE id = (SELECT min(id::text)::uuid FROM redeliver.redeliver_contents)");
    let ill = place.run("doctor");
    assert!(found(&ill, "problem", "indexes")[0].contains("redeliver_ready"), "{}", ill.out);
    assert!(found(&ill, "problem", "integrity")[0].contains("1 message without content"), "{}", ill.out);
}

#[test]
fn the_doctor_names_the_session_that_holds_back_vacuum() {
    let database = PostgresServer::shared().database();
    let place = place(&database);
    ask(&place, "migrate");
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let url = format!("{}?application_name=report", database.url());
    let (session, connection) =
        runtime.block_on(tokio_postgres::connect(&url, tokio_postgres::NoTls)).unwrap();
    runtime.spawn(connection);
    let begin = "BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT 1";
    runtime.block_on(session.batch_execute(begin)).unwrap();
    let said = place.run("doctor");
    assert_eq!(said.code, Some(0), "{}", said.out);
    let vacuum = found(&said, "ok", "vacuum");
    assert!(vacuum[0].contains("(report, idle in transaction) holds it back for"), "{}", said.out);
}
