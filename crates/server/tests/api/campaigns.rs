//! Campaigns are made, filled, launched, stopped and looked at.

use std::time::Duration;

use redeliver_core::Timestamp;
use redeliver_core::campaign::CampaignState;
use redeliver_core::change::Audit;
use redeliver_engine::access::Role;
use redeliver_engine::campaigns::{CampaignChange, Campaigns};
use redeliver_engine::clock::{Clock, ManualClock};
use redeliver_server::limits::Limits;
use serde_json::{Value, json};

use crate::rig::{ADMIN, Answer, Rig};

fn draft() -> Value {
    json!({ "name": "Spring", "sequence_id": "seq-1", "route": "campaign", "from": "ada@example.org",
        "steps": [ { "order": 1, "subject": "Hi {{ first_name }}", "text": "Hello" },
                   { "order": 2, "delay_days": 2, "subject": "Again", "text": "Hello {{ first_name }}" } ],
        "settings": { "days": ["mon", "tue", "wed", "thu", "fri"], "start": "09:00", "end": "17:00", "zone": "Europe/Paris",
            "daily_quota": 2 },
        "start_at": "2030-03-08T00:00:00Z" })
}

async fn make(rig: &Rig, draft: &Value) -> String {
    let made = rig.post("/v1/campaigns", &draft.to_string()).await;
    assert_eq!(made.status, 201, "{}", made.text);
    made.json()["id"].as_str().unwrap().to_owned()
}

async fn enrol(rig: &Rig, id: &str, kind: &str, body: &str) -> Answer {
    let headers = [("content-type", kind)];
    rig.call_with("POST", &format!("/v1/campaigns/{id}/prospects"), Some(ADMIN), &headers, body.to_owned())
        .await
}

async fn act(rig: &Rig, id: &str, deed: &str) -> Answer {
    rig.post(&format!("/v1/campaigns/{id}/{deed}"), "").await
}

const THREE: &str = "id,email,first_name,zone\np-1,p1@example.org,Ada,\np-2,p2@example.org,Bob,America/New_York\np-3,p3@example.org,Eve,\n";

#[tokio::test]
async fn a_campaign_is_planned_once_and_its_schedule_can_be_read() {
    let rig = Rig::still();
    let id = make(&rig, &draft()).await;
    let enrolled = enrol(&rig, &id, "text/csv", THREE).await.json();
    assert_eq!(enrolled, json!({ "enrolled": 3, "known": 0, "refused": 0, "errors": [] }));
    let forecast = rig.get(&format!("/v1/campaigns/{id}/forecast")).await.json();
    assert_eq!((&forecast["prospects"], &forecast["mails"]), (&json!(3), &json!(6)));
    let sentence = forecast["sentence"].as_str().unwrap();
    assert!(sentence.starts_with("6 mails are done on ") && sentence.contains("day, 2030-03-"), "{sentence}");
    assert!(forecast["days"].as_array().unwrap().iter().all(|day| day["mails"].as_u64().unwrap() <= 2));
    assert_eq!(rig.get(&format!("/v1/campaigns/{id}/schedule")).await.json()["items"], json!([]));
    let launched = act(&rig, &id, "launch").await;
    assert_eq!(launched.status, 200, "{}", launched.text);
    let launched = launched.json();
    assert_eq!(
        [&launched["state"], &launched["scheduled_now"], &launched["skipped"], &launched["planned"]],
        [&json!("running"), &json!(6), &json!(0), &json!(3)]
    );
    let again = act(&rig, &id, "launch").await.json();
    assert_eq!([&again["scheduled_now"], &again["skipped"]], [&json!(0), &json!(6)]);
    let mut items = Vec::new();
    let mut after = String::new();
    loop {
        let page = rig.get(&format!("/v1/campaigns/{id}/schedule?limit=4{after}")).await.json();
        items.extend(page["items"].as_array().unwrap().clone());
        match page["next"].as_str() {
            Some(next) => after = format!("&after={next}"),
            None => break,
        }
    }
    let keys: Vec<&str> = items.iter().map(|item| item["key"].as_str().unwrap()).collect();
    assert_eq!(
        keys,
        ["p-1:seq-1:1", "p-1:seq-1:2", "p-2:seq-1:1", "p-2:seq-1:2", "p-3:seq-1:1", "p-3:seq-1:2"]
    );
    assert!(
        items.iter().all(|item| item["status"] == "scheduled" && item["due_at"] == item["scheduled_for"])
    );
    let listed = rig.get("/v1/campaigns").await.json();
    assert_eq!(listed["items"][0]["id"], json!(id));
}

