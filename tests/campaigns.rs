//! Campaigns, end to end: the shipped binary on SQLite and on PostgreSQL, by its command line and its API. Planned twice, nothing
//! is scheduled twice; two schedulers at once neither double nor exceed anything; a scheduler that is killed in the middle goes
//! on; and the mails themselves go out in their windows, once, in threads, and not after a stop.
//!
//! `CAMPAIGN_PROSPECTS=100000` plans more of them.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a story that can't go on has failed")]

#[path = "story/mod.rs"]
mod story;

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use redeliver_core::Timestamp;
use redeliver_core::campaign::{Sending, Settings};
use redeliver_servers::postgres::PostgresServer;
use serde_json::{Value, json};
use story::mail::Read;
use story::peer::{Peer, Sink};
use story::server::{KEY, Place, Server};
use story::until;

const STEPS: usize = 3;
const QUOTA: usize = 200;

fn prospects() -> usize {
    std::env::var("CAMPAIGN_PROSPECTS").map_or(600, |text| text.parse().unwrap())
}

fn settings(zone: &str) -> Value {
    json!({ "days": ["mon", "tue", "wed", "thu", "fri"], "start": "09:00", "end": "17:00", "zone": zone,
        "daily_quota": QUOTA, "ramp_up": { "start": 20, "step": 60 }, "spacing": ["30s", "90s"], "holidays": ["2027-03-15"] })
}

/// A campaign that begins in the week before the clocks are changed in New York.
fn campaign(sequence: &str, workspace: &str) -> Value {
    json!({ "name": "Spring", "sequence_id": sequence, "route": "email", "from": "ada@example.org", "workspace": workspace,
        "steps": [ { "order": 1, "subject": "Hi {{ first_name }}", "text": "Hello {{ first_name }}" },
                   { "order": 2, "delay_days": 2, "subject": "Again", "text": "Hello" },
                   { "order": 3, "delay_days": 3, "subject": "The last", "text": "Hello" } ],
        "start_at": "2027-03-08T00:00:00Z" })
}

fn made(server: &Server, campaign: &Value) -> String {
    let answer = server.post("/v1/campaigns", campaign);
    assert_eq!(answer.status, 201, "{}", answer.json);
    answer.json["id"].as_str().unwrap().to_owned()
}

fn csv(place: &Place, name: &str, count: usize) -> String {
    let mut text = "id,email,first_name\n".to_owned();
    (1..=count).for_each(|n| text.push_str(&format!("p-{n},p{n}@example.org,P{n}\n")));
    let path = place.path(name);
    std::fs::write(&path, text).unwrap();
    path.display().to_string()
}

/// Launches until everything is planned; how many mails that has scheduled, as far as it was told.
fn launch(server: &Server, id: &str) -> u64 {
    let mut scheduled = 0;
    loop {
        let answer = server.post(&format!("/v1/campaigns/{id}/launch"), &Value::Null);
        assert!([200, 202].contains(&answer.status), "{}", answer.json);
        assert_eq!(answer.json["errors"], json!([]));
        scheduled += answer.json["scheduled_now"].as_u64().unwrap();
        if answer.status == 200 {
            return scheduled;
        }
    }
}

/// Every mail of a campaign's schedule: prospect, step, time.
fn schedule(server: &Server, id: &str) -> Vec<(String, u64, Timestamp)> {
    let (mut mails, mut after) = (Vec::new(), String::new());
    loop {
        let page = server.get(&format!("/v1/campaigns/{id}/schedule?limit=500{after}")).json;
        mails.extend(page["items"].as_array().unwrap().iter().map(|item| {
            let text = |name: &str| item[name].as_str().unwrap().to_owned();
            (text("prospect_id"), item["step"].as_u64().unwrap(), text("scheduled_for").parse().unwrap())
        }));
        match page["next"].as_str() {
            Some(next) => after = format!("&after={next}"),
            None => return mails,
        }
    }
}

