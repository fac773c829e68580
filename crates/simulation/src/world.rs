//! What an all-seeing observer knows: every write, every carrying, every receipt, every answer, and what must hold.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use redeliver_core::attempt::Verdict;
use redeliver_core::change::NewRow;
use redeliver_core::event::Kind;
use redeliver_core::gate::GateKey;
use redeliver_core::message::Lease;
use redeliver_core::route::OnLost;
use redeliver_core::{
    AttemptId, Change, DeadReason, Event, InstanceId, Message, MessageId, Name, Route, State, Timestamp,
};

use crate::fleet_limits::FleetLimits;
use crate::rng::Rng;
use crate::scenario::Lasting;
use crate::sources::Sources;

/// Shared by everything in a run.
pub type SharedWorld = Arc<Mutex<World>>;

/// Looks at the world.
pub fn look(world: &SharedWorld) -> MutexGuard<'_, World> {
    world.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Everything that happened so far.
pub struct World {
    /// Chance for stores, transports and clients.
    pub rng: Rng,
    /// The routes, as every instance has them.
    pub routes: BTreeMap<Name, Route>,
    /// Whether the faults are over.
    pub healed: bool,
    /// What never heals.
    pub lasting: Lasting,
    /// The first thing that went wrong.
    pub violation: Option<String>,
    /// Each message as the last accepted write left it.
    pub mirror: HashMap<MessageId, Message>,
    /// Messages that were pruned.
    pub gone: HashMap<MessageId, Message>,
    /// What became of each message over its life.
    pub tales: HashMap<MessageId, Tale>,
    /// When each instance was last heard of.
    pub beats: HashMap<InstanceId, Timestamp>,
    /// When each instance was last heard of again after others may have judged it dead.
    pub revivals: HashMap<InstanceId, Timestamp>,
    /// Gates that each instance has seen closed, and since when it knows.
    pub seen_closed: HashMap<(usize, GateKey), Timestamp>,
    /// Results written for a worker that has yet to tell of it.
    pub untold: HashMap<usize, Vec<(MessageId, &'static str, Timestamp)>>,
    /// What is sent to destinations with limits.
    pub limits: FleetLimits,
    /// Callers who wait within a process that carries.
    pub calling: usize,
    /// Accepted by an answer.
    pub acked: HashSet<MessageId>,
    /// Which message a key has.
    pub keys: HashMap<String, MessageId>,
    /// Inputs of intakes, and what became of them.
    pub sources: Sources,
    /// Processes that were killed or told to stop: what they did last may remain untold.
    pub excused: HashSet<usize>,
    /// Processes that a message has taken down.
    pub poisoned: Vec<usize>,
    /// Whether nothing but a poisonous message goes wrong, so that nobody else may be blamed.
    pub calm: bool,
    /// Figures for the summary.
    pub figures: Figures,
    /// What happened, line by line, if anybody wants to read it.
    pub trace: Option<Vec<String>>,
}

/// What became of one message.
#[derive(Default, Clone)]
pub struct Tale {
    /// When it was last claimed.
    pub claimed_at: Timestamp,
    /// Carryings begun.
    pub carryings: u32,
    /// The time of the first send, as every one of them must have it, and how many have had it.
    pub first_sent: Option<(Timestamp, u32)>,
    /// The claims under which they were.
    pub carried_claims: HashSet<u64>,
    /// The attempt ids under which they were, and how often.
    pub carried_attempts: HashMap<AttemptId, u32>,
    /// What the receiver got, by recipient (0 where there is one).
    pub receipts: HashMap<u32, u32>,
    /// Verdicts written.
    pub counted: u32,
    /// Delivered on an outside worker's word.
    pub reported_delivered: bool,
    /// Whether a carrying was under way when its try was given up.
    pub losses: u32,
}

/// Counts over a run.
#[derive(Default, Clone, Debug)]
pub struct Figures {
    /// Messages accepted.
    pub accepted: u64,
    /// Carryings begun.
    pub carryings: u64,
    /// Store calls that failed or whose answer was lost.
    pub store_faults: u64,
    /// Processes killed.
    pub kills: u64,
    /// Processes stopped.
    pub stops: u64,
    /// Leases lost.
    pub lost: u64,
    /// Results that came too late.
    pub late: u64,
}

impl Figures {
    /// Adds another run's.
    pub fn add(&mut self, other: &Self) {
        let Self { accepted, carryings, store_faults, kills, stops, lost, late } = other;
        self.accepted += accepted;
        self.carryings += carryings;
        self.store_faults += store_faults;
        self.kills += kills;
        self.stops += stops;
        self.lost += lost;
        self.late += late;
    }
}

/// After how long without a heartbeat others may judge an instance dead, at the earliest.
const SILENT: Duration = Duration::from_secs(10);
/// How long after an instance has seen a gate closed an attempt may still start that passed it before.
const GATE_SLACK_MS: i64 = 8_000;

impl World {
    /// A world in which nothing has happened.
    pub fn new(seed: u64, routes: BTreeMap<Name, Route>) -> SharedWorld {
        Arc::new(Mutex::new(Self {
            rng: Rng::new(seed ^ 0x0071_d001),
            routes,
            healed: false,
            lasting: Lasting::Nothing,
            violation: None,
            mirror: HashMap::new(),
            gone: HashMap::new(),
            tales: HashMap::new(),
            beats: HashMap::new(),
            revivals: HashMap::new(),
            seen_closed: HashMap::new(),
            untold: HashMap::new(),
            limits: FleetLimits::default(),
            calling: 0,
            acked: HashSet::new(),
            keys: HashMap::new(),
            sources: Sources::default(),
            excused: HashSet::new(),
            poisoned: Vec::new(),
            calm: false,
            figures: Figures::default(),
            trace: None,
        }))
    }

