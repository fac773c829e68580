//! What the store does when a request arrives. It never decides: it compares fences and writes.

use crate::bug::Bug;
use crate::model::{HEARTBEAT_LIMIT_TICKS, Rules, SILENT_MAX_TICKS};
use crate::row::{Lease, Row, Standing, Verdict};
use crate::world::{Answer, Broken, Change, Deed, Hold, Request, World};

pub fn serve(world: &mut World, request: Request, rules: &Rules) -> Answer {
    match request {
        Request::Claim { message, owner, left } => claim(world, message, owner, left, rules),
        Request::Start { message, claim } => start(world, message, claim),
        Request::Renew { message, claim, left } => renew(world, message, claim, left, rules),
        Request::Beat { owner, left } => beat(world, owner, left, rules),
        Request::Apply(change) => apply(world, change, rules),
    }
}

fn claim(world: &mut World, message: u8, owner: Option<u8>, left: u8, rules: &Rules) -> Answer {
    let row = &mut world.rows[usize::from(message)];
    if row.standing != Standing::Waiting {
        return Answer::Nothing;
    }
    if rules.bug != Some(Bug::ClaimKeepsFence) {
        row.fence += 1;
    }
    row.version += 1;
    row.standing = Standing::Claimed(Lease {
        owner,
        claim: row.fence,
        left,
        started: false,
        cancel_requested: false,
        born: row.version,
        carried: None,
    });
    Answer::Claimed(row.as_read())
}

fn start(world: &mut World, message: u8, claim: u8) -> Answer {
    let row = &mut world.rows[usize::from(message)];
    let as_it_was = row.fence == claim;
    match row.lease_mut() {
        Some(lease) if lease.claim == claim && as_it_was => {
            lease.started = true;
            Answer::Yes
        }
        _ => Answer::No,
    }
}

fn renew(world: &mut World, message: u8, claim: u8, left: u8, rules: &Rules) -> Answer {
    match world.rows[usize::from(message)].lease_mut() {
        Some(lease) if lease.claim == claim => {
            lease.left = if rules.bug == Some(Bug::RenewalMovesBack) { left } else { lease.left.max(left) };
            Answer::Yes
        }
        _ => Answer::No,
    }
}

fn beat(world: &mut World, owner: u8, left: u8, rules: &Rules) -> Answer {
    let known = &mut world.workers[usize::from(owner)].known;
    let left = match rules.bug {
        Some(Bug::ReaperIsImpatient) => left.saturating_sub(1),
        _ => (left + SILENT_MAX_TICKS).saturating_sub(HEARTBEAT_LIMIT_TICKS),
    };
    *known = if rules.bug == Some(Bug::BeatMovesBack) { left } else { left.max(*known) };
    Answer::Yes
}

pub fn apply(world: &mut World, change: Change, rules: &Rules) -> Answer {
    let place = usize::from(change.message);
    let before = world.rows[place];
    if before.fence != change.expected_fence && rules.bug != Some(Bug::ApplyIgnoresFence) {
        let is_mine = change.settles.is_some() && before.settled_claim == change.settles;
        if is_mine && rules.bug != Some(Bug::OwnAnswerTakenForSuperseded) {
            return Answer::AlreadyMine;
        }
        let was_applied = own_hold(world, &change).is_some_and(|hold| hold.is_applied);
        world.broken.note(Broken::OWN_TOLD_SUPERSEDED, was_applied);
        let is_held = change.settles.is_some_and(|claim| before.is_claimed_as(claim));
        return Answer::Superseded(is_held.then(|| before.as_read()));
    }
    let was_applied = own_hold(world, &change).is_some_and(|hold| hold.is_applied);
    world.broken.note(Broken::APPLIED_TWICE, was_applied);
    note_broken(&mut world.broken, &before, &change, rules);
    if let Some(claim) = change.settles {
        // Only the last settled claim is remembered: an earlier one is a stranger from now on.
        for hold in world.workers.iter_mut().filter_map(|worker| worker.hold.as_mut()) {
            if hold.message == change.message {
                hold.is_applied = hold.claim == claim;
            }
        }
    }
    world.rows[place] = written(&before, &change, rules);
    Answer::Applied
}

fn own_hold<'a>(world: &'a World, change: &Change) -> Option<&'a Hold> {
    let mut holds = world.workers.iter().filter_map(|worker| worker.hold.as_ref());
    holds.find(|hold| hold.message == change.message && Some(hold.claim) == change.settles)
}

/// What the row is after the change. Counts that no decision looks at are cut short, so that histories that differ in
/// nothing else are one.
fn written(before: &Row, change: &Change, rules: &Rules) -> Row {
    let mut after = Row {
        version: before.version + 1,
        generation: change.row.generation.min(1),
        possible_duplicates: 0,
        ..change.row
    };
    // Renewals and starts raise no fence, so there may have been one since the row was read: a write that leaves the
    // row claimed (a cancel's request) leaves its lease alone.
    if let (Some(lease), Some(held)) = (after.lease_mut(), before.lease()) {
        let kept = Lease { cancel_requested: lease.cancel_requested, ..*held };
        *lease = match rules.bug {
            Some(Bug::CancelWritesLeaseBack) => Lease { left: lease.left, started: lease.started, ..kept },
            _ => kept,
        };
    }
    after
}

fn note_broken(broken: &mut Broken, before: &Row, change: &Change, rules: &Rules) {
    let after = &change.row;
    broken.note(Broken::OLD_FENCE, before.version != change.read);
    broken.note(Broken::END_LEFT, before.is_ended() && change.deed != Deed::Retry);
    let Some(lease) = before.lease() else { return };
    if after.lease().is_some() {
        return;
    }
    let is_counted = after.attempts + after.losses > before.attempts + before.losses;
    let is_suspected = after.possible_duplicates > before.possible_duplicates;
    let is_delivered = after.standing == Standing::Delivered;
    let is_received = lease.carried == Some(Verdict::Delivered);
    let may_go_again = after.standing == Standing::Waiting;
    broken.note(Broken::CANCEL_OVERLOOKED, lease.cancel_requested && may_go_again);
    broken.note(Broken::CARRYING_UNCOUNTED, lease.carried.is_some() && !is_counted);
    broken.note(Broken::DUPLICATE_UNSUSPECTED, is_received && !is_delivered && !is_suspected);
    broken.note(Broken::HELD_GOES_AGAIN, is_received && may_go_again && rules.hold);
    broken.note(Broken::DELIVERED_UNRECEIVED, is_delivered && !is_received);
}