/// No mail outside the window, no day over its quota nor over its place in the ramp-up, no two of the sender too close.
fn judge(written: &Value, mails: &[(String, u64, Timestamp)]) {
    let settings: Settings = serde_json::from_value(written.clone()).unwrap();
    let sending = Sending::new(&settings, None).unwrap();
    let mut days: BTreeMap<_, usize> = BTreeMap::new();
    for (prospect, step, at) in mails {
        assert!(sending.calendar.is_open(*at), "{prospect} {step} at {at} in {}", sending.zone.name());
        *days.entry(sending.zone.local_day(*at)).or_default() += 1;
    }
    for (number, (day, count)) in days.iter().enumerate() {
        assert!(*count <= QUOTA.min(20 + 60 * number), "{count} mails on {day}");
    }
    let mut times: Vec<Timestamp> = mails.iter().map(|(.., at)| *at).collect();
    times.sort();
    assert!(times.windows(2).all(|pair| pair[1].since(pair[0]) >= Duration::from_secs(30)));
    let mut steps: BTreeMap<&str, Vec<Timestamp>> = BTreeMap::new();
    mails.iter().for_each(|(prospect, _, at)| steps.entry(prospect).or_default().push(*at));
    for times in steps.values() {
        let day = |at: &Timestamp| sending.zone.local_day(*at);
        assert!(times.len() == STEPS && day(&times[1]).days_since(day(&times[0])) >= 2);
        assert!(day(&times[2]).days_since(day(&times[1])) >= 3);
    }
}

/// Two campaigns of one workspace are planned by these servers at once, and then again.
fn planned_by_all_at_once_and_once(place: &Place, servers: &[Server]) {
    let count = prospects();
    // A shift of half an hour, one of a whole one, and a zone that had none for long.
    for (zone, workspace) in
        [("America/New_York", "ny"), ("Australia/Lord_Howe", "lh"), ("Asia/Kolkata", "kol")]
    {
        let count = if workspace == "ny" { count } else { count / 10 };
        let written = settings(zone);
        let put = place.path("settings.json");
        std::fs::write(&put, written.to_string()).unwrap();
        let url = servers[0].url.as_str();
        place.say(&["campaign", "settings", put.to_str().unwrap(), "--workspace", workspace, "--url", url]);
        let ids = ["seq-1", "seq-2"].map(|sequence| made(&servers[0], &campaign(sequence, workspace)));
        for (id, count) in ids.iter().zip([count, count / 2]) {
            place.say(&["campaign", "import", id, &csv(place, "prospects.csv", count), "--url", url]);
        }
        let forecast = servers[0].get(&format!("/v1/campaigns/{}/forecast", ids[0])).json;
        assert_eq!(forecast["mails"], json!(count * STEPS), "{forecast}");
        std::thread::scope(|scope| {
            for server in servers {
                for id in &ids {
                    scope.spawn(move || launch(server, id));
                }
            }
        });
        let mut all = Vec::new();
        for (id, count) in ids.iter().zip([count, count / 2]) {
            let view = servers[0].get(&format!("/v1/campaigns/{id}")).json;
            assert_eq!(
                (&view["scheduled"], &view["planned"]),
                (&json!(count * STEPS), &json!(count)),
                "every mail once: {view}"
            );
            let again = servers[0].post(&format!("/api/campaigns/{id}/schedule"), &Value::Null).json;
            assert_eq!(again["data"], json!({ "scheduled": 0, "skipped": count * STEPS, "errors": [] }));
            let mails = schedule(&servers[0], id);
            assert_eq!(mails.len(), count * STEPS);
            all.extend(mails.into_iter().map(|(prospect, step, at)| (format!("{id} {prospect}"), step, at)));
        }
        judge(&written, &all);
    }
}

#[test]
fn a_campaign_is_planned_once_on_sqlite() {
    let place = Place::profile("campaigns").variable("REDELIVER_KEY", KEY);
    planned_by_all_at_once_and_once(&place, &[place.serve()]);
}

#[test]
fn two_schedulers_on_postgres_plan_a_campaign_once() {
    let database = PostgresServer::shared().database();
    let place =
        Place::profile("campaigns").variable("REDELIVER_KEY", KEY).variable("DATABASE_URL", &database.url());
    planned_by_all_at_once_and_once(&place, &[place.serve(), place.serve()]);
}

