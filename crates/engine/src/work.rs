//! The work of one route: claim, try, write down; many at once, no lane starving another.

use std::time::Duration;

use futures_util::future::BoxFuture;
use futures_util::stream::FuturesUnordered;
use futures_util::{FutureExt, StreamExt};
use redeliver_core::gate::{GateKey, Scope};
use redeliver_core::planted::{self, Bug};
use redeliver_core::share::Permits;
use redeliver_core::{Content, Lane, Message, State, Timestamp};
use tokio::sync::SemaphorePermit;

use crate::apply::{Done, Settled, apply};
use crate::attempt::{Held, Tried, attempt};
use crate::claim::{Asked, Claimed, claim};
use crate::engine::{Engine, Line};
use crate::inline::Taken;
use crate::life::RENEWALS_PER_LEASE;
use crate::stop::Stop;
use crate::store::{ClaimKind, StoreError};
use crate::wake::Looks;

/// Batches of results under way at once: one being written while the next one gathers.
const APPLYING_MAX: usize = 2;
/// How long a lane is left alone after its store failed.
const ERROR_WAIT: Duration = Duration::from_millis(500);

/// Works a route until told to stop and nothing is in the air any more.
pub(crate) async fn work(engine: &Engine, line: &Line, mut stop: Stop) {
    let mut work = Work::new(engine, line, stop.clone());
    let mut stopping = stop.is_stopped();
    if !stopping {
        line.inline.open();
    }
    loop {
        // One reading for a whole round: what comes due between two of them would be neither claimed nor slept for.
        let (uptime, now) = (engine.clock.uptime(), engine.clock.now());
        work.on_time(uptime, now);
        if !stopping {
            work.start_claims(now);
        }
        work.start_inline();
        work.start_applying();
        if stopping && work.is_idle() {
            return;
        }
        let sleep = work.until_next_look(now);
        tokio::select! {
            biased;
            // First, so that a flood of other work can't keep leases from being renewed.
            Some(renewed) = work.renewing.next() => work.on_renewed(renewed),
            Some(done) = work.applying.next() => work.on_done(done),
            Some(claimed) = work.claiming.next() => work.on_claimed(claimed),
            Some(tried) = work.trying.next() => work.on_tried(tried),
            looks = line.wake.woken() => work.look(looks),
            () = stop.stopped(), if !stopping => {
                stopping = true;
                line.inline.close().into_iter().for_each(|taken| work.try_inline(taken));
            }
            () = engine.clock.sleep_until(uptime.saturating_add(sleep)) => {}
        }
    }
}

type Renewed = (Duration, Vec<Held>, Result<Vec<bool>, StoreError>);

struct Work<'a> {
    engine: &'a Engine,
    line: &'a Line,
    stop: Stop,
    permits: Permits,
    /// When to look at each lane next, for trusted messages and for suspects.
    looks: Looks,
    /// How many claims are under way there.
    claims: [[usize; 2]; 4],
    /// Whether the last claim there brought a whole batch, so that more is likely to be due.
    floods: [[bool; 2]; 4],
    polled_at: Timestamp,
    renew_at: Duration,
    claiming: FuturesUnordered<BoxFuture<'a, Claimed<'a>>>,
    trying: FuturesUnordered<BoxFuture<'a, Tried<'a>>>,
    applying: FuturesUnordered<BoxFuture<'a, Vec<Done>>>,
    renewing: FuturesUnordered<BoxFuture<'a, Renewed>>,
    settled: Vec<Settled>,
    /// Permits that keep other suspects waiting until these are written down.
    alone: Vec<SemaphorePermit<'a>>,
}

impl<'a> Work<'a> {
    fn new(engine: &'a Engine, line: &'a Line, stop: Stop) -> Self {
        let weights = Lane::ALL.map(|lane| line.route.travel(lane).weight);
        let now = engine.clock.now();
        Self {
            engine,
            line,
            stop,
            permits: Permits::new(line.route.concurrency_max, weights),
            looks: [[now; 2]; 4],
            claims: [[0; 2]; 4],
            floods: [[false; 2]; 4],
            polled_at: now,
            renew_at: engine.clock.uptime() + line.route.lease / RENEWALS_PER_LEASE,
            claiming: FuturesUnordered::new(),
            trying: FuturesUnordered::new(),
            applying: FuturesUnordered::new(),
            renewing: FuturesUnordered::new(),
            settled: Vec::new(),
            alone: Vec::new(),
        }
    }

    fn is_idle(&self) -> bool {
        self.claiming.is_empty()
            && self.trying.is_empty()
            && self.applying.is_empty()
            && self.settled.is_empty()
    }