    /// Writes a line of the trace, if one is kept.
    pub fn note(&mut self, line: impl FnOnce() -> String) {
        if let Some(trace) = &mut self.trace {
            trace.push(line());
        }
    }

    /// Notes that something is wrong. The first one counts.
    pub fn violate(&mut self, what: impl FnOnce() -> String) {
        if self.violation.is_none() {
            self.violation = Some(what());
        }
    }

    /// A new message was kept, or one that was gone is back.
    pub fn inserted(&mut self, row: &NewRow) {
        self.sources.inserted(row);
        if row.revives {
            self.gone.remove(&row.message.id);
            // Nobody knows any more when it was first sent.
            self.tales.entry(row.message.id.clone()).or_default().first_sent = None;
            self.mirror.insert(row.message.id.clone(), row.message.clone());
        } else {
            self.spawned(&row.message);
        }
    }

    /// A message came to be.
    pub fn spawned(&mut self, message: &Message) {
        if !self.gone.contains_key(&message.id) {
            if let State::Claimed(_) = message.state {
                self.tales.entry(message.id.clone()).or_default().claimed_at = message.created_at;
            }
            self.mirror.entry(message.id.clone()).or_insert_with(|| message.clone());
        }
    }

    /// A message was leased.
    pub fn claimed(&mut self, message: &Message, now: Timestamp) {
        self.note(|| format!("{now} claimed {} fence {} {:?}", message.id, message.fence, message.state));
        self.tales.entry(message.id.clone()).or_default().claimed_at = now;
        let Some(before) = self.mirror.insert(message.id.clone(), message.clone()) else {
            return self.violate(|| format!("claimed what nobody accepted: {}", message.id));
        };
        if before.state != (State::Waiting { parked_for: None }) {
            self.violate(|| format!("claimed a message that was {:?}: {}", before.state, message.id));
        }
        if before.due_at > now {
            self.violate(|| format!("claimed {} before it was due", message.id));
        }
        if message.fence <= before.fence {
            self.violate(|| format!("a claim did not raise the fence of {}", message.id));
        }
    }

    /// An instance was heard of.
    pub fn beaten(&mut self, instance: InstanceId, now: Timestamp) {
        self.note(|| format!("{now} {instance} lives"));
        if let Some(before) = self.beats.insert(instance, now)
            && now.since(before) >= SILENT
        {
            self.revivals.insert(instance, now);
        }
    }

