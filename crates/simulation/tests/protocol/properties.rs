//! What must hold in every state, and what must be possible in some.

use stateright::{Model, Property};

use crate::model::{Action, Rules};
use crate::row::{Reason, Row, Standing, Verdict};
use crate::world::{Answer, Broken, Deed, Request, Worker, World};

/// More steps than any state needs to come to rest once the faults end.
const HEALING_STEPS_MAX: usize = 80;

pub const CARRIED_ONCE: &str = "at most one carrying per message and fence";
pub const NO_OLD_FENCE: &str = "no write is accepted with an old fence";
pub const CARRIED_UNDER_THE_CLAIM: &str = "a carrying starts only under the claim that the store has";
pub const OWN_IS_KNOWN: &str = "a result that was applied is not told superseded";
pub const CANCEL_IS_SEEN: &str = "a requested cancel is not overlooked";
pub const CARRYINGS_COUNT: &str = "a claim that was carried counts as an attempt or a loss";
pub const HELD_STAYS: &str = "a route that holds sends nothing again that was received";

pub fn all() -> Vec<Property<Rules>> {
    let mut all = safety();
    all.extend(reachable());
    all
}

fn safety() -> Vec<Property<Rules>> {
    vec![
        always(CARRIED_ONCE, |_, world| !world.broken.has(Broken::CARRIED_TWICE)),
        always(NO_OLD_FENCE, |_, world| !world.broken.has(Broken::OLD_FENCE)),
        always(CARRIED_UNDER_THE_CLAIM, |_, world| !world.broken.has(Broken::STRAY_CARRYING)),
        always("no two live leases when a carrying starts", |_, world| !world.broken.has(Broken::TWO_LEASES)),
        always("a result is applied once", |_, world| !world.broken.has(Broken::APPLIED_TWICE)),
        always(OWN_IS_KNOWN, |_, world| !world.broken.has(Broken::OWN_TOLD_SUPERSEDED)),
        always("an end is left only by a retry", |_, world| !world.broken.has(Broken::END_LEFT)),
        always(CANCEL_IS_SEEN, |_, world| !world.broken.has(Broken::CANCEL_OVERLOOKED)),
        // These are looked at where a claim ends, so that no history has to be kept. With one carrying per claim, the
        // first says that carryings ≤ attempts + losses, the second that receipts ≤ 1 + possible duplicates + retries.
        always(CARRYINGS_COUNT, |_, world| !world.broken.has(Broken::CARRYING_UNCOUNTED)),
        always("what was received and isn't delivered is a possible duplicate", |_, world| {
            !world.broken.has(Broken::DUPLICATE_UNSUSPECTED)
        }),
        always(HELD_STAYS, |_, world| !world.broken.has(Broken::HELD_GOES_AGAIN)),
        always("delivered means received", |_, world| !world.broken.has(Broken::DELIVERED_UNRECEIVED)),
        always("attempts and losses stay within their budgets", |rules, world| {
            world.rows.iter().all(|row| row.attempts <= rules.attempts_max && row.losses <= rules.losses_max)
        }),
        always("everything settles once the faults end", |rules, world| {
            !rules.heals || world.broken.any() || heals(rules, world)
        }),
    ]
}

