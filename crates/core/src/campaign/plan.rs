//! The times of a campaign's mails, prospect by prospect.
//!
//! Each prospect's steps are placed one after the other: the first on the first day with room, each further one on the
//! first day with room that is far enough from its own previous step. So nobody waits for anybody else's last step, and
//! every day fills to its own quota. What is remembered is a count for each day and the slots that are taken, both as
//! many as there are days, however many prospects there are.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::ranges::Ranges;
use super::rules::{Limit, Rules};
use crate::calendar::{Calendar, Day, Span, Zone};
use crate::quota::Slots;
use crate::time::Timestamp;

/// How far ahead room is looked for.
pub const PLAN_DAYS_MAX: i32 = 36_525;
/// Days whose openings are remembered for each zone: more than steps are under way at once.
const DAYS_KEPT_MAX: usize = 256;

/// What has been planned. Kept with the mails, planning goes on from here after a crash, and has nothing left to do when
/// it is run again.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Plan {
    /// The position of the last prospect that was planned; positions begin at 1.
    pub after: u64,
    /// Mails on each day, for each limit.
    pub mails: Vec<BTreeMap<Day, u32>>,
    /// The sender's slots that are taken, by this plan and by others.
    pub taken: Ranges,
}

/// A prospect's place in the order of enrolment, and where they live if that is known.
#[derive(Copy, Clone, Debug)]
pub struct Enrolled<'a> {
    /// Their position: from 1, each higher than the one before.
    pub position: u64,
    /// Their own zone.
    pub zone: Option<&'a Zone>,
}

/// One mail and its time.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Scheduled {
    /// The prospect's position.
    pub position: u64,
    /// The step's number, from 1.
    pub step: u32,
    /// When it goes out.
    pub at: Timestamp,
    /// The local day that this is.
    pub day: Day,
}

/// A step for which there is no time.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NoRoom {
    /// Every day is full, or none opens.
    #[error("there is no room for step {step} within {PLAN_DAYS_MAX} days")]
    Full {
        /// The step's number.
        step: u32,
    },
    /// Where the prospect lives, the windows have no time in common.
    #[error("{0}")]
    NeverOpens(#[from] crate::calendar::CalendarError),
}

/// Makes a plan. The same rules and prospects give the same plan, in one go or in many.
#[derive(Clone, Debug)]
pub struct Planner {
    rules: Rules,
    plan: Plan,
    slots: Option<Slots>,
    sending_days: Vec<SendingDays>,
    views: Vec<View>,
    /// The view of each zone of recipients.
    by_zone: HashMap<String, usize>,
}

/// The local days with a mail sent or planned, in order, as far as they matter to a ramp-up.
#[derive(Clone, Debug)]
struct SendingDays {
    days: Vec<Day>,
    /// From this one on, every day takes the same number.
    whole_from: u32,
}

/// The days as recipients in one zone see them.
#[derive(Clone, Debug)]
struct View {
    calendar: Calendar,
    zone: Zone,
    pieces: HashMap<Day, Arc<[Piece]>>,
    starts: HashMap<Day, Timestamp>,
    /// Days on which nothing more fits.
    full: Ranges,
}

/// Open time that is one and the same day to every limit.
#[derive(Clone, Debug)]
struct Piece {
    span: Span,
    days: Vec<Day>,
}

impl Planner {
    /// A planner that goes on with a plan; a new one begins with `Plan::default()`.
    pub fn new(rules: Rules, mut plan: Plan) -> Self {
        plan.mails.resize_with(rules.limits.len(), BTreeMap::new);
        for (first, last) in Vec::from(rules.taken.clone()) {
            plan.taken.insert_range(first, last);
        }
        let slots = rules.spacing.slots(&rules.sender);
        let days = |limit: &Limit, mails: &BTreeMap<Day, u32>| {
            let some = limit.used.iter().chain(mails).filter(|(_, count)| **count > 0);
            let mut days: Vec<Day> = some.map(|(day, _)| *day).collect();
            days.sort();
            days.dedup();
            SendingDays { days, whole_from: limit.quota.is_whole_from() }
        };
        let sending_days =
            rules.limits.iter().zip(&plan.mails).map(|(limit, mails)| days(limit, mails)).collect();
        let views = vec![View::new(rules.calendar.clone(), rules.zone.clone())];
        Self { rules, plan, slots, sending_days, views, by_zone: HashMap::new() }
    }

    /// What has been planned so far.
    pub fn state(&self) -> &Plan {
        &self.plan
    }

