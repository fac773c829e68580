//! The gates that the whole fleet shares: pauses, holds, throttles, breakers. What is cached here can vanish at any time;
//! the store has the truth.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};
use std::time::Duration;

use redeliver_core::breaker::{self, Admission, BreakerState, Place};
use redeliver_core::destination::{Bound, HOLD_PROBE, Sign, consequence};
use redeliver_core::gate::{Closed, GateKey, GateRecord, Scope, on_the_way};
use redeliver_core::outcome::Until;
use redeliver_core::planted::{self, Bug};
use redeliver_core::{Content, Message, Name, Outcome, Timestamp};

use crate::engine::{Engine, Line};
use crate::limits::used_up;
use crate::store::{GateChange, StoreError};

/// How long a breaker waits for its probe, at most: its worker may have vanished.
const PROBE_MAX: Duration = Duration::from_secs(60);

type Closures = HashMap<GateKey, GateRecord>;

/// What this instance knows of the gates.
#[derive(Default)]
pub(crate) struct Gates {
    closed: RwLock<Arc<Closures>>,
    destinations: Mutex<HashMap<Name, Destination>>,
    /// This instance's place among those that live, as of the last look.
    place: Mutex<Place>,
}

/// What this instance knows of a destination.
#[derive(Default)]
struct Destination {
    /// Connection failures in a row.
    failures: u32,
    /// Since when it recovers, and how many have gone since.
    recovery: Option<(Timestamp, u64)>,
}

impl Gates {
    pub(crate) fn is_closed(&self, key: &GateKey) -> bool {
        self.closures().contains_key(key)
    }

    /// The version of a gate's record, 0 if there is none.
    pub(crate) fn version(&self, key: &GateKey) -> u64 {
        self.closures().get(key).map_or(0, |record| record.version)
    }

    pub(crate) fn closures(&self) -> Arc<Closures> {
        Arc::clone(&self.closed.read().unwrap_or_else(PoisonError::into_inner))
    }

    fn destinations(&self) -> MutexGuard<'_, HashMap<Name, Destination>> {
        self.destinations.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether one more of this instance may go in a recovery that admits `count_max` of the fleet by now.
    fn recover(&self, destination: &Name, since: Timestamp, count_max: u64) -> bool {
        let count_max = self.place().part_of(count_max);
        let mut destinations = self.destinations();
        let recovery = &mut destinations.entry(destination.clone()).or_default().recovery;
        let gone = match recovery {
            Some((known, gone)) if *known == since => gone,
            _ => &mut recovery.insert((since, 0)).1,
        };
        let may_go = *gone < count_max;
        *gone += u64::from(may_go);
        may_go
    }

