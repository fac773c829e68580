//! Makes one of all worlds that differ only in names, or in what can matter to nobody any more.
//!
//! Workers are alike, and of fences and versions only the order counts: what holds here holds for any number of claims.

use crate::bug::Bug;
use crate::model::Rules;
use crate::row::Row;
use crate::world::{Answer, Call, Change, Request, Worker, World};

impl World {
    pub fn renamed(mut self, rules: &Rules) -> Self {
        if !self.broken.any() {
            self.forget_the_refused(rules);
        }
        self.rename_workers();
        for message in 0..self.rows.len() as u8 {
            self.forget_settled(message);
            self.renumber(message);
        }
        self.strays.sort();
        self
    }

    /// Fences never go down, so a write that would be refused now will be refused whenever it arrives.
    fn forget_the_refused(&mut self, rules: &Rules) {
        if rules.bug == Some(Bug::ApplyIgnoresFence) {
            return;
        }
        let Self { rows, workers, strays, desks, .. } = self;
        strays.retain(|request| {
            let leased = |message: u8, claim: u8| {
                rows[usize::from(message)].lease().filter(|lease| lease.claim == claim)
            };
            match *request {
                Request::Apply(change) => rows[usize::from(change.message)].fence == change.expected_fence,
                Request::Start { message, claim } => {
                    leased(message, claim).is_some_and(|lease| !lease.started)
                }
                Request::Renew { message, claim, left } => leased(message, claim)
                    .is_some_and(|lease| lease.left < left || rules.bug == Some(Bug::RenewalMovesBack)),
                Request::Beat { owner, left } => {
                    workers[usize::from(owner)].known < left || rules.bug == Some(Bug::BeatMovesBack)
                }
                Request::Claim { .. } => true,
            }
        });
        for desk in desks {
            *desk = desk.filter(|draft| rows[usize::from(draft.message)].fence == draft.row.fence);
        }
        for worker in workers {
            let Some(hold) = &mut worker.hold else { continue };
            let row = rows[usize::from(hold.message)];
            if row.fence == hold.row.fence || row.is_claimed_as(hold.claim) {
                continue;
            }
            hold.row = Row { fence: hold.claim, version: hold.born, ..Row::NEW };
            if let Some(Call { request: Request::Apply(change), .. }) = &mut worker.call {
                change.row = hold.row;
                change.expected_fence = hold.row.fence;
                change.read = hold.row.version;
            }
        }
    }

    fn rename_workers(&mut self) {
        let mut order: Vec<u8> = (0..self.workers.len() as u8).collect();
        order.sort_by_key(|worker| nameless(self.workers[usize::from(*worker)]));
        let place = |worker: u8| order.iter().position(|old| *old == worker).map(|at| at as u8);
        for lease in self.rows.iter_mut().filter_map(Row::lease_mut) {
            lease.owner = lease.owner.and_then(place);
        }
        let rename = |request: &mut Request| match request {
            Request::Claim { owner, .. } => *owner = owner.and_then(place),
            Request::Beat { owner, .. } => *owner = place(*owner).unwrap_or(*owner),
            Request::Start { .. } | Request::Renew { .. } | Request::Apply(_) => {}
        };
        self.workers = order.iter().map(|worker| self.workers[usize::from(*worker)]).collect();
        for worker in &mut self.workers {
            worker.call.iter_mut().chain(&mut worker.beat).for_each(|call| rename(&mut call.request));
        }
        self.strays.iter_mut().for_each(rename);
    }

    /// A settled claim that nobody can ask about any more is as good as none.
    fn forget_settled(&mut self, message: u8) {
        let mut askable = Seen::default();
        for hold in self.workers.iter().filter_map(|worker| worker.hold) {
            if hold.message == message {
                askable.add(hold.claim);
            }
        }
        for request in &self.strays {
            if let Request::Apply(Change { message: about, settles: Some(claim), .. }) = request
                && *about == message
            {
                askable.add(*claim);
            }
        }
        self.each_row(message, &mut |row| {
            row.settled_claim = row.settled_claim.filter(|claim| askable.has(*claim));
        });
    }

