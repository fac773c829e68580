//! What the memory store holds, and what each call does to it.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use redeliver_core::accept::{Ended, Known};
use redeliver_core::attempt::AttemptRecord;
use redeliver_core::bulk::Bulk;
use redeliver_core::change::{Audit, NewRow};
use redeliver_core::content::{ContentHash, ContentSource};
use redeliver_core::edit::EditRecord;
use redeliver_core::gate::{GateKey, GateRecord};
use redeliver_core::planted::{self, Bug};
use redeliver_core::status::Status;
use redeliver_core::{Change, Content, InstanceId, Lane, Lease, Message, MessageId, Name, State, Timestamp};

use super::Snapshot;
use super::access::Doors;
use super::campaigns::Desk;
use super::index::{Index, Place};
use super::limits::LimitRows;
use crate::store::{
    About, Applied, ClaimKind, ClaimRef, ClaimRequest, Claims, Count, Deed, DeedFilter, Filter, GateChange,
    Inserted, LEASES_COUNTED_MAX, Living, PruneRequest, Pruned,
};

/// All that is remembered.
#[derive(Debug, Default)]
pub(super) struct Rows {
    messages: BTreeMap<MessageId, Row>,
    index: Index,
    keys: BTreeMap<(Name, Arc<str>), KeyRow>,
    gates: BTreeMap<GateKey, GateRecord>,
    pub(super) limits: LimitRows,
    pub(super) instances: BTreeMap<InstanceId, Beat>,
    audit: Vec<Audit>,
    bulks: BTreeMap<Arc<str>, Bulk>,
    pub(super) doors: Doors,
    pub(super) desk: Desk,
}

/// One message with everything that goes when it goes.
#[derive(Debug)]
pub(super) struct Row {
    pub(super) message: Message,
    pub(super) content: Content,
    pub(super) attempts: Vec<AttemptRecord>,
    pub(super) edits: Vec<EditRecord>,
}

/// What a key stands for; it outlives its message.
#[derive(Debug)]
struct KeyRow {
    id: MessageId,
    hash: Option<ContentHash>,
    /// What the message had come to when it was pruned.
    ended: Option<Ended>,
    /// When the key of a pruned message stops answering.
    expires_at: Option<Timestamp>,
}

#[derive(Debug)]
pub(super) struct Beat {
    at: Timestamp,
    silent_max: Duration,
    about: Option<About>,
}

impl Beat {
    pub(super) fn lives(&self, now: Timestamp) -> bool {
        self.at.plus(self.silent_max) > now
    }
}

impl Rows {
    pub(super) fn get(&self, id: &MessageId) -> Option<&Row> {
        self.messages.get(id)
    }

    /// The message that a key stands for, though it may be gone.
    pub(super) fn id_of_key(&self, workspace: &str, key: &str) -> Option<MessageId> {
        self.keys.get(&(workspace.into(), key.into())).map(|row| row.id.clone())
    }

    pub(super) fn insert(&mut self, row: NewRow) -> Inserted {
        let NewRow { message, content, hash, spawn, revives } = row;
        let known = self.known(&message);
        // One that comes back has its old id, so that only the message itself tells whether it is back already.
        if let Some(known) = &known
            && revives
            && known.message.is_some()
        {
            return Inserted::Known(Box::new(known.clone()));
        }
        if self.messages.contains_key(&message.id) {
            return Inserted::New;
        }
        if let Some(known) = known
            && !revives
        {
            return Inserted::Known(Box::new(known));
        }
        if let Some(key) = &message.key {
            let id = message.id.clone();
            let row = KeyRow { id, hash, ended: None, expires_at: None };
            self.keys.insert((message.workspace.clone(), key.clone()), row);
        }
        let content = self.content_from(content);
        self.index.add(&message);
        self.messages
            .insert(message.id.clone(), Row { message, content, attempts: Vec::new(), edits: Vec::new() });
        if let Some(spawn) = spawn {
            // The word of the same death is kept once.
            self.insert(*spawn);
        }
        Inserted::New
    }

