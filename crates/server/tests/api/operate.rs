//! What people do, and what outside workers report.

use redeliver_core::Timestamp;
use redeliver_core::gate::{Closed, GateKey, GateRecord, Scope};
use redeliver_engine::access::Role;
use redeliver_engine::store::{GateChange, Store};
use serde_json::{Value, json};

use crate::rig::{ADMIN, Rig};

#[tokio::test]
async fn a_dead_message_is_looked_into_put_away_brought_back_and_started_over() {
    let rig = Rig::running().await;
    let id = rig.accept(r#"{"route": "email", "payload": "refuse"}"#).await;
    let dead = rig.until(&id, "dead").await;
    assert_eq!((&dead["dead_reason"], &dead["last_error"]["code"]), (&json!("refused"), &json!("550")));
    let history = rig.get(&format!("/v1/messages/{id}/attempts")).await.json();
    assert_eq!(history["items"][0]["outcome"], "refused");
    assert_eq!(history["items"][0]["attempt_id"], format!("{id}.0.1"));
    let course =
        ["due_at", "claimed_at", "sent_at", "at"].map(|name| history["items"][0][name].as_str().unwrap());
    assert!(course.is_sorted() && dead["due_at"] == course[0], "{history}");
    let why = rig.get(&format!("/v1/messages/{id}/explain")).await.json();
    assert!(why["sentence"].as_str().unwrap().contains("the receiver refused it"), "{why}");
    let act = async |action: &str| rig.post(&format!("/v1/messages/{id}/{action}"), "").await;
    assert_eq!(act("restore").await.status, 409);
    assert!(!act("dismiss").await.json()["dismissed_at"].is_null());
    assert_eq!(rig.get("/v1/messages").await.json()["items"], json!([]));
    assert_eq!(rig.get("/v1/messages?with_dismissed=true").await.json()["items"][0]["id"], id);
    assert_eq!(act("restore").await.status, 200);
    assert_eq!(act("cancel").await.status, 409);
    assert_eq!(act("retry").await.status, 200);
    assert_eq!(rig.until(&id, "dead").await["attempts"], 1, "a fresh budget");
}

#[tokio::test]
async fn a_cancel_says_whether_the_message_may_still_go_out() {
    let rig = Rig::running().await;
    let later = rig.accept(r#"{"route": "email", "payload": 1, "due_at": "2999-01-01T00:00:00Z"}"#).await;
    let answer = rig.post(&format!("/v1/messages/{later}/cancel"), "").await;
    assert_eq!((answer.status.as_u16(), &answer.json()["status"]), (200, &json!("cancelled")));
    let hangs = rig.accept(r#"{"route": "email", "payload": "hang"}"#).await;
    rig.until(&hangs, "sending").await;
    let answer = rig.post(&format!("/v1/messages/{hangs}/cancel"), "").await;
    assert_eq!((answer.status.as_u16(), &answer.json()["status"]), (202, &json!("sending")));
}

#[tokio::test]
async fn a_report_counts_once_and_another_attempts_changes_nothing() {
    let rig = Rig::running().await;
    let id = rig.accept(r#"{"route": "email", "payload": "hand_off"}"#).await;
    let attempt = rig.until(&id, "handed_off").await["attempt_id"].as_str().unwrap().to_owned();
    let report = async |json: String| rig.post(&format!("/v1/messages/{id}/report"), &json).await;
    let other = report(format!(r#"{{"attempt_id": "{id}.0.9", "outcome": "delivered"}}"#)).await.json();
    assert_eq!((&other["applied"], &other["message"]["status"]), (&json!(false), &json!("handed_off")));
    let json = format!(
        r#"{{"attempt_id": "{attempt}", "outcome": "failed", "error": "busy", "error_code": "EBUSY", "retry_after": "1h"}}"#
    );
    let told = report(json).await.json();
    assert_eq!((&told["applied"], &told["message"]["status"]), (&json!(true), &json!("retrying")));
    assert_eq!(told["message"]["last_error"], json!({"code": "EBUSY", "text": "busy"}));
    assert_eq!(report(r#"{"outcome": "delivered"}"#.to_owned()).await.json()["applied"], false);
    for (json, field) in [
        ("{}", "outcome"),
        (r#"{"outcome": "lost"}"#, "outcome"),
        (r#"{"outcome": "failed", "retry_after": "soon"}"#, "retry_after"),
    ] {
        let answer = report(json.to_owned()).await;
        assert_eq!(
            (answer.status.as_u16(), &answer.json()["errors"][0]["field"]),
            (422, &json!(field)),
            "{json}"
        );
    }
}

#[tokio::test]
async fn a_paused_route_says_so_and_its_messages_wait_for_it() {
    let rig = Rig::running().await;
    let paused = rig.post("/v1/routes/email/pause", "").await.json();
    assert_eq!((&paused["name"], &paused["paused"]), (&json!("email"), &json!(true)));
    let id = rig.accept(r#"{"route": "email", "payload": 1}"#).await;
    let why = rig.get(&format!("/v1/messages/{id}/explain")).await.json();
    assert!(
        why["gates"]
            .as_array()
            .unwrap()
            .iter()
            .any(|gate| gate["gate"] == "pause:route:email" && gate["open"] == false),
        "{why}"
    );
    let routes = rig.get("/v1/routes").await.json();
    assert_eq!(
        routes["items"].as_array().unwrap().iter().map(|route| &route["paused"]).collect::<Vec<_>>(),
        [&json!(false), &json!(true), &json!(false)]
    );
    assert_eq!(rig.post("/v1/routes/email/resume", "").await.json()["paused"], false);
    rig.until(&id, "delivered").await;
    assert_eq!(rig.post("/v1/routes/fax/pause", "").await.status, 404);
}

#[tokio::test]
async fn what_stands_where_is_counted() {
    let rig = Rig::still();
    rig.accept(r#"{"route": "email", "payload": 1}"#).await;
    rig.accept(r#"{"route": "sms", "payload": 1, "attempts": 3}"#).await;
    let stats = rig.get("/v1/stats").await.json();
    assert_eq!((&stats["total"]["due"], &stats["total"]["dead"]), (&json!(1), &json!(1)));
    assert_eq!(stats["routes"]["sms"]["dead_by_reason"]["attempts_exhausted"], 1);
    let metrics = rig.call("GET", "/metrics", None, "").await;
    assert_eq!(metrics.status, 200);
    for line in [
        "redeliver_oldest_due_seconds{route=\"email\",lane=\"medium\"} ",
        "redeliver_due{route=\"email\",lane=\"medium\"} 1",
        "redeliver_messages{route=\"email\",lane=\"medium\",state=\"waiting\"} 1",
        "redeliver_dead{route=\"sms\",lane=\"medium\",reason=\"attempts_exhausted\"} 1",
    ] {
        assert!(metrics.text.contains(line), "{line} in:\n{}", metrics.text);
    }
}

#[tokio::test]
async fn who_lives_is_told() {
    let rig = Rig::still();
    assert_eq!(rig.get("/v1/instances").await.json()["items"], json!([]));
    rig.server.engine.beat().await.unwrap();
    let told = rig.get("/v1/instances").await.json()["items"].take();
    assert_eq!(
        (told.as_array().unwrap().len(), &told[0]["is_this"], &told[0]["leases"]),
        (1, &json!(true), &json!(0))
    );
    assert_eq!(told[0]["id"], rig.server.engine.instance().to_string());
    assert!(told[0]["beat_at"].is_string() && told[0]["name"].is_null(), "{told}");
}

#[tokio::test]
async fn readiness_says_what_a_commit_is_worth() {
    let rig = Rig::still();
    assert_eq!(rig.call("GET", "/healthz", None, "").await.json()["status"], "alive");
    let ready = rig.call("GET", "/readyz", None, "").await.json();
    assert_eq!((&ready["status"], &ready["durability"]), (&json!("ready"), &json!("memory")));
    assert!(ready["warning"].as_str().unwrap().contains("gone when this process ends"));
}

#[tokio::test]
async fn what_is_no_mail_is_found_by_its_attributes() {
    let rig = Rig::still();
    let json = r#"{"route": "email", "attributes": {"device_id": "D-17"}, "payload": {"device_id": "d-18"}}"#;
    let id = rig.accept(json).await;
    for (device, is_found) in [("d-17", true), ("d-18", false)] {
        let page = rig.get(&format!("/v1/messages?recipient={device}")).await.json();
        assert_eq!(page["items"][0]["id"] == json!(id), is_found, "{page}");
    }
}

#[tokio::test]
async fn messages_are_found_by_recipient_error_and_time_and_deeds_are_told() {
    let rig = Rig::still();
    let mail = |to: &str, error: &str| {
        format!(
            r#"{{"route": "email", "attempts": 3, "error": "{error}", "email": {{"to": "{to}", "subject": "Hi", "text": "x"}}}}"#
        )
    };
    let full = rig.accept(&mail("ada@example.org", "452 mailbox full")).await;
    let gone = rig.accept(&mail("grace@example.com", "550 no such user")).await;
    let found = async |query: &str| {
        let page = rig.get(&format!("/v1/messages?{query}")).await.json();
        let ids: Vec<String> = page["items"]
            .as_array()
            .unwrap()
            .iter()
            .map(|item| item["id"].as_str().unwrap().to_owned())
            .collect();
        (ids, page["next"].is_null())
    };
    // Two of the same millisecond stand in either order.
    let mut both = [full.clone(), gone.clone()];
    both.sort_by(|one, other| other.cmp(one));
    assert_eq!(found("recipient=ADA%40").await, (vec![full.clone()], true));
    assert_eq!(found("recipient=example.com&error=no%20such").await, (vec![gone.clone()], true));
    assert_eq!(found("error=mailbox%20FULL").await, (vec![full.clone()], true));
    assert_eq!(found("since=1h").await, (both.to_vec(), true));
    assert_eq!(found("before=1h").await, (vec![], true));
    assert_eq!(found("since=1h&limit=1").await, (both[..1].to_vec(), false));
    for query in ["recipient=", "error=%20", "since=yesterday", "since=0", "before=2026"] {
        assert_eq!(rig.get(&format!("/v1/messages?{query}")).await.status, 422, "{query}");
    }
    rig.post(&format!("/v1/messages/{full}/dismiss"), "").await;
    let deeds = rig.get("/v1/audit?limit=1").await.json();
    assert_eq!(
        (&deeds["items"][0]["action"], &deeds["items"][0]["subject"]),
        (&json!("dismiss"), &json!(full))
    );
    let one = rig.key(redeliver_engine::access::Role::Admin, Some("acme")).await;
    assert_eq!(rig.call("GET", "/v1/audit", Some(&one), "").await.status, 403);
}

#[tokio::test]
async fn deeds_are_told_page_by_page_and_by_who_what_and_to_what() {
    let rig = Rig::still();
    let ids = [
        rig.accept(r#"{"route": "email", "payload": 1}"#).await,
        rig.accept(r#"{"route": "email", "payload": 2}"#).await,
    ];
    let ann = rig.key(Role::Operator, None).await;
    for (id, action, key) in [
        (&ids[0], "cancel", ADMIN),
        (&ids[0], "retry", ann.as_str()),
        (&ids[1], "cancel", ann.as_str()),
        (&ids[1], "retry", ADMIN),
        (&ids[1], "cancel", ADMIN),
    ] {
        let path = format!("/v1/messages/{id}/{action}");
        assert_eq!(rig.call("POST", &path, Some(key), "").await.status, 200, "{path}");
    }
    let told = async |query: &str| {
        let (mut deeds, mut after) = (Vec::new(), String::new());
        loop {
            let page = rig.get(&format!("/v1/audit?limit=2{query}{after}")).await.json();
            let items = page["items"].as_array().unwrap();
            assert!(items.len() <= 2, "{page}");
            let word = |deed: &Value| (deed["action"].clone(), deed["subject"] == json!(ids[1]));
            deeds.extend(items.iter().map(word));
            match page["next"].as_str() {
                Some(next) => after = format!("&after={next}"),
                None => return deeds,
            }
        }
    };
    let (cancel, retry, made) = (json!("cancel"), json!("retry"), json!("create_key"));
    let of_second = [(cancel.clone(), true), (retry.clone(), true), (cancel.clone(), true)];
    let of_first = [(retry.clone(), false), (cancel.clone(), false)];
    assert_eq!(told("").await, [&of_second[..], &of_first, &[(made, false)]].concat());
    assert_eq!(told(&format!("&subject={}", ids[1])).await, of_second);
    assert_eq!(told("&actor=operator").await, [(cancel.clone(), true), (retry.clone(), false)]);
    assert_eq!(told("&action=retry").await, [(retry.clone(), true), (retry.clone(), false)]);
    assert_eq!(told(&format!("&action=retry&actor=operator&subject={}", ids[1])).await, []);
    assert_eq!(told("&actor=nobody").await, []);
    for query in ["after=", "after=x", "limit=0", "who=ann"] {
        assert_eq!(rig.get(&format!("/v1/audit?{query}")).await.status, 422, "{query}");
    }
}

#[tokio::test]
async fn what_an_instance_has_done_is_told_by_the_minute() {
    let rig = Rig::running().await;
    rig.accept(r#"{"route": "email", "payload": 1}"#).await;
    for _ in 0..6_000 {
        let told = rig.get("/v1/stats/minutes").await.json();
        let items = told["items"].as_array().unwrap();
        assert_eq!(items.len(), 180);
        if let Some(minute) = items.iter().find(|minute| minute["delivered"] == 1) {
            assert!(minute["lateness_p99_ms"].is_u64() && minute["dead"] == 0, "{minute}");
            return;
        }
        tokio::time::sleep(std::time::Duration::from_millis(5)).await;
    }
    panic!("nothing was ever delivered");
}

#[tokio::test]
async fn a_destination_that_is_held_is_listed_and_let_go_by_a_person() {
    let rig = Rig::running().await;
    let none = rig.get("/v1/destinations").await.json();
    assert_eq!(none, json!({ "items": [] }));
    let close = async |key: GateKey, closed: Closed| {
        let since = Timestamp::from_ms(1_000);
        let record = GateRecord { key: key.clone(), version: 0, since, reason: "no good".into(), closed };
        let change = GateChange { key, expected_version: 0, record: Some(record), audit: None };
        assert!(rig.store.put_gate(change).await.unwrap());
    };
    close(GateKey::hold(Scope::Destination, "peer"), Closed::Held { probe_at: Some(Timestamp::MAX) }).await;
    close(GateKey::throttle("past"), Closed::Throttled(Timestamp::from_ms(5))).await;
    close(GateKey::suppression("default"), Closed::Suppressed).await;
    close(GateKey::hold(Scope::Sender, "ada@example.org"), Closed::Held { probe_at: None }).await;
    // Whoever accepts reads the gates only once in a while.
    assert_eq!(rig.post("/v1/routes/sms/pause", "").await.status, 200);
    let id = rig.accept(r#"{"route": "email", "payload": 1}"#).await;
    rig.until(&id, "held").await;
    let listed = rig.get("/v1/destinations").await.json();
    let items = listed["items"].as_array().unwrap();
    assert_eq!((items.len(), &items[0]["destination"]), (1, &json!("peer")), "{listed}");
    assert_eq!(
        (&items[0]["gates"][0]["standing"], &items[0]["gates"][0]["reason"]),
        (&json!("held"), &json!("no good"))
    );
    let senders = rig.get("/v1/senders").await.json();
    assert_eq!(
        senders["items"],
        json!([{ "sender": "ada@example.org", "gates": [
            { "standing": "held", "since": "1970-01-01T00:00:01.000Z", "reason": "no good", "again_at": null } ] }])
    );
    let metrics = rig.call("GET", "/metrics", None, "").await.text;
    for line in ["gate=\"suppression\",scope=\"workspace\"} 1", "gate=\"pause\",scope=\"workspace\"} 0"] {
        assert!(metrics.contains(line), "{line}: {metrics}");
    }
    let resumed = rig.post("/v1/destinations/peer/resume", "").await;
    assert_eq!(resumed.json(), json!({ "destination": "peer", "gates": [] }));
    rig.until(&id, "delivered").await;
    assert_eq!(rig.post("/v1/destinations/peer/resume", "").await.status, 404, "nothing stands there now");
    let deed = rig.get("/v1/audit?limit=1").await.json()["items"][0].take();
    assert_eq!((&deed["action"], &deed["subject"]), (&json!("resume"), &json!("destination:peer")));
}

#[tokio::test]
async fn a_destination_whose_name_has_slashes_is_stopped_and_goes_on() {
    let rig = Rig::still();
    let path = "/v1/destinations/smtp%3A%2F%2Fmx.example.org%3A25";
    let paused = rig.post(&format!("{path}/pause"), "").await.json();
    assert_eq!(
        (&paused["destination"], &paused["gates"][0]["standing"]),
        (&json!("smtp://mx.example.org:25"), &json!("paused"))
    );
    assert_eq!(rig.post(&format!("{path}/resume"), "").await.json()["gates"], json!([]));
    let own = rig.key(Role::Admin, Some("acme")).await;
    for (method, path) in [
        ("GET", "/v1/destinations".to_owned()),
        ("POST", format!("{path}/pause")),
        ("GET", "/v1/senders".to_owned()),
    ] {
        assert_eq!(rig.call(method, &path, Some(&own), "").await.status, 403, "{path} concerns everybody");
    }
}