    /// Starts a claim in every lane that may have something due and has room for it.
    fn start_claims(&mut self, now: Timestamp) {
        // What is claimed by one who may be judged dead is taken away again at once.
        let is_fresh = self.engine.life.is_fresh(self.engine.clock.uptime(), self.line.route.send_timeout);
        if !is_fresh || self.is_paused() {
            return;
        }
        for lane in Lane::ALL {
            for kind in [ClaimKind::Trusted, ClaimKind::Suspect] {
                while let Some(limit) = self.limit(lane, kind, now) {
                    self.start_claim(lane, kind, limit);
                }
            }
        }
    }

    /// How many messages of a lane the next claim may bring; `None` if there is no reason to make one, or no room.
    fn limit(&self, lane: Lane, kind: ClaimKind, now: Timestamp) -> Option<usize> {
        let (l, k) = (lane as usize, kind as usize);
        if self.looks[l][k] > now {
            return None;
        }
        let room = self.room(lane, now);
        let limit = if kind == ClaimKind::Suspect { room.min(1) } else { room };
        let least = match self.claims[l][k] {
            0 => 1,
            // While one batch is on its way, the database makes out the next.
            under_way if under_way < self.claims_max(l, k) => self.engine.settings.claim_batch_max,
            _ => return None,
        };
        (limit >= least).then_some(limit)
    }

    fn claims_max(&self, l: usize, k: usize) -> usize {
        if self.floods[l][k] { self.engine.store.claims_at_once() } else { 1 }
    }

    fn start_claim(&mut self, lane: Lane, kind: ClaimKind, limit: usize) {
        let (l, k) = (lane as usize, kind as usize);
        self.claims[l][k] += 1;
        if self.claims[l][k] == self.claims_max(l, k) {
            // Whatever comes up from now on may not be seen by this claim.
            self.looks[l][k] = Timestamp::MAX;
        }
        self.permits.take(lane, limit);
        let stop = self.stop.clone();
        self.claiming.push(claim(self.engine, self.line, lane, kind, limit, stop).boxed());
    }

    /// Starts the tries that callers wait for. They have been claimed already.
    fn start_inline(&mut self) {
        self.line.inline.take().into_iter().for_each(|taken| self.try_inline(taken));
    }

    fn try_inline(&mut self, Taken { message, content, asked }: Taken) {
        self.permits.take(message.lane, 1);
        self.try_claimed(message, content, asked, None);
    }

    fn try_claimed(
        &mut self,
        message: Message,
        content: Content,
        asked: Asked,
        alone: Option<SemaphorePermit<'a>>,
    ) {
        let held = Held::new(&message, asked, self.line.route.lease);
        self.line.held().insert(message.id.clone(), held.clone());
        self.trying.push(attempt(self.engine, self.line, held, message, content, alone).boxed());
    }

    fn is_paused(&self) -> bool {
        let pause = GateKey::pause(Scope::Route, &self.line.route.name);
        self.engine.gates.is_closed(&pause) && !planted::is(Bug::PauseIgnored)
    }

    fn room(&self, lane: Lane, now: Timestamp) -> usize {
        let room = self.permits.room(lane).min(self.engine.settings.claim_batch_max);
        match self.line.transport(lane).fixed_destination() {
            Some(destination) => room.min(self.engine.shares.room(&self.line.route, &destination, now)),
            None => room,
        }
    }

    /// When a lane has room that waits for the limits of its destination.
    fn room_at(&self, lane: Lane, now: Timestamp) -> Option<Timestamp> {
        let (route, shares) = (&self.line.route, &self.engine.shares);
        let destination = route.limits().and_then(|_| self.line.transport(lane).fixed_destination())?;
        match shares.room(route, &destination, now) {
            0 => shares.room_at(route, &destination, now),
            _ => None,
        }
    }

    fn on_claimed(&mut self, claimed: Claimed<'a>) {
        let Claimed { lane, kind, limit, asked, result, alone } = claimed;
        let (l, k) = (lane as usize, kind as usize);
        let now = self.engine.clock.now();
        self.claims[l][k] -= 1;
        let claims = match result {
            Ok(claims) => claims,
            Err(error) => {
                self.engine.observer.store_failed("claiming due messages", &error);
                self.permits.give_back(lane, limit);
                self.floods[l][k] = false;
                self.looks[l][k] = now.plus(ERROR_WAIT);
                return;
            }
        };
        self.floods[l][k] = claims.claimed.len() >= self.engine.settings.claim_batch_max;
        self.permits.give_back(lane, limit - claims.claimed.len().min(limit));
        self.looks[l][k] = self.looks[l][k].min(claims.next_due_at.unwrap_or(Timestamp::MAX));
        let mut alone = alone;
        for (message, content) in claims.claimed {
            // The clock was set forward while the claim was under way, and whoever reaps may have the message by now.
            let is_over = matches!(&message.state, State::Claimed(lease) if lease.until_at <= now);
            match is_over {
                true => self.permits.give_back(lane, 1),
                false => self.try_claimed(message, content, asked, alone.take()),
            }
        }
    }

