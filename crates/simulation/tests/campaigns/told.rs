//! What is told of a campaign and its mails: what they wait for, what went wrong, who could not be written to, whose they are.

use std::collections::BTreeMap;
use std::future::poll_fn;
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use redeliver_core::accept::NewMessage;
use redeliver_core::calendar::Zone;
use redeliver_core::campaign::{CampaignState, MailOf, Prospect, Settings};
use redeliver_core::email::Email;
use redeliver_core::explain::Explanation;
use redeliver_core::policy::Backoff;
use redeliver_core::quota::Whose;
use redeliver_core::{Content, DeadReason, Failure, Message, Outcome, State};
use redeliver_engine::campaign::Scheduling;
use redeliver_engine::campaigns::Campaigns;
use redeliver_engine::emit::Counted;
use redeliver_simulation::stage::{Carrying, Stage};

use crate::{
    AT_ONCE, DAY, HOUR, NINE_TO_ELEVEN, act, campaigns_route, deed, delivered, judge, launch, prospect_of,
    set_up, set_up_steps, state, times,
};

#[test]
fn what_says_that_it_is_of_another_workspaces_campaign_is_nothing_of_it() {
    let mut stage = Stage::at_ease(campaigns_route(), delivered);
    set_up(&mut stage, "c", "{}", 1);
    launch(&mut stage, "c");
    let of = MailOf {
        campaign: "c".to_owned(),
        prospect: "p-1".to_owned(),
        step: 1,
        sender: "ada@example.org".to_owned(),
    };
    let forged = NewMessage { workspace: "other".into(), ..NewMessage::new("story", of.to_content()) };
    let email = Email { subject: "own words".to_owned(), ..Email::default() };
    let own = Content { attributes: of.to_content().attributes, ..email.to_content().unwrap() };
    let own = NewMessage { workspace: "other".into(), ..NewMessage::new("story", own) };
    let ids = stage.accept(vec![forged.clone(), own]);
    let message = stage.message(&ids[0]);
    let theirs = Message { workspace: "default".into(), ..message.clone() };
    assert!(is_shown(&mut stage, theirs, &forged.content), "its own workspace sees what it would say");
    assert!(!is_shown(&mut stage, message, &forged.content), "and no other");
    stage.pass(HOUR);
    let state = stage.message(&ids[0]).state;
    assert!(matches!(state, State::Dead { reason: DeadReason::Refused, .. }), "{state:?}");
    assert!(
        matches!(stage.message(&ids[1]).state, State::Delivered { .. }),
        "a mail of its own words goes out"
    );
    assert!(stage.log().carryings.iter().all(|carrying| carrying.message.id != ids[0]));
    let sent = act(&mut stage, async move |engine| {
        let record = engine.campaign("c").await.unwrap();
        engine.campaign_sent(&record).await.unwrap()
    });
    assert_eq!(sent, 1, "and is counted nowhere");
}

#[test]
fn what_is_planned_and_what_is_used_of_quotas_reaches_whoever_listens_to_the_engine() {
    let mut stage = Stage::at_ease(campaigns_route(), |carrying| match carrying.message.attempts {
        0 => (AT_ONCE, Outcome::Failed(Failure::new("451 later"))),
        _ => delivered(carrying),
    });
    set_up(&mut stage, "c", NINE_TO_ELEVEN, 5);
    launch(&mut stage, "c");
    stage.pass(5 * DAY);
    let log = stage.log();
    assert_eq!(log.planned, [(10, 0)]);
    let told = |counted| log.quotas.iter().filter(|told| **told == (Whose::Campaign, counted)).count();
    assert_eq!((told(Counted::Used), told(Counted::Returned)), (20, 10), "{:?}", log.quotas);
}

/// Whether a message is shown as what it would say.
fn is_shown(stage: &mut Stage, message: Message, content: &Content) -> bool {
    let content = content.clone();
    act(stage, async move |engine| engine.unwritten(&message, &content).await.unwrap().is_some())
}

