//! The rules for whatever remembers messages.

pub mod apply;
pub mod bulk;
pub mod claim;
pub mod edits;
pub mod foreign;
pub mod gates;
pub mod insert;
pub mod instances;
pub mod keys;
pub mod leases;
pub mod limits;
pub mod look;
pub mod prune;
pub mod reap;

use std::future::Future;

use redeliver_engine::store::Store;

/// Something with a fresh, empty store in it. Every store is one; a rig of one's own can keep a directory or a
/// schema alive for as long as the test lasts.
pub trait StoreRig: Send + Sync {
    /// The store under test.
    fn store(&self) -> &dyn Store;
}

impl<S: Store> StoreRig for S {
    fn store(&self) -> &dyn Store {
        self
    }
}

#[doc(hidden)]
pub fn subject(rig: &dyn StoreRig) -> &dyn Store {
    rig.store()
}

/// Does the same from eight threads at once, so that even a store that works without awaiting is raced.
pub(crate) fn at_once<'a, T, F>(work: impl Fn(u32) -> F + Sync + 'a) -> Vec<T>
where
    T: Send,
    F: Future<Output = T>,
{
    let runtime = tokio::runtime::Handle::current();
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..8)
            .map(|n| {
                let (runtime, work) = (&runtime, &work);
                scope.spawn(move || runtime.block_on(work(n)))
            })
            .collect();
        threads.into_iter().map(|thread| thread.join().expect("no thread panics")).collect()
    })
}

