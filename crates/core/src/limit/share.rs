//! What one instance has of a destination's limits, and what it knows of the rest.

use std::collections::VecDeque;
use std::time::Duration;

use super::{CLAIM_AHEAD, Grant, Limits, OPEN_FOR, RESERVE_AHEAD, SKEW_US_MAX, slots_within, span_us, us};
use crate::time::Timestamp;

/// How long it is taken for granted that there was nothing left.
const KNOWN_FOR: Duration = Duration::from_millis(100);
/// How soon an instance that holds permits looks whether others want some.
const LOOK_AFTER: Duration = Duration::from_secs(1);

/// One instance's part of a destination's limits.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Share {
    /// The limits, as of the last send.
    limits: Limits,
    /// Slots that are ours and that no send has yet, by their beginnings.
    slots: VecDeque<i64>,
    /// Where the first free slot began when we last asked.
    free_at_us: i64,
    /// Permits that the store has surely given us.
    held: usize,
    /// Permits that nobody had when we last asked, and that we could have had.
    free: usize,
    /// The most that we should hold, because others wanted some when we last asked.
    fair: Option<usize>,
    /// Sends under way, or that wait for their slot.
    in_use: usize,
    /// Sends that wait for a slot or a permit to be theirs.
    waiting: usize,
    /// When we last asked.
    told_at: Option<Timestamp>,
    /// Whether the store may take us for the holder of more than we hold.
    unsettled: bool,
}

/// What came of asking for a send's slot and permit.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Take {
    /// It has both. It may start at this time, in microseconds since 1970; at once if there is none.
    Taken(Option<i64>),
    /// The store has to be asked.
    Draw,
    /// All slots that can be reserved are taken.
    UsedUp,
    /// All permits were in use a moment ago.
    Full,
}

impl Share {
    /// Takes a slot and a permit, as far as these limits call for them.
    pub fn take(&mut self, limits: Limits, now: Timestamp) -> Take {
        self.limits = limits;
        self.drop_past_slots(now);
        let lacks_permit =
            limits.at_once_max.is_some_and(|max| self.in_use >= self.held.min(self.part_of(max)));
        let lacks_slot = limits.gap_us.is_some() && self.slots.is_empty();
        if lacks_slot && self.is_used_up(now) {
            return Take::UsedUp;
        }
        if lacks_permit && self.is_full(now) {
            return Take::Full;
        }
        if lacks_permit || lacks_slot {
            return Take::Draw;
        }
        self.in_use += 1;
        Take::Taken(limits.gap_us.and_then(|_| self.slots.pop_front()))
    }

    /// Whether one more send would only be turned away, as far as is known.
    pub fn turns_away(&self, limits: Limits, now: Timestamp) -> bool {
        let has_slot = self.slots.iter().any(|slot_us| !is_past(*slot_us, now));
        let is_used_up = limits.gap_us.is_some() && !has_slot && self.is_used_up(now);
        is_used_up || limits.at_once_max.is_some_and(|max| self.waiting >= max && self.is_full(now))
    }

    /// Whether all slots that can be reserved were taken when we last asked, and still are.
    fn is_used_up(&self, now: Timestamp) -> bool {
        let ahead_us = self.free_at_us - us(now);
        (span_us(RESERVE_AHEAD)..=self.known_us_max()).contains(&ahead_us)
    }

    /// Whether there was no permit left for us a moment ago.
    fn is_full(&self, now: Timestamp) -> bool {
        self.is_fresh(now) && !self.unsettled && self.in_use >= self.part_of(self.held) && self.free == 0
    }

    /// This instance's part of `permits`.
    fn part_of(&self, permits: usize) -> usize {
        self.fair.map_or(permits, |fair| fair.min(permits))
    }

    /// How far ahead a timeline can be that is not of a clock which was set back since.
    fn known_us_max(&self) -> i64 {
        span_us(RESERVE_AHEAD) + self.limits.gap_us.unwrap_or(0) + SKEW_US_MAX
    }

    /// One more send waits.
    pub fn wait(&mut self) {
        self.waiting += 1;
    }

    /// One send waits no longer.
    pub fn stop_waiting(&mut self) {
        self.waiting = self.waiting.saturating_sub(1);
    }

