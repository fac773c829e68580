//! Where messages are looked for, in the order of a time: one ordered set for every kind of question.

use std::collections::BTreeSet;

use redeliver_core::gate::GateKey;
use redeliver_core::planted::{self, Bug};
use redeliver_core::{Lane, Message, MessageId, Name, State, Timestamp};

/// A place where a message is looked for. What it is sorted by is a time that goes with it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Place {
    /// Waiting and not parked, by due time.
    Due(Name, Lane, Suspect),
    /// Parked for a gate, by due time.
    Parked(GateKey),
    /// In somebody's hands, by the end of the lease.
    Claimed,
    /// With an outside worker, by the time of its report.
    Reporting,
    /// Waiting or handed off with an end to it, by that end.
    Expiring,
    /// Delivered, cancelled or dismissed, by when that was.
    PutAway(Name),
}

/// Whether a message lost a lease before.
pub(super) type Suspect = bool;

/// Which messages are found at which place.
#[derive(Debug, Default)]
pub(super) struct Index(BTreeSet<(Place, Timestamp, MessageId)>);

impl Index {
    pub(super) fn add(&mut self, message: &Message) {
        for (place, at) in places(message) {
            self.0.insert((place, at, message.id.clone()));
        }
    }

    pub(super) fn remove(&mut self, message: &Message) {
        for (place, at) in places(message) {
            self.0.remove(&(place, at, message.id.clone()));
        }
    }

    /// The messages at a place, the earliest first.
    pub(super) fn at(&self, place: Place) -> impl Iterator<Item = (Timestamp, &MessageId)> {
        let first = (place.clone(), Timestamp::from_ms(i64::MIN), MessageId::own(0));
        let here = self.0.range(first..).take_while(move |(other, ..)| *other == place);
        here.map(|(_, at, id)| (*at, id))
    }

    /// The gates for which messages are parked, each once.
    pub(super) fn parked(&self) -> Vec<GateKey> {
        let mut gates: Vec<GateKey> = Vec::new();
        for (place, ..) in &self.0 {
            if let Place::Parked(gate) = place
                && gates.last() != Some(gate)
            {
                gates.push(gate.clone());
            }
        }
        gates
    }
}

fn places(message: &Message) -> impl Iterator<Item = (Place, Timestamp)> {
    let route = || message.route.clone();
    let standing = match &message.state {
        State::Waiting { parked_for: None } => {
            Some((Place::Due(route(), message.lane, message.is_suspect()), message.due_at))
        }
        State::Waiting { parked_for: Some(gate) } => Some((Place::Parked(gate.clone()), message.due_at)),
        State::Claimed(lease) => Some((Place::Claimed, lease.until_at)),
        State::HandedOff { report_by, .. } => report_by.map(|by| (Place::Reporting, by)),
        State::Delivered { at, .. } | State::Cancelled { at, .. } => Some((Place::PutAway(route()), *at)),
        State::Dead { at, dismissed_at, .. } => {
            let put_away_at = if planted::is(Bug::PruneTakesTheDead) { Some(*at) } else { *dismissed_at };
            put_away_at.map(|at| (Place::PutAway(route()), at))
        }
    };
    let expiring = match message.state {
        State::Waiting { .. } | State::HandedOff { .. } => message.expires_at.map(|at| (Place::Expiring, at)),
        State::Claimed(_) | State::Delivered { .. } | State::Dead { .. } | State::Cancelled { .. } => None,
    };
    standing.into_iter().chain(expiring)
}
