//! What a worker does: claims, looks at its lease, carries, tells the store, and listens.

use crate::bug::Bug;
use crate::model::{Action, HEARTBEAT_LIMIT_TICKS, LEASE_TICKS, Rules};
use crate::row::{Standing, Verdict};
use crate::world::{Answer, Broken, Call, Change, Deed, Hold, Request, Step, Worker, World};

/// A worker's two connections: one for its message, one for its heartbeat.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Line {
    Call,
    Beat,
}

impl Rules {
    pub fn worker_actions(&self, world: &World, worker: &Worker, place: u8, actions: &mut Vec<Action>) {
        for line in [Line::Call, Line::Beat] {
            match line.peek(worker) {
                Some(Call { answer: None, .. }) => {
                    actions.extend([Action::Land(place, line), Action::Lose(place, line)]);
                    if world.strays.len() < self.strays_max {
                        actions.push(Action::Abandon(place, line));
                    }
                }
                Some(_) => actions.extend([Action::Hear(place, line), Action::Lose(place, line)]),
                None => {}
            }
        }
        if worker.hold.is_some() || worker.call.is_some() {
            actions.push(Action::Crash(place));
        }
        if self.beats && worker.beat.is_none() && worker.heard < HEARTBEAT_LIMIT_TICKS {
            actions.push(Action::Beat(place));
        }
        if worker.call.is_some() {
            return;
        }
        let Some(hold) = &worker.hold else {
            if worker.heard > 0 || self.forgets_silence() {
                let waiting = world.rows.iter().zip(0..).filter(|(row, _)| row.standing == Standing::Waiting);
                actions.extend(waiting.map(|(_, message)| Action::Claim(place, message)));
            }
            return;
        };
        let has_time = hold.left > 0 && (worker.heard > 0 || !self.forgets_silence());
        match hold.step {
            Step::Decided(_) => actions.push(Action::Settle(place)),
            Step::Fresh | Step::Started => {
                actions.extend([Action::Defer(place), Action::LetGo(place)]);
                if has_time && hold.left < LEASE_TICKS {
                    actions.push(Action::Renew(place));
                }
                if hold.step == Step::Fresh && hold.row.records_start(self) {
                    actions.extend(has_time.then_some(Action::Start(place)));
                } else if has_time || self.carries_without_time(hold) {
                    actions.push(Action::Carry(place, Verdict::Delivered));
                    actions.push(Action::Carry(place, Verdict::Failed));
                }
            }
        }
    }

    fn carries_without_time(&self, hold: &Hold) -> bool {
        match self.bug {
            Some(Bug::NoSelfFence) => true,
            Some(Bug::ChecksBeforeStart) => hold.step == Step::Started,
            _ => false,
        }
    }

    /// Whether a worker works out its heartbeat's limit anew each time instead of dropping its claims once it passed.
    pub fn forgets_silence(&self) -> bool {
        self.bug == Some(Bug::LateBeatRevives)
    }

    pub fn settling(&self, hold: Hold) -> Option<Change> {
        let Step::Decided(verdict) = hold.step else { return None };
        Some(Change {
            message: hold.message,
            expected_fence: hold.row.fence,
            read: hold.row.version,
            settles: Some(hold.claim),
            deed: Deed::Settle,
            row: hold.row.settle(verdict, self),
        })
    }

    pub fn hear(&self, worker: &mut Worker, request: Request, answer: Answer) {
        match (request, answer) {
            (Request::Claim { message, left, .. }, Answer::Claimed(row)) => {
                let left = if self.bug == Some(Bug::DeadlineFromAnswer) { LEASE_TICKS } else { left };
                worker.hold = row.lease().map(|lease| Hold {
                    message,
                    claim: lease.claim,
                    born: lease.born,
                    row,
                    left,
                    step: Step::Fresh,
                    is_applied: false,
                });
            }
            (Request::Beat { left, .. }, _) => worker.heard = worker.heard.max(left),
            (_, answer) => {
                worker.hold = worker.hold.and_then(|hold| self.go_on(hold, request, answer));
            }
        }
    }

    /// The claim after an answer to a call about it; nothing if the worker is done with it.
    fn go_on(&self, mut hold: Hold, request: Request, answer: Answer) -> Option<Hold> {
        match (request, answer) {
            (Request::Start { .. }, Answer::Yes) => hold.step = Step::Started,
            // A deadline that has passed stays passed: the reaper may have read the row before the renewal arrived.
            (Request::Renew { left, .. }, Answer::Yes) => {
                if hold.left > 0 || self.bug == Some(Bug::LateRenewalRevives) {
                    hold.left = hold.left.max(left);
                }
            }
            (Request::Start { .. } | Request::Renew { .. }, _) => hold.left = 0,
            // Somebody asked for its cancel in the meantime: the verdict is settled again from there.
            (Request::Apply(_), Answer::Superseded(Some(row))) => hold.row = row,
            (Request::Apply(_) | Request::Claim { .. } | Request::Beat { .. }, _) => return None,
        }
        Some(hold)
    }

    /// What the worker asked, now that it waits no longer.
    pub fn stop_waiting(&self, worker: &mut Worker, line: Line) -> Option<Request> {
        let call = line.of(worker).take()?;
        if self.bug == Some(Bug::CarriesAgainWhenUnheard)
            && let (Request::Apply(_), Some(hold)) = (call.request, &mut worker.hold)
        {
            hold.step = Step::Fresh;
        }
        Some(call.request)
    }
}

impl Line {
    pub fn of(self, worker: &mut Worker) -> &mut Option<Call> {
        match self {
            Self::Call => &mut worker.call,
            Self::Beat => &mut worker.beat,
        }
    }

    fn peek(self, worker: &Worker) -> Option<&Call> {
        match self {
            Self::Call => worker.call.as_ref(),
            Self::Beat => worker.beat.as_ref(),
        }
    }
}

pub fn send(world: &mut World, place: u8, request: Request) {
    world.workers[usize::from(place)].call = Some(Call { request, answer: None });
}

/// The one thing that the world outside can see.
pub fn carry(world: &mut World, place: u8, verdict: Verdict) -> Option<()> {
    let hold = world.workers[usize::from(place)].hold?;
    let others = world.workers.iter().zip(0..).filter(|(_, other)| *other != place);
    let has_rival = others
        .filter_map(|(other, _)| other.hold)
        .any(|other| other.message == hold.message && other.left > 0 && !other.has_decided());
    let lease = world.rows[usize::from(hold.message)].lease_mut().filter(|lease| lease.born == hold.born);
    world.broken.note(Broken::TWO_LEASES, has_rival);
    world.broken.note(Broken::STRAY_CARRYING, lease.is_none());
    if let Some(lease) = lease {
        world.broken.note(Broken::CARRIED_TWICE, lease.carried.is_some());
        lease.carried = Some(verdict);
    }
    world.workers[usize::from(place)].hold = Some(Hold { step: Step::Decided(verdict), ..hold });
    Some(())
}
