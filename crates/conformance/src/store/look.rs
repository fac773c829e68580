//! People see what there is, all of it, and nothing twice.

use std::sync::Arc;

use redeliver_core::attempt::{AttemptRecord, Verdict};
use redeliver_core::change::Audit;
use redeliver_core::gate::{GateKey, Scope};
use redeliver_core::operate::{Action, operate};
use redeliver_core::status::Status;
use redeliver_core::{DeadReason, Lane, Lease, Message, MessageId, State};
use redeliver_engine::store::{Count, DeedFilter, Filter, StatusAt, Store};

use crate::make::*;

/// Nobody's message, nobody's content, nobody's history.
pub async fn an_unknown_message_is_no_error(store: &dyn Store) {
    assert_eq!(store.get(id(1)).await.unwrap(), None);
    assert_eq!(store.content(id(1)).await.unwrap(), None);
    assert_eq!(store.attempts(id(1)).await.unwrap(), []);
}

/// Try by try, each message its own.
pub async fn history_is_told_oldest_first(store: &dyn Store) {
    keep_all(store, [message(1), message(2)]).await;
    for n in 1..=12 {
        store.note(id(1), failed_record(n, i64::from(n))).await.unwrap();
    }
    store.note(id(2), failed_record(99, 5)).await.unwrap();
    let told: Vec<u32> = store.attempts(id(1)).await.unwrap().iter().map(|record| record.attempt).collect();
    assert_eq!(told, (1..=12).collect::<Vec<u32>>());
}

/// Every verdict, with or without who and why, and with each of its times or without.
pub async fn history_comes_back_whole(store: &dyn Store) {
    keep(store, row(message(1))).await;
    let mut records: Vec<AttemptRecord> = Verdict::ALL
        .into_iter()
        .zip(1..)
        .map(|(verdict, n)| AttemptRecord { verdict, generation: n, ..failed_record(n, i64::from(n)) })
        .collect();
    let bare = AttemptRecord { instance: None, failure: None, ..failed_record(9, 9) };
    records.push(bare.clone());
    records.push(AttemptRecord { due_at: None, claimed_at: None, ..failed_record(10, 10) });
    records.push(AttemptRecord { due_at: None, claimed_at: None, sent_at: None, ..bare });
    for record in &records {
        store.note(id(1), record.clone()).await.unwrap();
    }
    assert_eq!(store.attempts(id(1)).await.unwrap(), records);
}

/// A result that came too late is worth knowing, and nothing more.
pub async fn a_late_note_changes_nothing_but_the_history(store: &dyn Store) {
    let claimed = keep_claimed(store, 1).await;
    let late = AttemptRecord { verdict: Verdict::Late, ..failed_record(1, 1) };
    store.note(id(1), late.clone()).await.unwrap();
    assert_eq!(now_of(store, &id(1)).await, claimed);
    assert_eq!(store.attempts(id(1)).await.unwrap(), [late]);
}

/// The message may be gone by the time that somebody has something to say about it.
pub async fn a_note_about_nobody_is_no_error(store: &dyn Store) {
    store.note(id(1), failed_record(1, 1)).await.unwrap();
    assert_eq!(store.get(id(1)).await.unwrap(), None);
}

/// Ids sort by the time they were made.
pub async fn the_list_is_newest_first(store: &dyn Store) {
    keep_all(store, [3, 1, 4, 2].map(message)).await;
    assert_eq!(listed(store, everything()).await, numbered([4, 3, 2, 1]));
    assert_eq!(listed(store, Filter { limit: 2, ..everything() }).await, numbered([4, 3]));
    let whole = store.list(Filter { limit: 1, ..everything() }).await.unwrap();
    assert_eq!(whole, [message(4)]);
}

/// Workspace A never sees B.
pub async fn the_list_is_filtered_by_workspace(store: &dyn Store) {
    let of = |n, workspace: &str| Message { workspace: workspace.into(), ..message(n) };
    keep_all(store, [of(1, "a"), of(2, "b"), of(3, "a"), of(4, "A")]).await;
    let filter = Filter { workspace: Some("a".into()), ..everything() };
    assert_eq!(listed(store, filter).await, numbered([3, 1]));
}

