//! The rules catch what they are there to catch.

mod peers;

use std::panic::{AssertUnwindSafe, catch_unwind};

use peers::{Fault, MemoryIntake, MemoryTransport};
use redeliver_conformance::intake::{feed, identity};
use redeliver_conformance::{judge, store, transport::carry, transport::uncertain};
use redeliver_core::planted::{Bug, plant};
use redeliver_engine::memory::MemoryStore;

/// Whether a rule was found broken.
fn is_caught(rule: impl Future<Output = ()>) -> bool {
    catch_unwind(AssertUnwindSafe(|| judge(rule))).is_err()
}

/// Each rule named here finds the fault, and finds nothing where there is none.
macro_rules! catches {
    ($($name:ident: $bug:ident => $($rule:path),+;)+) => {$(
        #[test]
        fn $name() {
            $(
                plant(None);
                assert!(!is_caught($rule(&MemoryStore::new())), stringify!($rule));
                plant(Some(Bug::$bug));
                assert!(is_caught($rule(&MemoryStore::new())), stringify!($rule));
                plant(None);
            )+
        }
    )+};
}

catches! {
    a_store_without_a_fence_is_caught: ApplyIgnoresFence =>
        store::apply::a_late_worker_cannot_settle_a_lost_lease,
        store::apply::a_superseded_change_writes_nothing,
        store::apply::a_result_said_twice_is_written_once,
        store::apply::a_mixed_batch_is_judged_one_by_one;
    a_claim_that_keeps_the_fence_is_caught: ClaimKeepsFence =>
        store::claim::a_claim_is_a_lease_with_a_fence_of_its_own,
        store::apply::a_superseded_change_shows_the_message_as_it_stands;
    an_early_claim_is_caught: ClaimsBeforeDue =>
        store::claim::nothing_is_claimed_before_it_is_due,
        store::apply::a_retry_is_claimed_at_its_new_time,
        store::gates::a_released_message_keeps_its_due_time;
    a_forgotten_key_is_caught: KeyIgnored =>
        store::keys::the_same_key_answers_with_the_first_message,
        store::keys::a_key_repeated_within_a_batch_is_known,
        store::keys::a_key_outlives_its_message,
        store::apply::a_death_written_by_two_has_one_dead_letter;
    a_silently_deleted_death_is_caught: PruneTakesTheDead =>
        store::prune::a_dead_message_stays_until_a_person_puts_it_away,
        store::prune::a_dismissed_one_counts_from_its_dismissal;
}

#[test]
fn a_transport_that_retries_is_caught() {
    let rig = MemoryTransport::new(Some(Fault::RetriesByItself));
    assert!(is_caught(carry::a_transport_never_retries_by_itself(&rig)));
}

#[test]
fn a_transport_that_boasts_is_caught() {
    let boaster = || MemoryTransport::new(Some(Fault::SaysDelivered));
    assert!(is_caught(carry::what_the_peer_refuses_is_refused(&boaster())));
    assert!(is_caught(carry::what_the_peer_cannot_take_now_is_worth_another_try(&boaster())));
    assert!(is_caught(carry::silence_is_never_taken_for_an_answer(&boaster())));
    assert!(is_caught(carry::a_peer_that_is_away_says_nothing_against_the_message(&boaster())));
}

#[test]
fn a_transport_that_drops_the_attempt_id_is_caught() {
    let rig = MemoryTransport::new(Some(Fault::DropsAttemptId));
    assert!(is_caught(carry::the_attempt_id_travels(&rig)));
}

#[test]
fn a_destination_that_changes_its_name_is_caught() {
    let rig = MemoryTransport::new(Some(Fault::NamesEachMessage));
    assert!(is_caught(carry::the_same_target_is_the_same_destination(&rig)));
}

#[test]
fn a_transport_that_calls_an_uncertain_send_failed_is_caught() {
    let late = || MemoryTransport::new(Some(Fault::CallsLateFailed));
    assert!(is_caught(uncertain::an_answer_after_the_time_out_is_lost(&late())));
    assert!(is_caught(uncertain::late_answers_use_up_the_budget_of_unconfirmed_sends(&late())));
    let cut = || MemoryTransport::new(Some(Fault::CallsCutFailed));
    assert!(is_caught(uncertain::a_connection_cut_after_the_bytes_left_is_lost(&cut())));
    assert!(is_caught(uncertain::cut_connections_use_up_the_budget_of_unconfirmed_sends(&cut())));
}

#[test]
fn a_transport_that_takes_a_late_answer_for_the_next_is_caught() {
    let rig = MemoryTransport::new(Some(Fault::TakesLateAnswers));
    assert!(is_caught(uncertain::a_late_answer_is_not_taken_for_the_next(&rig)));
}

#[test]
fn a_transport_that_retries_before_it_panics_is_caught() {
    let rig = MemoryTransport::new(Some(Fault::SendsTwice));
    assert!(is_caught(uncertain::a_panic_after_the_bytes_left_is_lost(&rig)));
}

#[test]
fn an_intake_that_acknowledges_early_is_caught() {
    let early = || MemoryIntake::new(Some(Fault::AcksEarly));
    assert!(is_caught(feed::nothing_is_acknowledged_before_the_sink_has_answered(&early())));
    assert!(is_caught(feed::what_a_stop_leaves_behind_comes_with_the_next_run(&early())));
}

#[test]
fn an_intake_that_spins_is_caught() {
    let rig = MemoryIntake::new(Some(Fault::Spins));
    assert!(is_caught(feed::a_sink_that_fails_is_not_hammered(&rig)));
}

#[test]
fn an_intake_that_chokes_on_poison_is_caught() {
    let rig = MemoryIntake::new(Some(Fault::EndsOnPoison));
    assert!(is_caught(feed::poison_is_set_aside_and_stops_nothing(&rig)));
}

#[test]
fn an_intake_that_mixes_up_its_answers_is_caught() {
    let rig = MemoryIntake::new(Some(Fault::ReversesAnswers));
    assert!(is_caught(feed::each_answer_is_for_its_own_input(&rig)));
}

#[test]
fn an_intake_that_does_not_listen_is_caught() {
    let rig = MemoryIntake::new(Some(Fault::NeverStops));
    assert!(is_caught(feed::an_idle_intake_stops_promptly(&rig)));
}

#[test]
fn an_intake_that_takes_the_inputs_of_two_sources_for_one_is_caught() {
    let rig = MemoryIntake::new(Some(Fault::ForgetsItsSource));
    assert!(is_caught(identity::inputs_of_two_sources_are_two_messages(&rig)));
}

#[test]
fn an_intake_whose_refused_copies_have_no_keys_of_their_own_is_caught() {
    let rig = MemoryIntake::new(Some(Fault::RefusesUnderTheSameKey));
    assert!(is_caught(identity::a_refused_copy_has_a_key_of_its_own(&rig)));
}