    /// Settles a try, and every other one that is at its end by now.
    fn on_tried(&mut self, tried: Tried<'a>) {
        self.settle(tried);
        while let Some(Some(tried)) = self.trying.next().now_or_never() {
            self.settle(tried);
        }
    }

    fn settle(&mut self, tried: Tried<'a>) {
        let Tried { message, came, claimed_at, alone } = tried;
        self.alone.extend(alone);
        self.settled.push(Settled::new(self.engine, self.line, &message, came, Some(claimed_at)));
    }

    fn start_applying(&mut self) {
        if self.settled.is_empty() || self.applying.len() >= APPLYING_MAX {
            return;
        }
        let batch = std::mem::take(&mut self.settled);
        let alone = std::mem::take(&mut self.alone);
        let (engine, line) = (self.engine, self.line);
        self.applying.push(
            async move {
                let done = apply(engine, line, batch).await;
                drop(alone);
                done
            }
            .boxed(),
        );
    }

    fn on_done(&mut self, done: Vec<Done>) {
        let mut holding = self.line.held();
        for Done { lane, id } in done {
            holding.remove(&id);
            self.permits.give_back(lane, 1);
        }
    }

    /// Looks at each lane no later than these say.
    fn look(&mut self, looks: Looks) {
        for (mine, hint) in self.looks.iter_mut().flatten().zip(looks.into_iter().flatten()) {
            *mine = hint.min(*mine);
        }
    }

    /// How long there is surely nothing to do but wait for what is under way.
    fn until_next_look(&self, now: Timestamp) -> Duration {
        let poll_at = self.polled_at.plus(self.engine.settings.poll_interval);
        let mut next = poll_at;
        for lane in Lane::ALL {
            for kind in [ClaimKind::Trusted, ClaimKind::Suspect] {
                let (l, k) = (lane as usize, kind as usize);
                if self.claims[l][k] == 0 {
                    let look_at =
                        if self.looks[l][k] > now { Some(self.looks[l][k]) } else { self.room_at(lane, now) };
                    next = next.min(look_at.unwrap_or(next));
                }
            }
        }
        let until_renewal = self.renew_at.saturating_sub(self.engine.clock.uptime());
        next.since(now).min(until_renewal).max(Duration::from_millis(1))
    }

    /// The safety net: looks everywhere once in a while, whatever the wake-ups say, and renews long-held leases.
    fn on_time(&mut self, uptime: Duration, now: Timestamp) {
        if now.since(self.polled_at) >= self.engine.settings.poll_interval {
            self.polled_at = now;
            self.look([[now; 2]; 4]);
        }
        if uptime >= self.renew_at {
            self.start_renewal(uptime, now);
        }
    }

    fn start_renewal(&mut self, sent_at: Duration, now: Timestamp) {
        let lease = self.line.route.lease;
        self.renew_at = sent_at + lease / RENEWALS_PER_LEASE;
        // A lease that isn't renewed now has half its time left at the next look: a failed renewal is tried again.
        let soon = sent_at + lease * 5 / 6;
        let is_old = |held: &&Held| sent_at < held.until() && held.until() < soon;
        let old: Vec<Held> = self.line.held().values().filter(is_old).cloned().collect();
        if old.is_empty() || !self.renewing.is_empty() {
            return;
        }
        let engine = self.engine;
        self.renewing.push(
            async move {
                let claims = old.iter().map(|held| held.claim.clone()).collect();
                let result = engine.store.renew(claims, now.plus(lease)).await;
                (sent_at + lease, old, result)
            }
            .boxed(),
        );
    }

    fn on_renewed(&mut self, (until, old, result): Renewed) {
        match result {
            Ok(answers) => {
                let uptime = self.engine.clock.uptime();
                for (held, ours) in old.iter().zip(answers) {
                    // An end that has passed stays passed: somebody may have judged the lease over meanwhile, and
                    // may act on that judgement even now.
                    held.set_until(if ours && uptime < held.until() { until } else { Duration::ZERO });
                }
            }
            Err(error) => self.engine.observer.store_failed("renewing leases", &error),
        }
    }
}