/// One route alone.
pub async fn the_list_is_filtered_by_route(store: &dyn Store) {
    let on = |n, route: &str| Message { route: route.into(), ..message(n) };
    keep_all(store, [on(1, "mail"), on(2, "letters"), on(3, "mail")]).await;
    let filter = Filter { route: Some("letters".into()), ..everything() };
    assert_eq!(listed(store, filter).await, numbered([2]));
}

/// Every state by its word.
pub async fn the_list_is_filtered_by_state(store: &dyn Store) {
    let messages: Vec<Message> = (1..).zip(one_of_each()).map(|(n, state)| standing(n, state)).collect();
    keep_all(store, messages.clone()).await;
    for message in messages {
        let filter = Filter { state: Some(message.state.name()), ..everything() };
        assert_eq!(listed(store, filter).await, ids([&message]), "{}", message.state.name());
    }
}

/// What people call it, which depends on the time at which they ask.
pub async fn the_list_is_filtered_by_status(store: &dyn Store) {
    let due = |n, s, attempts| Message { due_at: at(s), attempts, ..message(n) };
    let parked = State::Waiting { parked_for: Some(GateKey::pause(Scope::Route, "mail")) };
    let [_, claimed, handed_off, delivered, dead, cancelled] = one_of_each();
    let suspect = |message| Message { losses: 1, ..message };
    let messages = [
        due(1, 0, 0),
        due(2, 5, 0),
        due(3, 5, 2),
        due(4, 0, 2),
        suspect(due(5, 0, 1)),
        suspect(due(6, 5, 1)),
        Message { state: parked, ..due(7, 0, 1) },
        standing(8, claimed),
        standing(9, handed_off),
        standing(10, delivered),
        standing(11, dead),
        standing(12, cancelled),
    ];
    keep_all(store, messages).await;
    let of = |status, s| Filter { status: Some(StatusAt { status, now: at(s) }), ..everything() };
    for (status, s, expected) in [
        (Status::Due, 0, &[5, 4, 1][..]),
        (Status::Due, 5, &[6, 5, 4, 3, 2, 1]),
        (Status::Due, -1, &[]),
        (Status::Scheduled, 0, &[2]),
        (Status::Scheduled, -1, &[2, 1]),
        (Status::Retrying, 0, &[6, 3]),
        (Status::Held, 0, &[7]),
        (Status::Sending, 0, &[8]),
        (Status::HandedOff, 0, &[9]),
        (Status::Delivered, 0, &[10]),
        (Status::Dead, 0, &[11]),
        (Status::Cancelled, 0, &[12]),
    ] {
        let found = listed(store, of(status, s)).await;
        assert_eq!(found, numbered(expected.iter().copied()), "{} at {s}", status.name());
    }
    let never = Filter { state: Some("dead"), ..of(Status::Due, 0) };
    assert_eq!(listed(store, never).await, [], "nothing is both");
    let both = Filter { state: Some("waiting"), ..of(Status::Due, 0) };
    assert_eq!(listed(store, both).await, numbered([5, 4, 1]));
}

/// One priority alone, whatever else is asked for.
pub async fn the_list_is_filtered_by_lane(store: &dyn Store) {
    let states = || one_of_each().into_iter().enumerate();
    for (i, lane) in Lane::ALL.into_iter().enumerate() {
        let number = |j: usize| (i * 10 + j) as u32;
        keep_all(store, states().map(|(j, state)| Message { lane, ..standing(number(j), state) })).await;
    }
    for (i, lane) in Lane::ALL.into_iter().enumerate() {
        let all = Filter { lane: Some(lane), ..everything() };
        let number = |j: usize| (i * 10 + j) as u32;
        assert_eq!(listed(store, all.clone()).await, numbered((0..6).rev().map(number)), "{}", lane.name());
        for (j, state) in states() {
            let filter = Filter { state: Some(state.name()), ..all.clone() };
            assert_eq!(
                listed(store, filter).await,
                numbered([number(j)]),
                "{} {}",
                lane.name(),
                state.name()
            );
        }
    }
}