#[tokio::test]
async fn the_documents_paths_schedule_and_list_in_its_own_words() {
    let rig = Rig::still();
    let id = make(&rig, &draft()).await;
    enrol(&rig, &id, "text/csv", THREE).await;
    let path = format!("/api/campaigns/{id}/schedule");
    let early = rig.post(&path, "").await;
    assert_eq!(early.status, 409);
    assert_eq!(
        (&early.json()["success"], &early.json()["error"]["code"]),
        (&json!(false), &json!("INVALID_STATE"))
    );
    act(&rig, &id, "launch").await;
    let again = rig.post(&path, "").await;
    assert_eq!(
        again.json(),
        json!({ "success": true, "data": { "scheduled": 0, "skipped": 6, "errors": [] } })
    );
    let listed = rig.get(&path).await.json();
    assert_eq!((&listed["success"], listed["data"].as_array().unwrap().len()), (&json!(true), 6));
    let first = &listed["data"][0];
    assert_eq!(
        [
            &first["idempotencyKey"],
            &first["status"],
            &first["stepNumber"],
            &first["attempts"],
            &first["messageId"]
        ],
        [&json!("p-1:seq-1:1"), &json!("SCHEDULED"), &json!(1), &json!(0), &Value::Null]
    );
    let missing = rig.get("/api/campaigns/nothing/schedule").await;
    assert_eq!((missing.status.as_u16(), &missing.json()["error"]["code"]), (404, &json!("NOT_FOUND")));
}

#[tokio::test]
async fn whoever_schedules_more_than_a_request_has_time_for_says_it_again_and_nothing_is_planned_twice() {
    let clock = ManualClock::at(Timestamp::from_ms(1_796_115_600_000));
    let limits = Limits { request_timeout: Duration::from_secs(2), ..Limits::default() };
    let rig = Rig::at(clock.clone(), limits, Some(ADMIN));
    let mut draft = draft();
    draft["settings"] = json!({ "spacing": ["30s", "90s"] });
    let id = make(&rig, &draft).await;
    let audit =
        Audit { actor: "ann".into(), action: "launch", subject: "c".into(), at: clock.now(), detail: None };
    let (from, to) = (CampaignState::Draft, CampaignState::Running);
    let launch = CampaignChange { id: id.as_str().into(), from, to, paused_for: None, audit };
    assert!(rig.store.move_campaign(launch).await.unwrap());
    let lines = (1..=3_000)
        .map(|n| format!("{{\"id\": \"p-{n}\", \"email\": \"p{n}@example.org\", \"first_name\": \"P\"}}\n"));
    enrol(&rig, &id, "application/x-ndjson", &lines.collect::<String>()).await;
    let path = format!("/api/campaigns/{id}/schedule");
    // The time that it waits for is over while it still plans.
    let (answer, ()) = tokio::join!(rig.post(&path, ""), async {
        for _ in 0..60 {
            tokio::task::yield_now().await;
        }
        clock.advance(Duration::from_millis(1_900));
    });
    let before = rig.store.campaign(&id).await.unwrap().unwrap();
    assert!((1..6_000).contains(&before.scheduled), "some, and not all: {}", before.scheduled);
    assert_eq!((answer.status.as_u16(), answer.header("retry-after")), (503, "1"));
    let refused = answer.json();
    assert_eq!([&refused["success"], &refused["error"]["code"]], [&json!(false), &json!("STILL_SCHEDULING")]);
    let told = refused["error"]["message"].as_str().unwrap();
    assert!(
        told.starts_with(&format!("{} of 3000 prospects are planned", before.ledger.plan.after)),
        "{told}"
    );
    let again = rig.post(&path, "").await.json();
    let (scheduled, skipped) = (6_000 - before.scheduled, before.scheduled);
    let data = json!({ "scheduled": scheduled, "skipped": skipped, "errors": [] });
    assert_eq!(again, json!({ "success": true, "data": data }), "it goes on where the first was");
    assert_eq!(rig.post(&path, "").await.json()["data"]["skipped"], 6_000);
}