    /// An instance said goodbye.
    pub fn left(&mut self, instance: InstanceId) {
        self.beats.remove(&instance);
        self.note(|| format!("{instance} leaves"));
    }

    /// The start of a carrying was recorded.
    pub fn started(&mut self, id: &MessageId, claim: u64, now: Timestamp) {
        self.with_lease(id, claim, |lease| lease.started_at = Some(now));
    }

    /// A lease was renewed.
    pub fn renewed(&mut self, id: &MessageId, claim: u64, until_at: Timestamp) {
        self.with_lease(id, claim, |lease| lease.until_at = until_at);
    }

    fn with_lease(&mut self, id: &MessageId, claim: u64, alter: impl FnOnce(&mut Lease)) {
        match self.mirror.get_mut(id).map(|message| &mut message.state) {
            Some(State::Claimed(lease)) if lease.claim == claim => alter(lease),
            _ => self.violate(|| format!("wrote to a lease that {id} does not have")),
        }
    }

    /// A change was accepted by the store.
    pub fn applied(&mut self, process: usize, change: &Change, now: Timestamp) {
        let id = change.message.id.clone();
        self.note(|| {
            let Message { state, attempts, losses, fence, .. } = &change.message;
            let kind = change.event.kind.name();
            format!("{now} process {process}: {kind} {id} attempts {attempts} losses {losses} fence {fence} {state:?}")
        });
        let Some(before) = self.mirror.get(&id).cloned() else {
            return self.violate(|| format!("changed a message that is not there: {id}"));
        };
        if change.expected_fence != before.fence {
            self.violate(|| {
                format!("a write with fence {} was accepted at {}", change.expected_fence, before.fence)
            });
        }
        if let Some(wrong) = self.wrong_with(&before, change, now) {
            self.violate(|| format!("{wrong} ({id}, {:?} -> {:?})", before.state, change.message.state));
        }
        if let Some(wrong) = self.sources.applied(&before, change) {
            self.violate(|| format!("{wrong}: {id}"));
        }
        let tale = self.tales.entry(id.clone()).or_default();
        match change.attempt.as_ref().map(|record| record.verdict) {
            Some(Verdict::Failed | Verdict::Refused | Verdict::Partial) => tale.counted += 1,
            Some(Verdict::Lost) => {
                tale.losses += 1;
                self.figures.lost += 1;
            }
            Some(Verdict::Late) | None => {}
        }
        if matches!(change.message.state, State::Delivered { .. }) {
            tale.counted += 1;
        }
        if change.settles.is_some() {
            // Whoever has yet to tell of an earlier one may find itself superseded by now.
            self.untold.values_mut().for_each(|all| all.retain(|(other, ..)| *other != id));
            self.untold.entry(process).or_default().push((
                id.clone(),
                change.event.kind.name(),
                change.event.at,
            ));
        }
        let mut after = change.message.clone();
        if let (State::Claimed(held), State::Claimed(lease)) = (&before.state, &mut after.state) {
            // A change that leaves a message claimed leaves the lease to its holder.
            *lease = Lease { cancel_requested: lease.cancel_requested, ..held.clone() };
        }
        self.mirror.insert(id, after);
    }

