//! A campaign planned by two schedulers at once, on a real store: every mail once, inside its window, no day over its quota, and
//! a second run has nothing to do. `CAMPAIGN_PROSPECTS=100000` plans more of them.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "that's how a test fails")]

mod memory;

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use redeliver_core::calendar::Zone;
use redeliver_core::campaign::{CampaignState, Ends, Ledger, Prospect, Settings, StepKey};
use redeliver_core::change::Audit;
use redeliver_core::policy::{Backoff, Jitter};
use redeliver_core::{Name, Outcome, Policy, Route, Timestamp};
use redeliver_engine::campaign::Scheduling;
use redeliver_engine::campaigns::{CampaignRecord, Campaigns};
use redeliver_engine::clock::WallClock;
use redeliver_engine::emit::Silence;
use redeliver_engine::store::Store;
use redeliver_engine::transport::{Envelope, Transport};
use redeliver_engine::{Engine, Line, Settings as Pace};
use redeliver_servers::postgres::PostgresServer;
use redeliver_stores::{OpenOptions, Postgres, Sqlite, postgres};

const STEPS: u32 = 3;
const QUOTA: usize = 200;

/// Nothing is carried here.
struct Nowhere;

#[async_trait]
impl Transport for Nowhere {
    async fn carry(&self, _: &Envelope<'_>, _: Duration) -> Outcome {
        panic!("nobody runs this engine")
    }

    fn destination(&self, _: &Envelope<'_>) -> Name {
        "nowhere".into()
    }
}

fn engine<S: Store + Campaigns>(store: &Arc<S>) -> Engine {
    let policy = Policy {
        backoff: Backoff::Table(vec![Duration::from_secs(60)]),
        jitter: Jitter::None,
        max_attempts: 4,
        expires_after: None,
    };
    let transports: HashMap<Name, Arc<dyn Transport>> =
        HashMap::from([("smtp".into(), Arc::new(Nowhere) as _)]);
    let line = Line::new(Route::new("email", "smtp", policy), &transports, Vec::new()).unwrap();
    let clock = WallClock::new(Timestamp::default());
    let engine = Engine::new(Arc::clone(store) as _, clock, Arc::new(Silence), Pace::default(), vec![line]);
    engine.with_campaigns(Arc::clone(store) as _)
}

fn deed() -> Audit {
    Audit {
        actor: "ann".into(),
        action: "create_campaign",
        subject: "c".into(),
        at: Timestamp::default(),
        detail: None,
    }
}

fn campaign(id: &str) -> CampaignRecord {
    let definition = serde_json::json!({ "name": id, "sequence_id": id, "route": "email", "from": "ada@example.org",
        "steps": [ { "order": 1, "subject": "Hi {{ name }}", "text": "1" },
                   { "order": 2, "delay_days": 2, "subject": "Hi", "text": "2" },
                   { "order": 3, "delay_days": 3, "subject": "Hi", "text": "3" } ] });
    CampaignRecord {
        id: id.into(),
        workspace: "default".into(),
        definition: serde_json::from_value(definition).unwrap(),
        state: CampaignState::Draft,
        ledger: Ledger::default(),
        prospects: 0,
        scheduled: 0,
        last_at: None,
        paused_for: None,
        ends: Ends::default(),
        created_at: Timestamp::default(),
    }
}

fn prospect(n: u32) -> Prospect {
    Prospect {
        id: format!("p-{n}"),
        email: format!("p{n}@example.org"),
        zone: None,
        fields: BTreeMap::from([("name".to_owned(), format!("P{n}"))]),
    }
}

/// How many the first campaign has.
fn prospects() -> u32 {
    std::env::var("CAMPAIGN_PROSPECTS").map_or(2_000, |text| text.parse().expect("a number of prospects"))
}

