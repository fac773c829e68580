//! The rules that apply to a store which accepts nothing itself. Rows are put into the table by its application, which
//! gives them the ids of the rules' own messages; what has no column there is not asked for.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use redeliver_conformance::store::StoreRig;
use redeliver_core::attempt::AttemptRecord;
use redeliver_core::bulk::Bulk;
use redeliver_core::change::{Audit, NewRow};
use redeliver_core::edit::EditRecord;
use redeliver_core::gate::{GateKey, GateRecord};
use redeliver_core::limit::Grant;
use redeliver_core::{Change, Content, InstanceId, Lane, Message, MessageId, Name, State, Timestamp};
use redeliver_engine::store::{
    About, Applied, ClaimRef, ClaimRequest, Claims, Count, Deed, DeedFilter, Filter, GateChange, Inserted,
    LimitRequest, Living, PruneRequest, Pruned, Store, StoreError,
};

use crate::rig::{Put, Rig, row_id};

/// A table whose application writes down what the rules have kept.
struct Filled {
    rig: Rig,
}

/// The id that a row has in its table.
fn to_row(id: &MessageId) -> MessageId {
    match id {
        MessageId::Own(uuid) => row_id(uuid),
        MessageId::Row(_) => id.clone(),
    }
}

/// The id that a rule knows a row by.
fn from_row(id: &MessageId) -> MessageId {
    id.to_string().strip_prefix("log:").map_or_else(|| id.clone(), |own| own.parse().unwrap())
}

fn back(message: Message) -> Message {
    Message { id: from_row(&message.id), ..message }
}

fn is_ours(message: &Message) -> bool {
    message.route == "mail".into()
}

#[async_trait]
impl Store for Filled {
    async fn insert(&self, rows: Vec<NewRow>) -> Result<Vec<Inserted>, StoreError> {
        let (ours, others): (Vec<NewRow>, Vec<NewRow>) =
            rows.into_iter().partition(|row| is_ours(&row.message));
        let put = |row: &NewRow| {
            let message = &row.message;
            let (status, locked_until) = match &message.state {
                State::Waiting { .. } => ("Failed", None),
                State::Claimed(lease) => ("RetryQueued", Some(lease.until_at)),
                State::HandedOff { .. } => ("Pending", None),
                State::Delivered { .. } => ("Sent", None),
                State::Dead { .. } => ("Dead", None),
                State::Cancelled { .. } => ("Cancelled", None),
            };
            Put {
                key: message.key.as_ref().map(ToString::to_string),
                status,
                attempts: i64::from(message.attempts),
                locked_until,
                ..Put::failed(&message.id, message.due_at)
            }
        };
        self.rig.put_all(&ours.iter().map(put).collect::<Vec<_>>());
        let mut answers = vec![Inserted::New; ours.len()];
        answers.extend(self.rig.store().insert(others).await?);
        Ok(answers)
    }

    async fn claim(&self, request: ClaimRequest) -> Result<Claims, StoreError> {
        let claims = self.rig.store().claim(request).await?;
        let claimed = claims.claimed.into_iter().map(|(message, content)| (back(message), content));
        Ok(Claims { claimed: claimed.collect(), ..claims })
    }

    async fn start(&self, claim: ClaimRef, now: Timestamp) -> Result<bool, StoreError> {
        self.rig.store().start(ClaimRef { id: to_row(&claim.id), ..claim }, now).await
    }

    async fn renew(&self, claims: Vec<ClaimRef>, until_at: Timestamp) -> Result<Vec<bool>, StoreError> {
        let claims = claims.into_iter().map(|claim| ClaimRef { id: to_row(&claim.id), ..claim });
        self.rig.store().renew(claims.collect(), until_at).await
    }

    async fn apply(&self, changes: Vec<Change>) -> Result<Vec<Applied>, StoreError> {
        let there = |change: Change| {
            let id =
                if is_ours(&change.message) { to_row(&change.message.id) } else { change.message.id.clone() };
            Change { message: Message { id, ..change.message.clone() }, ..change }
        };
        let answers = self.rig.store().apply(changes.into_iter().map(there).collect()).await?;
        let answer = |answer| match answer {
            Applied::Superseded(Some(message)) => Applied::Superseded(Some(Box::new(back(*message)))),
            other => other,
        };
        Ok(answers.into_iter().map(answer).collect())
    }

    async fn note(&self, id: MessageId, record: AttemptRecord) -> Result<(), StoreError> {
        self.rig.store().note(to_row(&id), record).await
    }

    async fn lapsed(&self, now: Timestamp, limit: usize) -> Result<Vec<Message>, StoreError> {
        Ok(self.rig.store().lapsed(now, limit).await?.into_iter().map(back).collect())
    }

    async fn overdue(&self, now: Timestamp, limit: usize) -> Result<Vec<Message>, StoreError> {
        self.rig.store().overdue(now, limit).await
    }

    async fn expired(&self, now: Timestamp, limit: usize) -> Result<Vec<Message>, StoreError> {
        self.rig.store().expired(now, limit).await
    }

    async fn parked(&self) -> Result<Vec<GateKey>, StoreError> {
        self.rig.store().parked().await
    }

    async fn release(&self, gate: GateKey, limit: usize) -> Result<usize, StoreError> {
        self.rig.store().release(gate, limit).await
    }

    async fn gates(&self) -> Result<Vec<GateRecord>, StoreError> {
        self.rig.store().gates().await
    }

    async fn put_gate(&self, change: GateChange) -> Result<bool, StoreError> {
        self.rig.store().put_gate(change).await
    }

