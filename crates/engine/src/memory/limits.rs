//! The limits of destinations: which slots are taken, and who has how many permits.

use std::collections::BTreeMap;

use redeliver_core::limit::{Grant, Others, Timeline};
use redeliver_core::{InstanceId, Name, Timestamp};

use super::rows::Rows;
use crate::store::{LIMITS_KEPT_FOR, LimitRequest};

/// The limits of all destinations.
#[derive(Debug, Default)]
pub(super) struct LimitRows(BTreeMap<Name, LimitRow>);

#[derive(Debug, Default)]
struct LimitRow {
    timeline: Timeline,
    shares: BTreeMap<InstanceId, ShareRow>,
}

/// The permits of one instance.
#[derive(Debug)]
struct ShareRow {
    held: usize,
    turn: u64,
    until_at: Timestamp,
    wants_until: Timestamp,
}

impl Rows {
    pub(super) fn draw_limit(&mut self, request: &LimitRequest) -> Grant {
        let (limits, instances, now) = (&mut self.limits, &self.instances, request.ask.now);
        limits.draw(request, |instance| instances.get(&instance).is_some_and(|beat| beat.lives(now)))
    }

    pub(super) fn forget_limits(&mut self, now: Timestamp) -> usize {
        let (limits, instances) = (&mut self.limits, &self.instances);
        limits.forget(now, |instance| instances.get(&instance).is_some_and(|beat| beat.lives(now)))
    }
}

impl LimitRows {
    fn draw(&mut self, request: &LimitRequest, lives: impl Fn(InstanceId) -> bool) -> Grant {
        let LimitRow { timeline, shares } = self.0.entry(request.destination.clone()).or_default();
        if request.ask.limits.at_once_max.is_none() {
            return timeline.grant(&request.ask, Others::default());
        }
        if shares.get(&request.instance).is_some_and(|share| share.turn >= request.turn) {
            return Grant::default();
        }
        let now = request.ask.now;
        let counts = |id: InstanceId, share: &ShareRow| share.until_at > now || lives(id);
        let mut others = Others::default();
        for (id, share) in shares.iter() {
            if *id != request.instance && counts(*id, share) {
                let wants = share.wants_until > now;
                others.held += share.held;
                others.sharing += usize::from(wants || share.held > 0);
                others.wanting += usize::from(wants);
            }
        }
        let grant = timeline.grant(&request.ask, others);
        let wants_until = request.ask.wants_until(&grant);
        let LimitRequest { turn, until_at, .. } = *request;
        let share = ShareRow { held: grant.held, turn, until_at, wants_until };
        shares.insert(request.instance, share);
        grant
    }

    fn forget(&mut self, now: Timestamp, lives: impl Fn(InstanceId) -> bool) -> usize {
        let before = now.minus(LIMITS_KEPT_FOR);
        for row in self.0.values_mut() {
            row.shares.retain(|id, share| share.until_at > before || (share.held > 0 && lives(*id)));
        }
        let count = self.0.len();
        self.0.retain(|_, row| !row.timeline.is_past(before) || !row.shares.is_empty());
        count - self.0.len()
    }
}
