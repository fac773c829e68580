//! The steps that workers, reaper, operator, network and time can take, in any order.
//!
//! A worker that takes no step while time goes by is one that was paused.

use stateright::{Model, Property};

use crate::bug::Bug;
use crate::properties;
use crate::row::{Row, Verdict};
use crate::store;
use crate::worker::{Line, carry, send};
use crate::world::{Broken, Call, Change, Deed, Draft, Hold, Request, Step, Worker, World};

/// How long a lease lasts.
pub const LEASE_TICKS: u8 = 2;
/// How long a confirmed heartbeat allows its worker to start carryings.
pub const HEARTBEAT_LIMIT_TICKS: u8 = 2;
/// How long the reaper waits for a heartbeat.
pub const SILENT_MAX_TICKS: u8 = 2;

/// What is checked, and how far.
#[derive(Clone, Debug)]
pub struct Rules {
    pub workers: u8,
    pub messages: u8,
    /// `on_lost = "hold"` instead of `"retry"`.
    pub hold: bool,
    /// Whether workers must send heartbeats.
    pub beats: bool,
    pub operator: bool,
    pub attempts_max: u8,
    pub losses_max: u8,
    /// Requests that may be on their way unawaited.
    pub strays_max: usize,
    /// Whether to check, from each state, that everything settles once the faults end.
    pub heals: bool,
    pub bug: Option<Bug>,
}

impl Default for Rules {
    fn default() -> Self {
        Self {
            workers: 2,
            messages: 1,
            hold: false,
            beats: false,
            operator: false,
            attempts_max: 2,
            losses_max: 2,
            strays_max: 0,
            heals: false,
            bug: None,
        }
    }
}

#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Action {
    Tick,
    Claim(u8, u8),
    Start(u8),
    Carry(u8, Verdict),
    Defer(u8),
    Settle(u8),
    /// A worker asks for more time. Once it carries it never looks at its deadline again, so only earlier ones matter.
    Renew(u8),
    /// A worker drops a claim that it didn't carry.
    LetGo(u8),
    Beat(u8),
    /// A request reaches the store.
    Land(u8, Line),
    /// The answer reaches the worker.
    Hear(u8, Line),
    /// The request or its answer is lost, and the worker stops waiting.
    Lose(u8, Line),
    /// The worker stops waiting while its request is still on its way.
    Abandon(u8, Line),
    LandStray(u8),
    /// The worker is gone; another instance takes its place.
    Crash(u8),
    /// The reaper or the operator reads a row.
    Read(Deed, u8),
    /// It writes what it made of it, and may do so again, since it may not hear that it did.
    Write(Deed),
    /// It is done, or gone.
    Drop(Deed),
}

impl Model for Rules {
    type State = World;
    type Action = Action;

    fn init_states(&self) -> Vec<World> {
        vec![World {
            rows: vec![Row::NEW; usize::from(self.messages)],
            workers: vec![Worker::NEW; usize::from(self.workers)],
            strays: Vec::new(),
            desks: [None; 2],
            broken: Broken::default(),
        }]
    }

    fn actions(&self, world: &World, actions: &mut Vec<Action>) {
        if world.broken.any() {
            return;
        }
        actions.push(Action::Tick);
        for (worker, place) in world.workers.iter().zip(0..) {
            self.worker_actions(world, worker, place, actions);
        }
        actions.extend((0..world.strays.len() as u8).map(Action::LandStray));
        for (row, message) in world.rows.iter().zip(0..) {
            if world.desks[desk(Deed::Lapse)].is_none() && self.may_reap(world, row) {
                actions.push(Action::Read(Deed::Lapse, message));
            }
            if world.desks[desk(Deed::Cancel)].is_none() && self.operator {
                actions.extend(row.cancel(self).map(|_| Action::Read(Deed::Cancel, message)));
                actions.extend(row.retry().map(|_| Action::Read(Deed::Retry, message)));
            }
        }
        for draft in world.desks.iter().flatten() {
            actions.extend([Action::Write(draft.deed), Action::Drop(draft.deed)]);
        }
    }