    /// What is wrong with a change, if anything.
    fn wrong_with(&self, before: &Message, change: &Change, now: Timestamp) -> Option<&'static str> {
        let after = &change.message;
        let route = self.routes.get(&after.route)?;
        let kind = &change.event.kind;
        let by_person = matches!(kind, Kind::Retried | Kind::Edited | Kind::Dismissed | Kind::Restored);
        let came_back =
            matches!(kind, Kind::Reentered) || (after.generation > before.generation && !by_person);
        let verdict = change.attempt.as_ref().map(|record| record.verdict);
        if before.state.ended_at().is_some() && !by_person && !came_back {
            return Some("an end was left without an operator or a re-entry");
        }
        if matches!(before.state, State::Delivered { .. }) && by_person {
            return Some("a delivered message was taken back");
        }
        match (&before.state, change.settles) {
            (State::Claimed(lease), Some(claim)) if lease.claim != claim => {
                return Some("settled another's claim");
            }
            (State::Claimed(_), _) | (_, None) => {}
            (_, Some(_)) => return Some("settled what was not claimed"),
        }
        if by_person || came_back {
            if matches!(kind, Kind::Retried | Kind::Edited) && after.generation != before.generation + 1 {
                return Some("an operator's retry kept the attempt id");
            }
            return None;
        }
        let counts = matches!(verdict, Some(Verdict::Failed | Verdict::Refused | Verdict::Partial))
            || matches!(after.state, State::Delivered { .. });
        if after.attempts != before.attempts + u32::from(counts) {
            return Some("a try was counted wrongly");
        }
        if let (State::Claimed(lease), None, Some(Verdict::Lost)) = (&before.state, change.settles, verdict) {
            let silent = self.beats.get(&lease.instance).is_none_or(|at| now.since(*at) >= SILENT);
            // Claims from before a long silence are void, even if the instance lives.
            let claimed_at = self.tales.get(&after.id).map(|tale| tale.claimed_at);
            let void = self.revivals.get(&lease.instance).is_some_and(|at| claimed_at <= Some(*at));
            if lease.until_at > now && !silent && !void {
                return Some("a lease was taken from a living worker");
            }
        }
        if let State::Claimed(Lease { cancel_requested: true, .. }) = &before.state {
            let goes_on = matches!(after.state, State::Waiting { .. });
            if goes_on {
                return Some("a cancelled message waits again");
            }
        }
        let dead = match after.state {
            State::Dead { reason, .. } => Some(reason),
            _ => None,
        };
        if verdict == Some(Verdict::Refused) && matches!(after.state, State::Waiting { .. }) {
            return Some("a refused message will be tried again");
        }
        if after.losses >= route.losses_max && after.state.ended_at().is_none() {
            return Some("losses beyond their budget");
        }
        if after.unconfirmed >= route.unconfirmed_max && matches!(after.state, State::Waiting { .. }) {
            return Some("unconfirmed sends beyond their budget");
        }
        if after.attempts >= route.max_attempts(after) && matches!(after.state, State::Waiting { .. }) {
            return Some("waits for a try beyond its budget");
        }
        if route.on_lost == OnLost::Hold && verdict == Some(Verdict::Lost) {
            let started = match &before.state {
                State::Claimed(lease) => lease.started_at.is_some() || change.settles.is_some(),
                _ => true,
            };
            if started && dead != Some(DeadReason::Uncertain) {
                return Some("a lost message was not held");
            }
        }
        // The letter of a poisonous message carries its poison on.
        let is_poison = after.key.as_deref() == Some("poison") || after.is_dead_letter;
        if self.calm && dead == Some(DeadReason::Poison) && !is_poison {
            return Some("a neighbour was taken for the culprit");
        }
        if dead.is_some() && route.dead_letter.is_some() && !after.is_dead_letter && change.spawn.is_none() {
            return Some("a death without its letter");
        }
        if let (Some(asked), State::Waiting { .. }) =
            (change.attempt.as_ref().and_then(|record| record.failure.as_ref()?.retry_after), &after.state)
            && after.due_at < change.event.at.plus(asked.min(route.retry_after_max))
        {
            return Some("came back before the destination wanted it");
        }
        None
    }

