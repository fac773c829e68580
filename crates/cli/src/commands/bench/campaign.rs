//! Planning a campaign and storing its mails, held against copying the same rows into the database.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::Context;
use indicatif::ProgressBar;
use redeliver_core::accept::{NewMessage, admit};
use redeliver_core::campaign::{Campaign, MailOf, Prospect, StepKey};
use redeliver_core::change::NewRow;
use redeliver_core::{Name, Route};
use redeliver_engine::Engine;
use redeliver_engine::clock::{Clock, WallClock};
use redeliver_stores::Postgres;
use redeliver_stores::postgres::OpenOptions;
use redeliver_stores::postgres::bare::Bare;

use super::carrier::Carrier;
use super::report::{Report, Row};
use super::rig::{Opened, Place, Rig, route};

/// Steps of the campaign.
const STEPS: usize = 3;
/// Prospects enrolled at once, and mails copied at once.
const BATCH: usize = 3_000;

/// Enrols so many prospects, forecasts, plans and stores; then copies as many mails of the same make.
pub(super) async fn campaign(prospects: usize, place: &Place, report: &mut Report) -> anyhow::Result<()> {
    let Place::Postgres(url) = place else { return Ok(()) };
    let mails = prospects * STEPS;
    drop(place.fresh().await?);
    let store = Arc::new(Postgres::open(url.expose(), OpenOptions::default()).await?);
    let opened = Opened { store: Arc::clone(&store) as _, clock: store.clock() };
    let route = Route { key_retention: None, ..route() };
    let rig = Rig::for_campaigns(opened, Carrier::default(), route.clone(), store)?;
    let engine = &rig.engine;
    let id = enrolled(engine, prospects, report).await?;
    let begun = Instant::now();
    let forecast = engine.forecast_campaign(&id).await?;
    let forecast_ms = begun.elapsed().as_secs_f64() * 1_000.0;
    anyhow::ensure!(forecast.mails == mails as u64, "the forecast has {} mails", forecast.mails);
    report.add(Row::times("campaign_forecast", &[forecast_ms]))?;
    let bar = report.bar("campaign", mails);
    let begun = Instant::now();
    let actor = "bench".into();
    let told = tokio::select! {
        told = engine.launch_campaign(&id, &actor) => told?,
        () = watch(engine, &id, &bar) => anyhow::bail!("nobody watches any more"),
    };
    let rate = mails as f64 / begun.elapsed().as_secs_f64();
    bar.finish_and_clear();
    anyhow::ensure!(told.scheduled == mails as u64, "{} mails were scheduled", told.scheduled);
    let planned = Row::rate("campaign", mails, rate, None);
    drop(rig);
    let ceiling = copied(prospects, place, &route).await?;
    report.add(Row { rss_mib: planned.rss_mib, ..Row::rate("campaign", mails, rate, Some(ceiling)) })
}

/// Moves the bar on with what is scheduled, for ever.
async fn watch(engine: &Engine, id: &str, bar: &ProgressBar) {
    loop {
        engine.clock().sleep(Duration::from_secs(1)).await;
        if let Ok(record) = engine.campaign(id).await {
            bar.set_position(record.scheduled);
        }
    }
}

/// A campaign with so many prospects, as a draft.
pub(super) async fn enrolled(engine: &Engine, prospects: usize, report: &Report) -> anyhow::Result<Name> {
    let step = |order: usize, delay_days: u32| {
        serde_json::json!({ "order": order, "delay_days": delay_days, "subject": "Hi {{ first_name }}",
            "text": "Hello {{ first_name }}, this is the first of a few words about what you may want to hear of." })
    };
    let definition: Campaign = serde_json::from_value(serde_json::json!({
        "name": "bench", "sequence_id": "seq", "route": "bench", "from": "ada@example.org",
        "settings": { "days": ["mon", "tue", "wed", "thu", "fri"], "start": "08:00", "end": "20:00",
            "zone": "America/New_York", "daily_quota": 10_000, "spacing": ["1s", "4s"] },
        "steps": [step(1, 0), step(2, 3), step(3, 4)],
    }))?;
    let record = engine.add_campaign("default".into(), definition, &"bench".into()).await?;
    let bar = report.bar("campaign: enrolling", prospects);
    let numbers: Vec<usize> = (1..=prospects).collect();
    for some in numbers.chunks(BATCH) {
        engine.enrol(&record.id, some.iter().map(|n| prospect(*n)).collect()).await?;
        bar.inc(some.len() as u64);
    }
    bar.finish_and_clear();
    Ok(record.id)
}

fn prospect(n: usize) -> Prospect {
    Prospect {
        id: format!("prospect-{n}"),
        email: format!("prospect{n}@example.org"),
        zone: None,
        fields: BTreeMap::from([("first_name".to_owned(), format!("Ada {n}"))]),
    }
}

/// Copies as many mails of the same make into empty tables: rows a second, the making of the rows aside.
async fn copied(prospects: usize, place: &Place, route: &Route) -> anyhow::Result<f64> {
    let Place::Postgres(url) = place else { anyhow::bail!("only a database can be copied to") };
    drop(place.fresh().await?);
    let mut bare = Bare::open(url).await?;
    bare.checkpoint().await?;
    let clock = WallClock::new(Default::default());
    let (mut spent, mut rows) = (Duration::ZERO, Vec::with_capacity(BATCH));
    for n in 1..=prospects {
        for step in 1..=STEPS as u32 {
            rows.push(mail(&prospect(n).id, step, route, &*clock)?);
        }
        if rows.len() >= BATCH || n == prospects {
            let begun = Instant::now();
            bare.insert_mails(&rows).await?;
            spent += begun.elapsed();
            rows.clear();
        }
    }
    Ok((prospects * STEPS) as f64 / spent.as_secs_f64())
}

fn mail(prospect: &str, step: u32, route: &Route, clock: &dyn Clock) -> anyhow::Result<NewRow> {
    let of = MailOf {
        campaign: "01990000-0000-7000-8000-000000000000".to_owned(),
        prospect: prospect.to_owned(),
        step,
        sender: "ada@example.org".to_owned(),
    };
    let mut new = NewMessage::new(route.name.clone(), of.to_content());
    let key = StepKey::new(prospect, "seq", step).context("cannot name a mail")?;
    new.key = Some(key.to_string().into());
    let now = clock.now();
    new.due_at = Some(now.plus(Duration::from_secs(86_400)));
    Ok(admit(new, route, clock.message_id(now), None, now))
}
