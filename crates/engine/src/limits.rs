//! The limits of each destination: this instance's part of what the fleet may send. The store has the truth; an instance
//! that vanishes loses the slots that it reserved, and its permits come back once its sends are surely over.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use redeliver_core::gate::GateKey;
use redeliver_core::limit::share::{Share, Take, is_past, wait_for};
use redeliver_core::limit::{Ask, Limits, OPEN_FOR, RESERVE_AHEAD};
use redeliver_core::outcome::Until;
use redeliver_core::planted::{self, Bug};
use redeliver_core::{Name, Outcome, Route, Timestamp};
use tokio::sync::Notify;

use crate::engine::Engine;
use crate::store::{LIMITS_KEPT_FOR, LimitRequest, StoreError};

/// Times that one send asks the store before it is parked.
const DRAWS_MAX: usize = 3;
/// How long a send waits at hand for a permit before it is parked.
const AT_HAND: Duration = Duration::from_secs(1);
/// How long a send waits in all: after that, the gates that it passed before may have closed.
const WAIT_MAX: Duration = Duration::from_secs(4);
/// How soon it looks again.
const LOOK_INTERVAL: Duration = Duration::from_millis(50);
/// How soon a message is due again whose limits could not be asked for.
const SHORT_WAIT: Duration = Duration::from_secs(1);
/// What is kept between the end of the last send and the moment at which others may have its permit.
const MARGIN: Duration = Duration::from_secs(3);
/// Destinations whose limits are looked up in one round before parked messages are released.
const REFRESHED_MAX: usize = 20;
/// Messages released at once for a destination whose limits this instance doesn't know yet.
const UNKNOWN_ROOM: usize = 20;

/// What this instance has of each destination's limits.
#[derive(Default)]
pub(crate) struct Shares {
    all: Mutex<BTreeMap<Name, Arc<Destination>>>,
    /// Uptime in milliseconds at which the store forgets limits again that no longer matter.
    forget_at_ms: AtomicU64,
    /// Numbers the calls to the store, so that one that arrives late changes nothing.
    turns: AtomicU64,
}

/// One destination with limits.
struct Destination {
    name: Name,
    known: Mutex<Known>,
    /// Held while the store is asked.
    drawing: tokio::sync::Mutex<()>,
    /// Told when a send ends.
    ended: Notify,
}

#[derive(Default)]
struct Known {
    share: Share,
    /// The number of the last call to the store.
    turn: u64,
    /// Uptime when the store was last asked with success.
    drawn_at: Duration,
    /// How long the store took the last time.
    latency: Duration,
}

/// How the store knows that the sends of an instance are over.
#[derive(Copy, Clone, Debug)]
pub(crate) enum Hold {
    /// The instance is silent: it gives up its sends before others take it for dead.
    Heartbeat,
    /// Enough time has passed since it asked: none of its sends takes longer than this.
    SendTimeout(Duration),
}

impl Hold {
    /// How long after it was given a permit is still held, without a heartbeat.
    fn span(self) -> Duration {
        match self {
            Self::Heartbeat => Duration::ZERO,
            Self::SendTimeout(longest) => 2 * (longest + RESERVE_AHEAD) + MARGIN,
        }
    }
}

/// The right to send once to a destination with limits. The permit is free again when it is dropped.
pub(crate) struct Permit {
    destination: Arc<Destination>,
    /// The slot, until a send has started in it.
    unused_slot_us: Option<i64>,
}

impl Permit {
    /// Whether it is too late to start the send: the process may have been held up since the slot was reached.
    pub(crate) fn is_late(&self, now: Timestamp) -> bool {
        self.unused_slot_us.is_some_and(|slot_us| is_past(slot_us, now))
    }

    /// The send starts now.
    pub(crate) fn start(&mut self) {
        self.unused_slot_us = None;
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        self.destination.known().share.give_back(self.unused_slot_us);
        self.destination.ended.notify_one();
    }
}

/// A send that waits for its slot and its permit.
struct Waiting<'a>(&'a Destination);

impl<'a> Waiting<'a> {
    fn begin(destination: &'a Destination) -> Self {
        destination.known().share.wait();
        Self(destination)
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.known().share.stop_waiting();
    }
}

