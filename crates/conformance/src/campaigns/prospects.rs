//! Campaigns and prospects are kept whole; positions have no gaps.

use redeliver_core::campaign::{CampaignState, Prospect, Settings};
use redeliver_core::change::Audit;
use redeliver_engine::campaigns::{CampaignChange, CampaignRecord, WorkspaceRecord};

use super::{CampaignRig, add, campaign, deed, prospect};
use crate::make::at;
use crate::store::at_once;

/// Every part of it.
pub async fn a_campaign_comes_back_as_it_was_given(rig: &dyn CampaignRig) {
    let record = campaign("c-1", CampaignState::Draft);
    add(rig, record.clone()).await;
    assert_eq!(rig.campaigns().campaign("c-1").await.unwrap(), Some(record.clone()));
    assert!(!rig.campaigns().add_campaign(record, deed("create_campaign")).await.unwrap());
    assert_eq!(rig.campaigns().campaign("c-2").await.unwrap(), None);
    assert_eq!(rig.store().audit(9).await.unwrap(), [deed("create_campaign")]);
}

/// Oldest first, and nobody else's.
pub async fn campaigns_are_their_workspaces(rig: &dyn CampaignRig) {
    for id in ["c-2", "c-1"] {
        add(rig, campaign(id, CampaignState::Draft)).await;
    }
    add(rig, CampaignRecord { workspace: "other".into(), ..campaign("c-3", CampaignState::Draft) }).await;
    let ids = |found: Vec<CampaignRecord>| found.into_iter().map(|record| record.id).collect::<Vec<_>>();
    assert_eq!(ids(rig.campaigns().campaigns("default").await.unwrap()), ["c-1".into(), "c-2".into()]);
    assert_eq!(ids(rig.campaigns().campaigns("other").await.unwrap()), ["c-3".into()]);
}

/// Of two deeds that exclude each other, one happens.
pub async fn a_campaign_moves_only_from_where_it_stands(rig: &dyn CampaignRig) {
    add(rig, campaign("c-1", CampaignState::Draft)).await;
    let change =
        |from, to| CampaignChange { id: "c-1".into(), from, to, paused_for: None, audit: deed("launch") };
    let moves = |change| rig.campaigns().move_campaign(change);
    assert!(moves(change(CampaignState::Draft, CampaignState::Running)).await.unwrap());
    assert!(!moves(change(CampaignState::Draft, CampaignState::Cancelled)).await.unwrap());
    let state = rig.campaigns().campaign("c-1").await.unwrap().unwrap().state;
    assert_eq!(state, CampaignState::Running);
    assert_eq!(rig.store().audit(9).await.unwrap().len(), 2, "what was not done is no deed");
}

/// A workspace that was never heard of narrows nothing.
pub async fn settings_come_back_and_count_their_versions(rig: &dyn CampaignRig) {
    assert_eq!(rig.campaigns().workspace("w").await.unwrap(), WorkspaceRecord::default());
    for quota in [5, 6] {
        let settings = Settings { daily_quota: Some(quota), ..Settings::default() };
        rig.campaigns().put_settings("w".into(), settings, deed("put_settings")).await.unwrap();
    }
    let record = rig.campaigns().workspace("w").await.unwrap();
    assert_eq!((record.settings.daily_quota, record.settings_version, record.plan_version), (Some(6), 2, 0));
}

/// From 1, a page at a time.
pub async fn prospects_keep_the_order_in_which_they_came(rig: &dyn CampaignRig) {
    add(rig, campaign("c-1", CampaignState::Draft)).await;
    let all: Vec<_> = [3, 1, 2].map(prospect).into();
    assert_eq!(rig.campaigns().enrol("c-1", all.clone()).await.unwrap(), [true; 3]);
    let page = rig.campaigns().prospects("c-1", 0, 2).await.unwrap();
    let rest = rig.campaigns().prospects("c-1", 2, 2).await.unwrap();
    let found: Vec<_> =
        page.into_iter().chain(rest).map(|record| (record.position, record.prospect)).collect();
    assert_eq!(found, (1..).zip(all).collect::<Vec<_>>());
    assert_eq!(rig.campaigns().campaign("c-1").await.unwrap().unwrap().prospects, 3);
}

/// Whoever is known stays as they were, also within one batch.
pub async fn a_prospect_is_enrolled_once(rig: &dyn CampaignRig) {
    add(rig, campaign("c-1", CampaignState::Draft)).await;
    let batch = vec![prospect(1), prospect(2), prospect(1)];
    assert_eq!(rig.campaigns().enrol("c-1", batch).await.unwrap(), [true, true, false]);
    let batch = vec![prospect(2), prospect(3)];
    assert_eq!(rig.campaigns().enrol("c-1", batch).await.unwrap(), [false, true]);
    let positions: Vec<u64> =
        rig.campaigns().prospects("c-1", 0, 9).await.unwrap().iter().map(|record| record.position).collect();
    assert_eq!(positions, [1, 2, 3]);
    assert_eq!(rig.campaigns().enrol("nobody", vec![prospect(1)]).await.unwrap(), [false]);
}

/// In their place, and only they.
pub async fn a_prospect_is_corrected_in_its_place(rig: &dyn CampaignRig) {
    add(rig, campaign("c-1", CampaignState::Running)).await;
    rig.campaigns().enrol("c-1", vec![prospect(1), prospect(2)]).await.unwrap();
    let corrected = Prospect { email: "new@example.org".to_owned(), ..prospect(1) };
    assert!(rig.campaigns().correct("c-1", corrected.clone()).await.unwrap());
    let found = rig.campaigns().prospects("c-1", 0, 9).await.unwrap();
    let found: Vec<_> = found.into_iter().map(|record| (record.position, record.prospect)).collect();
    assert_eq!(found, [(1, corrected.clone()), (2, prospect(2))]);
    assert!(!rig.campaigns().correct("c-1", prospect(3)).await.unwrap());
    assert!(!rig.campaigns().correct("c-2", corrected).await.unwrap());
}