    /// A send is over, or did not start: its permit is free. Its slot, if it comes back, can be used by another.
    pub fn give_back(&mut self, unused_slot_us: Option<i64>) {
        self.in_use = self.in_use.saturating_sub(1);
        if let Some(slot_us) = unused_slot_us {
            let place = self.slots.partition_point(|other| *other < slot_us);
            self.slots.insert(place, slot_us);
        }
    }

    /// Gives up the permits that are not in use, because the store is being asked, or because they are ours no longer: how
    /// many are in use, and how many sends wait.
    pub fn begin_draw(&mut self) -> (usize, usize) {
        self.held = self.held.min(self.in_use);
        self.unsettled = true;
        (self.in_use, self.waiting)
    }

    /// Takes in what the store has given. It was asked at `now`.
    pub fn end_draw(&mut self, grant: &Grant, now: Timestamp) {
        let gap_us = self.limits.gap_us.unwrap_or(0);
        let slots = (0..grant.slots).map(|n| grant.first_us + gap_us * n as i64);
        self.slots.extend(slots);
        self.free_at_us = grant.free_at_us;
        (self.held, self.free, self.fair) = (grant.held, grant.free, grant.fair);
        self.told_at = Some(now);
        self.unsettled = false;
    }

    /// The limits that it is about, as of the last send.
    pub fn limits(&self) -> Limits {
        self.limits
    }

    /// Whether it has, or may have, permits.
    pub fn has_permits(&self) -> bool {
        self.unsettled || self.held > 0
    }

    /// Whether the store takes us for the holder of permits that no send needs, or that others should have.
    pub fn has_spare(&self) -> bool {
        self.unsettled || self.held > self.part_of(self.in_use + self.waiting).max(self.in_use)
    }

    /// Whether it is time to look whether others want some of our permits.
    pub fn should_look(&self, now: Timestamp) -> bool {
        self.held > 0 && self.told_at.is_none_or(|at| now.since(at) >= LOOK_AFTER)
    }

    /// Whether forgetting it changes nothing.
    pub fn is_idle(&self, now: Timestamp) -> bool {
        let has_nothing = self.in_use + self.waiting + self.held == 0 && !self.unsettled;
        has_nothing && self.free_at_us <= us(now)
    }

    /// Whether it was told lately enough to count on it.
    pub fn is_fresh(&self, now: Timestamp) -> bool {
        self.told_at.is_some_and(|at| now.since(at) < KNOWN_FOR)
    }

    /// How many more messages there is soon room for: none until it is worth claiming a few at once.
    pub fn room(&self, limits: Limits, now: Timestamp) -> usize {
        let permits = limits.at_once_max.map_or(usize::MAX, |max| {
            let max = self.part_of(max);
            let free =
                if self.is_fresh(now) { self.held.saturating_sub(self.in_use) + self.free } else { max };
            free.min(max.saturating_sub(self.in_use)).saturating_sub(self.waiting)
        });
        let slots = limits.gap_us.map_or(usize::MAX, |gap_us| {
            let end_us = us(now) + span_us(CLAIM_AHEAD);
            let free = slots_within(self.first_free_us(now), end_us, gap_us);
            let open = self.slots.iter().filter(|slot_us| !is_past(**slot_us, now)).count();
            let room = (free + open).saturating_sub(self.waiting);
            let worth_it = slots_within(0, span_us(CLAIM_AHEAD), gap_us).div_ceil(2);
            if room >= worth_it { room } else { 0 }
        });
        permits.min(slots)
    }

    /// When there is room again, at the earliest.
    pub fn room_at(&self, limits: Limits, now: Timestamp) -> Timestamp {
        let soon = now.plus(KNOWN_FOR);
        let Some(gap_us) = limits.gap_us else { return soon };
        let most = slots_within(0, span_us(CLAIM_AHEAD), gap_us).div_ceil(2);
        let last_us = gap_us.saturating_mul(most.saturating_sub(1) as i64);
        let room_us = self.first_free_us(now) + last_us - span_us(CLAIM_AHEAD);
        Timestamp::from_ms(room_us.div_euclid(1_000) + 1).max(now.plus(Duration::from_millis(1)))
    }