    async fn draw_limit(&self, request: LimitRequest) -> Result<Grant, StoreError> {
        self.rig.store().draw_limit(request).await
    }

    async fn forget_limits(&self, now: Timestamp) -> Result<usize, StoreError> {
        self.rig.store().forget_limits(now).await
    }

    async fn prune(&self, request: PruneRequest) -> Result<Pruned, StoreError> {
        self.rig.store().prune(request).await
    }

    async fn beat(
        &self,
        instance: InstanceId,
        now: Timestamp,
        silent_max: Duration,
    ) -> Result<(), StoreError> {
        self.rig.store().beat(instance, now, silent_max).await
    }

    async fn introduce(&self, instance: InstanceId, about: About) -> Result<(), StoreError> {
        self.rig.store().introduce(instance, about).await
    }

    async fn living(&self, now: Timestamp) -> Result<Vec<Living>, StoreError> {
        self.rig.store().living(now).await
    }

    async fn leave(&self, instance: InstanceId) -> Result<(), StoreError> {
        self.rig.store().leave(instance).await
    }

    async fn get(&self, id: MessageId) -> Result<Option<Message>, StoreError> {
        match self.rig.store().get(to_row(&id)).await? {
            Some(row) => Ok(Some(back(row))),
            None => self.rig.store().get(id).await,
        }
    }

    async fn content(&self, id: MessageId) -> Result<Option<Content>, StoreError> {
        match self.rig.store().content(to_row(&id)).await? {
            Some(content) => Ok(Some(content)),
            None => self.rig.store().content(id).await,
        }
    }

    async fn attempts(&self, id: MessageId) -> Result<Vec<AttemptRecord>, StoreError> {
        self.rig.store().attempts(to_row(&id)).await
    }

    async fn edits(&self, id: MessageId) -> Result<Vec<EditRecord>, StoreError> {
        self.rig.store().edits(id).await
    }

    async fn list(&self, filter: Filter) -> Result<Vec<Message>, StoreError> {
        let after = filter.after.as_ref().map(to_row);
        Ok(self.rig.store().list(Filter { after, ..filter }).await?.into_iter().map(back).collect())
    }

    async fn counts(&self, now: Timestamp) -> Result<Vec<Count>, StoreError> {
        self.rig.store().counts(now).await
    }

    async fn next_due_at(&self, route: Name, lane: Lane) -> Result<Option<Timestamp>, StoreError> {
        self.rig.store().next_due_at(route, lane).await
    }

    async fn put_bulk(&self, bulk: Bulk, audit: Option<Audit>) -> Result<bool, StoreError> {
        self.rig.store().put_bulk(bulk, audit).await
    }

    async fn bulk(&self, id: Arc<str>) -> Result<Option<Bulk>, StoreError> {
        self.rig.store().bulk(id).await
    }

    async fn bulks(&self, after: Option<Arc<str>>, limit: usize) -> Result<Vec<Bulk>, StoreError> {
        self.rig.store().bulks(after, limit).await
    }

    async fn running_bulks(&self, after: Option<Arc<str>>, limit: usize) -> Result<Vec<Bulk>, StoreError> {
        self.rig.store().running_bulks(after, limit).await
    }

    async fn deeds(&self, filter: DeedFilter) -> Result<Vec<Deed>, StoreError> {
        self.rig.store().deeds(filter).await
    }

    async fn broken(&self) -> StoreError {
        self.rig.store().broken().await
    }

    async fn changed_outside(&self) -> Result<bool, StoreError> {
        self.rig.store().changed_outside().await
    }
}

fn sqlite() -> impl StoreRig {
    Filled { rig: Rig::sqlite() }
}

async fn postgres() -> impl StoreRig {
    Filled { rig: Rig::postgres().await }
}

/// The rules that ask for nothing that a row has no place for: a fence that is counted up, lanes, suspects, parking,
/// expiry, and contents of its own. What stands in their place is in `alone`.
macro_rules! rules {
    ($rig:expr) => {
        redeliver_conformance::each_rule! { store, $rig,
            claim {
                the_oldest_due_is_claimed_first
                routes_are_claimed_apart
                workspaces_share_a_lane
                no_more_than_the_limit_is_claimed
                nothing_is_claimed_before_it_is_due
                only_waiting_messages_are_claimed
                the_next_due_time_is_told
                a_message_is_claimed_once
                two_claimers_never_get_the_same_message
            }
            apply {
                a_death_and_its_dead_letter_are_written_together
            }
            leases {
                a_start_said_twice_is_still_ones_own
                a_renewal_never_shortens_a_lease
                renewals_are_answered_in_order
                a_renewal_leaves_the_fence_alone
            }
            reap {
                a_lease_that_is_over_has_lapsed
                a_renewed_lease_has_not_lapsed
                only_claimed_messages_lapse
                no_more_lapse_than_the_limit
            }
            gates {
                a_closed_gate_is_told_to_all
                a_gate_changes_only_if_it_is_as_it_was_read
                a_deed_is_written_with_its_gate
            }
            bulk {
                bulk_operations_are_told_newest_first
                a_bulk_operation_that_goes_on_is_found_behind_any_number_of_newer_ones
            }
            look {
                an_unknown_message_is_no_error
                history_is_told_oldest_first
                history_comes_back_whole
                a_note_about_nobody_is_no_error
                the_list_is_filtered_by_route
                pages_of_one_status_have_no_gaps_and_no_repeats
                a_page_does_not_move_when_something_new_comes
            }
        }
    };
}

mod on_sqlite {
    use super::*;
    rules!(sqlite());
}

mod on_postgres {
    use super::*;
    rules!(postgres().await);
}