    pub(super) fn claim(&mut self, request: &ClaimRequest) -> Claims {
        let suspect = request.kind == ClaimKind::Suspect;
        let place = || Place::Due(request.route.clone(), request.lane, suspect);
        let is_due = |at: Timestamp| at <= request.now || planted::is(Bug::ClaimsBeforeDue);
        let due = self.index.at(place()).take_while(|(at, _)| is_due(*at)).take(request.limit);
        let due: Vec<MessageId> = due.map(|(_, id)| id.clone()).collect();
        let claimed = due.iter().filter_map(|id| {
            self.change(id, |message| {
                if !planted::is(Bug::ClaimKeepsFence) {
                    message.fence += 1;
                }
                if request.keeps_first_send {
                    message.first_sent_at.get_or_insert(request.now);
                }
                message.state = State::Claimed(Lease {
                    instance: request.instance,
                    claim: message.fence,
                    until_at: request.now.plus(request.lease),
                    started_at: None,
                    cancel_requested: false,
                });
            })
        });
        let claimed = claimed.collect();
        let next_due_at = self.index.at(place()).next().map(|(at, _)| at);
        Claims { claimed, next_due_at }
    }

    pub(super) fn start(&mut self, claim: &ClaimRef, now: Timestamp) -> bool {
        let as_it_was = self.lease(&claim.id).is_some()
            && self.get(&claim.id).is_some_and(|row| row.message.fence == claim.claim);
        if as_it_was {
            self.change_lease(&claim.id, |lease| lease.started_at = Some(now));
        }
        as_it_was
    }

    pub(super) fn renew(&mut self, claim: &ClaimRef, until_at: Timestamp) -> bool {
        let held = self.lease(&claim.id).is_some_and(|lease| lease.claim == claim.claim);
        if held {
            self.change_lease(&claim.id, |lease| lease.until_at = lease.until_at.max(until_at));
        }
        held
    }

    pub(super) fn apply(&mut self, change: Change) -> Applied {
        let Some(row) = self.messages.get_mut(&change.message.id) else { return Applied::Superseded(None) };
        let current = &row.message;
        if current.fence != change.expected_fence && !planted::is(Bug::ApplyIgnoresFence) {
            let settled_before = change.settles.is_some() && change.settles == current.settled_claim;
            if settled_before {
                return Applied::AlreadyMine;
            }
            return Applied::Superseded(Some(Box::new(current.clone())));
        }
        let mut after = change.message;
        if let (State::Claimed(held), State::Claimed(lease)) = (&current.state, &mut after.state) {
            // The lease is its holder's: it may have been renewed or started since this change was made.
            *lease = Lease { cancel_requested: lease.cancel_requested, ..held.clone() };
        }
        self.index.remove(current);
        self.index.add(&after);
        row.message = after;
        row.attempts.extend(change.attempt);
        row.edits.extend(change.edit);
        if let Some(content) = change.content {
            row.content = Arc::unwrap_or_clone(content);
        }
        if !change.ends.is_nothing() {
            self.desk.count_ends(&row.message.workspace, &row.content, change.ends);
        }
        if let Some(spawn) = change.spawn {
            self.insert(*spawn);
        }
        self.audit.extend(change.audit);
        Applied::Applied
    }

    pub(super) fn note(&mut self, id: &MessageId, record: AttemptRecord) {
        if let Some(row) = self.messages.get_mut(id) {
            row.attempts.push(record);
        }
    }

    pub(super) fn lapsed(&self, now: Timestamp, limit: usize) -> Vec<Message> {
        let is_silent =
            |instance: &InstanceId| !self.instances.get(instance).is_some_and(|beat| beat.lives(now));
        let claimed = self.index.at(Place::Claimed);
        let lapsed = claimed.filter(|(until_at, id)| {
            *until_at <= now || self.lease(id).is_some_and(|lease| is_silent(&lease.instance))
        });
        self.messages_of(lapsed.take(limit))
    }