#[test]
fn two_instances_on_postgres_send_every_mail_once_and_no_day_more_than_its_quota() {
    const DAILY: u64 = 30;
    let sink = Sink::new();
    let database = PostgresServer::shared().database();
    let place = Place::profile("campaigns")
        .variable("SMTP_URL", &sink.url())
        .variable("REDELIVER_KEY", KEY)
        .variable("DATABASE_URL", &database.url());
    let first = place.serve();
    let mut definition = campaign("seq-1", "default");
    definition["settings"] = json!({ "spacing": ["0s", "0s"] });
    definition["start_at"] = Value::Null;
    definition["steps"].as_array_mut().unwrap().truncate(1);
    let id = made(&first, &definition);
    place.say(&["campaign", "import", &id, &csv(&place, "prospects.csv", 40), "--url", &first.url]);
    // All are planned for today before there is a quota: only what is reserved when they go out can keep to it.
    first.post("/v1/routes/email/pause", &Value::Null);
    launch(&first, &id);
    let quota = place.path("quota.json");
    std::fs::write(&quota, json!({ "daily_quota": DAILY }).to_string()).unwrap();
    let quota = quota.to_str().unwrap();
    place.say(&["campaign", "settings", quota, "--workspace", "default", "--url", &first.url]);
    let servers = [first, place.serve()];
    servers[1].post("/v1/routes/email/resume", &Value::Null);
    let days = || servers[1].get(&format!("/v1/campaigns/{id}/days")).json["items"].take();
    let sent = |days: &Value| -> Vec<u64> {
        days.as_array().unwrap().iter().map(|day| day["sent"].as_u64().unwrap()).collect()
    };
    until("a day's mails have gone out, and the others wait for another day", || {
        let total = servers[0].get("/v1/stats").json["total"].take();
        sink.mails().len() as u64 >= DAILY && ["due", "held", "sending"].iter().all(|word| total[word] == 0)
    });
    let (told, mails) = (sent(&days()), sink.mails());
    assert!(told.iter().all(|sent| *sent <= DAILY), "{told:?}");
    let once: BTreeSet<&str> = mails.iter().map(|mail| mail.to[0].as_str()).collect();
    assert_eq!(once.len(), mails.len(), "nobody was written to twice");
    assert_eq!(told.iter().sum::<u64>(), mails.len() as u64, "every mail is counted: {told:?}");
}

#[test]
fn a_scheduler_that_is_killed_in_the_middle_goes_on_where_it_was() {
    // Whoever is too late to interrupt it takes more.
    for count in [4_000, 16_000, 64_000] {
        let place = Place::profile("campaigns").variable("REDELIVER_KEY", KEY);
        let server = place.serve();
        let id = made(&server, &campaign("seq-1", "default"));
        place.say(&["campaign", "import", &id, &csv(&place, "prospects.csv", count), "--url", &server.url]);
        let planned = |server: &Server| server.get(&format!("/v1/campaigns/{id}")).json["planned"].as_u64();
        std::thread::scope(|scope| {
            scope.spawn(|| server.try_post(&format!("/v1/campaigns/{id}/launch"), &Value::Null));
            until("something is planned", || planned(&server).is_some_and(|planned| planned > 0));
            assert!(server.kill_now());
        });
        drop(server);
        let server = place.serve();
        let before = planned(&server).unwrap();
        until("everybody is planned, without being asked", || planned(&server) == Some(count as u64));
        let view = server.get(&format!("/v1/campaigns/{id}")).json;
        assert_eq!(view["scheduled"], json!(count * STEPS), "{view}");
        if before < count as u64 {
            return;
        }
    }
    panic!("nobody was quick enough to kill it in the middle");
}

