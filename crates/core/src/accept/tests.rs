//! What becomes of something new, case by case.

use super::*;
use crate::settle::tests::{at, claimed, message, route};

fn new(attempts: u32) -> NewMessage {
    NewMessage { key: Some("k".into()), attempts, ..NewMessage::new("email", Content::of_bytes("x")) }
}

fn row(attempts: u32) -> NewRow {
    admit(new(attempts), &route(), MessageId::own(2), None, at(1_000))
}

fn known(message: Message) -> Known {
    Known { id: message.id.clone(), hash: row(0).hash, message: Some(message), ended: None }
}

fn again(message: Message, attempts: u32, redelivered: bool) -> Repeat {
    repeat(&known(message), None, row(attempts), Source::Broker { redelivered }, &route(), at(1_000))
}

fn delivered(attempts_before: u32, attempts: u32) -> Message {
    Message { attempts_before, attempts, ..message(State::Delivered { at: at(0), receipt: None }) }
}

#[test]
fn what_is_new_is_due_at_once_and_what_failed_elsewhere_after_its_backoff() {
    assert_eq!(row(0).message.due_at, at(1_000));
    assert_eq!(row(1).message.due_at, at(1_060));
    assert_eq!(row(2).message.due_at, at(1_300));
    let timed =
        admit(NewMessage { due_at: Some(at(5_000)), ..new(2) }, &route(), MessageId::own(2), None, at(1_000));
    assert_eq!(timed.message.due_at, at(5_000));
    assert_eq!((timed.message.attempts, timed.message.attempts_before), (2, 2));
}

#[test]
fn input_that_nobody_can_read_is_kept_once_however_often_it_is_brought() {
    let refused = |redelivered| {
        let source = Source::Broker { redelivered };
        let new = NewMessage { is_refused: true, source, ..new(0) };
        admit(new, &route(), MessageId::own(2), None, at(1_000))
    };
    let first = refused(false).message;
    assert!(matches!(first.state, State::Dead { reason: DeadReason::Refused, .. }));
    let brought = |redelivered| {
        let source = Source::Broker { redelivered };
        repeat(&known(first.clone()), None, refused(redelivered), source, &route(), at(2_000))
    };
    assert!(matches!(brought(true), Repeat::Duplicate));
    let Repeat::Reenters(again) = brought(false) else { panic!("somebody said it again") };
    assert!(matches!(again.message.state, State::Dead { reason: DeadReason::Refused, .. }));
    assert!(again.spawn.is_some(), "and it is sent on again");
}

#[test]
fn a_spent_budget_is_dead_on_arrival_with_its_letter() {
    let row = row(3);
    assert!(matches!(row.message.state, State::Dead { reason: DeadReason::AttemptsExhausted, .. }));
    assert_eq!(row.spawn.unwrap().message.route.as_ref(), "dead");
}

#[test]
fn what_nobody_can_read_is_dead_on_arrival_with_its_letter() {
    let error = Some(Failure::new("no protobuf"));
    let bad = NewMessage { is_refused: true, error, ..new(0) };
    let row = admit(bad, &route(), MessageId::own(2), None, at(1_000));
    assert!(matches!(row.message.state, State::Dead { reason: DeadReason::Refused, .. }));
    assert_eq!(row.message.last_error.unwrap().text.as_ref(), "no protobuf");
    assert!(row.spawn.is_some());
}

#[test]
fn what_has_expired_is_dead_on_arrival() {
    let late = NewMessage { expires_at: Some(at(999)), ..new(0) };
    let row = admit(late, &route(), MessageId::own(2), None, at(1_000));
    assert!(matches!(row.message.state, State::Dead { reason: DeadReason::Expired, .. }));
}

#[test]
fn an_inline_try_is_stored_as_claimed_unless_it_is_for_later() {
    let taker = Some(Taker { instance: InstanceId(9), until_at: at(1_060) });
    let now = admit(new(0), &route(), MessageId::own(2), taker, at(1_000));
    assert!(matches!(now.message.state, State::Claimed(Lease { claim: 1, .. })));
    assert_eq!(now.message.fence, 1);
    let later = NewMessage { due_at: Some(at(2_000)), ..new(0) };
    let later = admit(later, &route(), MessageId::own(2), taker, at(1_000));
    assert_eq!(later.message.state.name(), "waiting");
}