    /// Places the mails of the next prospect. Says whether it did: whoever was planned before is not planned again.
    /// Where there is no room for a step, the steps before it are planned.
    pub fn plan(&mut self, prospect: Enrolled<'_>, out: &mut Vec<Scheduled>) -> Result<bool, NoRoom> {
        if prospect.position <= self.plan.after {
            return Ok(false);
        }
        self.plan.after = prospect.position;
        self.plan_again(prospect, &[], out).map(|()| true)
    }

    /// Places the mails of a prospect, wherever they stand in the order: of one who could not be planned when it was their turn.
    /// A step whose time is known has its mail, and the next one follows that.
    pub fn plan_again(
        &mut self,
        prospect: Enrolled<'_>,
        known: &[Option<Timestamp>],
        out: &mut Vec<Scheduled>,
    ) -> Result<(), NoRoom> {
        let view = self.view(prospect.zone)?;
        let mut previous = None;
        for index in 0..self.rules.delays_days.len() {
            if let Some(at) = known.get(index).copied().flatten() {
                previous = Some(at);
                continue;
            }
            let step = index as u32 + 1;
            let earliest = self.earliest(view, previous, self.rules.delays_days[index]);
            let not_before = earliest.max(self.rules.not_before);
            let (day, at) = self.place(view, not_before).ok_or(NoRoom::Full { step })?;
            out.push(Scheduled { position: prospect.position, step, at, day });
            previous = Some(at);
        }
        Ok(())
    }

    /// Leaves out everybody up to a position.
    pub fn pass(&mut self, position: u64) {
        self.plan.after = self.plan.after.max(position);
    }

    /// The view of a zone; that of the campaign itself is the first.
    fn view(&mut self, zone: Option<&Zone>) -> Result<usize, NoRoom> {
        let is_own = |zone: &Zone| {
            *zone == self.rules.zone
                && self.rules.calendar.windows().iter().all(|window| window.zone() == zone)
        };
        let Some(zone) = zone.filter(|zone| !is_own(zone)) else { return Ok(0) };
        if let Some(known) = self.by_zone.get(zone.name()) {
            return Ok(*known);
        }
        let calendar = self.rules.calendar.in_zone(zone)?;
        self.views.push(View::new(calendar, zone.clone()));
        self.by_zone.insert(zone.name().to_owned(), self.views.len() - 1);
        Ok(self.views.len() - 1)
    }

    /// The earliest time of a step: so many local days after its own previous step, and never with it.
    fn earliest(&mut self, view: usize, previous: Option<Timestamp>, delay_days: u32) -> Timestamp {
        let after = previous.unwrap_or(self.rules.not_before);
        let apart =
            previous.map_or(after, |at| at.plus(self.rules.spacing.min.max(Duration::from_millis(1))));
        match delay_days {
            0 => apart,
            days => self.views[view].start_of(after, days).max(apart),
        }
    }

    /// Takes the first slot with room that is not before a time.
    fn place(&mut self, view: usize, not_before: Timestamp) -> Option<(Day, Timestamp)> {
        let first = self.rules.zone.local_day(not_before);
        let mut day = first;
        loop {
            day = Day::from_number(self.views[view].full.free_from(day.number()));
            if day.days_since(first) > PLAN_DAYS_MAX {
                return None;
            }
            let pieces = self.views[view].pieces(day, &self.rules);
            let mut is_full = true;
            for piece in pieces.iter().filter(|piece| self.has_room(piece)) {
                if let Some((at, cell)) = self.slot_in(piece.span, not_before) {
                    self.take(piece, cell);
                    return Some((day, at));
                }
                // Whoever comes earlier may still find something.
                is_full &= not_before <= piece.span.from;
            }
            if is_full {
                self.views[view].full.insert(day.number());
            }
            day = day.next();
        }
    }

    /// Whether every limit has room on the day that a piece is to it.
    fn has_room(&self, piece: &Piece) -> bool {
        let mut limits =
            self.rules.limits.iter().zip(&self.plan.mails).zip(&self.sending_days).zip(&piece.days);
        limits.all(|(((limit, mails), sending_days), day)| {
            let used = count_on(&limit.used, day).saturating_add(count_on(mails, day));
            let k = limit.sending_days_before.saturating_add(sending_days.number_of(day));
            used < limit.quota.on_sending_day(k, self.rules.urgency)
        })
    }

