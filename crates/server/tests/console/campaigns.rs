//! The pages about campaigns: how far they have come, what stands in their way, and what is done there.

use axum::http::StatusCode;
use redeliver_core::accept::NewMessage;
use redeliver_core::campaign::CampaignState;
use redeliver_core::gate::Scope;
use redeliver_engine::access::Role;
use redeliver_engine::campaign::Place;
use redeliver_engine::campaigns::Campaigns;

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
    assert!(seen.says("6 mails planned and 0 sent") && seen.says(": 1 planned, 0 sent, the day takes 1"));
    assert!(seen.says(": 2 planned, 0 sent, the day takes 2") && seen.says("Mails a day, in Europe/Paris"));
    assert!(seen.says("All of it is planned: the last mail goes out at <time"), "{}", seen.body);
    assert!(seen.says(">today</span>") && seen.says("What its workspace allows"));
    assert!(seen.says(">p-3</a>") && seen.says("3 days after the step before"), "{}", seen.body);
    for (deed, after, words) in [
        ("pause", CampaignState::Paused, "A person paused it"),
        ("resume", CampaignState::Running, "its mails go out at their times"),
        ("cancel", CampaignState::Cancelled, "A person cancelled it"),
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
async fn a_campaign_counts_its_dead_and_not_those_of_others() {
    let stage = Stage::new();
    let id = stage.campaign("default", "Spring", "ada@example.org", &["p-1"]).await;
    for key in ["p-8:seq:1", "p-9:seq:1", "p-9:other:1", "booking-17"] {
        let new = NewMessage { key: Some(key.into()), attempts: TRIES_MAX, ..mail(key) };
        stage.accept(new).await;
    }
    let seen = stage.reader(Role::Viewer, None).await.get(&format!("/admin/campaigns/{id}")).await;
    assert!(seen.says("id=\"dead\">2</span>") && seen.says("id=\"cancelled\">0</span>"), "{}", seen.body);
    assert!(seen.says("class=\"card alarm\""));
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