fn reachable() -> Vec<Property<Rules>> {
    vec![
        sometimes("delivered", |_, world| any(world, |row| row.standing == Standing::Delivered)),
        sometimes("delivered after a loss", |_, world| {
            any(world, |row| row.standing == Standing::Delivered && row.losses > 0)
        }),
        sometimes("delivered after a retry", |rules, world| {
            !rules.operator || any(world, |row| row.standing == Standing::Delivered && row.generation > 0)
        }),
        sometimes("exhausted", |_, world| is_dead(world, Reason::Exhausted)),
        sometimes("poison", |rules, world| rules.hold || is_dead(world, Reason::Poison)),
        sometimes("uncertain", |rules, world| !rules.hold || is_dead(world, Reason::Uncertain)),
        sometimes("cancelled", |rules, world| {
            !rules.operator || any(world, |row| row.standing == Standing::Cancelled)
        }),
        sometimes("already mine", |_, world| told(world, Answer::AlreadyMine).is_some()),
        sometimes("superseded while another has it", |_, world| {
            told(world, Answer::Superseded(None)).is_some_and(|row| row.lease().is_some())
        }),
        sometimes("superseded by an end", |_, world| {
            told(world, Answer::Superseded(None)).is_some_and(Row::is_ended)
        }),
        sometimes("a verdict settled again after a cancel's request", |rules, world| {
            !rules.operator
                || world
                    .workers
                    .iter()
                    .filter_map(|worker| worker.call?.answer)
                    .any(|answer| matches!(answer, Answer::Superseded(Some(_))))
        }),
        sometimes("a renewal refused", |_, world| {
            world
                .workers
                .iter()
                .filter_map(|worker| worker.call)
                .any(|call| matches!(call.request, Request::Renew { .. }) && call.answer == Some(Answer::No))
        }),
        sometimes("a late worker that fences itself", |_, world| {
            world.workers.iter().filter_map(|worker| worker.hold).any(|hold| {
                let row = &world.rows[usize::from(hold.message)];
                hold.left == 0 && !hold.has_decided() && !row.is_claimed_as(hold.claim)
            })
        }),
    ]
}

fn always(name: &'static str, holds: fn(&Rules, &World) -> bool) -> Property<Rules> {
    Property::always(name, holds)
}

fn sometimes(name: &'static str, happens: fn(&Rules, &World) -> bool) -> Property<Rules> {
    Property::sometimes(name, happens)
}

fn any(world: &World, is: impl Fn(&Row) -> bool) -> bool {
    world.rows.iter().any(is)
}

fn is_dead(world: &World, reason: Reason) -> bool {
    any(world, |row| row.standing == Standing::Dead(reason))
}

/// The message about which a worker is about to hear this, as it stands by now.
fn told(world: &World, answer: Answer) -> Option<&Row> {
    let mut calls = world.workers.iter().filter_map(|worker| worker.call);
    let call = calls.find(|call| call.answer == Some(answer))?;
    Some(&world.rows[usize::from(call.request.message()?)])
}

/// Whether everything comes to an end when nothing goes wrong any more: the next useful step, again and again.
fn heals(rules: &Rules, world: &World) -> bool {
    let mut world = world.clone();
    let mut actions = Vec::new();
    for _ in 0..HEALING_STEPS_MAX {
        if world.rows.iter().all(Row::is_ended) {
            return true;
        }
        actions.clear();
        rules.actions(&world, &mut actions);
        actions.retain(|action| urgency(&world, action).is_some());
        actions.sort_by_key(|action| urgency(&world, action));
        let Some(next) = actions.iter().find_map(|action| rules.next_state(&world, *action)) else {
            return false;
        };
        world = next;
    }
    false
}

/// The order of useful steps; nothing for faults and for what people do.
fn urgency(world: &World, action: &Action) -> Option<u8> {
    Some(match action {
        Action::Hear(..) => 0,
        Action::Land(..) | Action::LandStray(_) => 1,
        Action::Write(Deed::Lapse | Deed::Settle) => 2,
        Action::Drop(_) => 3,
        Action::Settle(_) => 4,
        Action::LetGo(place) if has_run_out(&world.workers[usize::from(*place)]) => 4,
        Action::Beat(place) if world.workers[usize::from(*place)].heard == 0 => 5,
        Action::Start(_) => 6,
        Action::Carry(_, Verdict::Delivered) => 7,
        Action::Read(Deed::Lapse, _) => 8,
        Action::Claim(..) => 9,
        Action::Tick => 10,
        Action::Carry(..)
        | Action::LetGo(_)
        | Action::Beat(_)
        | Action::Defer(_)
        | Action::Renew(_)
        | Action::Lose(..)
        | Action::Abandon(..)
        | Action::Crash(_)
        | Action::Read(..)
        | Action::Write(_) => return None,
    })
}

fn has_run_out(worker: &Worker) -> bool {
    worker.hold.is_some_and(|hold| hold.left == 0)
}
