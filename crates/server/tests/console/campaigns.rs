//! The pages about campaigns: how far they have come, what stands in their way, and what is done there.

use axum::http::StatusCode;
use redeliver_core::accept::NewMessage;
use redeliver_core::campaign::CampaignState;
use redeliver_core::change::Audit;
use redeliver_core::gate::Scope;
use redeliver_core::operate::Action;
use redeliver_core::settle::settle;
use redeliver_core::{Failure, Outcome};
use redeliver_engine::access::Role;
use redeliver_engine::campaign::Place;
use redeliver_engine::campaigns::{CampaignRecord, Campaigns};
use redeliver_engine::store::{Applied, Store};

use crate::stage::{Stage, TRIES_MAX, mail};

async fn state(stage: &Stage, id: &str) -> CampaignState {
    stage.store.campaign(id).await.unwrap().unwrap().state
}

#[tokio::test]
async fn whoever_has_no_campaign_yet_is_told_how_to_begin() {
    let stage = Stage::new();
    let page = stage.reader(Role::Viewer, None).await.get("/admin/campaigns").await;
    assert!(page.says("No campaigns in the workspace default") && page.says("redeliver campaign create"));
}

#[tokio::test]
async fn a_campaign_shows_its_days_and_mails_and_is_paused_resumed_and_ended() {
    let stage = Stage::new();
    let id = stage.campaign("default", "Spring", "ada@example.org", &["p-1", "p-2", "p-3"]).await;
    let page = format!("/admin/campaigns/{id}");
    let mut reader = stage.reader(Role::Operator, None).await;
    let list = reader.get("/admin/campaigns").await;
    assert!(list.says(&format!("href=\"{page}\">Spring</a>")) && list.says(">0 of 6<"), "{}", list.body);
    let seen = reader.get(&page).await;
    // One on the first day and two on each that follows, of three first steps and three second ones.
    assert!(seen.says("6 e-mails planned and 0 sent") && seen.says(": 1 planned, 0 sent, capacity 1"));
    assert!(seen.says(": 2 planned, 0 sent, capacity 2") && seen.says("E-mails per day, in Europe/Paris"));
    assert!(seen.says("Fully planned: the last e-mail is sent at <time"), "{}", seen.body);
    assert!(seen.says(">today</span>") && seen.says("Workspace limits"));
    assert!(seen.says(">p-3</a>") && seen.says("3 days after the step before"), "{}", seen.body);
    for (deed, after, words) in [
        ("pause", CampaignState::Paused, "Paused by an operator"),
        ("resume", CampaignState::Running, "its e-mails are sent at their times"),
        ("cancel", CampaignState::Cancelled, "Cancelled by an operator"),
    ] {
        let answer = reader.press(&page, &format!("{page}/{deed}"), "").await;
        assert_eq!(answer.location(), page, "{deed}");
        assert_eq!(state(&stage, &id).await, after);
        assert!(reader.get(&page).await.says(words), "{deed}");
    }
    assert!(!reader.get(&page).await.says(&format!("{page}/cancel")), "what is ended has no buttons");
    let again = reader.press("/admin", &format!("{page}/resume"), "").await;
    assert_eq!(again.status, StatusCode::CONFLICT);
    assert_eq!(reader.press("/admin", &format!("{page}/x"), "").await.status, StatusCode::NOT_FOUND);
    assert!(reader.get("/admin/audit").await.says(&format!("href=\"{page}\">campaign:{id}<")));
}

#[tokio::test]
async fn a_mail_that_is_yet_to_be_written_says_whom_it_is_for_and_what_it_would_say() {
    let stage = Stage::new();
    let id = stage.campaign("default", "Spring", "ada@example.org", &["p-1"]).await;
    let record = stage.store.campaign(&id).await.unwrap().unwrap();
    let (mails, _) = stage.engine.schedule_of(&record, Place::default(), 10).await.unwrap();
    let page = format!("/admin/messages/{}", mails[1].id);
    let mut operator = stage.reader(Role::Operator, None).await;
    let seen = operator.get(&page).await;
    assert!(seen.says("<h1>Spring</h1>") && seen.says("<dt>To</dt><dd>p@example.org</dd>"), "{}", seen.body);
    assert!(seen.says("from step 2 of <a href=\"/admin/campaigns/of-1\">its campaign</a> for p-1"));
    assert!(seen.says("<pre class=\"body\">Hello</pre>") && !seen.says("0 bytes"), "{}", seen.body);
    let list = operator.get("/admin/messages").await;
    assert!(list.says(">Hi</a><span class=\"to\">p@example.org</span>"), "{}", list.body);
    let seen = stage.reader(Role::Viewer, None).await.get(&page).await;
    assert!(seen.says("p@example.org") && !seen.says(">Hello<"));
}