    pub(super) fn overdue(&self, now: Timestamp, limit: usize) -> Vec<Message> {
        self.messages_of(self.index.at(Place::Reporting).take_while(|(by, _)| *by <= now).take(limit))
    }

    pub(super) fn expired(&self, now: Timestamp, limit: usize) -> Vec<Message> {
        self.messages_of(self.index.at(Place::Expiring).take_while(|(at, _)| *at <= now).take(limit))
    }

    pub(super) fn parked(&self) -> Vec<GateKey> {
        self.index.parked()
    }

    pub(super) fn release(&mut self, gate: GateKey, limit: usize) -> usize {
        let parked = self.index.at(Place::Parked(gate)).take(limit);
        let parked: Vec<MessageId> = parked.map(|(_, id)| id.clone()).collect();
        for id in &parked {
            self.change(id, |message| {
                message.fence += 1;
                message.state = State::Waiting { parked_for: None };
            });
        }
        parked.len()
    }

    pub(super) fn gates(&self) -> Vec<GateRecord> {
        self.gates.values().cloned().collect()
    }

    pub(super) fn put_gate(&mut self, change: GateChange) -> bool {
        let version = self.gates.get(&change.key).map_or(0, |record| record.version);
        if version != change.expected_version {
            return false;
        }
        match change.record {
            Some(record) => {
                let key = change.key.clone();
                // A gate that closes anew goes on from its time, so that no stale writer finds a version it knows.
                let first = record.since.as_ms().max(1) as u64;
                let version = if version == 0 { first } else { version + 1 };
                self.gates.insert(change.key, GateRecord { key, version, ..record });
            }
            None => {
                self.gates.remove(&change.key);
            }
        }
        self.audit.extend(change.audit);
        true
    }

    pub(super) fn prune(&mut self, request: &PruneRequest) -> Pruned {
        let put_away = self.index.at(Place::PutAway(request.route.clone()));
        let gone = put_away.take_while(|(at, _)| *at < request.before).take(request.limit);
        let gone: Vec<MessageId> = gone.map(|(_, id)| id.clone()).collect();
        for id in &gone {
            self.forget(id, request.key_retention.map(|span| request.now.plus(span)));
        }
        let outlived = |row: &KeyRow| row.expires_at.is_some_and(|at| at <= request.now);
        let keys = self.keys.iter().filter(|(_, row)| outlived(row)).take(request.limit);
        let keys: Vec<(Name, Arc<str>)> = keys.map(|(key, _)| key.clone()).collect();
        for key in &keys {
            self.keys.remove(key);
        }
        Pruned { messages: gone.len(), keys: keys.len() }
    }

    pub(super) fn beat(&mut self, instance: InstanceId, at: Timestamp, silent_max: Duration) {
        let beat = self.instances.entry(instance).or_insert(Beat { at, silent_max, about: None });
        (beat.at, beat.silent_max) = (beat.at.max(at), silent_max);
    }

    pub(super) fn introduce(&mut self, instance: InstanceId, about: About) {
        if let Some(beat) = self.instances.get_mut(&instance) {
            beat.about = Some(about);
        }
    }

    pub(super) fn living(&self, now: Timestamp) -> Vec<Living> {
        let held = |id: InstanceId| {
            let leases = self.index.at(Place::Claimed).filter_map(|(_, held)| self.lease(held));
            leases.filter(|lease| lease.instance == id).take(LEASES_COUNTED_MAX).count() as u64
        };
        let mut living: Vec<Living> = self
            .instances
            .iter()
            .filter(|(_, beat)| beat.lives(now))
            .map(|(id, beat)| Living {
                id: *id,
                about: beat.about.clone(),
                beat_at: Some(beat.at),
                leases: held(*id),
            })
            .collect();
        living.sort_by_key(|one| (one.about.as_ref().map(|about| about.started_at), one.id));
        living
    }