#[test]
fn mails_go_out_in_their_window_once_in_threads_and_not_after_a_stop() {
    let sink = Sink::new();
    let place = Place::profile("campaigns").variable("SMTP_URL", &sink.url()).with_clock();
    let server = place.serve();
    let written = json!({ "days": ["tue", "wed", "thu"], "start": "09:30", "end": "11:00", "zone": "Europe/Paris",
        "daily_quota": 3, "spacing": ["30s", "90s"] });
    let mut definition = campaign("seq-1", "default");
    definition["settings"] = written.clone();
    definition["start_at"] = Value::Null;
    let id = made(&server, &definition);
    let lines = (1..=4).map(
        |n| json!({ "id": format!("p-{n}"), "email": format!("p{n}@example.org"), "first_name": "Ada" }),
    );
    let lines: String = lines.map(|line| format!("{line}\n")).collect();
    let enrolled = server.post_text(&format!("/v1/campaigns/{id}/prospects"), "application/x-ndjson", &lines);
    assert_eq!(enrolled.json["enrolled"], 4, "{}", enrolled.json);
    assert_eq!(launch(&server, &id), 12);
    let waiting = |status: &str| {
        let items = server.get(&format!("/v1/campaigns/{id}/schedule?limit=500")).json["items"].take();
        let items = items.as_array().unwrap().iter().filter(|item| item["status"] == status);
        items.map(|item| item["due_at"].as_str().unwrap().parse::<Timestamp>().unwrap()).min()
    };
    let mut times = Vec::new();
    let stop = |prospect: &str, reason: &str| {
        let path = format!("/v1/campaigns/{id}/prospects/{prospect}/stop");
        assert_eq!(server.post(&path, &json!({ "reason": reason })).status, 200);
    };
    while let Some(next) = waiting("scheduled") {
        let before = sink.mails().len();
        let at = server.leap_to(next);
        let after = sink.mails().len();
        times.extend((before..after).map(|_| at));
        if before < 4 && after >= 4 {
            stop("p-2", "replied");
            stop("p-3", "unsubscribed");
            let path = format!("/v1/campaigns/{id}/pause");
            assert_eq!(server.post(&path, &Value::Null).json["state"], "paused");
            server.leap_to(at.plus(Duration::from_secs(2 * 86_400)));
            assert_eq!(sink.mails().len(), after, "nothing goes out while it is paused");
            assert_eq!(server.post(&path.replace("pause", "resume"), &Value::Null).json["state"], "running");
            until("what waited is released", || {
                server.leap(3);
                waiting("held").is_none()
            });
        }
    }
    let settings: Settings = serde_json::from_value(written).unwrap();
    let sending = Sending::new(&settings, None).unwrap();
    let mut days: BTreeMap<_, usize> = BTreeMap::new();
    times.iter().for_each(|at| *days.entry(sending.zone.local_day(*at)).or_default() += 1);
    assert!(
        times.iter().all(|at| sending.calendar.is_open(*at)) && days.values().all(|count| *count <= 3),
        "{times:?}"
    );
    let mut threads: BTreeMap<String, Vec<Read>> = BTreeMap::new();
    for got in sink.mails() {
        threads.entry(got.to[0].clone()).or_default().push(Read::of(&got.data));
    }
    for (prospect, count) in [("p1", 3), ("p2", 1), ("p3", 1), ("p4", 3)] {
        let mails = &threads[&format!("{prospect}@example.org")];
        assert_eq!(mails.len(), count, "{prospect}");
        let ids: Vec<&str> = mails.iter().map(|mail| mail.header("message-id").unwrap()).collect();
        for (number, mail) in mails.iter().enumerate() {
            assert_eq!(mail.header("in-reply-to"), number.checked_sub(1).map(|before| ids[before]));
            let references = mail.header("references").map(|all| all.split_whitespace().collect::<Vec<_>>());
            assert_eq!(references.unwrap_or_default(), ids[..number]);
        }
    }
    let sent = server.get(&format!("/api/campaigns/{id}/schedule")).json;
    let first = &sent["data"][0];
    assert_eq!((&first["status"], &first["threadId"]), (&json!("SENT"), &first["messageId"]));
    assert_eq!(sent["data"][1]["threadId"], first["messageId"]);
    let listed = server.get("/v1/suppressions").json;
    assert_eq!(listed["items"][0]["address"], "p3@example.org");
    until("the campaign is done", || {
        server.leap(20);
        server.get(&format!("/v1/campaigns/{id}")).json["state"] == "done"
    });
    let log = server.stop();
    assert!(!log.contains("example.org"), "an address is in the log:\n{log}");
}
