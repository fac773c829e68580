//! Stories of campaigns on a stage where time is virtual: what goes out is inside its window, within its quota, as far apart
//! as it must be, once, and not after a stop.
#![allow(clippy::unwrap_used, reason = "that's how a test fails")]

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use redeliver_core::calendar::Zone;
use redeliver_core::campaign::{CampaignState, Ledger, Prospect, Settings};
use redeliver_core::change::Audit;
use redeliver_core::email::Email;
use redeliver_core::{Failure, Outcome, Route, Timestamp};
use redeliver_engine::campaign::Scheduling;
use redeliver_engine::campaigns::{CampaignRecord, Campaigns};
use redeliver_simulation::stage::{Act, Carrying, Stage, route};

const AT_ONCE: Duration = Duration::ZERO;
const DAY: Duration = Duration::from_secs(86_400);
const HOUR: Duration = Duration::from_secs(3_600);

fn delivered(_: &Carrying) -> Act {
    (AT_ONCE, Outcome::Delivered { receipt: None })
}

fn campaigns_route() -> Route {
    Route { key_retention: None, retention: 30 * DAY, ..route() }
}

fn deed() -> Audit {
    Audit { actor: "ann".into(), action: "create_campaign", subject: "c".into(), at: Timestamp::default() }
}

/// Puts a campaign with two steps and so many prospects on the stage.
fn set_up(stage: &mut Stage, id: &'static str, settings: &str, prospects: u32) {
    let definition = serde_json::from_value(serde_json::json!({
        "name": id, "sequence_id": id, "route": "story", "from": "ada@example.org",
        "settings": serde_json::from_str::<Settings>(settings).unwrap(),
        "steps": [ { "order": 1, "subject": "Hi {{ name }}", "text": "Hello" },
                   { "order": 2, "delay_days": 1, "subject": "Again", "text": "Hello {{ name }}" } ]
    }))
    .unwrap();
    let record = CampaignRecord {
        id: id.into(),
        workspace: "default".into(),
        definition,
        state: CampaignState::Draft,
        ledger: Ledger::default(),
        prospects: 0,
        scheduled: 0,
        last_at: None,
        created_at: stage.time(),
    };
    let people = (1..=prospects).map(|n| Prospect {
        id: format!("p-{n}"),
        email: format!("p{n}@example.org"),
        zone: None,
        fields: BTreeMap::from([("name".to_owned(), format!("P{n}"))]),
    });
    let (store, people) = (Arc::clone(&stage.store), people.collect::<Vec<_>>());
    stage.now(async move {
        assert!(store.add_campaign(record, deed()).await.unwrap());
        store.enrol(id, people).await.unwrap();
    });
}

fn launch(stage: &mut Stage, id: &'static str) -> Scheduling {
    let engine = Arc::clone(&stage.engine);
    stage.now(async move { engine.launch_campaign(id, &"ann".into()).await }).unwrap()
}

fn schedule(stage: &mut Stage, id: &'static str) -> Scheduling {
    let engine = Arc::clone(&stage.engine);
    stage.now(async move { engine.schedule(id).await }).unwrap()
}

fn times(stage: &Stage) -> Vec<Timestamp> {
    stage.log().carryings.iter().map(|carrying| carrying.at).collect()
}

const NINE_TO_ELEVEN: &str = r#"{ "start": "09:00", "end": "11:00", "zone": "Europe/Paris", "daily_quota": 6, "spacing": ["30s", "90s"] }"#;

/// Every mail is in the window, no day over its quota, and no two mails too close.
fn judge(times: &[Timestamp], quota: usize) {
    let zone: Zone = "Europe/Paris".parse().unwrap();
    let mut days = BTreeMap::new();
    for at in times {
        let day = zone.local_day(*at);
        *days.entry(day).or_insert(0) += 1;
        let since_midnight = at.since(zone.day_start(day));
        assert!((9 * HOUR..11 * HOUR).contains(&since_midnight), "{at}");
    }
    assert!(days.values().all(|count| *count <= quota), "{days:?}");
    assert!(times.windows(2).all(|pair| pair[1].since(pair[0]) >= Duration::from_secs(30)), "{times:?}");
}