    fn place(&self) -> MutexGuard<'_, Place> {
        self.place.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Engine {
    /// Reads the gates from the store.
    pub(crate) async fn refresh_gates(&self) -> Result<(), StoreError> {
        let records = self.store.gates().await?;
        let closed = records.into_iter().map(|record| (record.key.clone(), record)).collect();
        *self.gates.closed.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(closed);
        Ok(())
    }

    /// Asks the shared gates whether a message may go to its destination now; else what stands in for the try.
    async fn pass(
        &self,
        line: &Line,
        message: &Message,
        content: &Content,
        destination: &Name,
        now: Timestamp,
    ) -> Result<(), Outcome> {
        let closed = self.gates.closures();
        if !closed.is_empty() {
            for key in on_the_way(message, content, Some(destination)) {
                if let Some(record) = closed.get(&key) {
                    self.pass_closed(key, record, now).await?;
                }
            }
            if let Some(outcome) = throttled(&closed, destination, now) {
                return Err(outcome);
            }
            self.pass_breaker(line, &closed, destination, now).await?;
        }
        // The limits themselves come last, right before the send; here, messages are spared what would be for nothing.
        match self.shares.turns_away(&line.route, destination, now) {
            true => Err(used_up(destination)),
            false => Ok(()),
        }
    }

    /// Asks every gate before a message, the shared ones and those of its route; else what stands in for the try.
    pub(crate) async fn admit(
        &self,
        line: &Line,
        message: &Message,
        content: &Content,
        destination: &Name,
    ) -> Result<(), Outcome> {
        self.pass(line, message, content, destination, self.clock.now()).await?;
        for gate in &line.gates {
            if let Some(outcome) = gate.check(message, content, self.clock.now()).await.into_outcome() {
                return Err(outcome);
            }
        }
        Ok(())
    }

    /// A pause or a hold: one message passes a hold when it is time to find out whether the login is good again.
    async fn pass_closed(&self, key: GateKey, record: &GateRecord, now: Timestamp) -> Result<(), Outcome> {
        if planted::is(Bug::PauseIgnored) {
            return Ok(());
        }
        if is_probed(record, now) {
            let closed = Closed::Held { probe_at: Some(now.plus(HOLD_PROBE)) };
            let probed = GateRecord { closed, ..record.clone() };
            if let Ok(true) = self.put_gate(&key, record.version, Some(probed)).await {
                return Ok(());
            }
        }
        Err(Outcome::Deferred { until: Until::Opens(key), reason: record.reason.clone() })
    }

    async fn pass_breaker(
        &self,
        line: &Line,
        closed: &Closures,
        destination: &Name,
        now: Timestamp,
    ) -> Result<(), Outcome> {
        let key = GateKey::breaker(destination);
        let (Some(config), Some(record)) = (&line.route.breaker, closed.get(&key)) else { return Ok(()) };
        let Closed::Breaker(state) = &record.closed else { return Ok(()) };
        let park =
            || Outcome::Deferred { until: Until::Opens(key.clone()), reason: "the breaker is open".into() };
        match state.admit(config, now, (line.route.send_timeout * 2).min(PROBE_MAX)) {
            Admission::Pass => Ok(()),
            Admission::Park => Err(park()),
            Admission::Probe(probing) => {
                match self.put_breaker(&key, record.version, Some(probing), now).await {
                    Ok(true) => Ok(()),
                    Ok(false) | Err(_) => Err(park()),
                }
            }
            Admission::Limited { since, count_max } => {
                match self.gates.recover(destination, since, count_max) {
                    true => Ok(()),
                    false => {
                        let until = Until::At(now.plus(Duration::from_secs(1)));
                        Err(Outcome::Deferred { until, reason: "the destination is recovering".into() })
                    }
                }
            }
        }
    }

    /// Lets the destination's gates know what a try showed, and gives back the outcome for the message itself.
    pub(crate) async fn learn(
        &self,
        line: &Line,
        destination: &Name,
        sender: Option<&str>,
        outcome: Outcome,
    ) -> Outcome {
        let now = self.clock.now();
        let is_held = self.gates.is_closed(&GateKey::hold(Scope::Destination, destination));
        let all = consequence(outcome, Bound { destination, sender, is_held }, &line.route, now);
        let learned = match all.close.clone() {
            Some((key, closed, reason)) => self.close(key, closed, reason, now).await,
            None if all.sign == Sign::Answered => self.unhold(destination, sender).await.map(|()| false),
            None => Ok(false),
        };
        let has_closed = matches!(learned, Ok(true));
        let tripped = match (&line.route.breaker, all.sign) {
            (Some(config), Sign::Unreachable) => self.unreachable(destination, config, now).await,
            (Some(_), Sign::Answered) => self.answered(destination, now).await,
            (Some(_), Sign::Silent) | (None, _) => Ok(()),
        };
        for result in [learned.map(drop), tripped] {
            if let Err(error) = result {
                self.observer.store_failed("writing down a gate", &error);
            }
        }
        all.outcome(has_closed)
    }

    /// Closes a gate. Says whether it was this that closed it, and not somebody before.
    pub(crate) async fn close(
        &self,
        key: GateKey,
        closed: Closed,
        reason: &'static str,
        now: Timestamp,
    ) -> Result<bool, StoreError> {
        let known = self.gates.closures().get(&key).cloned();
        let was_open = known.is_none();
        let expected_version = known.as_ref().map_or(0, |record| record.version);
        // What is closed once more has been closed since then.
        let is_same = |record: &GateRecord| record.parks() && record.closed.name() == closed.name();
        let since = known.filter(is_same).map_or(now, |record| record.since);
        let record = GateRecord { key: key.clone(), version: 0, since, reason: reason.into(), closed };
        let change = GateChange { key, expected_version, record: Some(record), audit: None };
        // If somebody else was faster, the gate is closed already.
        let is_written = self.store.put_gate(change).await?;
        self.refresh_gates().await?;
        Ok(was_open && is_written)
    }

    /// Opens a destination's hold and a sender's, because the login is good.
    async fn unhold(&self, destination: &Name, sender: Option<&str>) -> Result<(), StoreError> {
        let holds = [(Scope::Destination, Some(&**destination)), (Scope::Sender, sender)];
        for (scope, name) in holds.into_iter().filter_map(|(scope, name)| Some((scope, name?))) {
            let key = GateKey::hold(scope, name);
            match self.gates.version(&key) {
                0 => {}
                version => drop(self.put_gate(&key, version, None).await?),
            }
        }
        Ok(())
    }

    async fn unreachable(
        &self,
        destination: &Name,
        config: &breaker::BreakerConfig,
        now: Timestamp,
    ) -> Result<(), StoreError> {
        let failures = {
            let mut destinations = self.gates.destinations();
            let entry = destinations.entry(destination.clone()).or_default();
            entry.failures = entry.failures.saturating_add(1);
            entry.failures
        };
        let key = GateKey::breaker(destination);
        let (version, state) = self.breaker(&key);
        match breaker::after_failure(state.as_ref(), failures, config, now) {
            Some(next) => self.put_breaker(&key, version, Some(next), now).await.map(drop),
            None => Ok(()),
        }
    }

    async fn answered(&self, destination: &Name, now: Timestamp) -> Result<(), StoreError> {
        if let Some(entry) = self.gates.destinations().get_mut(destination) {
            entry.failures = 0;
        }
        let key = GateKey::breaker(destination);
        let (version, state) = self.breaker(&key);
        match state.and_then(|state| breaker::after_answer(&state, now)) {
            Some(next) => self.put_breaker(&key, version, Some(next), now).await.map(drop),
            None => Ok(()),
        }
    }

    fn breaker(&self, key: &GateKey) -> (u64, Option<BreakerState>) {
        match self.gates.closures().get(key) {
            Some(GateRecord { version, closed: Closed::Breaker(state), .. }) => (*version, Some(*state)),
            Some(record) => (record.version, None),
            None => (0, None),
        }
    }

    async fn put_breaker(
        &self,
        key: &GateKey,
        expected_version: u64,
        state: Option<BreakerState>,
        now: Timestamp,
    ) -> Result<bool, StoreError> {
        let record = state.map(|state| GateRecord {
            key: key.clone(),
            version: 0,
            since: now,
            reason: "connections to the destination fail".into(),
            closed: Closed::Breaker(state),
        });
        self.put_gate(key, expected_version, record).await
    }

    async fn put_gate(
        &self,
        key: &GateKey,
        expected_version: u64,
        record: Option<GateRecord>,
    ) -> Result<bool, StoreError> {
        let change = GateChange { key: key.clone(), expected_version, record, audit: None };
        let written = self.store.put_gate(change).await?;
        self.refresh_gates().await?;
        Ok(written)
    }

    /// Looks after the gates once: reads them, opens what is over, releases what waits for an open one. Says whether
    /// messages wait for a destination's limits, or this instance has a part of them.
    pub async fn keep_gates(&self) -> Result<bool, StoreError> {
        self.refresh_gates().await?;
        let now = self.clock.now();
        self.find_place(now).await?;
        self.open_what_is_over(now).await?;
        let mut limited = self.keep_limits().await;
        let mut released = 0;
        let parked = self.store.parked().await?;
        self.refresh_limits(&parked).await;
        for key in parked {
            limited |= key.is_limit();
            let count = self.releasable(&key, now);
            if count > 0 && !planted::is(Bug::ReleaseForgotten) {
                released += self.store.release(key, count).await?;
            }
        }
        if released > 0 {
            self.wake_all();
        }
        Ok(limited)
    }

    /// Counts the instances that live, while a breaker is open: they share its slow start.
    async fn find_place(&self, now: Timestamp) -> Result<(), StoreError> {
        let is_breaker = |record: &GateRecord| matches!(record.closed, Closed::Breaker(_));
        if self.gates.closures().values().any(is_breaker) {
            let living = self.store.living(now).await?;
            let before = living.iter().filter(|other| other.id < self.instance).count() as u64;
            *self.gates.place() = Place { before, all: living.len() as u64 };
        }
        Ok(())
    }

    async fn open_what_is_over(&self, now: Timestamp) -> Result<(), StoreError> {
        for record in self.gates.closures().values() {
            let is_over = match &record.closed {
                Closed::Paused | Closed::Suppressed | Closed::Held { .. } => false,
                Closed::Throttled(until) => *until <= now,
                Closed::Breaker(state @ BreakerState::Recovering { .. }) => state.look_at() <= now,
                Closed::Breaker(BreakerState::Open { .. } | BreakerState::Probing { .. }) => false,
            };
            if is_over {
                self.put_breaker(&record.key, record.version, None, now).await?;
            }
        }
        Ok(())
    }

    /// How many messages parked for a gate may wait for their turn again.
    fn releasable(&self, key: &GateKey, now: Timestamp) -> usize {
        let batch = self.settings.release_batch_max;
        if key.is_limit() {
            let destination: Name = key.parts().2.into();
            let has_limits = self.routes().any(|route| route.limits().is_some());
            return if has_limits { self.shares.releasable(&destination, now).min(batch) } else { batch };
        }
        match self.gates.closures().get(key) {
            None => batch,
            Some(GateRecord { closed: Closed::Breaker(state), .. }) if state.parks() => {
                usize::from(state.look_at() <= now)
            }
            Some(GateRecord { closed: Closed::Breaker(_), .. }) => batch,
            Some(record) => usize::from(is_probed(record, now)),
        }
    }
}

/// Whether it is time for one message to find out whether a hold is still called for.
fn is_probed(record: &GateRecord, now: Timestamp) -> bool {
    matches!(record.closed, Closed::Held { probe_at: Some(at) } if at <= now)
}

/// What stands in for a try while the destination wants to be left alone.
fn throttled(closed: &Closures, destination: &Name, now: Timestamp) -> Option<Outcome> {
    if planted::is(Bug::PauseIgnored) {
        return None;
    }
    match closed.get(&GateKey::throttle(destination)) {
        Some(GateRecord { closed: Closed::Throttled(until), reason, .. }) if *until > now => {
            Some(Outcome::Deferred { until: Until::At(*until), reason: reason.clone() })
        }
        _ => None,
    }
}
