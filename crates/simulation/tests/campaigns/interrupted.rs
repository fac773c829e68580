//! Planning that ends with its process: once, it is resumed; again and again, its campaign is paused.

use std::sync::Arc;

use redeliver_core::InstanceId;
use redeliver_core::campaign::CampaignState;
use redeliver_engine::campaigns::{CampaignChange, CampaignRecord, Campaigns, PlanningMark};
use redeliver_simulation::stage::Stage;

use crate::{HOUR, act, campaigns_route, deed, delivered, set_up};

/// What a process leaves behind that crashes while it plans: its mark, which has run out by now, and no part.
fn crash(stage: &mut Stage, planner: u64) {
    let (store, now) = (Arc::clone(&stage.store), stage.time());
    let mark = PlanningMark { campaign: "c".into(), planner: InstanceId(planner), now, until_at: now };
    stage.now(async move { store.begin_planning(mark).await.unwrap() });
}

/// A campaign that runs, and of whose three prospects nobody is planned.
fn running() -> Stage {
    let mut stage = Stage::at_ease(campaigns_route(), delivered);
    set_up(&mut stage, "c", "{}", 3);
    let store = Arc::clone(&stage.store);
    let (from, to) = (CampaignState::Draft, CampaignState::Running);
    let change = CampaignChange { id: "c".into(), from, to, paused_for: None, audit: deed() };
    stage.now(async move { assert!(store.move_campaign(change).await.unwrap()) });
    stage
}

fn record(stage: &mut Stage) -> CampaignRecord {
    act(stage, async |engine| engine.campaign("c").await.unwrap())
}

#[test]
fn a_planning_that_was_killed_twice_is_resumed() {
    let mut stage = running();
    crash(&mut stage, 901);
    crash(&mut stage, 902);
    act(&mut stage, async |engine| engine.tend_once().await);
    assert_eq!(record(&mut stage).scheduled, 6);
    assert_eq!(record(&mut stage).paused_for, None);
}

#[test]
fn a_campaign_whose_planning_keeps_ending_the_process_is_paused_with_the_reason() {
    let mut stage = running();
    for planner in [901, 902, 903] {
        crash(&mut stage, planner);
    }
    act(&mut stage, async |engine| engine.tend_once().await);
    let paused = record(&mut stage);
    assert_eq!((paused.state, paused.scheduled), (CampaignState::Paused, 0));
    assert!(
        paused.paused_for.as_deref().is_some_and(|why| why.contains("interrupted 3 times")),
        "{paused:?}"
    );
    act(&mut stage, async |engine| engine.tend_once().await);
    assert_eq!(record(&mut stage).scheduled, 0, "it is not tried again");
    act(&mut stage, async |engine| engine.resume_campaign("c", &"ann".into()).await.unwrap());
    stage.pass(HOUR);
    let resumed = record(&mut stage);
    assert_eq!((resumed.scheduled, resumed.paused_for), (6, None), "a person may let it go on");
}
