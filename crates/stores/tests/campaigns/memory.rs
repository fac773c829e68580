//! Ten times the prospects take no more memory: they are planned and stored a part at a time. What a process has used at most
//! is measured in one of its own, which does nothing else.

use std::process::Command;
use std::sync::Arc;

use redeliver_core::campaign::{Prospect, Settings};
use redeliver_engine::campaigns::Campaigns;
use redeliver_engine::store::Store;
use redeliver_servers::postgres::PostgresServer;
use redeliver_stores::{OpenOptions, Postgres, Sqlite, postgres};

use crate::{QUOTA, STEPS, campaign, deed, engine, prospect, prospects};

/// How many prospects the process of its own plans; whoever doesn't find it is no such process.
const PLANS: &str = "REDELIVER_TEST_PLANS";
/// The database in which it does so; in a file of its own, without it.
const DATABASE: &str = "REDELIVER_TEST_DATABASE";
/// What ten times as many may take more: caches that fill, and what an allocator keeps. All of their mails would take more.
const MORE_KIB_MAX: u64 = 16 * 1024;

/// Plans so many prospects on a store, each part of them forgotten once it is stored.
async fn plan<S: Store + Campaigns>(store: S, count: u32) {
    let store = Arc::new(store);
    let settings: Settings =
        serde_json::from_str(&format!(r#"{{ "daily_quota": {} }}"#, QUOTA * 10)).unwrap();
    store.put_settings("default".into(), settings, deed()).await.unwrap();
    assert!(store.add_campaign(campaign("seq-1"), deed()).await.unwrap());
    for first in (1..=count).step_by(1_000) {
        let some: Vec<Prospect> = (first..(first + 1_000).min(count + 1)).map(prospect).collect();
        store.enrol("seq-1", some).await.unwrap();
    }
    let told = engine(&store).launch_campaign("seq-1", &"ann".into()).await.unwrap();
    assert_eq!(told.scheduled, u64::from(count * STEPS));
}

/// The most memory that this process has used so far.
fn peak_kib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    line.split_whitespace().next().unwrap().parse().unwrap()
}

/// What a process of its own has used at most that plans so many.
fn peak_kib_of(count: u32, database: Option<&str>) -> u64 {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "memory::in_a_process_of_its_own", "--nocapture"]);
    command.env(PLANS, count.to_string()).envs(database.map(|url| (DATABASE, url)));
    let output = command.output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{text}{}", String::from_utf8_lossy(&output.stderr));
    let peak = text.split("peak_kib=").nth(1).and_then(|rest| rest.split_whitespace().next());
    peak.expect("it says what it used").parse().unwrap()
}

/// What the others have done in a process of its own; by itself it does nothing.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn in_a_process_of_its_own() {
    let Ok(count) = std::env::var(PLANS) else { return };
    let count = count.parse().unwrap();
    match std::env::var(DATABASE) {
        Ok(url) => {
            let options = postgres::OpenOptions::default();
            plan(Postgres::open(&url, options).await.unwrap(), count).await;
        }
        Err(_) => {
            let directory = tempfile::tempdir().unwrap();
            let path = directory.path().join("store.db");
            plan(Sqlite::open(path, OpenOptions::default()).unwrap(), count).await;
        }
    }
    println!("peak_kib={} ", peak_kib());
}

fn judge(tenth_kib: u64, whole_kib: u64) {
    println!("memory at most: {tenth_kib} KiB for a tenth, {whole_kib} KiB for all");
    assert!(
        whole_kib <= tenth_kib + MORE_KIB_MAX,
        "{whole_kib} KiB for ten times as many, {tenth_kib} before"
    );
}

#[test]
fn ten_times_the_prospects_take_no_more_memory_on_sqlite() {
    let tenth = (prospects() / 10).max(2_000);
    judge(peak_kib_of(tenth, None), peak_kib_of(tenth * 10, None));
}

#[test]
fn ten_times_the_prospects_take_no_more_memory_on_postgres() {
    let tenth = (prospects() / 10).max(2_000);
    let [small, large] = [0, 1].map(|_| PostgresServer::shared().database());
    judge(peak_kib_of(tenth, Some(&small.url())), peak_kib_of(tenth * 10, Some(&large.url())));
}