#[tokio::test]
async fn a_campaign_counts_all_of_its_dead_and_cancelled_and_not_those_of_others() {
    let stage = Stage::new();
    let id = stage.campaign("default", "Spring", "ada@example.org", &["p-1", "p-2", "p-3"]).await;
    let page = format!("/admin/campaigns/{id}");
    for key in ["p-8:seq:1", "p-9:other:1", "booking-17"] {
        let new = NewMessage { key: Some(key.into()), attempts: TRIES_MAX, ..mail(key) };
        stage.accept(new).await;
    }
    let record = stage.store.campaign(&id).await.unwrap().unwrap();
    let (mails, _) = stage.engine.schedule_of(&record, Place::default(), 10).await.unwrap();
    let refused = Outcome::Refused(Failure::new("550 no such user"));
    for mail in &mails[..2] {
        let message = stage.get(&mail.id).await;
        let route = stage.engine.route(&message.route).unwrap();
        let change = settle(&message, &refused, route, message.due_at);
        assert_eq!(stage.store.apply(vec![change]).await.unwrap(), [Applied::Applied]);
    }
    stage.engine.stop_prospect(&id, "p-2", "replied", &"grace".into()).await.unwrap();
    let mut viewer = stage.reader(Role::Viewer, None).await;
    let seen = viewer.get(&page).await;
    assert!(seen.says("id=\"dead\">2</span>") && seen.says("id=\"cancelled\">2</span>"), "{}", seen.body);
    assert!(
        seen.says("class=\"card alarm\"")
            && seen.says("<span class=\"number\">2</span><span class=\"meaning\">not sent yet")
    );
    for (mail, deed) in mails.iter().zip([Action::Dismiss, Action::Retry]) {
        stage.engine.operate(&mail.id, deed, &"grace".into()).await.unwrap();
    }
    let seen = viewer.get(&page).await;
    assert!(seen.says("id=\"dead\">0</span>"), "put away, and sent again: {}", seen.body);
    assert!(seen.says("<span class=\"number\">3</span><span class=\"meaning\">not sent yet"));
}