/// The page is as long as was asked for, though others stand between its messages.
pub async fn pages_of_one_status_have_no_gaps_and_no_repeats(store: &dyn Store) {
    let of = |n: u32| Message { due_at: at(i64::from(n % 3)), attempts: n % 2, ..message(n) };
    keep_all(store, (1..=60).map(of)).await;
    for (status, fits) in [
        (Status::Due, (|n| n % 3 == 0) as fn(&u32) -> bool),
        (Status::Scheduled, |n| n % 3 > 0 && n % 2 == 0),
        (Status::Retrying, |n| n % 3 > 0 && n % 2 == 1),
    ] {
        let filter = Filter { status: Some(StatusAt { status, now: at(0) }), ..everything() };
        assert_eq!(listed(store, Filter { limit: 7, ..filter.clone() }).await.len(), 7);
        assert_eq!(paged(store, filter, 7).await, numbered((1..=60).rev().filter(fits)), "{}", status.name());
    }
}

/// In whichever workspaces it is.
pub async fn the_list_is_filtered_by_key(store: &dyn Store) {
    let elsewhere = Message { workspace: "acme".into(), ..keyed(3, "k") };
    keep_all(store, [keyed(1, "k"), keyed(2, "l"), elsewhere, message(4)]).await;
    let filter = Filter { key: Some("k".into()), ..everything() };
    assert_eq!(listed(store, filter.clone()).await, numbered([3, 1]));
    let filter = Filter { workspace: Some("default".into()), ..filter };
    assert_eq!(listed(store, filter).await, numbered([1]));
}

/// What fits all of them is listed.
pub async fn the_filters_of_a_list_add_up(store: &dyn Store) {
    let fits = |n| Message { workspace: "a".into(), route: "mail".into(), ..standing(n, delivered(1)) };
    let others = [
        Message { workspace: "b".into(), ..fits(2) },
        Message { route: "letters".into(), ..fits(3) },
        Message { state: waiting(), ..fits(4) },
    ];
    keep_all(store, [fits(1), fits(5)].into_iter().chain(others)).await;
    let filter = Filter {
        workspace: Some("a".into()),
        route: Some("mail".into()),
        state: Some("delivered"),
        ..everything()
    };
    assert_eq!(listed(store, filter.clone()).await, numbered([5, 1]));
    assert_eq!(listed(store, Filter { after: Some(id(5)), ..filter }).await, numbered([1]));
}

/// What was put away is out of sight, not out of reach.
pub async fn dismissed_messages_are_listed_only_on_demand(store: &dyn Store) {
    keep_all(store, [standing(1, dead(1, None)), standing(2, dead(1, Some(2)))]).await;
    assert_eq!(listed(store, everything()).await, numbered([1]));
    let dead = Filter { state: Some("dead"), ..everything() };
    assert_eq!(listed(store, dead.clone()).await, numbered([1]));
    assert_eq!(listed(store, Filter { with_dismissed: true, ..dead }).await, numbered([2, 1]));
}

/// Page after page, everything once.
pub async fn pages_have_no_gaps_and_no_repeats(store: &dyn Store) {
    let routes = ["mail", "letters"];
    let on = |n: u32| Message { route: routes[n as usize % 2].into(), ..message(n) };
    keep_all(store, (1..=50).map(on)).await;
    let of_mail = Filter { route: Some("mail".into()), ..everything() };
    for (filter, expected) in
        [(everything(), numbered((1..=50).rev())), (of_mail, numbered((1..=50).rev().filter(|n| n % 2 == 0)))]
    {
        assert_eq!(paged(store, filter, 7).await, expected);
    }
}

/// A page goes on where the last one ended, though the list has grown at its top.
pub async fn a_page_does_not_move_when_something_new_comes(store: &dyn Store) {
    keep_all(store, (1..=4).map(message)).await;
    assert_eq!(listed(store, Filter { limit: 2, ..everything() }).await, numbered([4, 3]));
    keep(store, row(message(5))).await;
    let next = Filter { limit: 2, after: Some(id(3)), ..everything() };
    assert_eq!(listed(store, next).await, numbered([2, 1]));
}

