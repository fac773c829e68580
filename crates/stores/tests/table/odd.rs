//! Rows in which an application wrote what is no time or no number: they hold up no other.

use redeliver_conformance::make::{at, request};
use redeliver_core::Outcome;
use redeliver_core::operate::{Action, operate};
use redeliver_core::settle::settle;
use redeliver_engine::store::Applied;

use crate::alone::{claim_one, get, route, write};
use crate::rig::{Place, Put, Rig, mapping, row_id};

const ONE: &str = "00000000-0000-0000-0000-000000000001";
const TWO: &str = "00000000-0000-0000-0000-000000000002";
const THREE: &str = "00000000-0000-0000-0000-000000000003";
const FOUR: &str = "00000000-0000-0000-0000-000000000004";

#[test]
fn times_and_counts_that_are_none_hold_nothing_up() {
    redeliver_conformance::judge(async {
        hold_nothing_up(&Rig::sqlite()).await;
        hold_nothing_up(&Rig::postgres().await).await;
    });
}

async fn hold_nothing_up(rig: &Rig) {
    rig.put_all(&[ONE, TWO, THREE, FOUR].map(|id| Put::failed(id, at(0))));
    let odd = |id: &str, values: &str| {
        rig.place.say(&format!("UPDATE \"EmailLog\" SET {values} WHERE \"EmailId\" = '{id}'"));
    };
    match &rig.place {
        Place::Postgres(_) => {
            odd(TWO, "\"NextAttemptAt\" = '-infinity', \"LastQueuedAt\" = 'infinity'");
            odd(THREE, "\"NextAttemptAt\" = 'infinity', \"AttemptCount\" = 3");
            odd(
                FOUR,
                "\"Status\" = 'Dead', \"LockedUntil\" = 'infinity', \"LastQueuedAt\" = '294276-12-31 23:59:59+00'",
            );
        }
        Place::Sqlite { .. } => {
            odd(TWO, "\"AttemptCount\" = 'often', \"LastQueuedAt\" = x'00'");
            odd(THREE, "\"NextAttemptAt\" = 'tomorrow', \"AttemptCount\" = '3'");
            odd(FOUR, "\"Status\" = 'Dead', \"LockedUntil\" = 'for ever', \"LastError\" = 1.5");
        }
    }
    // What no calendar has is as early or as late as anything can be; a count that is none is no try.
    let claims = rig.store().claim(request()).await.unwrap();
    let mut claimed: Vec<_> = claims.claimed.into_iter().map(|(message, _)| message).collect();
    claimed.sort_by_key(|message| message.id.to_string());
    let ids: Vec<_> = claimed.iter().map(|message| message.id.clone()).collect();
    assert_eq!(ids, [row_id(ONE), row_id(TWO)]);
    for message in &claimed {
        let change = settle(message, &Outcome::HandedOff, &route(), at(1));
        assert_eq!(write(rig.store(), change).await, Applied::Applied);
    }
    let dead = get(rig.store(), FOUR).await;
    let retry = operate(&dead, Action::Retry, &"ada".into(), &route(), at(2)).unwrap();
    assert_eq!(write(rig.store(), retry).await, Applied::Applied);
    let claimed = claim_one(rig.store(), 2).await;
    assert_eq!((claimed.id, claimed.due_at), (row_id(FOUR), at(2)));
    // Whoever looks after the table hears of the one that is left.
    assert_eq!(rig.rows(mapping()).await.examine(at(3)).await.unwrap().untimely, 1);
}