    /// A carrying begins: everything that must hold at that moment.
    pub fn carrying(
        &mut self,
        process: usize,
        message: &Message,
        recipients: &[u32],
        destination: &str,
        now: Timestamp,
    ) {
        self.figures.carryings += 1;
        let id = &message.id;
        self.note(|| format!("{now} process {process} carries {id} fence {}", message.fence));
        let State::Claimed(lease) = &message.state else {
            return self.violate(|| format!("carried {id} without a claim"));
        };
        let Some(route) = self.routes.get(&message.route).cloned() else { return };
        let current = self.mirror.get(id).cloned();
        match current.as_ref().map(|current| &current.state) {
            Some(State::Claimed(held)) if held.claim == lease.claim => {
                if route.records_start(message) && held.started_at.is_none() {
                    self.violate(|| format!("carried {id} without recording its start"));
                }
            }
            // It came back by its source meanwhile, which takes it from whoever has it.
            Some(_) if current.as_ref().is_some_and(|current| current.generation > message.generation) => {}
            // The report on an earlier try came meanwhile and was counted: it waits, and nobody else has it.
            Some(State::Waiting { .. })
                if route.report_within.is_some()
                    && current.as_ref().is_some_and(|current| current.attempts > message.attempts) => {}
            // A report or an operator may have ended it meanwhile; nobody else may have it.
            Some(
                State::Delivered { .. }
                | State::Dead { .. }
                | State::Cancelled { .. }
                | State::HandedOff { .. },
            ) => {}
            other => {
                let other = format!("{other:?}");
                self.violate(|| format!("carried {id} under claim {} while it was {other}", lease.claim));
            }
        }
        if message.due_at > now {
            self.violate(|| format!("carried {id} before it was due"));
        }
        if message.is_expired(now) {
            self.violate(|| format!("carried {id} after it expired"));
        }
        if message.attempts >= route.max_attempts(message) && message.generation == 0 {
            self.violate(|| format!("carried {id} beyond its budget"));
        }
        let keys = [
            GateKey::pause(redeliver_core::gate::Scope::Route, &message.route),
            GateKey::pause(redeliver_core::gate::Scope::Destination, destination),
        ];
        for key in keys {
            if let Some(since) = self.seen_closed.get(&(process, key))
                && now.as_ms() - since.as_ms() > GATE_SLACK_MS
            {
                self.violate(|| format!("carried {id} although its gate was known to be closed"));
            }
        }
        let attempt = AttemptId::of(message);
        let tale = self.tales.entry(id.clone()).or_default();
        tale.carryings += 1;
        let (first_sent_at, sends) = tale.first_sent.get_or_insert((message.first_sent_at.unwrap_or(now), 0));
        *sends += 1;
        let first_sent_at = *first_sent_at;
        let twice = !tale.carried_claims.insert(lease.claim);
        let same_attempt = tale.carried_attempts.entry(attempt.clone()).or_insert(0);
        *same_attempt += 1;
        let repeated = *same_attempt > 1;
        let unexplained = repeated && message.losses == 0 && message.unconfirmed == 0;
        let again = recipients.iter().find(|index| {
            message.recipients.iter().any(|known| {
                known.index == **index && matches!(known.fate, redeliver_core::message::Fate::Delivered)
            })
        });
        let again = again.copied();
        if message.first_sent_at != Some(first_sent_at) {
            let said = message.first_sent_at;
            self.violate(|| format!("sent {id} as first sent at {said:?}, and before at {first_sent_at}"));
        }
        if twice {
            self.violate(|| format!("carried {id} twice under claim {}", lease.claim));
        }
        if unexplained {
            self.violate(|| format!("carried {attempt} again without a loss"));
        }
        if repeated && route.on_lost == OnLost::Hold {
            self.violate(|| format!("carried {attempt} again on a route that holds"));
        }
        if let Some(index) = again {
            self.violate(|| format!("carried {id} again to recipient {index}, who has it"));
        }
    }

    /// A send starts: whether the limits of its destination hold over the fleet. Gives its number.
    pub fn send_started(&mut self, message: &Message, destination: &str, now: Timestamp) -> u64 {
        let (State::Claimed(lease), Some(route)) = (&message.state, self.routes.get(&message.route)) else {
            return 0;
        };
        let (beats, revivals) = (&self.beats, &self.revivals);
        // A suspended process can't end its sends; its permits come back once it has been silent for too long.
        let is_void = |instance: InstanceId, at: Timestamp| {
            beats.get(&instance).is_none_or(|beat| now.since(*beat) >= SILENT)
                || revivals.get(&instance).is_some_and(|revived| at <= *revived)
        };
        let (number, wrong) = self.limits.started(route, destination, lease.instance, now, is_void);
        if let Some(wrong) = wrong {
            self.violate(|| wrong);
        }
        number
    }