/// Created is the sum over states, by route and lane.
pub async fn counts_add_up_to_all_that_is_kept(store: &dyn Store) {
    assert_eq!(store.counts(at(0)).await.unwrap(), []);
    let mut n = 0;
    let mut messages = Vec::new();
    for route in ["mail", "letters"] {
        for lane in Lane::ALL {
            for state in one_of_each().into_iter().chain([waiting()]) {
                n += 1;
                messages.push(Message { route: route.into(), lane, ..standing(n, state) });
            }
        }
    }
    keep_all(store, messages).await;
    let counts = store.counts(at(0)).await.unwrap();
    assert_eq!(counts.iter().map(|count| count.count).sum::<u64>(), u64::from(n));
    assert_eq!(counts.len(), 2 * 4 * 6, "one of each");
    for count in counts {
        let expected = if count.state == "waiting" { 2 } else { 1 };
        assert_eq!(count.count, expected, "{count:?}");
    }
}

/// Of those that wait, how many could go now, and how many wait for a gate.
pub async fn counts_tell_the_due_and_the_parked(store: &dyn Store) {
    let parked = State::Waiting { parked_for: Some(GateKey::pause(Scope::Route, "mail")) };
    let due = |n, s| Message { due_at: at(s), ..message(n) };
    keep_all(store, [due(1, -5), due(2, 0), due(3, 5), standing(4, parked), standing(5, delivered(0))]).await;
    let mut counts = store.counts(at(0)).await.unwrap();
    counts.sort();
    let of = |state, count, due, parked| Count {
        route: "mail".into(),
        lane: Lane::Medium,
        state,
        reason: None,
        count,
        due,
        parked,
        old: [0; 3],
    };
    assert_eq!(counts, [of("delivered", 1, 0, 0), of("waiting", 4, 2, 1)]);
}

/// Why they died is what an operator asks first.
pub async fn counts_tell_the_dead_by_reason(store: &dyn Store) {
    let dead = |reason| State::Dead { at: at(0), reason, dismissed_at: None };
    let states = DeadReason::ALL.into_iter().chain([DeadReason::Poison]).map(dead);
    keep_all(store, (1..).zip(states).map(|(n, state)| standing(n, state))).await;
    let counts = store.counts(at(0)).await.unwrap();
    for reason in DeadReason::ALL {
        let told = counts.iter().find(|count| count.reason == Some(reason.name()));
        let expected = if reason == DeadReason::Poison { 2 } else { 1 };
        assert_eq!(told.map(|count| (count.state, count.count)), Some(("dead", expected)));
    }
}

/// What was put away is counted no more.
pub async fn dismissed_messages_do_not_count(store: &dyn Store) {
    keep_all(store, [standing(1, dead(1, None)), standing(2, dead(1, Some(2)))]).await;
    let counts = store.counts(at(5)).await.unwrap();
    assert_eq!(counts.iter().map(|count| count.count).collect::<Vec<u64>>(), [1]);
}

/// Of those that could go, those that lost a lease included; parked, claimed and ended ones wait for something else.
pub async fn the_first_due_time_of_a_lane_is_told(store: &dyn Store) {
    let told = async |lane| store.next_due_at("mail".into(), lane).await.unwrap();
    assert_eq!(told(Lane::Medium).await, None);
    let due = |n, s| Message { due_at: at(s), ..message(n) };
    let parked = State::Waiting { parked_for: Some(GateKey::pause(Scope::Route, "mail")) };
    let [_, claimed, _, delivered, ..] = one_of_each();
    let others = [
        Message { state: parked, ..due(1, -9) },
        Message { state: claimed, ..due(2, -9) },
        Message { state: delivered, ..due(3, -9) },
        Message { route: "letters".into(), ..due(4, -9) },
        Message { lane: Lane::Low, ..due(5, -8) },
    ];
    keep_all(store, others.into_iter().chain([due(6, 5), due(7, 3)])).await;
    assert_eq!((told(Lane::Medium).await, told(Lane::Low).await), (Some(at(3)), Some(at(-8))));
    keep(store, row(Message { losses: 1, ..due(8, 1) })).await;
    assert_eq!(told(Lane::Medium).await, Some(at(1)));
}

