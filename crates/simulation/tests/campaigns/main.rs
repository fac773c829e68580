//! Stories of campaigns on a stage where time is virtual: what goes out is inside its window, within its quota, as far apart
//! as it must be, once, and not after a stop.
#![allow(clippy::unwrap_used, reason = "that's how a test fails")]

mod interrupted;
mod suppressed;
mod told;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use redeliver_core::calendar::Zone;
use redeliver_core::campaign::{CampaignState, Ends, Ledger, Prospect, Settings};
use redeliver_core::change::Audit;
use redeliver_core::email::Email;
use redeliver_core::gate::Scope;
use redeliver_core::outcome::Blame;
use redeliver_core::route::{OnAuthError, OnLost};
use redeliver_core::{Failure, Outcome, Route, State, Timestamp};
use redeliver_engine::campaign::{CampaignError, Scheduling};
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
    Audit {
        actor: "ann".into(),
        action: "create_campaign",
        subject: "c".into(),
        at: Timestamp::default(),
        detail: None,
    }
}

/// Puts a campaign with two steps and so many prospects on the stage.
fn set_up(stage: &mut Stage, id: &'static str, settings: &str, prospects: u32) {
    set_up_steps(stage, id, settings, prospects, &[0, 1]);
}

/// The same with a step for each of these delays.
fn set_up_steps(stage: &mut Stage, id: &'static str, settings: &str, prospects: u32, delays_days: &[u32]) {
    let step = |(index, delay_days): (usize, &u32)| serde_json::json!({ "order": index + 1, "delay_days": delay_days, "subject": "Hi {{ name }}", "text": "Hello" });
    let definition = serde_json::from_value(serde_json::json!({
        "name": id, "sequence_id": id, "route": "story", "from": "ada@example.org",
        "settings": serde_json::from_str::<Settings>(settings).unwrap(),
        "steps": delays_days.iter().enumerate().map(step).collect::<Vec<_>>()
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
        paused_for: None,
        ends: Ends::default(),
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
    set_up(&mut stage, "c", NINE_TO_ELEVEN, 12);
    launch(&mut stage, "c");
    let engine = Arc::clone(&stage.engine);
    stage.now(async move {
        engine.pause_campaign("c", &"ann".into()).await.unwrap();
        let stopped = engine.stop_prospect("c", "p-2", "replied", &"ann".into()).await.unwrap();
        assert_eq!(stopped.as_deref(), Some("replied"));
        assert_eq!(engine.stop_prospect("c", "p-99", "replied", &"ann".into()).await.unwrap(), None);
        assert!(engine.schedule("c").await.is_err(), "a paused campaign is not scheduled");
    });
    stage.pass(2 * DAY);
    assert_eq!(times(&stage), []);
    let engine = Arc::clone(&stage.engine);
    stage.now(async move { engine.resume_campaign("c", &"ann".into()).await.map(drop) }).unwrap();
    stage.pass(DAY);
    let before = times(&stage);
    assert!((1..22).contains(&before.len()), "some, and not all");
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
fn what_is_scheduled_for_whoever_is_paused_waits_at_no_cost_and_goes_out_in_its_window_once_they_are_resumed()
{
    let mut stage = Stage::at_ease(campaigns_route(), delivered);
    set_up(&mut stage, "c", NINE_TO_ELEVEN, 4);
    launch(&mut stage, "c");
    act(&mut stage, async |engine| {
        let paused = engine.pause_prospect("c", "p-2", &"ann".into()).await.unwrap();
        assert!(paused.paused_at.is_some());
        let missing = engine.pause_prospect("c", "p-99", &"ann".into()).await;
        assert!(matches!(missing, Err(CampaignError::NoProspect(_))), "{missing:?}");
    });
    stage.pass(4 * DAY);
    let seen: Vec<String> = stage.log().carryings.iter().map(prospect_of).collect();
    assert!(seen.len() == 6 && !seen.contains(&"p-2".to_owned()), "{seen:?}");
    assert_eq!(state(&mut stage, "c"), CampaignState::Running, "somebody is still to be written to");
    let gates = |stage: &mut Stage| act(stage, async |engine| engine.store().gates().await.unwrap().len());
    assert_eq!(gates(&mut stage), 1, "one row, however many mails wait");
    act(&mut stage, async |engine| engine.resume_prospect("c", "p-2", &"ann".into()).await.map(drop))
        .unwrap();
    stage.pass(4 * DAY);
    let log = stage.log();
    let late: Vec<&Carrying> = log.carryings.iter().filter(|one| prospect_of(one) == "p-2").collect();
    assert_eq!(late.len(), 2);
    assert!(late.iter().all(|one| one.message.attempts == 0), "waiting is no try");
    drop(log);
    judge(&times(&stage), 6);
    assert_eq!((gates(&mut stage), state(&mut stage, "c")), (0, CampaignState::Done));
}

#[test]
fn what_waits_for_whoever_is_paused_ends_with_a_stop_and_with_the_campaign() {
    for is_stop in [true, false] {
        let mut stage = Stage::at_ease(campaigns_route(), delivered);
        set_up(&mut stage, "c", NINE_TO_ELEVEN, 2);
        launch(&mut stage, "c");
        act(&mut stage, async |engine| engine.pause_prospect("c", "p-1", &"ann".into()).await.map(drop))
            .unwrap();
        stage.pass(3 * DAY);
        act(&mut stage, async move |engine| match is_stop {
            true => engine.stop_prospect("c", "p-1", "replied", &"ann".into()).await.map(drop),
            false => engine.cancel_campaign("c", &"ann".into()).await.map(drop),
        })
        .unwrap();
        stage.pass(DAY);
        let store = Arc::clone(&stage.store);
        let keys = ["p-1:c:1", "p-1:c:2"].map(str::to_owned).to_vec();
        let found = stage.now(async move { store.by_keys("default", keys).await }).unwrap();
        for keyed in found {
            let state = keyed.unwrap().message.unwrap().state;
            assert!(matches!(state, State::Cancelled { .. }), "{state:?}");
        }
        assert_eq!(times(&stage).len(), 2, "only to the other one");
        assert!(act(&mut stage, async |engine| engine.store().gates().await.unwrap()).is_empty());
    }
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

fn act<T: 'static>(
    stage: &mut Stage,
    deed: impl AsyncFnOnce(Arc<redeliver_engine::Engine>) -> T + 'static,
) -> T {
    let engine = Arc::clone(&stage.engine);
    stage.now(async move { deed(engine).await })
}

fn state(stage: &mut Stage, id: &'static str) -> CampaignState {
    act(stage, async move |engine| engine.campaign(id).await.unwrap().state)
}

fn prospect_of(carrying: &Carrying) -> String {
    carrying.message.key.as_deref().unwrap().split(':').next().unwrap().to_owned()
}

#[test]
fn a_campaign_is_done_when_its_last_mail_has_ended_and_runs_again_for_those_who_come_later() {
    let mut stage = Stage::at_ease(campaigns_route(), delivered);
    set_up(&mut stage, "c", NINE_TO_ELEVEN, 2);
    launch(&mut stage, "c");
    assert_eq!(state(&mut stage, "c"), CampaignState::Running);
    stage.pass(3 * DAY);
    assert_eq!((times(&stage).len(), state(&mut stage, "c")), (4, CampaignState::Done));
    let late = Prospect {
        id: "late".to_owned(),
        email: "late@example.org".to_owned(),
        zone: None,
        fields: BTreeMap::from([("name".to_owned(), "Late".to_owned())]),
    };
    act(&mut stage, async move |engine| engine.enrol("c", vec![late]).await.unwrap());
    assert_eq!(schedule(&mut stage, "c").scheduled, 2);
    assert_eq!(state(&mut stage, "c"), CampaignState::Running);
    stage.pass(3 * DAY);
    assert_eq!((times(&stage).len(), state(&mut stage, "c")), (6, CampaignState::Done));
}

#[test]
fn whoever_is_enrolled_while_a_campaign_runs_is_planned_without_being_asked() {
    let mut stage = Stage::at_ease(campaigns_route(), delivered);
    set_up(&mut stage, "c", NINE_TO_ELEVEN, 1);
    launch(&mut stage, "c");
    let late = Prospect {
        id: "late".to_owned(),
        email: "late@example.org".to_owned(),
        zone: None,
        fields: BTreeMap::from([("name".to_owned(), "Late".to_owned())]),
    };
    act(&mut stage, async move |engine| engine.enrol("c", vec![late]).await.unwrap());
    stage.pass(4 * DAY);
    assert_eq!((times(&stage).len(), state(&mut stage, "c")), (4, CampaignState::Done));
}

#[test]
fn a_refused_login_costs_one_mail_and_holds_the_sender_until_a_person_lets_it_go() {
    let route = Route { on_auth_error: OnAuthError::RefuseAndHold, ..campaigns_route() };
    let is_good = Arc::new(AtomicBool::new(false));
    let login = Arc::clone(&is_good);
    let mut stage = Stage::at_ease(route, move |_| match login.load(Ordering::Relaxed) {
        true => (AT_ONCE, Outcome::Delivered { receipt: None }),
        false => (AT_ONCE, Outcome::Failed(Failure::new("535 no").blaming(Blame::Credential))),
    });
    set_up(&mut stage, "c", NINE_TO_ELEVEN, 5);
    launch(&mut stage, "c");
    stage.pass(3 * DAY);
    assert_eq!(times(&stage).len(), 1, "one mail, and not one every few minutes");
    is_good.store(true, Ordering::Relaxed);
    act(&mut stage, async move |engine| {
        engine.resume(Scope::Sender, "ada@example.org", &"ann".into()).await.unwrap();
    });
    stage.pass(5 * DAY);
    // The refused one's next step doesn't follow it.
    assert_eq!(times(&stage).len(), 1 + 8);
    judge(&times(&stage)[1..], 6);
}

#[test]
fn mails_that_are_under_way_when_their_login_is_refused_wait_with_the_others() {
    let route = Route { on_auth_error: OnAuthError::RefuseAndHold, concurrency_max: 16, ..campaigns_route() };
    let a_while = Duration::from_secs(5);
    let mut stage = Stage::at_ease(route, move |_| {
        (a_while, Outcome::Failed(Failure::new("535 no").blaming(Blame::Credential)))
    });
    set_up_steps(&mut stage, "c", r#"{ "spacing": ["0s", "0s"] }"#, 5, &[0]);
    launch(&mut stage, "c");
    stage.pass(HOUR);
    assert_eq!(times(&stage).len(), 5, "all of them were under way");
    let store = Arc::clone(&stage.store);
    let keys: Vec<String> = (1..=5).map(|n| format!("p-{n}:c:1")).collect();
    let found = stage.now(async move { store.by_keys("default", keys).await }).unwrap();
    let states: Vec<&str> =
        found.iter().flatten().map(|keyed| keyed.message.as_ref().unwrap().state.name()).collect();
    assert_eq!(states.iter().filter(|state| **state == "dead").count(), 1, "{states:?}");
    assert_eq!(states.iter().filter(|state| **state == "waiting").count(), 4, "{states:?}");
}

const A_YEAR: &str = r#"{ "days": ["mon","tue","wed","thu","fri"], "start": "09:00", "end": "17:00", "zone": "America/New_York",
    "daily_quota": 8, "ramp_up": { "start": 2, "step": 2 }, "holidays": ["01-01", "07-03", "12-25"], "blackouts": ["2027-04-05..2027-04-09"] }"#;

#[test]
fn a_year_of_a_campaign_has_no_mail_outside_its_window_over_its_quota_twice_or_after_a_stop() {
    const PROSPECTS: u32 = 400;
    let lot = |carrying: &Carrying| {
        let key = carrying.message.key.as_deref().unwrap();
        key.bytes().fold(7u32, |sum, byte| sum.wrapping_mul(31).wrapping_add(byte.into())) % 100
    };
    let route = Route { on_lost: OnLost::Hold, retention: 400 * DAY, ..campaigns_route() };
    let mut stage =
        Stage::at_pace(HOUR, route, move |carrying| match (lot(carrying), carrying.message.attempts) {
            (0..10, 0) => (AT_ONCE, Outcome::Failed(Failure::new("451 later"))),
            (10..12, _) => {
                (AT_ONCE, Outcome::Refused(Failure::new("RCPT: 550 no such user").with_code("550")))
            }
            (12..14, _) => (AT_ONCE, Outcome::Lost { reason: "no answer".into() }),
            _ => (AT_ONCE, Outcome::Delivered { receipt: None }),
        });
    set_up_steps(&mut stage, "c", A_YEAR, PROSPECTS, &[0, 20, 20, 40]);
    assert_eq!(launch(&mut stage, "c").scheduled, u64::from(PROSPECTS) * 4);
    let mut stopped = BTreeMap::new();
    for month in 1..=12u32 {
        let id = format!("p-{}", month * 31);
        stopped.insert(id.clone(), stage.time());
        act(&mut stage, async move |engine| {
            assert!(engine.stop_prospect("c", &id, "replied", &"ann".into()).await.unwrap().is_some());
        });
        if month == 4 {
            act(&mut stage, async move |engine| engine.pause_campaign("c", &"ann".into()).await.map(drop))
                .unwrap();
            let before = times(&stage).len();
            stage.pass(7 * DAY);
            assert_eq!(times(&stage).len(), before, "while it is paused");
            act(&mut stage, async move |engine| engine.resume_campaign("c", &"ann".into()).await.map(drop))
                .unwrap();
        }
        stage.pass(30 * DAY);
    }
    let settings: Settings = serde_json::from_str(A_YEAR).unwrap();
    let sending = redeliver_core::campaign::Sending::new(&settings, None).unwrap();
    let log = stage.log();
    let mut days: BTreeMap<_, usize> = BTreeMap::new();
    let mut ends: BTreeMap<String, usize> = BTreeMap::new();
    for carrying in &log.carryings {
        let at = carrying.at;
        assert!(sending.calendar.is_open(at), "{at} is outside of its window");
        assert!(stopped.get(&prospect_of(carrying)).is_none_or(|stop| at <= *stop), "{at} is after a stop");
        // A try that the receiver didn't take gives its room back.
        if !matches!((lot(carrying), carrying.message.attempts), (0..10, 0) | (10..12, _)) {
            *days.entry(sending.zone.local_day(at)).or_default() += 1;
            *ends.entry(carrying.message.key.as_deref().unwrap().to_owned()).or_default() += 1;
        }
    }
    assert!(ends.values().all(|count| *count == 1), "somebody was written to twice");
    for (number, (day, mails)) in days.iter().enumerate() {
        assert!(*mails <= 8.min(2 * (number + 1)), "{mails} mails on {day}, the {number}. after the first");
    }
    let times: Vec<Timestamp> = log.carryings.iter().map(|carrying| carrying.at).collect();
    assert!(times.windows(2).all(|pair| pair[1].since(pair[0]) >= Duration::from_secs(30)));
    assert!(ends.len() > 1_300 && days.len() > 170, "{} mails on {} days", ends.len(), days.len());
    drop(log);
    assert_eq!(state(&mut stage, "c"), CampaignState::Done);
}