#[tokio::test]
async fn lines_that_are_wrong_are_told_and_the_good_ones_are_enrolled() {
    let rig = Rig::still();
    let id = make(&rig, &draft()).await;
    let lines = "{\"id\": \"p-1\", \"email\": \"p1@example.org\"}\n{\"id\": \"p:2\", \"email\": \"nobody\"}\n\n{\"id\": \"p-1\", \"email\": \"other@example.org\"}\n";
    let answer = enrol(&rig, &id, "application/x-ndjson", lines).await.json();
    assert_eq!(
        [&answer["enrolled"], &answer["known"], &answer["refused"]],
        [&json!(1), &json!(1), &json!(1)]
    );
    let told: Vec<(u64, &str)> = answer["errors"]
        .as_array()
        .unwrap()
        .iter()
        .map(|error| (error["line"].as_u64().unwrap(), error["field"].as_str().unwrap()))
        .collect();
    assert_eq!(told, [(2, "id"), (2, "email")]);
    assert_eq!(enrol(&rig, &id, "application/json", "{}").await.status, 415);
    assert_eq!(enrol(&rig, &id, "text/csv", "name\nAda\n").await.status, 422);
    let launched = act(&rig, &id, "launch").await.json();
    let told = launched["errors"][0].as_str().unwrap();
    assert!(told.starts_with("prospect p-1: step 1") && launched["scheduled_now"] == 0, "{launched}");
    assert!(!told.contains("p1@example.org"), "no address is told");
}

#[tokio::test]
async fn whoever_could_not_be_written_to_is_told_until_they_are_corrected_and_launched_again() {
    let rig = Rig::still();
    let id = make(&rig, &draft()).await;
    let without_a_name =
        "id,email,first_name\np-1,p1@example.org,Ada\np-2,p2@example.org,\np-3,p3@example.org,\n";
    enrol(&rig, &id, "text/csv", without_a_name).await;
    assert_eq!(act(&rig, &id, "launch").await.json()["scheduled_now"], 2);
    let errors = async || {
        let campaign = rig.get(&format!("/v1/campaigns/{id}")).await.json();
        (campaign["error_count"].as_u64().unwrap(), campaign["errors"].as_array().unwrap().len())
    };
    assert_eq!(errors().await, (2, 2));
    let path = format!("/api/campaigns/{id}/schedule");
    let again = rig.post(&path, "").await.json();
    assert_eq!(
        (&again["data"]["scheduled"], again["data"]["errors"].as_array().unwrap().len()),
        (&json!(0), 2)
    );
    let corrected = "id,email,first_name\np-1,p1@example.org,Eve\np-2,p2@example.org,Bob\n";
    let answer = enrol(&rig, &id, "text/csv", corrected).await.json();
    assert_eq!(
        (&answer["enrolled"], &answer["known"]),
        (&json!(1), &json!(1)),
        "who has a mail stays as they were"
    );
    assert_eq!(errors().await, (2, 2), "until it is launched again");
    let launched = act(&rig, &id, "launch").await.json();
    assert_eq!(
        (&launched["scheduled_now"], &launched["skipped"], &launched["prospects"]),
        (&json!(2), &json!(2), &json!(3))
    );
    assert_eq!(errors().await, (1, 1));
    let mails = rig.get(&format!("/v1/campaigns/{id}/schedule")).await.json();
    let keys: Vec<&str> =
        mails["items"].as_array().unwrap().iter().map(|mail| mail["key"].as_str().unwrap()).collect();
    assert_eq!(keys, ["p-1:seq-1:1", "p-1:seq-1:2", "p-2:seq-1:1", "p-2:seq-1:2"]);
}

#[tokio::test]
async fn what_is_wrong_with_a_campaign_or_its_settings_is_said_at_once() {
    let rig = Rig::still();
    let check = async |change: fn(&mut Value), status: u16, field: &str| {
        let mut draft = draft();
        change(&mut draft);
        let answer = rig.post("/v1/campaigns", &draft.to_string()).await;
        assert_eq!(answer.status.as_u16(), status, "{}", answer.text);
        assert!(answer.text.contains(field), "{field}: {}", answer.text);
    };
    check(|draft| draft["steps"][0]["subject"] = json!("{{ first_name"), 422, "steps[0].subject").await;
    check(|draft| draft["settings"]["days"] = json!([]), 422, "never opens").await;
    check(|draft| draft["settings"]["zone"] = json!("Mars/Base"), 422, "settings.zone").await;
    check(|draft| draft["settings"]["ramp"] = json!(1), 422, "settings.ramp").await;
    check(|draft| draft["from"] = Value::Null, 422, "from").await;
    check(|draft| drop(draft.as_object_mut().unwrap().remove("steps")), 422, "steps").await;
    check(|draft| draft["route"] = json!("nowhere"), 409, "nowhere").await;
    check(|draft| draft["route"] = json!("email"), 409, "key_retention").await;
}