/// The last deed first, as many as asked for.
pub async fn deeds_are_told_newest_first(store: &dyn Store) {
    assert_eq!(store.audit(10).await.unwrap(), []);
    let mut message = message(1);
    keep(store, row(message.clone())).await;
    let mut deeds: Vec<Audit> = Vec::new();
    for (s, action) in (1..).zip([Action::Cancel, Action::Retry, Action::Cancel, Action::Retry]) {
        let change = operate(&message, action, &odd_text(), &route(), at(s)).unwrap();
        deeds.insert(0, change.audit.clone().expect("a deed is kept"));
        message = change.message.clone();
        store.apply(vec![change]).await.unwrap();
    }
    assert_eq!(store.audit(10).await.unwrap(), deeds);
    assert_eq!(store.audit(2).await.unwrap(), deeds[..2]);
}

/// Page after page, by who, what and to what, and by all of them at once; what nobody did is no mistake.
pub async fn deeds_are_found_by_who_what_and_to_what_page_by_page(store: &dyn Store) {
    let mut all: Vec<Audit> = Vec::new();
    for n in 1..=3 {
        let mut message = message(n);
        keep(store, row(message.clone())).await;
        for (actor, action) in [("ann", Action::Cancel), ("bob", Action::Retry), ("ann", Action::Retry)] {
            let change = operate(&message, action, &actor.into(), &route(), at(9)).unwrap();
            all.insert(0, change.audit.clone().expect("a deed is kept"));
            message = change.message.clone();
            store.apply(vec![change]).await.unwrap();
        }
    }
    let words = |words: &[&str]| -> Vec<Option<Arc<str>>> {
        std::iter::once(None).chain(words.iter().map(|word| Some((*word).into()))).collect()
    };
    let subject = all[0].subject.to_string();
    for actor in words(&["ann", "bob", "nobody", "a\0b"]) {
        for action in words(&["cancel", "retry", "nothing", "a\0b"]) {
            for subject in words(&[&subject, "route:none", "a\0b"]) {
                let is = |wanted: &Option<Arc<str>>, text: &str| {
                    wanted.as_ref().is_none_or(|wanted| **wanted == *text)
                };
                let fits = |deed: &&Audit| {
                    is(&actor, &deed.actor) && is(&action, deed.action) && is(&subject, &deed.subject)
                };
                let wanted: Vec<Audit> = all.iter().filter(fits).cloned().collect();
                let mut filter = DeedFilter {
                    actor: actor.clone(),
                    action: action.clone(),
                    subject: subject.clone(),
                    after: None,
                    limit: 2,
                };
                let mut told = Vec::new();
                loop {
                    let page = store.deeds(filter.clone()).await.unwrap();
                    assert!(page.len() <= 2, "{filter:?}");
                    let Some(last) = page.last() else { break };
                    filter.after = Some(last.number);
                    told.extend(page.into_iter().map(|deed| deed.audit));
                }
                assert_eq!(told, wanted, "{filter:?}");
            }
        }
    }
}

/// A store's own writing is no reason to wake up.
pub async fn ones_own_writing_is_nobody_elses(store: &dyn Store) {
    store.changed_outside().await.unwrap();
    keep(store, row(message(1))).await;
    assert!(!store.changed_outside().await.unwrap());
}

fn everything() -> Filter {
    Filter { limit: 1_000, ..Filter::default() }
}

fn one_of_each() -> [State; 6] {
    let lease = Lease { instance: ANN, claim: 0, until_at: at(9), started_at: None, cancel_requested: false };
    [
        waiting(),
        State::Claimed(lease),
        State::HandedOff { since: at(0), report_by: None },
        delivered(0),
        dead(0, None),
        cancelled(0),
    ]
}

async fn listed(store: &dyn Store, filter: Filter) -> Vec<MessageId> {
    ids(&store.list(filter).await.unwrap())
}

async fn paged(store: &dyn Store, filter: Filter, limit: usize) -> Vec<MessageId> {
    let mut all = Vec::new();
    loop {
        let after = all.last().cloned();
        let page = listed(store, Filter { after, limit, ..filter.clone() }).await;
        assert!(page.len() <= limit && all.len() < 1_000, "a page is no longer than asked for");
        if page.is_empty() {
            return all;
        }
        all.extend(page);
    }
}