#[test]
fn a_campaign_goes_out_in_its_window_within_its_quota_once_and_in_threads() {
    let mut stage = Stage::at_ease(campaigns_route(), delivered);
    set_up(&mut stage, "c", NINE_TO_ELEVEN, 8);
    assert_eq!(launch(&mut stage, "c"), Scheduling { scheduled: 16, ..Scheduling::default() });
    assert_eq!(schedule(&mut stage, "c"), Scheduling { skipped: 16, ..Scheduling::default() });
    stage.pass(5 * DAY);
    let times = times(&stage);
    assert_eq!(times.len(), 16);
    judge(&times, 6);
    let log = stage.log();
    let email = |carrying: &Carrying| Email::of_content(&carrying.content).unwrap().unwrap();
    let mut first = BTreeMap::new();
    for carrying in &log.carryings {
        let (email, key) = (email(carrying), carrying.message.key.as_deref().unwrap());
        let (prospect, step) = (key.split(':').next().unwrap().to_owned(), key.rsplit(':').next().unwrap());
        match step {
            "1" => {
                assert_eq!(
                    (email.in_reply_to, email.subject),
                    (None, format!("Hi {}", prospect.replace("p-", "P")))
                );
                first.insert(prospect, carrying.message.id.to_string());
            }
            _ => {
                let answered = format!("<{}@example.org>", first[&prospect]);
                assert_eq!(email.in_reply_to.as_deref(), Some(answered.as_str()));
                assert_eq!(email.references, [answered]);
            }
        }
    }
}

#[test]
fn two_campaigns_of_a_workspace_share_its_quota_and_their_sender() {
    let mut stage = Stage::at_ease(campaigns_route(), delivered);
    let store = Arc::clone(&stage.store);
    let settings: Settings = serde_json::from_str(NINE_TO_ELEVEN).unwrap();
    stage.now(async move { store.put_settings("default".into(), settings, deed()).await }).unwrap();
    for id in ["c-1", "c-2"] {
        set_up(&mut stage, id, "{}", 4);
        assert_eq!(launch(&mut stage, id).scheduled, 8);
    }
    stage.pass(5 * DAY);
    let times = times(&stage);
    assert_eq!(times.len(), 16);
    judge(&times, 6);
}

#[test]
fn a_retry_obeys_window_and_quota_and_a_failed_try_gives_its_quota_back() {
    let mut stage = Stage::at_ease(campaigns_route(), |carrying| match carrying.message.attempts {
        0 => (AT_ONCE, Outcome::Failed(Failure::new("451 later"))),
        _ => (AT_ONCE, Outcome::Delivered { receipt: None }),
    });
    set_up(&mut stage, "c", NINE_TO_ELEVEN, 5);
    launch(&mut stage, "c");
    stage.pass(5 * DAY);
    let log = stage.log();
    let went_out = log.carryings.iter().filter(|carrying| carrying.message.attempts > 0);
    let times: Vec<Timestamp> = went_out.map(|carrying| carrying.at).collect();
    assert_eq!((times.len(), log.carryings.len()), (10, 20));
    judge(&times, 6);
    judge(&log.carryings.iter().map(|carrying| carrying.at).collect::<Vec<_>>(), 12);
}

#[test]
fn nothing_goes_out_while_a_campaign_is_paused_nor_after_a_stop_nor_after_it_was_cancelled() {
    let mut stage = Stage::at_ease(campaigns_route(), delivered);
    set_up(&mut stage, "c", NINE_TO_ELEVEN, 6);
    launch(&mut stage, "c");
    let engine = Arc::clone(&stage.engine);
    stage.now(async move {
        engine.pause_campaign("c", &"ann".into()).await.unwrap();
        assert!(engine.stop_prospect("c", "p-2", "replied", &"ann".into()).await.unwrap());
        assert!(!engine.stop_prospect("c", "p-9", "replied", &"ann".into()).await.unwrap());
        assert!(engine.schedule("c").await.is_err(), "a paused campaign is not scheduled");
    });
    stage.pass(2 * DAY);
    assert_eq!(times(&stage), []);
    let engine = Arc::clone(&stage.engine);
    stage.now(async move { engine.resume_campaign("c", &"ann".into()).await.map(drop) }).unwrap();
    stage.pass(DAY);
    let before = times(&stage);
    assert!(!before.is_empty());
    judge(&before, 6);
    let engine = Arc::clone(&stage.engine);
    stage.now(async move { engine.cancel_campaign("c", &"ann".into()).await.map(drop) }).unwrap();
    stage.pass(3 * DAY);
    assert_eq!(times(&stage), before);
    let log = stage.log();
    assert!(
        log.carryings.iter().all(|carrying| !carrying.message.key.as_deref().unwrap().starts_with("p-2:"))
    );
}

#[test]
fn a_changed_quota_and_a_changed_window_count_at_once() {
    let mut stage = Stage::at_ease(campaigns_route(), delivered);
    set_up(&mut stage, "c", r#"{ "spacing": ["30s", "90s"] }"#, 6);
    launch(&mut stage, "c");
    let store = Arc::clone(&stage.store);
    let narrower = NINE_TO_ELEVEN.replace("\"daily_quota\": 6", "\"daily_quota\": 3");
    let settings: Settings = serde_json::from_str(&narrower).unwrap();
    stage.now(async move { store.put_settings("default".into(), settings, deed()).await }).unwrap();
    stage.pass(6 * DAY);
    let times = times(&stage);
    assert_eq!(times.len(), 12);
    judge(&times, 3);
}