/// So that whoever plans behind a position misses nobody.
pub async fn those_who_enrol_at_once_get_positions_without_gaps(rig: &dyn CampaignRig) {
    add(rig, campaign("c-1", CampaignState::Draft)).await;
    at_once(|n| async move {
        for k in 0..5 {
            // Half of them are said by everybody.
            let batch = vec![prospect(k), prospect(100 + n * 10 + k)];
            rig.campaigns().enrol("c-1", batch).await.unwrap();
        }
    });
    let found = rig.campaigns().prospects("c-1", 0, 100).await.unwrap();
    let positions: Vec<u64> = found.iter().map(|record| record.position).collect();
    assert_eq!(positions, (1..=45).collect::<Vec<_>>());
}

/// The first reason stands.
pub async fn a_prospect_is_stopped_once(rig: &dyn CampaignRig) {
    add(rig, campaign("c-1", CampaignState::Draft)).await;
    rig.campaigns().enrol("c-1", vec![prospect(1)]).await.unwrap();
    let stop = |id: &'static str, reason: &'static str| {
        rig.campaigns().stop_prospect("c-1", id, reason, deed("stop"))
    };
    assert!(stop("p-1", "replied").await.unwrap());
    assert!(!stop("p-1", "bounced").await.unwrap());
    assert!(!stop("p-2", "bounced").await.unwrap());
    let found = rig.campaigns().prospects("c-1", 0, 9).await.unwrap();
    assert_eq!(found[0].stopped_for.as_deref(), Some("replied"));
}

/// Since the first time that it was said, and it is a deed each time that something changed.
pub async fn a_prospect_is_paused_until_they_are_resumed(rig: &dyn CampaignRig) {
    add(rig, campaign("c-1", CampaignState::Running)).await;
    rig.campaigns().enrol("c-1", vec![prospect(1), prospect(2)]).await.unwrap();
    let pause = |id: &'static str| rig.campaigns().pause_prospect("c-1", id, deed("pause"));
    let resume = |id: &'static str| rig.campaigns().resume_prospect("c-1", id, deed("resume"));
    assert!(!resume("p-1").await.unwrap(), "they are not paused");
    assert!(pause("p-1").await.unwrap());
    let later = Audit { at: at(9), ..deed("pause") };
    assert!(!rig.campaigns().pause_prospect("c-1", "p-1", later).await.unwrap());
    for nobody in ["p-3", "\0"] {
        assert!(!pause(nobody).await.unwrap() && !resume(nobody).await.unwrap());
    }
    assert!(!rig.campaigns().pause_prospect("c-2", "p-1", deed("pause")).await.unwrap());
    let found = rig.campaigns().prospects("c-1", 0, 9).await.unwrap();
    let paused: Vec<_> = found.iter().map(|record| record.paused_at).collect();
    assert_eq!(paused, [Some(at(1)), None]);
    let dossier = || async { rig.campaigns().dossier("c-1", "p-1").await.unwrap().unwrap() };
    assert_eq!(dossier().await.prospect, found[0]);
    assert!(resume("p-1").await.unwrap() && !resume("p-1").await.unwrap());
    assert_eq!(dossier().await.prospect.paused_at, None);
    let deeds: Vec<_> = rig.store().audit(9).await.unwrap().iter().map(|deed| deed.action).collect();
    assert_eq!(deeds, ["resume", "pause", "create_campaign"]);
}

/// A stop is final, and says all there is to say.
pub async fn whoever_was_stopped_is_neither_paused_nor_resumed(rig: &dyn CampaignRig) {
    add(rig, campaign("c-1", CampaignState::Running)).await;
    rig.campaigns().enrol("c-1", vec![prospect(1)]).await.unwrap();
    assert!(rig.campaigns().pause_prospect("c-1", "p-1", deed("pause")).await.unwrap());
    assert!(rig.campaigns().stop_prospect("c-1", "p-1", "replied", deed("stop")).await.unwrap());
    assert!(!rig.campaigns().pause_prospect("c-1", "p-1", deed("pause")).await.unwrap());
    assert!(!rig.campaigns().resume_prospect("c-1", "p-1", deed("resume")).await.unwrap());
    let record = &rig.campaigns().prospects("c-1", 0, 9).await.unwrap()[0];
    assert_eq!((record.stopped_for.as_deref(), record.paused_at), (Some("replied"), None));
}

/// What a mail needs before it goes out, in one look.
pub async fn a_dossier_has_what_is_needed_and_nothing_is_none(rig: &dyn CampaignRig) {
    add(rig, campaign("c-1", CampaignState::Running)).await;
    rig.campaigns().enrol("c-1", vec![prospect(1)]).await.unwrap();
    let dossier = rig.campaigns().dossier("c-1", "p-1").await.unwrap().unwrap();
    assert_eq!((dossier.state, dossier.settings_version), (CampaignState::Running, 0));
    assert_eq!(&*dossier.workspace, "default");
    assert_eq!(dossier.prospect.prospect, prospect(1));
    let settings = Settings { daily_quota: Some(3), ..Settings::default() };
    rig.campaigns().put_settings("default".into(), settings, deed("put_settings")).await.unwrap();
    assert_eq!(rig.campaigns().dossier("c-1", "p-1").await.unwrap().unwrap().settings_version, 1);
    for (campaign, id) in [("c-1", "p-2"), ("c-2", "p-1"), ("c-1", "\0")] {
        assert_eq!(rig.campaigns().dossier(campaign, id).await.unwrap(), None);
    }
}
