//! `/readyz` says whether messages can be accepted, and a store that can't go on ends the process.
#![allow(clippy::unwrap_used, clippy::panic, reason = "that's how a test fails")]
#![allow(clippy::disallowed_methods, reason = "a real process takes real time")]

mod faulty_disk;
mod process;

use faulty_disk::FaultyDisk;
use process::face::{KEY, ROUTES};
use process::{Place, Process, until};

/// A server on a disk of its own.
struct Stage {
    disk: FaultyDisk,
    process: Process,
    url: String,
    http: reqwest::blocking::Client,
    place: Place,
}

impl Stage {
    fn new(config: &str) -> Self {
        let disk = FaultyDisk::build();
        let mut place = Place::new(&format!("{config}{ROUTES}")).with_variable("REDELIVER_ADMIN_KEY", KEY);
        for (name, value) in disk.variables("store.db") {
            place = place.with_variable(name, value);
        }
        let process = place.serve();
        let url = process.url();
        // Nobody is asked for a certificate here, and still something must stand ready to check one.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let http = reqwest::blocking::Client::builder().timeout(std::time::Duration::from_secs(20)).build();
        let stage = Self { disk, process, url, http: http.unwrap(), place };
        until("it is ready", || stage.readiness().0 == 200);
        stage
    }

    fn readiness(&self) -> (u16, String) {
        let answer = self.http.get(format!("{}/readyz", self.url)).send();
        answer.map_or((0, String::new()), |answer| {
            (answer.status().as_u16(), answer.text().unwrap_or_default())
        })
    }

    fn post(&self) -> u16 {
        let request = self.http.post(format!("{}/v1/messages", self.url)).bearer_auth(KEY);
        let request = request.header("content-type", "application/json");
        let sent = request.body(r#"{"route": "email", "payload": 1}"#).send();
        sent.map_or(0, |answer| answer.status().as_u16())
    }
}

#[test]
fn a_full_disk_is_not_ready_and_the_same_process_is_ready_once_there_is_room() {
    let stage = Stage::new("");
    assert_eq!(stage.post(), 201);
    stage.disk.begin("full");
    until("nothing more is accepted", || stage.post() == 503);
    until("it says so", || stage.readiness().0 == 503);
    let written = || stage.process.log().matches("a request came to nothing").count();
    let (before, begun) = (written(), std::time::Instant::now());
    (0..200).for_each(|_| assert_eq!(stage.post(), 503));
    let lines_max = begun.elapsed().as_secs() as usize + 2;
    assert!(written() - before <= lines_max, "one line a second: {}", stage.process.log());
    stage.process.logs("log lines left out");
    let (_, text) = stage.readiness();
    assert!(text.contains("the store is full") && !text.contains("store.db"), "{text}");
    stage.disk.end("full");
    until("it is ready again", || stage.readiness().0 == 200);
    assert_eq!(stage.post(), 201);
}

#[test]
fn a_disk_that_hangs_is_not_ready_until_it_answers() {
    let stage = Stage::new("");
    stage.disk.begin("hang");
    until("it says so", || stage.readiness().0 == 503);
    let (_, text) = stage.readiness();
    assert!(text.contains("confirms no heartbeats"), "{text}");
    stage.disk.end("hang");
    until("it is ready again", || stage.readiness().0 == 200);
    assert_eq!(stage.post(), 201);
}

/// SQLite would go on with files that have no name any more, and everything would be gone with the process.
#[test]
fn a_store_whose_files_are_gone_accepts_nothing_until_they_are_back() {
    for gone in [&["store.db", "store.db-wal", "store.db-shm"][..], &["store.db"], &["store.db-wal"]] {
        let stage = Stage::new("");
        assert_eq!(stage.post(), 201);
        let aside = |name: &str| stage.place.path(&format!("{name}.aside"));
        gone.iter().for_each(|name| std::fs::rename(stage.place.path(name), aside(name)).unwrap());
        assert_eq!(stage.post(), 503, "without {gone:?}");
        until("it says so", || stage.readiness().0 == 503);
        let (_, text) = stage.readiness();
        assert!(text.contains("the store does not answer") && !text.contains("store.db"), "{text}");
        gone.iter().for_each(|name| std::fs::rename(aside(name), stage.place.path(name)).unwrap());
        until("it is ready again", || stage.readiness().0 == 200);
        assert_eq!(stage.post(), 201);
    }
}

#[test]
fn a_sync_that_fails_ends_the_process_and_says_what_to_do() {
    let stage = Stage::new("");
    assert_eq!(stage.post(), 201);
    stage.disk.begin("sync");
    assert_ne!(stage.post(), 201);
    let (status, log) = stage.process.end();
    assert_eq!(status.code(), Some(1), "{log}");
    assert!(log.contains("check the disk, then start redeliver again"), "{log}");
}

/// Where SQLite syncs by itself, at checkpoints only, it would try again and be told that all is well.
#[test]
fn a_checkpoint_whose_sync_fails_ends_the_process_where_durability_is_relaxed() {
    let stage = Stage::new("durability = \"relaxed\"\n");
    stage.disk.begin("sync");
    let payload = "x".repeat(1_000_000);
    let body = format!(r#"{{"route": "email", "payload": "{payload}"}}"#);
    for _ in 0..40 {
        let request = stage.http.post(format!("{}/v1/messages", stage.url)).bearer_auth(KEY);
        let _ = request.header("content-type", "application/json").body(body.clone()).send();
    }
    let (status, log) = stage.process.end();
    assert_eq!(status.code(), Some(1), "{log}");
    assert!(log.contains("check the disk, then start redeliver again"), "{log}");
}
