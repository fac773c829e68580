//! Messages of our own and rows of an application's table are found together, by their times too, and a page looks through so many.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use redeliver_conformance::make::{at, message, row};
use redeliver_core::bulk::{Bulk, Pace, Which};
use redeliver_core::operate::Action;
use redeliver_core::policy::{Backoff, Jitter};
use redeliver_core::{Message, MessageId, Outcome, Policy, Route, Timestamp};
use redeliver_engine::clock::ManualClock;
use redeliver_engine::emit::Silence;
use redeliver_engine::engine::{Engine, Line, Settings};
use redeliver_engine::search::{LOOKED_THROUGH_MAX, Search};
use redeliver_engine::transport::Transport;
use redeliver_stores::mapping::{Columns, Mapping};

use crate::rig::{Put, Rig, mapping, row_id};
use crate::senders::Always;

/// Rows that say when they were made.
fn with_times() -> Mapping {
    let columns = Columns { created_at: Some("CreatedAt".to_owned()), ..Columns::default() };
    Mapping { columns, ..mapping() }
}

/// An engine on the table, at a time far behind everything.
async fn engine(rig: &Rig) -> Engine {
    let policy = Policy {
        backoff: Backoff::Table(vec![Duration::from_secs(60)]),
        jitter: Jitter::None,
        max_attempts: 3,
        expires_after: None,
    };
    let route = Route { table: Some("log".into()), ..Route::new("mail", "scripted", policy) };
    let carrier: Arc<dyn Transport> = Arc::new(Always(Outcome::HandedOff));
    let line = Line::new(route, &HashMap::from([("scripted".into(), carrier)]), Vec::new()).unwrap();
    let store = Arc::new(rig.again().await);
    Engine::new(store, ManualClock::at(at(10_000)), Arc::new(Silence), Settings::default(), vec![line])
}

fn id(n: u32) -> String {
    format!("00000000-0000-0000-0000-{n:012}")
}

/// A message of our own that was accepted then.
async fn own(rig: &Rig, when: Timestamp) -> MessageId {
    let id = MessageId::fresh(when, [7; 10]);
    let message = Message { id: id.clone(), route: "letters".into(), created_at: when, ..message(1) };
    rig.store().insert(vec![row(message)]).await.unwrap();
    id
}

/// What is on each page.
async fn pages(engine: &Engine, search: &Search, len: usize) -> Vec<Vec<MessageId>> {
    let (mut pages, mut after) = (Vec::new(), None);
    loop {
        let found = search.find(engine, after, len).await.unwrap();
        pages.push(found.messages.into_iter().map(|message| message.id).collect());
        after = found.next;
        if after.is_none() {
            return pages;
        }
    }
}

fn made(rig: &Rig, n: u32, when: Timestamp) {
    let when = match rig.place {
        crate::rig::Place::Sqlite { .. } => when.as_ms().to_string(),
        crate::rig::Place::Postgres(_) => format!("to_timestamp({}.0 / 1000)", when.as_ms()),
    };
    let id = id(n);
    rig.place.say(&format!("UPDATE \"EmailLog\" SET \"CreatedAt\" = {when} WHERE \"EmailId\" = '{id}'"));
}

/// What is found by when it was accepted, on both databases.
async fn rows_are_found_by_when_they_were_made(rig: &Rig) {
    let rows: Vec<Put> = (1..=4).map(|n| Put::failed(id(n), at(20_000))).collect();
    rig.put_all(&rows);
    // Their ids are in no order of time, and one says nothing.
    for (n, s) in [(1, 900), (2, 100), (4, 500)] {
        made(rig, n, at(s));
    }
    let ours = [own(rig, at(800)).await, own(rig, at(200)).await];
    let engine = engine(rig).await;
    let found = async |since: Option<i64>, before: Option<i64>| {
        let search = Search { since: since.map(at), before: before.map(at), ..Search::default() };
        pages(&engine, &search, 2).await.concat()
    };
    let all = [&ours[0], &ours[1], &row_id(id(4)), &row_id(id(3)), &row_id(id(2)), &row_id(id(1))];
    assert_eq!(found(None, None).await.iter().collect::<Vec<_>>(), all);
    assert_eq!(found(Some(500), None).await, [ours[0].clone(), row_id(id(4)), row_id(id(1))]);
    assert_eq!(found(None, Some(500)).await, [ours[1].clone(), row_id(id(2))]);
    assert_eq!(found(Some(150), Some(850)).await, [ours[0].clone(), ours[1].clone(), row_id(id(4))]);
}

#[test]
fn rows_that_say_when_they_were_made_are_found_by_it() {
    redeliver_conformance::judge(async {
        rows_are_found_by_when_they_were_made(&Rig::sqlite_with(with_times())).await;
        rows_are_found_by_when_they_were_made(&Rig::postgres_with(with_times(), |ddl| ddl).await).await;
    });
}

#[test]
fn a_page_of_rows_by_their_time_looks_through_so_many_and_the_next_goes_on() {
    redeliver_conformance::judge(async {
        let rig = Rig::sqlite_with(with_times());
        let count = LOOKED_THROUGH_MAX as u32 + 100;
        rig.put_all(&(1..=count).map(|n| Put::failed(id(n), at(0))).collect::<Vec<_>>());
        // The oldest by its id was made last.
        made(&rig, 1, at(900));
        let ours = own(&rig, at(800)).await;
        own(&rig, at(100)).await;
        let engine = engine(&rig).await;
        let since = Search { since: Some(at(500)), ..Search::default() };
        assert_eq!(pages(&engine, &since, 50).await, [vec![ours], vec![row_id(id(1))]]);
        let before = Search { before: Some(at(50)), ..Search::default() };
        assert_eq!(pages(&engine, &before, 50).await, [vec![], vec![]]);
    });
}

#[test]
fn a_bulk_operation_means_rows_that_are_not_due_and_rows_that_say_no_time() {
    redeliver_conformance::judge(async {
        let rig = Rig::sqlite();
        rig.put(&Put { status: "Dead", attempts: 3, ..Put::failed(id(1), at(20_000)) });
        rig.put(&Put { status: "Dead", next_attempt_at: None, ..Put::failed(id(2), at(0)) });
        let dead = rig.store().get(row_id(id(2))).await.unwrap().unwrap();
        assert_eq!((dead.created_at.known(), dead.state.ended_at().unwrap().known()), (None, None));
        let engine = engine(&rig).await;
        let count = async |since: Option<Timestamp>, before: Timestamp| {
            let which =
                Which { status: Some("dead".into()), since, before: Some(before), ..Which::default() };
            let pace = Pace { rate_per_s: 50, is_careful: false };
            let bulk = Bulk::new("b", "ada", Action::Retry, which, pace, at(10_000));
            let forecast = engine.forecast(&bulk).await.unwrap();
            (forecast.count, forecast.oldest_at)
        };
        // Whoever asks by no time means all that is there when it begins.
        let begun = at(10_000).plus(Duration::from_millis(1));
        assert_eq!(count(None, begun).await, (2, None));
        assert_eq!(count(None, at(9_000)).await, (0, None), "nobody knows that they are older");
        assert_eq!(count(Some(at(0)), begun).await, (0, None), "nor that they are younger");
    });
}