#[tokio::test]
async fn a_campaign_is_paused_resumed_and_ended_and_only_when_that_makes_sense() {
    let rig = Rig::still();
    let id = make(&rig, &draft()).await;
    enrol(&rig, &id, "text/csv", THREE).await;
    assert_eq!(act(&rig, &id, "pause").await.status, 409);
    act(&rig, &id, "launch").await;
    for (deed, state) in [("pause", "paused"), ("resume", "running"), ("cancel", "cancelled")] {
        assert_eq!(act(&rig, &id, deed).await.json()["state"], state);
    }
    assert_eq!(act(&rig, &id, "launch").await.status, 409);
    assert_eq!(enrol(&rig, &id, "text/csv", THREE).await.status, 409);
    let deeds = rig.get("/v1/audit").await.json();
    let deeds: Vec<&str> =
        deeds["items"].as_array().unwrap().iter().map(|deed| deed["action"].as_str().unwrap()).collect();
    assert!(deeds.contains(&"launch") && deeds.contains(&"create_campaign"), "{deeds:?}");
}

#[tokio::test]
async fn a_prospect_is_stopped_and_its_mails_are_cancelled_and_who_unsubscribes_is_on_the_list() {
    let rig = Rig::still();
    let id = make(&rig, &draft()).await;
    enrol(&rig, &id, "text/csv", THREE).await;
    act(&rig, &id, "launch").await;
    let stop = async |prospect: &str, json: &str| {
        rig.post(&format!("/v1/campaigns/{id}/prospects/{prospect}/stop"), json).await
    };
    let stopped = stop("p-2", r#"{"reason": "unsubscribed"}"#).await;
    assert_eq!(stopped.json(), json!({ "id": "p-2", "stopped_for": "unsubscribed" }));
    assert_eq!(stop("p-2", r#"{"reason": "replied"}"#).await.json()["stopped_for"], "unsubscribed");
    assert_eq!(stop("p-9", r#"{"reason": "replied"}"#).await.status, 404);
    assert_eq!(stop("p-1", "{}").await.status, 422);
    let items = rig.get(&format!("/v1/campaigns/{id}/schedule")).await.json();
    let cancelled = items["items"].as_array().unwrap().iter().filter(|item| item["status"] == "cancelled");
    assert_eq!(
        cancelled.map(|item| item["prospect_id"].as_str().unwrap()).collect::<Vec<_>>(),
        ["p-2", "p-2"]
    );
    let listed = rig.get("/v1/suppressions").await.json();
    assert_eq!(listed["items"][0]["address"], "p2@example.org");
    let added = rig.post("/v1/suppressions", r#"{"addresses": ["P2@example.org", "x@example.org"]}"#).await;
    assert_eq!(added.json(), json!({ "added": 1, "known": 1 }));
    let page = rig.get("/v1/suppressions?limit=1").await.json();
    assert_eq!(page["next"], "p2@example.org");
    let remove =
        async || rig.call("DELETE", "/v1/suppressions/p2@example.org", Some(ADMIN), "").await.status.as_u16();
    assert_eq!((remove().await, remove().await), (204, 404));
}

#[tokio::test]
async fn a_prospect_is_paused_and_resumed_by_whoever_may_and_not_once_they_are_stopped() {
    let rig = Rig::still();
    let id = make(&rig, &draft()).await;
    enrol(&rig, &id, "text/csv", THREE).await;
    act(&rig, &id, "launch").await;
    let one = format!("/v1/campaigns/{id}/prospects/p-2");
    let seen = rig.get(&one).await.json();
    assert_eq!(
        seen,
        json!({ "id": "p-2", "email": "p2@example.org", "zone": "America/New_York", "state": "active",
            "paused_at": null, "stopped_for": null })
    );
    let paused = rig.post(&format!("{one}/pause"), "").await.json();
    assert!(paused["state"] == "paused" && paused["paused_at"].is_string(), "{paused}");
    assert_eq!(rig.post(&format!("{one}/pause"), "").await.json(), paused, "said twice, it is as it was");
    let mails = rig.get(&format!("/v1/campaigns/{id}/schedule?limit=4")).await.json();
    let mail = mails["items"][2]["id"].as_str().unwrap();
    let said = rig.get(&format!("/v1/messages/{mail}/explain")).await.json();
    assert!(said["sentence"].as_str().unwrap().contains("prospect is paused since 20"), "{said}");
    assert_eq!(rig.post(&format!("{one}/resume"), "").await.json(), seen);
    assert_eq!(rig.post(&format!("{one}/resume"), "").await.status, 200);
    let other = rig.key(Role::Admin, Some("other")).await;
    let viewer = rig.key(Role::Viewer, None).await;
    for (deed, missing) in [("pause", "p-9"), ("resume", "p-9")] {
        let at = |who: &str| format!("/v1/campaigns/{id}/prospects/{who}/{deed}");
        assert_eq!(rig.post(&at(missing), "").await.status, 404);
        assert_eq!(rig.call("POST", &at("p-2"), Some(&other), "").await.status, 404);
        assert_eq!(rig.call("POST", &at("p-2"), Some(&viewer), "").await.status, 403);
    }
    assert_eq!(rig.call("GET", &one, Some(&other), "").await.status, 404);
    rig.post(&format!("{one}/stop"), r#"{"reason": "replied"}"#).await;
    for deed in ["pause", "resume"] {
        let answer = rig.post(&format!("{one}/{deed}"), "").await;
        assert!(answer.status == 409 && answer.text.contains("was stopped (replied)"), "{}", answer.text);
    }
    assert_eq!(rig.get(&one).await.json()["state"], "stopped");
    let deeds = rig.get("/v1/audit").await.json();
    let subject = format!("campaign:{id}:p-2");
    let its = deeds["items"].as_array().unwrap().iter().filter(|deed| deed["subject"] == subject);
    let words: Vec<&str> = its.map(|deed| deed["action"].as_str().unwrap()).collect();
    assert_eq!(words, ["stop", "resume", "pause"]);
}

#[tokio::test]
async fn a_workspaces_settings_count_and_nobody_elses_campaign_is_there() {
    let rig = Rig::still();
    let put = async |json: &str| rig.call("PUT", "/v1/workspaces/acme/settings", Some(ADMIN), json).await;
    assert_eq!(put(r#"{"days": []}"#).await.status, 422);
    let settings = json!({ "start": "09:00", "end": "12:00", "zone": "Asia/Tokyo", "daily_quota": 5 });
    assert_eq!(put(&settings.to_string()).await.json(), settings);
    assert_eq!(rig.get("/v1/workspaces/acme/settings").await.json(), settings);
    let mut own = draft();
    own["workspace"] = json!("acme");
    own["settings"] = json!({ "start": "13:00", "end": "17:00" });
    assert_eq!(
        rig.post("/v1/campaigns", &own.to_string()).await.status,
        422,
        "the windows have nothing in common"
    );
    own["settings"] = json!({ "start": "10:00", "end": "11:00" });
    let id = make(&rig, &own).await;
    assert_eq!(
        put(r#"{"start": "12:00", "end": "13:00"}"#).await.status,
        422,
        "a campaign could not be kept"
    );
    let quotas = rig.get("/v1/quotas?workspace=acme&date=2030-03-08").await.json();
    assert_eq!(quotas, json!({ "workspace": "acme", "date": "2030-03-08", "items": [] }));
    let other = rig.key(Role::Admin, Some("other")).await;
    let paths = ["", "/forecast", "/schedule"].map(|what| ("GET", format!("/v1/campaigns/{id}{what}")));
    let deeds =
        ["launch", "pause", "resume", "cancel"].map(|deed| ("POST", format!("/v1/campaigns/{id}/{deed}")));
    let schedule = format!("/api/campaigns/{id}/schedule");
    let more =
        [("GET", schedule.clone()), ("POST", schedule), ("GET", "/v1/workspaces/acme/settings".to_owned())];
    for (method, path) in paths.into_iter().chain(deeds).chain(more) {
        assert_eq!(rig.call(method, &path, Some(&other), "{}").await.status, 404, "{method} {path}");
    }
    assert_eq!(
        rig.call("GET", "/v1/campaigns?workspace=acme", Some(&other), "").await.json()["items"],
        json!([])
    );
    assert_eq!(rig.call("POST", "/v1/senders/ada@example.org/pause", Some(&other), "").await.status, 403);
    assert_eq!(act(&rig, &id, "launch").await.status, 200);
    assert_eq!(rig.post("/v1/senders/ada@example.org/pause", "").await.json()["paused"], true);
    assert_eq!(rig.post("/v1/senders/ada@example.org/resume", "").await.json()["paused"], false);
}

#[tokio::test]
async fn nobody_sends_a_mail_of_a_campaign_by_hand() {
    let rig = Rig::still();
    let id = make(&rig, &draft()).await;
    enrol(&rig, &id, "text/csv", THREE).await;
    act(&rig, &id, "launch").await;
    let sender = rig.key(Role::Sender, Some("other")).await;
    let forged = json!({ "route": "campaign", "payload_base64": "", "content_type": "application/vnd.redeliver.campaign-step",
        "attributes": { "campaign": id, "prospect": "p-1", "step": "1", "sender": "ada@example.org" } });
    let answer = rig.call("POST", "/v1/messages", Some(&sender), &forged.to_string()).await;
    assert_eq!(
        (answer.status.as_u16(), answer.text.contains("content_type")),
        (422, true),
        "{}",
        answer.text
    );
    let headers = [("content-type", "application/x-ndjson")];
    let lines =
        rig.call_with("POST", "/v1/messages", Some(&sender), &headers, format!("{forged}\n")).await.lines();
    assert!(lines[0].to_string().contains("content_type"), "{lines:?}");
    let read = redeliver_server::api::messages::read_message(forged.to_string().as_bytes(), None);
    assert!(read.unwrap_err().contains("content_type"), "by a broker, too");
}

#[tokio::test]
async fn every_fate_of_a_mail_has_the_documents_word_and_what_went_out_is_counted() {
    let rig = Rig::running().await;
    let draft = json!({ "name": "Fates", "sequence_id": "s", "route": "campaign", "from": "ada@example.org",
        "steps": [ { "order": 1, "subject": "Hi", "text": "{{ word }}" },
                   { "order": 2, "delay_days": 2, "subject": "Again", "text": "ok" } ],
        "settings": { "spacing": ["0s", "0s"], "sender_quota": 100 } });
    let id = make(&rig, &draft).await;
    let words = ["ok", "fail", "refuse", "hang"];
    let lines = words.map(|word| {
        format!("{{\"id\": \"{word}\", \"email\": \"{word}@example.org\", \"word\": \"{word}\"}}")
    });
    enrol(&rig, &id, "application/x-ndjson", &lines.join("\n")).await;
    assert_eq!(act(&rig, &id, "launch").await.json()["scheduled_now"], 8);
    let stop = format!("/v1/campaigns/{id}/prospects/ok/stop");
    let fates = ["SENT", "RETRY_SCHEDULED", "PERMANENTLY_FAILED", "SENDING"];
    let have_come = |told: &Value| (0..4).all(|n| told["data"][2 * n]["status"] == fates[n]);
    let schedule = format!("/api/campaigns/{id}/schedule");
    let told = rig.until_so(&schedule, have_come).await["data"].take();
    let status = |told: &Value, n: usize| told[n]["status"].as_str().unwrap().to_owned();
    assert_eq!([1, 3, 5, 7].map(|n| status(&told, n)), ["SCHEDULED"; 4]);
    let retried = &told[2];
    assert!(retried["nextRetryAt"].as_str() > retried["scheduledFor"].as_str(), "{retried}");
    assert_eq!((&retried["attempts"], &told[0]["nextRetryAt"]), (&json!(1), &Value::Null));
    assert!(told[0]["sentAt"].is_string() && told[4]["lastError"] == "550 no such user", "{told}");
    rig.post(&stop, r#"{"reason": "replied"}"#).await;
    let told = rig.get(&schedule).await.json()["data"].take();
    assert_eq!(status(&told, 1), "CANCELLED");
    let quotas = rig.get("/v1/quotas").await.json();
    let used: Vec<(&str, u64)> = quotas["items"]
        .as_array()
        .unwrap()
        .iter()
        .map(|item| (item["whose"].as_str().unwrap(), item["used"].as_u64().unwrap()))
        .collect();
    assert_eq!(used, [("campaign", 2), ("sender", 2)], "what was sent, and what may be: {quotas}");
}