    /// A carrying turned out to send nothing: it is as if it had not begun.
    pub fn nothing_sent(&mut self, attempt: &AttemptId) {
        let tale = self.tales.entry(attempt.message.clone()).or_default();
        tale.carryings -= 1;
        tale.first_sent = tale.first_sent.map(|(at, sends)| (at, sends - 1)).filter(|(_, sends)| *sends > 0);
        if let Some(count) = tale.carried_attempts.get_mut(attempt) {
            *count -= 1;
        }
    }

    /// The receiver has it.
    pub fn received(&mut self, id: &MessageId, recipients: &[u32]) {
        let tale = self.tales.entry(id.clone()).or_default();
        for index in recipients {
            *tale.receipts.entry(*index).or_insert(0) += 1;
        }
    }

    /// A process told of something.
    pub fn told(&mut self, process: usize, event: &Event) {
        if matches!(event.kind, Kind::AttemptLate) {
            self.figures.late += 1;
        }
        if let Some(untold) = self.untold.get_mut(&process)
            && let Some(index) = untold
                .iter()
                .position(|(id, kind, at)| *id == event.id && *kind == event.kind.name() && *at == event.at)
        {
            untold.swap_remove(index);
        }
    }

    /// Whether every message has reached its end.
    pub fn all_ended(&self) -> bool {
        self.mirror.values().all(|message| message.state.ended_at().is_some())
    }

    /// What must hold once everything has settled.
    pub fn check_the_end(&mut self) {
        let mut wrong = Vec::new();
        for id in &self.acked {
            if !self.mirror.contains_key(id) && !self.gone.contains_key(id) {
                wrong.push(format!("accepted and lost: {id}"));
            }
        }
        for message in self.mirror.values().chain(self.gone.values()) {
            wrong.extend(self.wrong_at_the_end(message));
        }
        wrong.sort();
        if let Some(first) = wrong.into_iter().next() {
            self.violate(|| first);
        }
        let excused = &self.excused;
        let untold =
            self.untold.iter().filter(|(process, _)| !excused.contains(process)).flat_map(|(_, all)| all);
        // What was pruned before its worker could ask again can't be told from what somebody else settled.
        let untold = untold.filter(|(id, ..)| !self.gone.contains_key(id));
        if let Some((id, kind, _)) = untold.min().cloned() {
            self.violate(|| format!("{kind} of {id} was written and never told"));
        }
    }

    fn wrong_at_the_end(&self, message: &Message) -> Option<String> {
        let id = &message.id;
        let tale = self.tales.get(id).cloned().unwrap_or_default();
        if message.state.ended_at().is_none() {
            return Some(format!(
                "stuck: {id} on {} is {:?}, due {}",
                message.route, message.state, message.due_at
            ));
        }
        if matches!(message.state, State::Delivered { .. })
            && tale.receipts.is_empty()
            && !tale.reported_delivered
        {
            return Some(format!("delivered, but the receiver does not have it: {id}"));
        }
        let most = tale.receipts.values().max().copied().unwrap_or(0);
        if most > 1 + message.possible_duplicates + message.generation {
            return Some(format!(
                "{id} arrived {most} times with {} possible duplicates and {} retries",
                message.possible_duplicates, message.generation
            ));
        }
        if tale.carryings > tale.counted + message.possible_duplicates {
            return Some(format!(
                "{id} was carried {} times for {} verdicts and {} losses",
                tale.carryings, tale.counted, message.possible_duplicates
            ));
        }
        let route = self.routes.get(&message.route)?;
        let cap = (1 + message.generation)
            * (route.max_attempts(message) + route.losses_max + route.unconfirmed_max);
        if tale.carryings > cap {
            return Some(format!("{id} was sent {} times, more than {cap} in all", tale.carryings));
        }
        if let (State::Dead { .. }, Some(_), false) =
            (&message.state, &route.dead_letter, message.is_dead_letter)
        {
            let key = format!("dead:{}:{}:{}", message.route, id, message.generation);
            let there =
                self.mirror.values().chain(self.gone.values()).any(|m| m.key.as_deref() == Some(&key));
            if !there {
                return Some(format!("the dead letter of {id} is missing"));
            }
        }
        None
    }
}