    pub(super) fn leave(&mut self, instance: InstanceId) {
        self.instances.remove(&instance);
    }

    pub(super) fn list(&self, filter: &Filter) -> Vec<Message> {
        let fits = |wanted: &Option<Name>, name: &Name| wanted.as_ref().is_none_or(|wanted| wanted == name);
        let newest_first = self.messages.values().rev().map(|row| &row.message);
        newest_first
            .filter(|message| filter.after.as_ref().is_none_or(|after| message.id < *after))
            .filter(|message| fits(&filter.workspace, &message.workspace))
            .filter(|message| fits(&filter.route, &message.route))
            .filter(|message| filter.lane.is_none_or(|lane| lane == message.lane))
            .filter(|message| filter.state.is_none_or(|state| state == message.state.name()))
            .filter(|message| filter.status.is_none_or(|at| at.status == Status::of(message, at.now)))
            .filter(|message| filter.key.is_none() || filter.key == message.key)
            .filter(|message| filter.with_dismissed || !is_dismissed(message))
            .take(filter.limit)
            .cloned()
            .collect()
    }

    pub(super) fn counts(&self, now: Timestamp) -> Vec<Count> {
        let mut counts: BTreeMap<(Name, Lane, &str, Option<&str>), Count> = BTreeMap::new();
        for message in self.messages.values().map(|row| &row.message).filter(|m| !is_dismissed(m)) {
            let (route, lane, state) = (message.route.clone(), message.lane, message.state.name());
            let reason = match message.state {
                State::Dead { reason, .. } => Some(reason.name()),
                _ => None,
            };
            let count = counts.entry((route.clone(), lane, state, reason)).or_insert_with(|| Count {
                route,
                lane,
                state,
                reason,
                count: 0,
                due: 0,
                parked: 0,
                old: [0; 3],
            });
            count.count += 1;
            if let State::Waiting { parked_for } = &message.state {
                count.parked += u64::from(parked_for.is_some());
                count.due += u64::from(parked_for.is_none() && message.due_at <= now);
            }
        }
        counts.into_values().collect()
    }

    pub(super) fn next_due_at(&self, route: &Name, lane: Lane) -> Option<Timestamp> {
        let first =
            |suspect| self.index.at(Place::Due(route.clone(), lane, suspect)).next().map(|(at, _)| at);
        first(false).into_iter().chain(first(true)).min()
    }

    pub(super) fn put_bulk(&mut self, bulk: Bulk, audit: Option<Audit>) -> bool {
        let version = self.bulks.get(&bulk.id).map_or(0, |known| known.version);
        if version != bulk.version {
            return false;
        }
        self.bulks.insert(bulk.id.clone(), Bulk { version: version + 1, ..bulk });
        self.audit.extend(audit);
        true
    }

    pub(super) fn bulk(&self, id: &Arc<str>) -> Option<Bulk> {
        self.bulks.get(id).cloned()
    }

    pub(super) fn bulks(
        &self,
        after: Option<&Arc<str>>,
        limit: usize,
        is_wanted: fn(&Bulk) -> bool,
    ) -> Vec<Bulk> {
        let newest_first = self.bulks.values().rev();
        let older = newest_first.filter(|bulk| after.is_none_or(|after| bulk.id < *after));
        older.filter(|bulk| is_wanted(bulk)).take(limit).cloned().collect()
    }

    pub(super) fn deeds(&self, filter: &DeedFilter) -> Vec<Deed> {
        let is =
            |wanted: &Option<Arc<str>>, text: &str| wanted.as_ref().is_none_or(|wanted| **wanted == *text);
        let numbered = (1..).zip(&self.audit).map(|(number, audit)| Deed { number, audit: audit.clone() });
        let mut deeds: Vec<Deed> = numbered
            .filter(|deed| filter.after.is_none_or(|after| deed.number < after))
            .filter(|deed| is(&filter.actor, &deed.audit.actor) && is(&filter.action, deed.audit.action))
            .filter(|deed| is(&filter.subject, &deed.audit.subject))
            .collect();
        deeds.reverse();
        deeds.truncate(filter.limit);
        deeds
    }

