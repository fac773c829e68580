//! How long it takes to plan a large campaign without storing it: `cargo run --release -p redeliver-core --example forecast`.
//!
//! Arguments: prospects (1000000), mails a day (20000).
#![allow(clippy::unwrap_used, clippy::disallowed_methods, reason = "an example that measures")]

use std::time::Instant;

use redeliver_core::calendar::Zone;
use redeliver_core::campaign::{
    Campaign, Enrolled, Forecast, Plan, Planner, Rules, Sending, Settings, forecast,
};

fn main() {
    let mut arguments = std::env::args().skip(1).map(|text| text.parse::<u64>().unwrap());
    let prospects = arguments.next().unwrap_or(1_000_000);
    let daily_quota = arguments.next().unwrap_or(20_000);
    let settings: Settings = serde_json::from_str(&format!(
        r#"{{ "days": ["mon","tue","wed","thu","fri"], "start": "09:00", "end": "17:00", "zone": "Europe/Paris",
              "daily_quota": {daily_quota}, "ramp_up": {{ "start": 100, "factor": 1.5 }}, "spacing": ["1s","1s"] }}"#
    ))
    .unwrap();
    let campaign: Campaign = serde_json::from_str(
        r#"{ "name": "Large", "sequence_id": "s", "route": "email", "steps": [
             { "order": 1, "subject": "Hi", "text": "1" }, { "order": 2, "delay_days": 3, "subject": "Hi", "text": "2" },
             { "order": 3, "delay_days": 4, "subject": "Hi", "text": "3" } ] }"#,
    )
    .unwrap();
    let sending = Sending::new(&settings, None).unwrap();
    let now = "2026-11-16T00:00:00Z".parse().unwrap();
    let rules = Rules::new(&campaign, &sending, "ada@example.org", now);
    for (name, zones) in [("in one zone", &[][..]), ("in four zones", &ZONES[..])] {
        let zones: Vec<Zone> = zones.iter().map(|name| name.parse().unwrap()).collect();
        let zone = |position: u64| zones.get(position as usize % zones.len().max(1));
        let people = (1..=prospects).map(|position| Enrolled { position, zone: zone(position) });
        let begun = Instant::now();
        let mut told = Forecast::default();
        forecast(Planner::new(rules.clone(), Plan::default()), people, &mut told);
        let seconds = begun.elapsed().as_secs_f64();
        println!(
            "{} mails to {} prospects {name}: {} days, done at {}, {:.0} mails a second, {seconds:.2} s",
            told.mails,
            told.prospects,
            told.days.len(),
            told.last_at.unwrap(),
            told.mails as f64 / seconds,
        );
    }
}

const ZONES: [&str; 4] = ["Europe/Paris", "America/New_York", "America/Los_Angeles", "Asia/Tokyo"];
