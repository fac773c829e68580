//! Whoever wants no more gets nothing, and what waited goes out once they are off the list.

use std::sync::Arc;

use redeliver_core::campaign::CampaignState;
use redeliver_core::{Failure, Outcome, Timestamp};
use redeliver_engine::campaigns::Suppression;
use redeliver_engine::store::Store;
use redeliver_simulation::stage::Stage;

use crate::{
    AT_ONCE, DAY, HOUR, NINE_TO_ELEVEN, act, campaigns_route, delivered, judge, launch, prospect_of, set_up,
    set_up_steps, state, times,
};

#[test]
fn whoever_wants_no_more_gets_nothing_and_what_waited_goes_out_once_they_are_off_the_list() {
    let mut stage = Stage::at_ease(campaigns_route(), delivered);
    set_up(&mut stage, "c-1", NINE_TO_ELEVEN, 2);
    set_up(&mut stage, "c-2", "{}", 2);
    launch(&mut stage, "c-1");
    act(&mut stage, async move |engine| {
        let stopped = engine.stop_prospect("c-2", "p-1", "unsubscribed", &"ann".into()).await;
        assert_eq!(stopped.unwrap().as_deref(), Some("unsubscribed"));
    });
    stage.pass(4 * DAY);
    let before: Vec<String> = stage.log().carryings.iter().map(prospect_of).collect();
    assert_eq!(before, ["p-2", "p-2"], "of the other campaign of the workspace, too");
    assert_eq!(state(&mut stage, "c-1"), CampaignState::Done, "nothing more happens by itself");
    act(&mut stage, async move |engine| {
        let listed = engine.suppressions("default", "", 9).await.unwrap();
        assert_eq!(&*listed[0].0.address, "p1@example.org");
        assert!(engine.unsuppress("default", "P1@Example.org", &"ann".into()).await.unwrap());
    });
    stage.pass(4 * DAY);
    assert_eq!(stage.log().carryings[2..].iter().map(prospect_of).collect::<Vec<_>>(), ["p-1", "p-1"]);
    judge(&times(&stage), 6);
}

#[test]
fn whoever_is_taken_off_the_list_gets_what_waited_however_many_wait_before_them() {
    let mut stage = Stage::at_ease(campaigns_route(), delivered);
    set_up_steps(&mut stage, "c", r#"{ "spacing": ["0s", "0s"] }"#, 1_200, &[0]);
    act(&mut stage, async move |engine| {
        let one = |n: u32| Suppression { address: format!("p{n}@example.org"), reason: "bounced".into() };
        engine.suppress("default", (1..=1_200).map(one).collect(), &"ann".into()).await.unwrap();
    });
    launch(&mut stage, "c");
    stage.pass(HOUR);
    assert_eq!(times(&stage).len(), 0);
    act(&mut stage, async move |engine| {
        assert!(engine.unsuppress("default", "p1200@example.org", &"ann".into()).await.unwrap());
    });
    stage.pass(HOUR);
    let seen: Vec<String> = stage.log().carryings.iter().map(prospect_of).collect();
    assert_eq!(seen, ["p-1200"]);
    let store = Arc::clone(&stage.store);
    let counts = stage.now(async move { store.counts(Timestamp::MAX).await }).unwrap();
    assert_eq!(
        counts.iter().map(|count| count.parked).sum::<u64>(),
        1_199,
        "the others wait again, and cost nothing"
    );
}

#[test]
fn an_address_that_is_no_good_is_put_on_the_list_and_its_next_step_never_goes_out() {
    let mut stage = Stage::at_ease(campaigns_route(), |carrying| match prospect_of(carrying).as_str() {
        "p-1" => (AT_ONCE, Outcome::Refused(Failure::new("RCPT: 550 5.1.1 no such user").with_code("550"))),
        _ => (AT_ONCE, Outcome::Delivered { receipt: None }),
    });
    set_up(&mut stage, "c", NINE_TO_ELEVEN, 2);
    launch(&mut stage, "c");
    stage.pass(4 * DAY);
    let seen: Vec<String> = stage.log().carryings.iter().map(prospect_of).collect();
    assert_eq!(seen.iter().filter(|id| *id == "p-1").count(), 1);
    assert_eq!(seen.iter().filter(|id| *id == "p-2").count(), 2);
    let listed = act(&mut stage, async move |engine| engine.suppressions("default", "", 9).await.unwrap());
    assert_eq!((listed.len(), &*listed[0].0.reason), (1, "bounced"));
}