impl Destination {
    fn new(name: &Name) -> Self {
        let (known, drawing, ended) = (Mutex::default(), tokio::sync::Mutex::default(), Notify::new());
        Self { name: name.clone(), known, drawing, ended }
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Shares {
    fn all(&self) -> MutexGuard<'_, BTreeMap<Name, Arc<Destination>>> {
        self.all.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn get(&self, name: &Name) -> Option<Arc<Destination>> {
        self.all().get(name).cloned()
    }

    fn get_or_insert(&self, name: &Name) -> Arc<Destination> {
        let mut all = self.all();
        Arc::clone(all.entry(name.clone()).or_insert_with(|| Arc::new(Destination::new(name))))
    }

    /// How many more messages of a route a destination has room for soon.
    pub(crate) fn room(&self, route: &Route, name: &Name, now: Timestamp) -> usize {
        let Some(limits) = route.limits() else { return usize::MAX };
        match self.get(name) {
            Some(destination) => destination.known().share.room(limits, now),
            None => Share::default().room(limits, now),
        }
    }

    /// When a destination without room has some again, at the earliest.
    pub(crate) fn room_at(&self, route: &Route, name: &Name, now: Timestamp) -> Option<Timestamp> {
        let limits = route.limits()?;
        self.get(name).map(|destination| destination.known().share.room_at(limits, now))
    }

    /// How many parked messages a destination has room for soon, by the limits of the last send to it.
    pub(crate) fn releasable(&self, name: &Name, now: Timestamp) -> usize {
        let Some(destination) = self.get(name) else { return UNKNOWN_ROOM };
        let known = destination.known();
        match known.share.limits() {
            limits if limits == Limits::default() => UNKNOWN_ROOM,
            limits => known.share.room(limits, now),
        }
    }

    /// Whether a message would only be turned away now.
    pub(crate) fn turns_away(&self, route: &Route, name: &Name, now: Timestamp) -> bool {
        let Some(limits) = route.limits() else { return false };
        self.get(name).is_some_and(|destination| destination.known().share.turns_away(limits, now))
    }
}

/// The outcome of a try that found a destination's limits used up.
pub(crate) fn used_up(destination: &Name) -> Outcome {
    let until = Until::Opens(GateKey::limit(destination));
    Outcome::Deferred { until, reason: "the destination's limit is reached".into() }
}

impl Engine {
    /// Waits for the slot and the permit of one send, where its route has limits; else what stands in for the try.
    ///
    /// The send must start at once: a slot is open for a moment only.
    pub(crate) async fn permit(
        &self,
        route: &Route,
        name: &Name,
        hold: Hold,
    ) -> Result<Option<Permit>, Outcome> {
        let Some(limits) = route.limits() else { return Ok(None) };
        let destination = self.shares.get_or_insert(name);
        let begun = self.clock.uptime();
        let until = begun + AT_HAND;
        let mut draws_left = DRAWS_MAX;
        loop {
            let unused_slot_us = self.acquire(&destination, limits, hold, until, &mut draws_left).await?;
            let mut permit = Permit { destination: Arc::clone(&destination), unused_slot_us };
            let is_in_time = match unused_slot_us {
                Some(slot_us) => self.reach(slot_us).await,
                None => true,
            };
            if self.clock.uptime().saturating_sub(begun) > WAIT_MAX {
                return Err(used_up(name));
            }
            if is_in_time {
                return Ok(Some(permit));
            }
            // No send can use it any more.
            permit.start();
        }
    }

    /// Takes the slot and the permit of one send, asking the store for them if need be. Gives the slot, where the rate is
    /// limited.
    async fn acquire(
        &self,
        destination: &Destination,
        limits: Limits,
        hold: Hold,
        until: Duration,
        draws_left: &mut usize,
    ) -> Result<Option<i64>, Outcome> {
        let _waiting = Waiting::begin(destination);
        loop {
            let (taken, turn) = self.take(destination, limits, hold);
            match taken {
                Take::Taken(slot_us) => return Ok(slot_us),
                Take::Draw if *draws_left > 0 => {
                    let _drawing = destination.drawing.lock().await;
                    // Whoever asked meanwhile asked for all who wait.
                    if destination.known().turn != turn {
                        continue;
                    }
                    *draws_left -= 1;
                    if let Err(error) = self.ask_store(destination, limits, hold, false).await {
                        self.observer.store_failed("asking for a destination's limits", &error);
                        let until = Until::At(self.clock.now().plus(SHORT_WAIT));
                        let reason = "the store does not answer".into();
                        return Err(Outcome::Deferred { until, reason });
                    }
                }
                Take::Full if self.clock.uptime() < until => {
                    tokio::select! {
                        biased;
                        () = destination.ended.notified() => {}
                        () = self.clock.sleep(LOOK_INTERVAL) => {}
                    }
                }
                Take::Draw | Take::UsedUp | Take::Full => return Err(used_up(&destination.name)),
            }
        }
    }

    /// Takes what is there already, and says how often the store has been asked so far.
    fn take(&self, destination: &Destination, limits: Limits, hold: Hold) -> (Take, u64) {
        let uptime = self.clock.uptime();
        let mut known = destination.known();
        let lasts = match hold {
            Hold::Heartbeat => self.life.carry_until(known.drawn_at, Duration::MAX) > uptime,
            Hold::SendTimeout(longest) => {
                known.drawn_at + hold.span() > uptime + longest + RESERVE_AHEAD + MARGIN
            }
        };
        if !lasts && limits.at_once_max.is_some() {
            // Others may have been given the permits that this instance held.
            known.share.begin_draw();
        }
        (known.share.take(limits, self.clock.now()), known.turn)
    }

    /// Waits for the beginning of a slot; `false` if it is too late to start in it.
    async fn reach(&self, slot_us: i64) -> bool {
        let wait = wait_for(slot_us, self.clock.now());
        if !wait.is_zero() {
            self.clock.sleep(wait).await;
        }
        // Clocks that are set back or told otherwise meanwhile make no send early.
        while !wait_for(slot_us, self.clock.now()).is_zero() {
            self.clock.sleep(Duration::from_millis(1)).await;
        }
        !is_past(slot_us, self.clock.now())
    }

    /// Asks the store for what the waiting sends need, and gives back what none needs. One call at a time.
    async fn ask_store(
        &self,
        destination: &Destination,
        limits: Limits,
        hold: Hold,
        has_backlog: bool,
    ) -> Result<(), StoreError> {
        let (asked_at, now) = (self.clock.uptime(), self.clock.now());
        let request = {
            let mut known = destination.known();
            known.turn = self.shares.turns.fetch_add(1, Ordering::Relaxed) + 1;
            let (in_use, sends) = known.share.begin_draw();
            let ask = Ask { limits, now: now.plus(lead(known.latency)), in_use, sends, has_backlog };
            let until_at = now.plus(hold.span());
            let name = destination.name.clone();
            LimitRequest { destination: name, instance: self.instance, turn: known.turn, until_at, ask }
        };
        let request = if planted::is(Bug::LimitsHoldPerInstance) {
            let destination = format!("{} {}", request.destination, self.instance).into();
            LimitRequest { destination, ..request }
        } else {
            request
        };
        let granted = self.store.draw_limit(request).await;
        let mut known = destination.known();
        known.latency = self.clock.uptime().saturating_sub(asked_at);
        let grant = granted?;
        known.drawn_at = asked_at;
        known.share.end_draw(&grant, now);
        Ok(())
    }

    /// Gives back the permits to a destination that no send of this instance needs.
    pub(crate) async fn give_back_spare(&self, name: &Name, hold: Hold) {
        let Some(destination) = self.shares.get(name) else { return };
        let has_spare = {
            let known = destination.known();
            known.share.has_spare()
        };
        if has_spare {
            self.redraw(&destination, hold, false).await;
        }
    }

    /// Looks after the limits: gives back permits that nobody needs or others should have, and forgets destinations that are idle. Says whether
    /// this instance has any permits.
    pub(crate) async fn keep_limits(&self) -> bool {
        let now = self.clock.now();
        let all: Vec<Arc<Destination>> = {
            let mut all = self.shares.all();
            all.retain(|_, destination| {
                Arc::strong_count(destination) > 1 || !destination.known().share.is_idle(now)
            });
            all.values().filter(|destination| destination.known().share.has_permits()).cloned().collect()
        };
        for destination in &all {
            let is_due = {
                let known = destination.known();
                known.share.has_spare() || known.share.should_look(now)
            };
            if is_due {
                self.redraw(destination, Hold::Heartbeat, false).await;
            }
        }
        self.forget_limits(now).await;
        !all.is_empty()
    }

    /// Has the store forget what no longer matters, once in a while.
    async fn forget_limits(&self, now: Timestamp) {
        let uptime_ms = self.clock.uptime().as_millis() as u64;
        let is_due = uptime_ms >= self.shares.forget_at_ms.load(Ordering::Relaxed);
        if !is_due || self.routes().all(|route| route.limits().is_none()) {
            return;
        }
        let next_ms = uptime_ms + LIMITS_KEPT_FOR.as_millis() as u64;
        self.shares.forget_at_ms.store(next_ms, Ordering::Relaxed);
        if let Err(error) = self.store.forget_limits(now).await {
            self.observer.store_failed("forgetting the limits of idle destinations", &error);
        }
    }

    /// Asks how much is left of the limits that messages are parked for, where that may have changed.
    pub(crate) async fn refresh_limits(&self, parked: &[GateKey]) {
        let now = self.clock.now();
        let mut refreshed = 0;
        for key in parked.iter().filter(|key| key.is_limit()) {
            let Some(destination) = self.shares.get(&key.parts().2.into()) else { continue };
            let is_due = {
                let known = destination.known();
                let limits = known.share.limits();
                limits != Limits::default() && !known.share.is_fresh(now) && known.share.room(limits, now) > 0
            };
            if is_due && refreshed < REFRESHED_MAX {
                self.redraw(&destination, Hold::Heartbeat, true).await;
                refreshed += 1;
            }
        }
    }

    /// Asks the store once more, unless somebody is doing so.
    async fn redraw(&self, destination: &Destination, hold: Hold, has_backlog: bool) {
        let Ok(_drawing) = destination.drawing.try_lock() else { return };
        let limits = destination.known().share.limits();
        if let Err(error) = self.ask_store(destination, limits, hold, has_backlog).await {
            self.observer.store_failed("giving back a destination's limits", &error);
        }
    }
}

/// How much later than now the first slot should begin, so that it is not past when the store has answered.
fn lead(latency: Duration) -> Duration {
    if latency * 2 > OPEN_FOR { (latency * 3 / 2).min(RESERVE_AHEAD / 2) } else { Duration::ZERO }
}