/// Makes one test of every rule for stores. The expression makes a fresh [`StoreRig`], such as a store.
#[macro_export]
macro_rules! store_tests {
    ($rig:expr) => {
        $crate::each_rule! { store, $rig,
            insert {
                a_message_comes_back_as_it_was_given
                every_state_comes_back_as_it_was_given
                every_reason_of_death_comes_back
                every_lane_comes_back
                a_failure_comes_back_whole
                the_verdicts_on_recipients_come_back
                content_comes_back_byte_for_byte
                headers_keep_their_order_and_their_repeats
                odd_characters_survive
                an_empty_content_stays_empty
                a_megabyte_comes_back
                the_same_id_again_is_new_and_writes_nothing
                a_batch_is_answered_in_order
                an_empty_batch_is_nothing
                a_big_batch_is_kept
                a_message_dead_on_arrival_brings_its_dead_letter
                a_message_that_is_known_brings_no_dead_letter
                a_message_claimed_on_arrival_is_its_takers
            }
            keys {
                a_message_without_a_key_is_never_a_repeat
                the_same_key_answers_with_the_first_message
                a_known_key_shows_the_message_as_it_stands_now
                another_key_is_another_message
                keys_are_told_apart_byte_by_byte
                the_same_key_of_another_workspace_is_another_message
                the_same_key_on_another_route_is_the_same_message
                a_key_repeated_within_a_batch_is_known
                a_row_said_again_is_new_though_its_key_is_known
                of_many_who_say_one_key_at_once_one_is_new
                a_key_outlives_its_message
                a_key_expires_after_its_message
                a_key_without_end_answers_for_ever
                the_key_of_a_kept_message_does_not_expire
                a_message_that_comes_back_is_kept_under_its_key
                a_message_that_came_back_is_no_longer_an_ended_one
                a_message_that_is_back_already_is_known
                a_message_comes_back_even_when_its_key_has_expired
            }
            claim {
                the_oldest_due_is_claimed_first
                lanes_are_claimed_apart
                routes_are_claimed_apart
                workspaces_share_a_lane
                no_more_than_the_limit_is_claimed
                a_limit_of_zero_claims_nothing
                nothing_is_claimed_before_it_is_due
                a_parked_message_is_not_claimed
                only_waiting_messages_are_claimed
                suspects_are_claimed_apart
                the_next_due_time_is_told
                what_is_left_over_is_looked_for_in_time
                the_next_due_time_knows_only_its_own_lane_and_kind
                a_claim_brings_the_content
                a_claim_is_a_lease_with_a_fence_of_its_own
                a_claim_changes_nothing_else
                the_first_send_is_kept_over_retries_and_lost_leases
                a_first_send_is_kept_only_where_it_is_asked_for
                a_first_send_that_was_taken_back_is_kept_anew
                a_message_is_claimed_once
                two_claimers_never_get_the_same_message
            }
            apply {
                a_result_is_written_whole
                a_retry_is_claimed_at_its_new_time
                a_parking_takes_a_message_out_of_the_due
                a_late_worker_cannot_settle_a_lost_lease
                a_result_said_twice_is_written_once
                a_result_said_again_after_the_next_claim_is_still_ones_own
                a_claim_that_somebody_else_settled_is_superseded
                a_change_of_no_claim_said_twice_is_superseded
                a_change_to_a_message_that_is_gone_finds_nothing
                a_superseded_change_shows_the_message_as_it_stands
                a_superseded_change_writes_nothing
                an_operators_cancel_comes_between_a_worker_and_its_result
                a_death_and_its_dead_letter_are_written_together
                a_dead_letter_carries_what_the_dead_one_carried
                a_death_written_by_two_has_one_dead_letter
                a_dead_letter_that_is_known_does_not_stop_the_death
                new_content_replaces_the_old
                a_deed_is_written_with_its_change
                a_mixed_batch_is_judged_one_by_one
                changes_of_one_message_follow_each_other
                a_big_batch_is_applied
                of_many_who_settle_at_once_one_is_applied
            }
            leases {
                a_start_is_recorded
                a_start_said_twice_is_still_ones_own
                a_claim_that_a_person_cancelled_does_not_start
                a_claim_that_was_lost_does_not_start
                only_a_claimed_message_starts
                a_renewed_lease_ends_later
                a_renewal_never_shortens_a_lease
                a_cancel_leaves_the_lease_to_its_holder
                a_lease_that_is_gone_is_not_renewed
                a_cancel_does_not_end_the_lease
                renewals_are_answered_in_order
                a_renewal_leaves_the_fence_alone
            }
            reap {
                a_lease_that_is_over_has_lapsed
                a_renewed_lease_has_not_lapsed
                a_late_heartbeat_takes_nothing_back
                a_silent_instance_loses_its_messages
                an_instance_that_beats_keeps_its_messages
                an_unknown_instance_holds_nothing
                an_instance_that_left_holds_nothing
                one_silent_instance_is_not_another
                only_claimed_messages_lapse
                no_more_lapse_than_the_limit
                a_report_that_did_not_come_is_overdue
                a_message_without_a_report_time_is_never_overdue
                no_more_are_overdue_than_the_limit
                a_waiting_message_expires
                a_parked_message_expires
                a_handed_off_message_expires
                nobody_takes_an_expired_message_from_its_worker
                what_has_ended_does_not_expire
                no_more_expire_than_the_limit
            }
            edits {
                what_was_corrected_comes_back_oldest_first
                a_correction_is_written_whole
                a_correction_of_what_has_changed_since_writes_nothing
                corrections_go_with_their_message
            }
            bulk {
                a_bulk_operation_comes_back_whole
                a_bulk_operation_changes_only_if_it_is_as_it_was_read
                bulk_operations_are_told_newest_first
                a_bulk_operation_that_goes_on_is_found_behind_any_number_of_newer_ones
            }
            instances {
                who_lives_is_told_with_what_they_say_of_themselves
                whoever_is_silent_or_gone_is_not_among_the_living
            }
            gates {
                the_gates_with_parked_messages_are_told_once_each
                a_release_lets_the_oldest_due_go_first
                a_release_is_of_one_gate
                a_release_raises_the_fence
                a_released_message_keeps_its_due_time
                what_is_not_parked_is_not_released
                a_closed_gate_is_told_to_all
                every_way_of_being_closed_comes_back
                a_gate_that_opens_is_forgotten
                a_gate_changes_only_if_it_is_as_it_was_read
                a_gate_that_is_open_has_version_zero
                a_gates_version_goes_up
                gates_are_told_apart
                a_deed_is_written_with_its_gate
                a_refused_gate_change_writes_no_deed
                of_many_who_change_a_gate_at_once_one_does
            }
            limits {
                two_instances_never_get_the_same_slots
                of_many_who_ask_at_once_none_gets_the_slots_of_another
                destinations_have_slots_of_their_own
                permits_are_shared_by_all_who_live
                of_many_who_ask_at_once_none_gets_the_permit_of_another
                permits_are_split_fairly_while_others_want_some
                the_permits_of_a_dead_instance_come_back
                permits_count_until_the_time_that_their_holder_named
                a_call_that_comes_late_changes_no_permits
                limits_that_no_longer_matter_are_forgotten
            }
            prune {
                what_was_put_away_long_ago_is_deleted
                what_is_under_way_is_never_deleted
                a_dead_message_stays_until_a_person_puts_it_away
                a_dismissed_one_counts_from_its_dismissal
                what_was_put_away_lately_stays
                other_routes_are_left_alone
                no_more_than_the_limit_is_deleted
                content_and_history_go_with_their_message
                a_deleted_message_is_found_nowhere
            }
            look {
                an_unknown_message_is_no_error
                history_is_told_oldest_first
                history_comes_back_whole
                a_late_note_changes_nothing_but_the_history
                a_note_about_nobody_is_no_error
                the_list_is_newest_first
                the_list_is_filtered_by_workspace
                the_list_is_filtered_by_route
                the_list_is_filtered_by_state
                the_list_is_filtered_by_status
                the_list_is_filtered_by_lane
                pages_of_one_status_have_no_gaps_and_no_repeats
                the_list_is_filtered_by_key
                the_filters_of_a_list_add_up
                dismissed_messages_are_listed_only_on_demand
                pages_have_no_gaps_and_no_repeats
                a_page_does_not_move_when_something_new_comes
                counts_add_up_to_all_that_is_kept
                counts_tell_the_due_and_the_parked
                counts_tell_the_dead_by_reason
                dismissed_messages_do_not_count
                the_first_due_time_of_a_lane_is_told
                deeds_are_told_newest_first
                deeds_are_found_by_who_what_and_to_what_page_by_page
                ones_own_writing_is_nobody_elses
            }
            foreign {
                a_row_of_another_table_is_not_found
                a_row_of_another_table_cannot_be_changed
                a_row_of_another_table_is_not_taken_in
            }
        }
    };
}