    fn next_state(&self, before: &World, action: Action) -> Option<World> {
        let mut world = before.clone();
        match action {
            Action::Tick => self.tick(&mut world),
            Action::Claim(place, message) => {
                let request = Request::Claim { message, owner: Some(place), left: LEASE_TICKS };
                send(&mut world, place, request);
            }
            Action::Start(place) => {
                let Hold { message, claim, .. } = world.workers[usize::from(place)].hold?;
                send(&mut world, place, Request::Start { message, claim });
            }
            Action::Renew(place) => {
                let Hold { message, claim, .. } = world.workers[usize::from(place)].hold?;
                send(&mut world, place, Request::Renew { message, claim, left: LEASE_TICKS });
            }
            Action::Settle(place) => {
                let change = self.settling(world.workers[usize::from(place)].hold?)?;
                send(&mut world, place, Request::Apply(change));
            }
            Action::Beat(place) => {
                let request = Request::Beat { owner: place, left: HEARTBEAT_LIMIT_TICKS };
                world.workers[usize::from(place)].beat = Some(Call { request, answer: None });
            }
            Action::Carry(place, verdict) => carry(&mut world, place, verdict)?,
            Action::Defer(place) => {
                world.workers[usize::from(place)].hold.as_mut()?.step = Step::Decided(Verdict::Deferred);
            }
            Action::LetGo(place) => world.workers[usize::from(place)].hold = None,
            Action::Land(place, line) => {
                let request = line.of(&mut world.workers[usize::from(place)]).as_ref()?.request;
                let answer = Some(store::serve(&mut world, request, self));
                *line.of(&mut world.workers[usize::from(place)]) = Some(Call { request, answer });
            }
            Action::Hear(place, line) => {
                let call = line.of(&mut world.workers[usize::from(place)]).take()?;
                self.hear(&mut world.workers[usize::from(place)], call.request, call.answer?);
            }
            Action::Lose(place, line) => {
                self.stop_waiting(&mut world.workers[usize::from(place)], line)?;
            }
            Action::Abandon(place, line) => {
                let request = self.stop_waiting(&mut world.workers[usize::from(place)], line)?;
                world.strays.push(match request {
                    Request::Claim { message, left, .. } => Request::Claim { message, owner: None, left },
                    other => other,
                });
            }
            Action::LandStray(place) => {
                let request = world.strays.remove(usize::from(place));
                store::serve(&mut world, request, self);
            }
            Action::Crash(place) => {
                world.disown(place);
                world.workers[usize::from(place)] = Worker::NEW;
            }
            Action::Read(deed, message) => {
                let row = world.rows[usize::from(message)];
                let left = match (self.bug, row.lease()) {
                    (Some(Bug::CancelWritesLeaseBack), Some(lease)) => lease.left,
                    _ => 0,
                };
                world.desks[desk(deed)] = Some(Draft { deed, message, left, row: row.as_read() });
            }
            Action::Write(deed) => {
                let draft = world.desks[desk(deed)]?;
                store::apply(&mut world, self.written(draft)?, self);
            }
            Action::Drop(deed) => world.desks[desk(deed)] = None,
        }
        let world = world.renamed(self);
        (world != *before).then_some(world)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        properties::all()
    }
}

impl Rules {
    fn may_reap(&self, world: &World, row: &Row) -> bool {
        match self.bug {
            Some(Bug::ReaperIgnoresLease) => row.lease().is_some(),
            _ => world.is_lapsed(row),
        }
    }

    fn tick(&self, world: &mut World) {
        for lease in world.rows.iter_mut().filter_map(Row::lease_mut) {
            lease.left = lease.left.saturating_sub(1);
        }
        for worker in &mut world.workers {
            if self.beats {
                worker.heard = worker.heard.saturating_sub(1);
                worker.known = worker.known.saturating_sub(1);
            }
            let is_silent = worker.heard == 0
                && !self.forgets_silence()
                && self.bug != Some(Bug::CarriesAfterHeartbeatLimit);
            if let Some(hold) = &mut worker.hold {
                hold.left = if is_silent { 0 } else { hold.left.saturating_sub(1) };
            }
            for call in worker.call.iter_mut().chain(&mut worker.beat) {
                call.request.age();
            }
            if let Some(Call { request: Request::Claim { left, .. }, .. }) = &mut worker.call
                && is_silent
            {
                *left = 0;
            }
        }
        world.strays.iter_mut().for_each(Request::age);
        for draft in world.desks.iter_mut().flatten() {
            draft.left = draft.left.saturating_sub(1);
        }
    }

    fn written(&self, draft: Draft) -> Option<Change> {
        let mut row = match draft.deed {
            Deed::Lapse => draft.row.lapse(self),
            Deed::Cancel => draft.row.cancel(self),
            Deed::Retry => draft.row.retry(),
            Deed::Settle => None,
        }?;
        if let Some(lease) = row.lease_mut() {
            lease.left = draft.left;
        }
        Some(Change {
            message: draft.message,
            expected_fence: draft.row.fence,
            read: draft.row.version,
            settles: None,
            deed: draft.deed,
            row,
        })
    }
}

fn desk(deed: Deed) -> usize {
    match deed {
        Deed::Settle | Deed::Lapse => 0,
        Deed::Cancel | Deed::Retry => 1,
    }
}