    fn renumber(&mut self, message: u8) {
        let (mut fences, mut versions) = (Seen::default(), Seen::default());
        self.each_number(message, &mut |number| match number {
            Number::Fence(fence) => fences.add(*fence),
            Number::Version(version) => versions.add(*version),
        });
        self.each_number(message, &mut |number| match number {
            Number::Fence(fence) => *fence = fences.rank(*fence),
            Number::Version(version) => *version = versions.rank(*version),
        });
    }

    fn each_number(&mut self, message: u8, visit: &mut impl FnMut(Number<'_>)) {
        self.each_row(message, &mut |row| {
            visit(Number::Fence(&mut row.fence));
            visit(Number::Version(&mut row.version));
            row.settled_claim.iter_mut().for_each(|claim| visit(Number::Fence(claim)));
            if let Some(lease) = row.lease_mut() {
                visit(Number::Fence(&mut lease.claim));
                visit(Number::Version(&mut lease.born));
            }
        });
        for hold in self.workers.iter_mut().filter_map(|worker| worker.hold.as_mut()) {
            if hold.message == message {
                visit(Number::Fence(&mut hold.claim));
                visit(Number::Version(&mut hold.born));
            }
        }
        for request in self.requests() {
            match request {
                Request::Start { message: about, claim } | Request::Renew { message: about, claim, .. }
                    if *about == message =>
                {
                    visit(Number::Fence(claim));
                }
                Request::Apply(change) if change.message == message => {
                    visit(Number::Fence(&mut change.expected_fence));
                    visit(Number::Version(&mut change.read));
                    change.settles.iter_mut().for_each(|claim| visit(Number::Fence(claim)));
                }
                Request::Start { .. }
                | Request::Renew { .. }
                | Request::Apply(_)
                | Request::Claim { .. }
                | Request::Beat { .. } => {}
            }
        }
    }

    /// Every copy of a message's row, wherever it is.
    fn each_row(&mut self, message: u8, visit: &mut impl FnMut(&mut Row)) {
        visit(&mut self.rows[usize::from(message)]);
        for worker in &mut self.workers {
            if let Some(hold) = &mut worker.hold
                && hold.message == message
            {
                visit(&mut hold.row);
            }
            if let Some(Call { request, answer: Some(Answer::Claimed(row) | Answer::Superseded(Some(row))) }) =
                &mut worker.call
                && request.message() == Some(message)
            {
                visit(row);
            }
        }
        for request in self.requests() {
            if let Request::Apply(change) = request
                && change.message == message
            {
                visit(&mut change.row);
            }
        }
        for draft in self.desks.iter_mut().flatten() {
            if draft.message == message {
                visit(&mut draft.row);
            }
        }
    }

    fn requests(&mut self) -> impl Iterator<Item = &mut Request> {
        let awaited =
            self.workers.iter_mut().flat_map(|worker| worker.call.iter_mut().map(|call| &mut call.request));
        awaited.chain(&mut self.strays)
    }
}

enum Number<'a> {
    Fence(&'a mut u8),
    Version(&'a mut u8),
}

/// Small numbers, one bit each.
#[derive(Copy, Clone, Default)]
struct Seen(u32);

impl Seen {
    fn add(&mut self, number: u8) {
        self.0 |= 1 << number;
    }

    fn has(self, number: u8) -> bool {
        self.0 & (1 << number) != 0
    }

    /// How many smaller ones there are.
    fn rank(self, number: u8) -> u8 {
        (self.0 & ((1 << number) - 1)).count_ones() as u8
    }
}

/// The worker without its own number, which must not decide where it stands.
fn nameless(mut worker: Worker) -> Worker {
    for call in worker.call.iter_mut().chain(&mut worker.beat) {
        match &mut call.request {
            Request::Claim { owner, .. } => *owner = None,
            Request::Beat { owner, .. } => *owner = 0,
            Request::Start { .. } | Request::Renew { .. } | Request::Apply(_) => {}
        }
    }
    worker
}