    pub(super) fn note_deed(&mut self, audit: Audit) {
        self.audit.push(audit);
    }

    pub(super) fn snapshot(&self) -> Snapshot {
        let rows = || self.messages.iter();
        Snapshot {
            messages: rows().map(|(id, row)| (id.clone(), row.message.clone())).collect(),
            attempts: rows().map(|(id, row)| (id.clone(), row.attempts.clone())).collect(),
            keys: self.keys.iter().map(|(key, row)| (key.clone(), row.id.clone())).collect(),
            gates: self.gates(),
            audit: self.audit.clone(),
        }
    }

    /// What is known under the key of a message that wants to come in.
    fn known(&self, message: &Message) -> Option<Known> {
        if planted::is(Bug::KeyIgnored) {
            return None;
        }
        let key = message.key.clone()?;
        let row = self.keys.get(&(message.workspace.clone(), key))?;
        let message = self.get(&row.id).map(|row| row.message.clone());
        Some(Known { id: row.id.clone(), hash: row.hash, message, ended: row.ended })
    }

    fn content_from(&self, source: ContentSource) -> Content {
        match source {
            ContentSource::Given(content) => Arc::unwrap_or_clone(content),
            ContentSource::CopyOf { id, attributes } => {
                // Word of a death is kept even where the dead one's content is somebody else's to keep.
                let mut copy = self.get(&id).map(|row| row.content.clone()).unwrap_or_default();
                copy.attributes.extend(attributes);
                copy.target = None;
                copy
            }
        }
    }

    /// Deletes a message; its key remembers what it had come to.
    fn forget(&mut self, id: &MessageId, key_expires_at: Option<Timestamp>) {
        let Some(Row { message, .. }) = self.messages.remove(id) else { return };
        self.index.remove(&message);
        let Some(key) = message.key else { return };
        if let Some(row) = self.keys.get_mut(&(message.workspace, key)).filter(|row| row.id == *id) {
            row.ended = Some(Ended {
                attempts_before: message.attempts_before,
                attempts: message.attempts,
                generation: message.generation,
                possible_duplicates: message.possible_duplicates,
                fence: message.fence,
            });
            row.expires_at = key_expires_at;
        }
    }

    /// Alters a message where it stands, and answers with it as it is then.
    fn change(&mut self, id: &MessageId, alter: impl FnOnce(&mut Message)) -> Option<(Message, Content)> {
        let row = self.messages.get_mut(id)?;
        self.index.remove(&row.message);
        alter(&mut row.message);
        self.index.add(&row.message);
        Some((row.message.clone(), row.content.clone()))
    }

    fn change_lease(&mut self, id: &MessageId, alter: impl FnOnce(&mut Lease)) {
        self.change(id, |message| {
            if let State::Claimed(lease) = &mut message.state {
                alter(lease);
            }
        });
    }

    fn lease(&self, id: &MessageId) -> Option<&Lease> {
        match &self.get(id)?.message.state {
            State::Claimed(lease) => Some(lease),
            State::Waiting { .. }
            | State::HandedOff { .. }
            | State::Delivered { .. }
            | State::Dead { .. }
            | State::Cancelled { .. } => None,
        }
    }

    fn messages_of<'a>(&self, found: impl Iterator<Item = (Timestamp, &'a MessageId)>) -> Vec<Message> {
        found.filter_map(|(_, id)| self.get(id)).map(|row| row.message.clone()).collect()
    }
}

fn is_dismissed(message: &Message) -> bool {
    matches!(message.state, State::Dead { dismissed_at: Some(_), .. })
}
