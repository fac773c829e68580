//! The demo of notifications and its worker, which `make demo-notifications` runs.
#![allow(clippy::unwrap_used, reason = "a demo that can't go on has failed")]

#[path = "../examples/notifications/demo.rs"]
mod demo;
#[path = "../examples/notifications/devices.rs"]
mod devices;
#[path = "../examples/notifications/worker.rs"]
mod worker;

use std::path::Path;

use redeliver_servers::kafka::KafkaCluster;

#[test]
fn the_demo_of_notifications_shows_each_to_its_end() {
    let cluster = KafkaCluster::start_with_topics(&demo::TOPICS);
    let mut out = Vec::new();
    let ended = demo::run(Path::new(env!("CARGO_BIN_EXE_redeliver")), cluster.brokers(), &mut out);
    let told = String::from_utf8(out).unwrap();
    assert!(ended.is_ok(), "{ended:?}\n{told}");
    let check = |device: &str, words: &[&str]| {
        let key = format!("news-1:{device} ");
        let lines: Vec<&str> = told.lines().filter(|line| line.starts_with(&key)).collect();
        let last = lines.last().unwrap();
        assert!(words.iter().all(|word| last.contains(word)), "{device}: {words:?} in {lines:#?}");
    };
    check("critical-arrives", &["delivered", "2 of 11 tries"]);
    check("medium-arrives-late", &["delivered", "4 of 6 tries"]);
    check("critical-never-answers", &["dead", "11 of 11 tries", "attempts_exhausted"]);
    check("high-never-answers", &["dead", "9 of 9 tries", "attempts_exhausted"]);
    check("medium-never-answers", &["dead", "6 of 6 tries", "attempts_exhausted"]);
    check("low-never-answers", &["dead", "4 of 4 tries", "attempts_exhausted"]);
    check("high-refuses", &["dead", "2 of 9 tries", "refused"]);
    check("low-gone", &["cancelled", "1 of 4 tries", "ineligible"]);
    assert!(told.ends_with("all 20 ended as they should; 8 dead letters\n"), "{told}");
}