/// What a mail is told that it waits for.
fn explained(stage: &mut Stage, key: &'static str) -> Explanation {
    let store = Arc::clone(&stage.store);
    act(stage, async move |engine| {
        let found = store.by_keys("default", vec![key.to_owned()]).await.unwrap();
        engine.explain(&found[0].as_ref().unwrap().id).await.unwrap().unwrap()
    })
}

fn settle_on(stage: &mut Stage, settings: &str) {
    let (store, settings) = (Arc::clone(&stage.store), serde_json::from_str::<Settings>(settings).unwrap());
    stage.now(async move { store.put_settings("default".into(), settings, deed()).await }).unwrap();
}

#[test]
fn a_mail_that_waits_says_for_which_window_quota_distance_or_step() {
    let check = |settings: &str, key: &'static str, gate: &str, words: &str| {
        let mut stage = Stage::at_ease(campaigns_route(), delivered);
        set_up(&mut stage, "c", r#"{ "zone": "Europe/Paris", "spacing": ["30s", "30s"] }"#, 3);
        launch(&mut stage, "c");
        settle_on(&mut stage, settings);
        stage.pass(Duration::from_secs(400));
        let said = explained(&mut stage, key);
        assert!(said.sentence.contains(words), "{}", said.sentence);
        let shut: Vec<&str> = said.gates.iter().filter(|view| !view.open).map(|view| &*view.gate).collect();
        assert!(shut.contains(&gate), "{shut:?}");
        let (until, now) = (said.earliest_at.unwrap(), stage.time());
        assert!(until > now, "{until} is after {now}");
    };
    let today = {
        let stage = Stage::at_ease(campaigns_route(), delivered);
        let zone: Zone = "Europe/Paris".parse().unwrap();
        zone.local_day(stage.time())
    };
    check(
        &format!(r#"{{ "zone": "Europe/Paris", "blackouts": ["{today}"] }}"#),
        "p-1:c:1",
        "window",
        "it is outside its sending window: not before",
    );
    check(
        r#"{ "zone": "Europe/Paris", "daily_quota": 1 }"#,
        "p-3:c:1",
        "quota",
        "the quota of its workspace is used up: not before",
    );
    check(
        r#"{ "spacing": ["10m", "10m"] }"#,
        "p-3:c:1",
        "spacing",
        "its sender is keeping its spacing: not before",
    );
    let mut stage = Stage::at_ease(campaigns_route(), |carrying| match carrying.message.attempts {
        0..3 => (AT_ONCE, Outcome::Failed(Failure::new("451 later"))),
        _ => (AT_ONCE, Outcome::Delivered { receipt: None }),
    });
    set_up_steps(&mut stage, "c", r#"{ "spacing": ["30s", "30s"] }"#, 1, &[0, 0]);
    launch(&mut stage, "c");
    stage.pass(Duration::from_secs(40));
    let said = explained(&mut stage, "p-1:c:2");
    assert!(said.sentence.contains("the step before it has not gone out: not before"), "{}", said.sentence);
    let stopped = |stage: &mut Stage| {
        act(stage, async |engine| engine.pause_campaign("c", &"ann".into()).await.map(drop)).unwrap();
    };
    stopped(&mut stage);
    let said = explained(&mut stage, "p-1:c:2");
    assert!(said.sentence.contains("campaign c is paused by ann since"), "{}", said.sentence);
}

#[test]
fn a_mail_whose_step_before_was_refused_says_in_words_that_it_never_follows() {
    let mut stage = Stage::at_ease(campaigns_route(), |_| {
        (AT_ONCE, Outcome::Refused(Failure::new("554 5.7.1 not wanted").with_code("554")))
    });
    set_up_steps(&mut stage, "c", r#"{ "spacing": ["30s", "30s"] }"#, 1, &[0, 1]);
    launch(&mut stage, "c");
    stage.pass(Duration::from_secs(100));
    let said = explained(&mut stage, "p-1:c:2");
    let words = "the step before it was refused; it is cancelled when due";
    assert!(said.sentence.contains(words), "{}", said.sentence);
}

#[test]
fn a_mail_to_whoever_is_paused_says_so_before_its_time_and_after() {
    let mut stage = Stage::at_ease(campaigns_route(), delivered);
    set_up(&mut stage, "c", NINE_TO_ELEVEN, 1);
    launch(&mut stage, "c");
    act(&mut stage, async |engine| engine.pause_prospect("c", "p-1", &"ann".into()).await.map(drop)).unwrap();
    let since = stage.time();
    let said = explained(&mut stage, "p-1:c:1");
    let words = format!("prospect is paused since {since} until an operator resumes them");
    assert!(said.sentence.contains(&words) && said.earliest_at.is_none(), "{}", said.sentence);
    stage.pass(DAY);
    let said = explained(&mut stage, "p-1:c:1");
    let words =
        format!("It waits: prospect p-1 is paused by an operator since {since} until an operator resumes it");
    assert!(said.sentence.starts_with(&words), "{}", said.sentence);
    assert!(!said.sentence.contains("prospect is paused"), "said once: {}", said.sentence);
    act(&mut stage, async |engine| engine.resume_prospect("c", "p-1", &"ann".into()).await.map(drop))
        .unwrap();
    assert!(!explained(&mut stage, "p-1:c:2").sentence.contains("paused"));
}

#[test]
fn what_whoever_tends_could_not_plan_is_kept_with_the_campaign_and_planned_once_it_is_corrected() {
    let mut stage = Stage::at_ease(campaigns_route(), delivered);
    set_up(&mut stage, "c", NINE_TO_ELEVEN, 1);
    launch(&mut stage, "c");
    let one = |id: &str, fields: &[(&str, &str)]| Prospect {
        id: id.to_owned(),
        email: format!("{id}@example.org"),
        zone: None,
        fields: fields.iter().map(|(name, value)| (name.to_string(), value.to_string())).collect(),
    };
    let (nameless, named) = (one("late", &[]), one("late", &[("name", "Late")]));
    let newest = one("newest", &[("name", "Newest")]);
    act(&mut stage, async move |engine| engine.enrol("c", vec![nameless]).await.unwrap());
    stage.pass(4 * DAY);
    assert_eq!((times(&stage).len(), state(&mut stage, "c")), (2, CampaignState::Done));
    let unplanned =
        |stage: &mut Stage| act(stage, async |engine| engine.campaign("c").await.unwrap().ledger.unplanned);
    let told = unplanned(&mut stage);
    assert!(told.count == 1 && told.told[0].starts_with("prospect late: step 1"), "{told:?}");
    let (taken, told) = act(&mut stage, async move |engine| {
        let taken = engine.enrol("c", vec![named, newest]).await.unwrap();
        (taken, engine.launch_campaign("c", &"ann".into()).await.unwrap())
    });
    assert_eq!(taken, [true, true]);
    assert_eq!(told, Scheduling { scheduled: 4, skipped: 2, ..Scheduling::default() }, "with somebody new");
    assert!(unplanned(&mut stage).is_empty());
    stage.pass(4 * DAY);
    assert_eq!((times(&stage).len(), state(&mut stage, "c")), (6, CampaignState::Done));
}

#[test]
fn a_second_look_that_is_cut_short_is_gone_on_with_by_whoever_tends() {
    let mut stage = Stage::at_ease(campaigns_route(), delivered);
    set_up_steps(&mut stage, "c", r#"{ "spacing": ["0s", "0s"] }"#, 0, &[5]);
    let all = |name: Option<&str>| -> Vec<Prospect> {
        let fields: BTreeMap<String, String> =
            name.iter().map(|name| ("name".to_owned(), (*name).to_owned())).collect();
        let one = |n| Prospect {
            id: format!("p-{n}"),
            email: format!("p{n}@example.org"),
            zone: None,
            fields: fields.clone(),
        };
        (1..=1_200).map(one).collect()
    };
    let (nameless, named) = (all(None), all(Some("Ada")));
    act(&mut stage, async move |engine| engine.enrol("c", nameless).await.unwrap());
    assert_eq!(launch(&mut stage, "c").unplanned.count, 1_200);
    let scheduled = act(&mut stage, async move |engine| {
        assert!(engine.enrol("c", named).await.unwrap().into_iter().all(|is_taken| is_taken));
        let actor = "ann".into();
        let mut launching = pin!(engine.launch_campaign("c", &actor));
        for _ in 0..45 {
            let looked = poll_fn(|context| Poll::Ready(launching.as_mut().poll(context).is_ready())).await;
            assert!(!looked, "it has not come to its end");
        }
        engine.campaign("c").await.unwrap().scheduled
    });
    assert!(scheduled < 1_200, "{scheduled}");
    let planned = |stage: &mut Stage| {
        act(stage, async |engine| {
            let record = engine.campaign("c").await.unwrap();
            (record.scheduled, record.ledger.unplanned.count)
        })
    };
    act(&mut stage, async |engine| engine.wake_planner());
    stage.pass(HOUR);
    assert_eq!(planned(&mut stage), (1_200, 0));
}

#[test]
fn a_campaign_is_not_done_while_somebody_who_was_corrected_is_still_written_to() {
    let mut route = campaigns_route();
    route.lanes.iter_mut().for_each(|lane| lane.policy.backoff = Backoff::Table(vec![HOUR]));
    let mut stage = Stage::at_ease(route, |carrying| match prospect_of(carrying).as_str() {
        "quick" => (AT_ONCE, Outcome::Delivered { receipt: None }),
        _ => (AT_ONCE, Outcome::Failed(Failure::new("451 later"))),
    });
    set_up_steps(&mut stage, "c", r#"{ "spacing": ["0s", "0s"] }"#, 0, &[0]);
    let one = |id: &str, name: Option<&str>| Prospect {
        id: id.to_owned(),
        email: format!("{id}@example.org"),
        zone: None,
        fields: name.iter().map(|name| ("name".to_owned(), (*name).to_owned())).collect(),
    };
    let first = vec![one("late", None), one("quick", Some("Quick")), one("slow", Some("Slow"))];
    let named = one("late", Some("Late"));
    act(&mut stage, async move |engine| engine.enrol("c", first).await.unwrap());
    launch(&mut stage, "c");
    stage.pass(HOUR / 2);
    act(&mut stage, async move |engine| engine.enrol("c", vec![named]).await.unwrap());
    assert_eq!(launch(&mut stage, "c").scheduled, 1);
    stage.pass(3 * HOUR - HOUR / 6);
    assert_eq!(times(&stage).len(), 1 + 4 + 3, "the slow one has ended, the late one has a try left");
    assert_eq!(state(&mut stage, "c"), CampaignState::Running);
    stage.pass(HOUR);
    assert_eq!((times(&stage).len(), state(&mut stage, "c")), (1 + 4 + 4, CampaignState::Done));
}

#[test]
fn what_a_mail_server_said_has_a_code_that_campaigns_know_and_keeps_its_words() {
    let mut stage = Stage::at_ease(campaigns_route(), |carrying| match prospect_of(carrying).as_str() {
        "p-1" => (AT_ONCE, Outcome::Refused(Failure::new("RCPT: 550 5.1.1 no such user").with_code("550"))),
        _ => (AT_ONCE, Outcome::Failed(Failure::new("RCPT: 451 4.3.0 later").with_code("451"))),
    });
    set_up_steps(&mut stage, "c", "{}", 2, &[0]);
    launch(&mut stage, "c");
    stage.pass(Duration::from_secs(200));
    let store = Arc::clone(&stage.store);
    let keys = ["p-1:c:1", "p-2:c:1"].map(str::to_owned);
    let found = stage.now(async move { store.by_keys("default", keys.into()).await }).unwrap();
    let errors = found.into_iter().map(|keyed| keyed.unwrap().message.unwrap().last_error.unwrap());
    let told: Vec<(String, String)> =
        errors.map(|error| (error.code.unwrap().to_string(), error.text.to_string())).collect();
    assert_eq!(told[0], ("INVALID_RECIPIENT".to_owned(), "RCPT: 550 5.1.1 no such user".to_owned()));
    assert_eq!(told[1], ("TEMPORARY_FAILURE".to_owned(), "RCPT: 451 4.3.0 later".to_owned()));
}

#[test]
fn what_is_kept_of_a_day_for_urgent_mail_is_there_for_an_urgent_campaign_and_for_no_other() {
    let mut stage = Stage::at_ease(campaigns_route(), delivered);
    settle_on(&mut stage, r#"{ "daily_quota": 5, "urgent_share": "40%", "zone": "Europe/Paris" }"#);
    set_up_steps(&mut stage, "ordinary", "{}", 5, &[0]);
    set_up_steps(&mut stage, "urgent", "{}", 3, &[0]);
    let store = Arc::clone(&stage.store);
    stage.now(async move {
        let mut record = store.campaign("urgent").await.unwrap().unwrap();
        (record.id, record.prospects) = ("most-urgent".into(), 0);
        record.definition.priority = Some("high".to_owned());
        assert!(store.add_campaign(record, deed()).await.unwrap());
        let people = store.prospects("urgent", 0, 9).await.unwrap();
        store.enrol("most-urgent", people.into_iter().map(|one| one.prospect).collect()).await.unwrap();
    });
    for id in ["ordinary", "most-urgent"] {
        launch(&mut stage, id);
    }
    let zone: Zone = "Europe/Paris".parse().unwrap();
    let today = zone.local_day(stage.time());
    stage.pass(3 * DAY);
    let log = stage.log();
    let on_day = |ahead: i32, sequence: &str| {
        let is_such = |carrying: &&Carrying| {
            zone.local_day(carrying.at) == today.plus(ahead)
                && carrying.message.key.as_deref().unwrap().contains(sequence)
        };
        log.carryings.iter().filter(is_such).count()
    };
    assert_eq!((on_day(0, ":ordinary:"), on_day(0, ":urgent:")), (3, 2), "three of five are for anybody");
    assert_eq!((on_day(1, ":ordinary:"), on_day(1, ":urgent:")), (2, 1));
}

#[test]
fn whoever_lives_elsewhere_is_written_to_in_their_own_hours_also_after_a_failed_try() {
    let tokyo: Zone = "Asia/Tokyo".parse().unwrap();
    let mut stage = Stage::at_ease(campaigns_route(), |carrying| match carrying.message.attempts {
        0 => (AT_ONCE, Outcome::Failed(Failure::new("451 later"))),
        _ => (AT_ONCE, Outcome::Delivered { receipt: None }),
    });
    set_up(&mut stage, "c", NINE_TO_ELEVEN, 1);
    let far = Prospect {
        id: "far".to_owned(),
        email: "far@example.org".to_owned(),
        zone: Some(tokyo.name().to_owned()),
        fields: BTreeMap::from([("name".to_owned(), "Far".to_owned())]),
    };
    act(&mut stage, async move |engine| engine.enrol("c", vec![far]).await.unwrap());
    launch(&mut stage, "c");
    stage.pass(5 * DAY);
    let log = stage.log();
    let (far, near): (Vec<&Carrying>, Vec<&Carrying>) =
        log.carryings.iter().partition(|carrying| prospect_of(carrying) == "far");
    assert_eq!((far.len(), near.len()), (4, 4));
    for carrying in far {
        let since_midnight = carrying.at.since(tokyo.day_start(tokyo.local_day(carrying.at)));
        assert!((9 * HOUR..11 * HOUR).contains(&since_midnight), "{} in Tokyo", carrying.at);
    }
    judge(&near.iter().map(|carrying| carrying.at).collect::<Vec<_>>(), 6);
}