async fn story<S: Store + Campaigns>(store: S) {
    let prospects = prospects();
    let store = Arc::new(store);
    let settings = format!(
        r#"{{ "days": ["mon","tue","wed","thu","fri"], "start": "09:00", "end": "17:00", "zone": "America/New_York",
             "daily_quota": {QUOTA} }}"#
    );
    let settings: Settings = serde_json::from_str(&settings).unwrap();
    store.put_settings("default".into(), settings.clone(), deed()).await.unwrap();
    // Two campaigns share the workspace's quota and their sender; the first has most of the prospects.
    let campaigns = [("seq-1", prospects), ("seq-2", prospects / 10)];
    for (id, count) in campaigns {
        assert!(store.add_campaign(campaign(id), deed()).await.unwrap());
        let everybody: Vec<Prospect> = (1..=count).map(prospect).collect();
        for some in everybody.chunks(5_000) {
            assert!(store.enrol(id, some.to_vec()).await.unwrap().iter().all(|is_new| *is_new));
        }
    }
    let (one, other) = (engine(&store), engine(&store));
    let actor = "ann".into();
    let (first, second, third) = tokio::join!(
        one.launch_campaign("seq-1", &actor),
        other.launch_campaign("seq-1", &actor),
        other.launch_campaign("seq-2", &actor),
    );
    let (first, second, third) = (first.unwrap(), second.unwrap(), third.unwrap());
    let mails = u64::from(prospects * STEPS);
    assert_eq!(first.scheduled + second.scheduled, mails, "{first:?} {second:?}");
    assert_eq!(third.scheduled, u64::from(prospects / 10 * STEPS));
    for (id, count) in campaigns {
        let skipped = u64::from(count * STEPS);
        let again = one.schedule(id).await.unwrap();
        assert_eq!(again, Scheduling { skipped, ..Scheduling::default() }, "the second time");
    }
    judge(&*store, &campaigns, &settings).await;
}

/// Looks at every mail: its day, its hour, its distance from the sender's others.
async fn judge(store: &dyn Campaigns, campaigns: &[(&str, u32)], settings: &Settings) {
    let zone: Zone = settings.zone.as_deref().unwrap().parse().unwrap();
    let calendar = redeliver_core::campaign::Sending::new(settings, None).unwrap().calendar;
    let mut days: BTreeMap<_, usize> = BTreeMap::new();
    let mut times = Vec::new();
    for (id, count) in campaigns {
        let numbers: Vec<u32> = (1..=*count).collect();
        for some in numbers.chunks(1_000) {
            let key = |n: &u32, step| StepKey::new(&format!("p-{n}"), id, step).unwrap().to_string();
            let keys = some.iter().flat_map(|n| (1..=STEPS).map(move |step| key(n, step))).collect();
            let found = store.by_keys("default", keys).await.unwrap();
            let due: Vec<Timestamp> =
                found.into_iter().map(|keyed| keyed.unwrap().message.unwrap().due_at).collect();
            for steps in due.chunks(STEPS as usize) {
                assert!(zone.local_day(steps[1]).days_since(zone.local_day(steps[0])) >= 2, "{steps:?}");
                assert!(zone.local_day(steps[2]).days_since(zone.local_day(steps[1])) >= 3, "{steps:?}");
            }
            times.extend(due);
        }
    }
    for at in &times {
        assert!(calendar.is_open(*at), "{at}");
        *days.entry(zone.local_day(*at)).or_default() += 1;
    }
    assert!(days.values().all(|mails| *mails <= QUOTA), "{days:?}");
    times.sort();
    let distances = times.windows(2).map(|pair| pair[1].since(pair[0]));
    assert!(distances.min().is_none_or(|least| least >= Duration::from_secs(30)));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_schedulers_at_once_plan_every_mail_once_on_sqlite() {
    let directory = tempfile::tempdir().unwrap();
    story(Sqlite::open(directory.path().join("store.db"), OpenOptions::default()).unwrap()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_schedulers_at_once_plan_every_mail_once_on_postgres() {
    let database = PostgresServer::shared().database();
    story(Postgres::open(&database.url(), postgres::OpenOptions::default()).await.unwrap()).await;
}