#[tokio::test]
async fn who_could_not_be_planned_is_told_with_the_reason_and_planned_again_once_corrected() {
    let stage = Stage::new();
    let id = stage.campaign("default", "Hi {{ first_name }}", "ada@example.org", &[]).await;
    let page = format!("/admin/campaigns/{id}");
    let prospect = |json: &str| vec![serde_json::from_str(json).unwrap()];
    let record = stage.store.campaign(&id).await.unwrap().unwrap();
    let mut definition = record.definition.clone();
    definition.steps[1].subject = "Hi {{ first_name }}".to_owned();
    let record = CampaignRecord { id: "named".into(), definition, ..record };
    let deed = Audit {
        actor: "stage".into(),
        action: "create",
        subject: "named".into(),
        at: record.created_at,
        detail: None,
    };
    assert!(stage.store.add_campaign(record, deed).await.unwrap());
    let page = page.replace(&*id, "named");
    stage.engine.enrol("named", prospect(r#"{ "id": "p-1", "email": "p@example.org" }"#)).await.unwrap();
    stage.engine.launch_campaign("named", &"stage".into()).await.unwrap();
    let mut operator = stage.reader(Role::Operator, None).await;
    let seen = operator.get(&page).await;
    assert!(
        seen.says("1 prospect could not be planned") && seen.says("<li>prospect p-1: step 2"),
        "{}",
        seen.body
    );
    assert!(!stage.reader(Role::Viewer, None).await.get(&page).await.says("Plan them again"));
    let named = r#"{ "id": "p-1", "email": "p@example.org", "first_name": "Ada" }"#;
    stage.engine.enrol("named", prospect(named)).await.unwrap();
    assert_eq!(operator.press(&page, &format!("{page}/launch"), "").await.location(), page);
    let seen = operator.get(&page).await;
    assert!(!seen.says("could not be planned") && seen.says("of 2 scheduled"), "{}", seen.body);
}

#[tokio::test]
async fn one_prospect_is_looked_up_paused_resumed_and_stopped_by_whoever_may() {
    let stage = Stage::new();
    let id = stage.campaign("acme", "Spring", "ada@example.org", &["p-1", "p-2", "p-3"]).await;
    let page = format!("/admin/campaigns/{id}");
    let (one, deeds) = (format!("{page}?prospect=p-2"), format!("{page}/prospects/p-2"));
    let mut operator = stage.reader(Role::Operator, Some("acme")).await;
    let seen = operator.get(&one).await;
    assert!(
        seen.says("id=\"standing\">active<") && seen.says(">p-2</a>") && !seen.says(">p-3</a>"),
        "{}",
        seen.body
    );
    assert!(operator.get(&format!("{page}?prospect=p-9")).await.says("no prospect with this id"));
    for (deed, said, standing) in [
        ("pause", "", "paused"),
        ("resume", "", "active"),
        ("pause", "", "paused"),
        ("stop", "replied", "stopped"),
    ] {
        let csrf = operator.get(&one).await.csrf();
        let fields = [("csrf", csrf.as_str()), ("reason", said)];
        let answer = operator.post(&format!("{deeds}/{deed}"), &fields).await;
        assert_eq!(answer.location(), one, "{deed}: {}", answer.body);
        assert!(operator.get(&one).await.says(&format!("id=\"standing\">{standing}<")), "{deed}");
    }
    let seen = operator.get(&one).await;
    assert!(seen.says("Stopped (replied)") && !seen.says(&deeds), "{}", seen.body);
    assert_eq!(operator.press(&page, &format!("{deeds}/pause"), "").await.status, StatusCode::CONFLICT);
    assert_eq!(operator.press(&page, &format!("{deeds}/x"), "").await.status, StatusCode::NOT_FOUND);
    let missing = operator.press(&page, &format!("{page}/prospects/p-9/pause"), "").await;
    assert_eq!(missing.status, StatusCode::NOT_FOUND);
    let nameless = operator.press(&page, &format!("{page}/prospects/p-1/stop"), "").await;
    assert_eq!(nameless.status, StatusCode::UNPROCESSABLE_ENTITY, "without a reason");
    let mut viewer = stage.reader(Role::Viewer, Some("acme")).await;
    assert!(!viewer.get(&format!("{page}?prospect=p-1")).await.says("Pause them"));
    let mut other = stage.reader(Role::Operator, Some("other")).await;
    for (reader, status) in [(&mut viewer, StatusCode::FORBIDDEN), (&mut other, StatusCode::NOT_FOUND)] {
        for deed in ["pause", "resume", "stop"] {
            let answer = reader.press("/admin", &format!("{page}/prospects/p-1/{deed}"), "").await;
            assert_eq!(answer.status, status, "{deed}");
        }
    }
    let unsigned = operator.post(&format!("{page}/prospects/p-1/pause"), &[("csrf", "")]).await;
    assert_eq!(unsigned.status, StatusCode::FORBIDDEN);
    let audit = stage.reader(Role::Viewer, None).await.get("/admin/audit").await;
    assert!(audit.says(&format!("campaign:{id}:p-2<")), "{}", audit.body);
}

#[tokio::test]
async fn a_forecast_of_many_is_found_out_only_by_whoever_asks_for_it() {
    let stage = Stage::new();
    let id = stage.campaign("default", "Spring", "ada@example.org", &[]).await;
    let page = format!("/admin/campaigns/{id}");
    let prospect = |n: u32| serde_json::json!({ "id": format!("p-{n}"), "email": "p@example.org" });
    let many = (0..5_001).map(|n| serde_json::from_value(prospect(n)).unwrap()).collect();
    stage.store.enrol(&id, many).await.unwrap();
    let mut reader = stage.reader(Role::Viewer, None).await;
    let seen = reader.get(&page).await;
    let link = format!("<a href=\"{page}/forecast\">");
    assert!(seen.says("5001 prospects are not planned yet") && seen.says(&link) && !seen.says("Forecast:"));
    let asked = reader.get(&format!("{page}/forecast")).await;
    assert!(asked.says("10,002 mails are done on") && asked.says("id=\"mails\">10002<"), "{}", asked.body);
    let mut other = stage.reader(Role::Viewer, Some("other")).await;
    assert_eq!(other.get(&format!("{page}/forecast")).await.status, StatusCode::NOT_FOUND);
}

#[tokio::test]
async fn a_draft_says_when_it_would_be_done_and_is_launched() {
    let stage = Stage::new();
    let id = stage.campaign("default", "Spring", "ada@example.org", &[]).await;
    let page = format!("/admin/campaigns/{id}");
    let mut reader = stage.reader(Role::Operator, None).await;
    assert!(reader.get(&page).await.says("Nothing is planned yet"));
    let prospect = serde_json::from_str(r#"{ "id": "p-1", "email": "p@example.org" }"#).unwrap();
    stage.store.enrol(&id, vec![prospect]).await.unwrap();
    assert!(reader.get(&page).await.says("Forecast: 2 mails are done on "));
    assert_eq!(reader.press(&page, &format!("{page}/launch"), "").await.location(), page);
    assert_eq!(state(&stage, &id).await, CampaignState::Running);
    assert!(reader.get(&page).await.says("of 2 scheduled"));
}

#[tokio::test]
async fn only_operators_of_its_workspace_act_on_a_campaign() {
    let stage = Stage::new();
    let id = stage.campaign("acme", "Spring", "ada@example.org", &["p-1"]).await;
    let page = format!("/admin/campaigns/{id}");
    let mut viewer = stage.reader(Role::Viewer, Some("acme")).await;
    assert!(viewer.get("/admin/campaigns").await.says("Spring"));
    assert!(!viewer.get(&page).await.says(&format!("{page}/pause")));
    let mut other = stage.reader(Role::Operator, Some("other")).await;
    assert_eq!(other.get(&page).await.status, StatusCode::NOT_FOUND);
    assert_eq!(other.get("/admin/campaigns?workspace=acme").await.status, StatusCode::FORBIDDEN);
    for (reader, status) in [(&mut viewer, StatusCode::FORBIDDEN), (&mut other, StatusCode::NOT_FOUND)] {
        for deed in ["launch", "pause", "resume", "cancel", "let-go"] {
            assert_eq!(reader.press("/admin", &format!("{page}/{deed}"), "").await.status, status, "{deed}");
        }
    }
    let mut own = stage.reader(Role::Operator, Some("acme")).await;
    assert_eq!(own.post(&format!("{page}/pause"), &[("csrf", "")]).await.status, StatusCode::FORBIDDEN);
    assert_eq!(state(&stage, &id).await, CampaignState::Running);
    assert_eq!(own.press(&page, &format!("{page}/pause"), "").await.location(), page);
    assert_eq!(state(&stage, &id).await, CampaignState::Paused);
}

#[tokio::test]
async fn a_sender_who_is_stopped_and_those_who_want_no_more_are_seen_where_it_matters() {
    let stage = Stage::new();
    let id = stage.campaign("acme", "Spring", "ada@example.org", &["p-1"]).await;
    let page = format!("/admin/campaigns/{id}");
    stage.engine.pause(Scope::Sender, "ada@example.org", &"grace".into()).await.unwrap();
    stage.engine.pause(Scope::Sender, "eve@example.org", &"grace".into()).await.unwrap();
    let unsubscribed = |address: &str| redeliver_engine::campaigns::Suppression {
        address: address.to_owned(),
        reason: "unsubscribed".into(),
    };
    let gone = ["a@example.org", "b@example.org"].map(unsubscribed).to_vec();
    stage.engine.suppress("acme", gone, &"grace".into()).await.unwrap();
    let mut own = stage.reader(Role::Operator, Some("acme")).await;
    let seen = own.get(&page).await;
    assert!(seen.says("The sender ada@example.org is paused") && !seen.says("eve@example.org"));
    assert!(seen.says("<span class=\"number\">2</span><span class=\"meaning\">addresses of the workspace"));
    assert!(!seen.says("let-go"), "a sender may write for other workspaces, too");
    assert_eq!(own.press("/admin", &format!("{page}/let-go"), "").await.status, StatusCode::FORBIDDEN);
    let mut all = stage.reader(Role::Operator, None).await;
    assert_eq!(all.press(&page, &format!("{page}/let-go"), "").await.location(), page);
    assert!(!all.get(&page).await.says("The sender ada@example.org"));
}