    /// The first free slot of a span that is not before a time, and its cell where slots have any.
    fn slot_in(&self, span: Span, not_before: Timestamp) -> Option<(Timestamp, Option<i64>)> {
        let from = span.from.max(not_before);
        let (at, cell) = match &self.slots {
            None => (from, None),
            Some(slots) => {
                let cell = self.plan.taken.free_from(slots.first_from(from));
                (slots.slot(cell), Some(cell))
            }
        };
        (at < span.to && at < Timestamp::MAX).then_some((at, cell))
    }

    /// Counts a mail.
    fn take(&mut self, piece: &Piece, cell: Option<i64>) {
        if let Some(cell) = cell {
            self.plan.taken.insert(cell);
        }
        let mut has_grown = false;
        for (i, day) in piece.days.iter().enumerate() {
            let mails = self.plan.mails[i].entry(*day).or_default();
            *mails += 1;
            if *mails == 1 {
                let before = self.rules.limits[i].sending_days_before;
                has_grown |= self.sending_days[i].insert(*day, before);
            }
        }
        // One more sending day is one day later in the ramp-up for all that follow: what was full may not be any more.
        if has_grown {
            self.views.iter_mut().for_each(|view| view.full.clear());
        }
    }
}

fn count_on(counts: &BTreeMap<Day, u32>, day: &Day) -> u32 {
    counts.get(day).copied().unwrap_or(0)
}

impl SendingDays {
    /// Which sending day this is, or would be.
    fn number_of(&self, day: &Day) -> u32 {
        match self.whole_from {
            // Nobody asks, where every day takes the same.
            1 => 1,
            _ => self.days.partition_point(|other| other < day) as u32 + 1,
        }
    }

    /// Puts a day in. Says whether days after it take more than before.
    fn insert(&mut self, day: Day, before: u32) -> bool {
        let at = self.days.partition_point(|other| *other < day);
        if self.whole_from == 1 || self.days.get(at) == Some(&day) {
            return false;
        }
        self.days.insert(at, day);
        before.saturating_add(at as u32 + 1) < self.whole_from
    }
}

impl View {
    fn new(calendar: Calendar, zone: Zone) -> Self {
        Self { calendar, zone, pieces: HashMap::new(), starts: HashMap::new(), full: Ranges::default() }
    }

    /// When the local day so many days after that of `after` begins.
    fn start_of(&mut self, after: Timestamp, days: u32) -> Timestamp {
        let day = self.zone.local_day(after).plus(i32::try_from(days).unwrap_or(i32::MAX));
        if self.starts.len() >= DAYS_KEPT_MAX {
            self.starts.clear();
        }
        *self.starts.entry(day).or_insert_with(|| self.zone.day_start(day))
    }

    /// The open time of a day of the campaign's zone, cut where a day of some limit's zone ends.
    fn pieces(&mut self, day: Day, rules: &Rules) -> Arc<[Piece]> {
        if let Some(known) = self.pieces.get(&day) {
            return Arc::clone(known);
        }
        let open = self.calendar.open_on(day, &rules.zone);
        let mut pieces: Vec<Piece> = open
            .into_iter()
            .map(|span| Piece { span, days: Vec::with_capacity(rules.limits.len()) })
            .collect();
        for limit in &rules.limits {
            pieces = match limit.zone == rules.zone {
                true => pieces.into_iter().map(|piece| piece.on(day)).collect(),
                false => pieces.into_iter().flat_map(|piece| piece.cut(&limit.zone)).collect(),
            };
        }
        if self.pieces.len() >= DAYS_KEPT_MAX {
            self.pieces.clear();
        }
        let pieces: Arc<[Piece]> = pieces.into();
        self.pieces.insert(day, Arc::clone(&pieces));
        pieces
    }
}

impl Piece {
    fn on(mut self, day: Day) -> Self {
        self.days.push(day);
        self
    }

    /// The same time in pieces, one for each local day of a zone, in order.
    fn cut(self, zone: &Zone) -> Vec<Self> {
        let (first, last) = (zone.local_day(self.span.from).plus(-1), zone.local_day(self.span.to).next());
        let mut pieces = Vec::new();
        let mut day = first;
        while day <= last {
            let parts = zone.spans_of(day).into_iter().filter_map(|part| part.common(self.span));
            pieces.extend(parts.map(|span| Self { span, days: self.days.clone() }.on(day)));
            day = day.next();
        }
        pieces.sort_by_key(|piece| piece.span.from);
        pieces
    }
}