#[test]
fn the_try_before_the_callers_eyes_is_none_of_the_workers() {
    let route = Route { inline_first: true, ..route() };
    let taker = Taker { instance: InstanceId(1), until_at: at(2_000) };
    let budget = |taker, attempts| {
        let row = admit(new(attempts), &route, MessageId::own(2), taker, at(1_000));
        (row.message.attempts_before, route.max_attempts(&row.message))
    };
    let max = route.lanes[0].policy.max_attempts;
    assert_eq!(budget(Some(taker), 0), (1, max), "tried inline");
    assert_eq!(budget(None, 1), (1, max), "tried elsewhere");
    assert_eq!(budget(None, 0), (0, max - 1), "never tried");
}

#[test]
fn a_caller_who_repeats_itself_gets_the_first_message_and_one_who_changes_its_mind_a_conflict() {
    let first = known(claimed());
    assert_eq!(repeat(&first, None, row(0), Source::Caller, &route(), at(0)), Repeat::Duplicate);
    let other = NewMessage { content: Content::of_bytes("y"), ..new(0) };
    let other = admit(other, &route(), MessageId::own(2), None, at(0));
    assert_eq!(repeat(&first, None, other, Source::Caller, &route(), at(0)), Repeat::Conflict);
}

#[test]
fn while_it_is_under_way_the_same_or_a_lower_count_is_a_duplicate() {
    let waiting = Message { attempts: 2, attempts_before: 2, ..message(State::Waiting { parked_for: None }) };
    for attempts in [1, 2] {
        assert_eq!(again(waiting.clone(), attempts, false), Repeat::Duplicate);
    }
    assert!(matches!(again(waiting, 3, false), Repeat::Reenters(_)));
}

#[test]
fn after_its_end_it_is_the_same_message_and_the_next_try() {
    let Repeat::Reenters(change) = again(delivered(1, 2), 2, false) else { panic!("it re-enters") };
    let after = &change.message;
    assert_eq!((after.id.clone(), after.attempts, after.attempts_before), (MessageId::own(1), 2, 2));
    assert_eq!((after.generation, after.fence, after.due_at), (1, 8, at(1_300)));
    assert!(change.content.is_some());
}

#[test]
fn a_handler_that_forgets_to_count_does_not_loop_for_ever() {
    let Repeat::Reenters(change) = again(delivered(1, 2), 1, false) else { panic!("it re-enters") };
    assert_eq!(change.message.attempts, 2);
    let Repeat::Reenters(change) = again(delivered(2, 3), 1, false) else { panic!("it re-enters") };
    assert!(matches!(change.message.state, State::Dead { .. }), "its budget of 3 is spent");
    assert!(change.spawn.is_some());
}

#[test]
fn a_redelivery_of_what_was_stored_is_a_duplicate() {
    assert_eq!(again(delivered(2, 3), 2, true), Repeat::Duplicate);
    assert!(matches!(again(delivered(1, 2), 2, true), Repeat::Reenters(_)), "a higher count is news");
}

#[test]
fn what_a_broker_brings_replaces_nothing_of_another_route() {
    let states = [
        State::Waiting { parked_for: None },
        State::HandedOff { since: at(0), report_by: None },
        State::Delivered { at: at(0), receipt: None },
        State::Dead { at: at(0), reason: DeadReason::Refused, dismissed_at: None },
    ];
    for state in states {
        let other = Message { route: "other".into(), attempts_before: 2, ..message(state) };
        for (attempts, redelivered) in [(1, false), (3, false), (1, true)] {
            assert_eq!(again(other.clone(), attempts, redelivered), Repeat::Conflict, "{other:?}");
        }
    }
}

fn gone(hash: Option<ContentHash>) -> Known {
    let ended = Ended { attempts_before: 1, attempts: 2, generation: 3, possible_duplicates: 1, fence: 20 };
    Known { id: MessageId::own(1), hash, message: None, ended: Some(ended) }
}

#[test]
fn a_redelivery_of_what_is_gone_is_a_duplicate_only_if_it_says_the_same() {
    let redelivered =
        |hash| repeat(&gone(hash), None, row(1), Source::Broker { redelivered: true }, &route(), at(1_000));
    assert_eq!(redelivered(row(1).hash), Repeat::Duplicate);
    let other = Content::of_bytes("another").hash(&"other".into());
    assert!(matches!(redelivered(Some(other)), Repeat::Revives(_)), "it may be another message's key");
}

#[test]
fn a_message_whose_row_is_gone_comes_back_under_its_id() {
    let again = repeat(&gone(None), None, row(2), Source::Broker { redelivered: false }, &route(), at(1_000));
    let Repeat::Revives(row) = again else { panic!("{again:?}") };
    assert_eq!(
        (row.message.id.clone(), row.message.generation, row.message.attempts),
        (MessageId::own(1), 4, 2)
    );
    assert!(row.message.fence > 20 && row.revives);
}