    fn first_free_us(&self, now: Timestamp) -> i64 {
        let is_known = self.free_at_us <= us(now) + self.known_us_max();
        if is_known { self.free_at_us.max(us(now)) } else { us(now) }
    }

    fn drop_past_slots(&mut self, now: Timestamp) {
        while self.slots.front().is_some_and(|slot_us| is_past(*slot_us, now)) {
            self.slots.pop_front();
        }
    }
}

/// Whether it is too late to start a send in this slot.
pub fn is_past(slot_us: i64, now: Timestamp) -> bool {
    us(now) > slot_us.saturating_add(span_us(OPEN_FOR))
}

/// How long a send has to wait for the beginning of its slot.
pub fn wait_for(slot_us: i64, now: Timestamp) -> Duration {
    let us = u64::try_from(slot_us.saturating_sub(us(now))).unwrap_or(0);
    Duration::from_millis(us.div_ceil(1_000))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limit::{Ask, Others, Rate, Timeline};

    fn at(ms: i64) -> Timestamp {
        Timestamp::from_ms(ms)
    }

    fn rate(per_s: f64) -> Limits {
        Limits { gap_us: Some(Rate { per_s }.gap_us()), at_once_max: None }
    }

    fn at_once(max: usize) -> Limits {
        Limits { gap_us: None, at_once_max: Some(max) }
    }

    /// Asks as an engine does.
    fn draw(share: &mut Share, timeline: &mut Timeline, held_elsewhere: usize, now_ms: i64) {
        let (in_use, sends) = share.begin_draw();
        let ask = Ask { limits: share.limits(), now: at(now_ms), in_use, sends, has_backlog: false };
        let others = Others { held: held_elsewhere, ..Others::default() };
        share.end_draw(&timeline.grant(&ask, others), at(now_ms));
    }

    #[test]
    fn each_send_has_a_slot_of_its_own_and_starts_no_earlier() {
        let (mut share, mut timeline) = (Share::default(), Timeline::default());
        assert_eq!(share.take(rate(10.0), at(1_000)), Take::Draw);
        share.wait();
        share.wait();
        draw(&mut share, &mut timeline, 0, 1_000);
        assert_eq!(share.take(rate(10.0), at(1_000)), Take::Taken(Some(1_000_000)));
        assert_eq!(share.take(rate(10.0), at(1_000)), Take::Taken(Some(1_110_000)));
        assert_eq!(wait_for(1_110_000, at(1_000)), Duration::from_millis(110));
        assert_eq!(wait_for(1_110_500, at(1_110)), Duration::from_millis(1));
        assert_eq!(share.take(rate(10.0), at(1_000)), Take::Draw);
    }

    #[test]
    fn a_slot_is_lost_when_nobody_uses_it_in_time() {
        let (mut share, mut timeline) = (Share::default(), Timeline::default());
        share.take(rate(10.0), at(1_000));
        share.wait();
        draw(&mut share, &mut timeline, 0, 1_000);
        assert!(!is_past(1_000_000, at(1_080)) && is_past(1_000_000, at(1_081)));
        assert_eq!(share.take(rate(10.0), at(1_081)), Take::Draw);
    }

    #[test]
    fn a_slot_that_comes_back_is_used_by_another_send() {
        let (mut share, mut timeline) = (Share::default(), Timeline::default());
        share.take(rate(10.0), at(1_000));
        share.wait();
        draw(&mut share, &mut timeline, 0, 1_000);
        assert_eq!(share.take(rate(10.0), at(1_000)), Take::Taken(Some(1_000_000)));
        share.give_back(Some(1_000_000));
        assert_eq!(share.take(rate(10.0), at(1_010)), Take::Taken(Some(1_000_000)));
    }

    #[test]
    fn what_is_reserved_far_ahead_turns_sends_away_until_there_is_room() {
        let (mut share, mut timeline) = (Share::default(), Timeline::default());
        let limits = rate(10.0);
        share.take(limits, at(0));
        (0..100).for_each(|_| share.wait());
        draw(&mut share, &mut timeline, 0, 0);
        (0..100).for_each(|_| share.stop_waiting());
        for _ in 0..19 {
            assert!(matches!(share.take(limits, at(0)), Take::Taken(Some(_))));
        }
        assert_eq!(share.take(limits, at(0)), Take::UsedUp);
        assert!(share.turns_away(limits, at(0)) && !share.turns_away(limits, at(100)));
        assert_eq!(share.room(limits, at(0)), 0);
        let room_at = share.room_at(limits, at(0));
        assert_eq!(share.room(limits, room_at), 3, "half of half a second's worth");
        assert_eq!(share.room(limits, at(room_at.as_ms() - 2)), 0);
        assert_eq!(share.room(limits, at(10_000)), 5);
    }

    #[test]
    fn a_slow_rate_has_room_when_its_next_slot_is_near() {
        let (mut share, mut timeline) = (Share::default(), Timeline::default());
        let limits = rate(0.1);
        assert_eq!(share.room(limits, at(0)), 1);
        share.take(limits, at(0));
        share.wait();
        draw(&mut share, &mut timeline, 0, 0);
        share.stop_waiting();
        assert_eq!(share.take(limits, at(0)), Take::Taken(Some(0)));
        assert_eq!(share.room(limits, at(1)), 0);
        assert_eq!(share.room_at(limits, at(1)), at(9_601));
        assert_eq!(share.room(limits, at(9_601)), 1);
    }

    #[test]
    fn permits_pass_from_send_to_send_and_spare_ones_go_back() {
        let (mut share, mut timeline) = (Share::default(), Timeline::default());
        assert_eq!(share.take(at_once(3), at(0)), Take::Draw);
        share.wait();
        share.wait();
        draw(&mut share, &mut timeline, 1, 0);
        (0..2).for_each(|_| share.stop_waiting());
        assert_eq!(share.take(at_once(3), at(0)), Take::Taken(None));
        assert_eq!(share.take(at_once(3), at(0)), Take::Taken(None));
        assert_eq!(share.take(at_once(3), at(0)), Take::Full, "the third is another's");
        assert_eq!(share.take(at_once(3), at(100)), Take::Draw, "which may have changed");
        share.give_back(None);
        assert!(share.has_spare());
        assert_eq!(share.take(at_once(3), at(1)), Take::Taken(None));
        share.give_back(None);
        draw(&mut share, &mut timeline, 1, 200);
        assert!(!share.has_spare() && share.has_permits());
        assert_eq!(share.room(at_once(3), at(200)), 1);
    }

    #[test]
    fn permits_that_are_not_in_use_are_nobodys_while_the_store_is_asked() {
        let (mut share, mut timeline) = (Share::default(), Timeline::default());
        share.take(at_once(3), at(0));
        share.wait();
        draw(&mut share, &mut timeline, 0, 0);
        share.begin_draw();
        assert_eq!(share.take(at_once(3), at(0)), Take::Draw);
        assert!(share.has_spare(), "until the store has answered");
        assert!(!share.is_idle(at(0)));
    }
    #[test]
    fn permits_beyond_the_fair_part_go_back_as_their_sends_end() {
        let (mut share, mut timeline) = (Share::default(), Timeline::default());
        share.take(at_once(6), at(0));
        (0..6).for_each(|_| share.wait());
        draw(&mut share, &mut timeline, 0, 0);
        (0..6).for_each(|_| assert_eq!(share.take(at_once(6), at(0)), Take::Taken(None)));
        assert!(!share.should_look(at(999)) && share.should_look(at(1_000)));
        let (in_use, sends) = share.begin_draw();
        let ask = Ask { limits: share.limits(), now: at(1_000), in_use, sends, has_backlog: false };
        let others = Others { held: 0, sharing: 2, wanting: 2 };
        share.end_draw(&timeline.grant(&ask, others), at(1_000));
        assert!(!share.has_spare(), "all are in use");
        (0..3).for_each(|_| share.give_back(None));
        assert!(share.has_spare(), "three are in use, two are its part");
        assert_ne!(share.take(at_once(6), at(1_010)), Take::Taken(None), "others want it");
        assert_eq!(share.room(at_once(6), at(1_010)), 0);
        (0..2).for_each(|_| share.give_back(None));
        (0..5).for_each(|_| share.stop_waiting());
        assert_eq!(share.take(at_once(6), at(1_020)), Take::Taken(None), "this is its own part");
    }
}