/// What a broker brings under a known key with these bytes, while the known message has the content `current`.
fn brought(message: Message, bytes: &'static str, attempts: u32, current: Option<&str>) -> Repeat {
    let current = current.map(|bytes| Content::of_bytes(bytes.to_owned()));
    let new = NewMessage { content: Content::of_bytes(bytes), ..new(attempts) };
    let row = admit(new, &route(), MessageId::own(2), None, at(1_000));
    let source = Source::Broker { redelivered: false };
    repeat(&known(message), current.as_ref(), row, source, &route(), at(1_000))
}

fn waiting() -> Message {
    Message { attempts: 2, attempts_before: 2, ..message(State::Waiting { parked_for: None }) }
}

#[test]
fn another_content_under_the_key_of_a_message_under_way_is_a_conflict() {
    for attempts in [1, 2, 3] {
        assert_eq!(brought(waiting(), "y", attempts, None), Repeat::DependsOnContent);
        assert_eq!(brought(waiting(), "y", attempts, Some("x")), Repeat::Conflict);
    }
    assert_eq!(brought(waiting(), "x", 2, None), Repeat::Duplicate, "the first content says enough");
}

#[test]
fn what_a_message_says_now_counts_and_not_what_it_said_first() {
    let back = Message { generation: 1, ..waiting() };
    assert_eq!(brought(back.clone(), "x", 2, None), Repeat::DependsOnContent);
    assert_eq!(brought(back.clone(), "x", 2, Some("y")), Repeat::Conflict);
    assert_eq!(brought(back.clone(), "y", 2, Some("y")), Repeat::Duplicate);
    assert!(matches!(brought(back, "y", 3, Some("y")), Repeat::Reenters(_)));
}

#[test]
fn headers_that_a_source_adds_with_each_try_make_no_other_message() {
    let mut content = Content::of_bytes("x");
    content.headers.push(("x-retry-count".to_owned(), "1".into()));
    let bring = |attempts| {
        let new = NewMessage { content: content.clone(), ..new(attempts) };
        let row = admit(new, &route(), MessageId::own(2), None, at(1_000));
        let source = Source::Broker { redelivered: false };
        repeat(&known(waiting()), Some(&Content::of_bytes("x")), row, source, &route(), at(1_000))
    };
    assert_eq!(bring(2), Repeat::Duplicate);
    assert!(matches!(bring(3), Repeat::Reenters(_)));
}

#[test]
fn a_redelivery_of_another_message_after_the_end_of_the_first_is_not_lost() {
    let new = NewMessage { content: Content::of_bytes("y"), ..new(1) };
    let row = admit(new, &route(), MessageId::own(2), None, at(1_000));
    let source = Source::Broker { redelivered: true };
    let again = |current: Option<&str>| {
        let current = current.map(|bytes| Content::of_bytes(bytes.to_owned()));
        repeat(&known(delivered(1, 2)), current.as_ref(), row.clone(), source, &route(), at(1_000))
    };
    assert_eq!(again(None), Repeat::DependsOnContent);
    assert!(matches!(again(Some("x")), Repeat::Reenters(_)));
    assert_eq!(again(Some("y")), Repeat::Duplicate, "it was corrected to say the same");
}

#[test]
fn what_is_known_by_its_key_alone_is_nobodys_duplicate() {
    let known = Known { id: MessageId::own(1), hash: None, message: None, ended: None };
    let source = Source::Broker { redelivered: true };
    assert_eq!(repeat(&known, None, row(1), source, &route(), at(1_000)), Repeat::Conflict);
}

#[test]
fn refused_input_is_kept_even_if_its_key_is_anothers() {
    for source in [Source::Caller, Source::Broker { redelivered: true }] {
        let new = NewMessage { content: Content::of_bytes("y"), is_refused: true, source, ..new(0) };
        let row = admit(new, &route(), MessageId::own(2), None, at(1_000));
        let theirs = known(Message { route: "other".into(), ..waiting() });
        let Repeat::Apart(apart) = repeat(&theirs, None, row, source, &route(), at(1_000)) else {
            panic!("it is kept")
        };
        assert_eq!((&apart.message.key, apart.hash, &apart.message.id), (&None, None, &MessageId::own(2)));
        assert!(apart.spawn.is_some());
    }
}
