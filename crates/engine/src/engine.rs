//! An engine: one instance with its routes, its store and its clock.

use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::AtomicUsize;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use redeliver_core::{Content, InstanceId, Lane, Message, MessageId, Name, Route};
use tokio::sync::{Notify, Semaphore};

use crate::attempt::Held;
use crate::campaign::Desk;
use crate::campaigns::Campaigns;
use crate::clock::Clock;
use crate::emit::Observer;
use crate::gate::Gate;
use crate::gates::Gates;
use crate::inline::Inline;
use crate::life::Life;
use crate::limits::Shares;
use crate::pulse::{Pulse, Teller};
use crate::store::{About, Store};
use crate::transport::{Envelope, Transport};
use crate::wake::Wake;

/// How an engine paces itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// How long it sleeps at most before it looks for due messages: the safety net under every wake-up.
    pub poll_interval: Duration,
    /// How often it says that it lives.
    pub heartbeat: Duration,
    /// How often it looks for lost leases, overdue reports, expired messages and gates to release.
    pub keep_interval: Duration,
    /// How often it asks whether somebody outside this process has written.
    pub watch_interval: Duration,
    /// How often it deletes what has been put away for long enough.
    pub prune_interval: Duration,
    /// How long it waits for what is in the air when it is told to stop.
    pub drain_timeout: Duration,
    /// Messages claimed at once, at most.
    pub claim_batch_max: usize,
    /// Parked messages released at once, at most, when their gate opens.
    pub release_batch_max: usize,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            poll_interval: Duration::from_secs(1),
            heartbeat: Duration::from_secs(2),
            keep_interval: Duration::from_secs(1),
            watch_interval: Duration::from_millis(100),
            prune_interval: Duration::from_secs(1),
            drain_timeout: Duration::from_secs(30),
            claim_batch_max: 1_000,
            release_batch_max: 500,
        }
    }
}

/// One route as this engine serves it.
pub struct Line {
    /// What decides.
    pub route: Route,
    /// What carries, by `Lane as usize`.
    pub transports: [Arc<dyn Transport>; 4],
    /// What is asked before each attempt, in this order, after the engine's own gates.
    pub gates: Vec<Arc<dyn Gate>>,
    /// Told when there may be something due.
    pub(crate) wake: Wake,
    /// The messages that callers wait for.
    pub(crate) inline: Inline,
    /// The claims that this instance has in the air, or whose results it is writing down.
    held: Mutex<HashMap<MessageId, Held>>,
}

impl Line {
    /// A line, if there is a transport for every lane of the route; else the name of the one that is missing.
    pub fn new(
        route: Route,
        transports: &HashMap<Name, Arc<dyn Transport>>,
        gates: Vec<Arc<dyn Gate>>,
    ) -> Result<Self, Name> {
        let find = |lane: Lane| {
            let name = &route.travel(lane).transport;
            transports.get(name).cloned().ok_or_else(|| name.clone())
        };
        let transports = [find(Lane::Critical)?, find(Lane::High)?, find(Lane::Medium)?, find(Lane::Low)?];
        let (wake, inline, held) = (Wake::default(), Inline::default(), Mutex::default());
        Ok(Self { route, transports, gates, wake, inline, held })
    }

    pub(crate) fn held(&self) -> MutexGuard<'_, HashMap<MessageId, Held>> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A message of this line as its transport sees it.
    pub(crate) fn envelope<'a>(&'a self, message: &'a Message, content: &'a Content) -> Envelope<'a> {
        let target = content.target.as_deref().or(self.route.travel(message.lane).target.as_deref());
        Envelope { message, content, target }
    }

    /// Where this message would go.
    pub(crate) fn destination(&self, message: &Message, content: &Content) -> Name {
        self.transport(message.lane).destination(&self.envelope(message, content))
    }

    /// What carries messages of this lane.
    pub fn transport(&self, lane: Lane) -> &Arc<dyn Transport> {
        &self.transports[lane as usize]
    }
}

/// One instance: accepts messages, and carries what is due while it runs.
pub struct Engine {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) observer: Teller,
    pub(crate) settings: Settings,
    pub(crate) instance: InstanceId,
    pub(crate) lines: BTreeMap<Name, Line>,
    pub(crate) gates: Gates,
    /// What it has of the limits of destinations.
    pub(crate) shares: Shares,
    /// What it has at hand for campaigns, if it knows any.
    pub(crate) desk: Option<Desk>,
    pub(crate) life: Life,
    /// What it says of itself once it lives, until the store has it.
    pub(crate) about: Mutex<Option<About>>,
    /// One suspect at a time, so that a crash has one culprit.
    pub(crate) suspects: Semaphore,
    /// Routes whose work has not ended.
    pub(crate) working: AtomicUsize,
    /// Told when the last of them ends.
    pub(crate) idle: Notify,
}

impl Engine {
    /// An engine over these parts. It does nothing by itself until it is run.
    pub fn new(
        store: Arc<dyn Store>,
        clock: Arc<dyn Clock>,
        observer: Arc<dyn Observer>,
        settings: Settings,
        lines: Vec<Line>,
    ) -> Self {
        let life = Life::new(settings.heartbeat);
        Self {
            instance: clock.instance_id(),
            store,
            clock,
            observer: Teller { observer, pulse: Pulse::default() },
            settings,
            lines: lines.into_iter().map(|line| (line.route.name.clone(), line)).collect(),
            gates: Gates::default(),
            shares: Shares::default(),
            desk: None,
            life,
            about: Mutex::default(),
            suspects: Semaphore::new(1),
            working: AtomicUsize::new(0),
            idle: Notify::new(),
        }
    }

    /// The same with campaigns.
    pub fn with_campaigns(mut self, campaigns: Arc<dyn Campaigns>) -> Self {
        self.desk = Some(Desk::new(campaigns));
        self
    }

    /// The same, which says of itself where it runs and which version it is.
    pub fn named(self, name: &str, version: &str) -> Self {
        let started_at = self.clock.now();
        let about = About { name: name.into(), version: version.into(), started_at };
        Self { about: Mutex::new(Some(about)), ..self }
    }

    /// What remembers campaigns, if it knows any.
    pub fn campaigns(&self) -> Option<&Arc<dyn Campaigns>> {
        self.desk.as_ref().map(|desk| &desk.store)
    }

    /// Which instance this is.
    pub fn instance(&self) -> InstanceId {
        self.instance
    }

    /// What it has done, minute by minute.
    pub fn pulse(&self) -> &Pulse {
        &self.observer.pulse
    }

    /// The store behind it.
    pub fn store(&self) -> &Arc<dyn Store> {
        &self.store
    }

    /// Its clock.
    pub fn clock(&self) -> &Arc<dyn Clock> {
        &self.clock
    }

    /// The route of this name.
    pub fn route(&self, name: &str) -> Option<&Route> {
        self.lines.get(name).map(|line| &line.route)
    }

    /// All routes, by name.
    pub fn routes(&self) -> impl Iterator<Item = &Route> {
        self.lines.values().map(|line| &line.route)
    }

    /// Whether a route carries e-mails; `false` if it is gone from the config.
    pub fn carries_emails(&self, route: &str) -> bool {
        let line = self.lines.get(route);
        line.is_some_and(|line| line.transports.iter().any(|transport| transport.carries_emails()))
    }

    /// Where all messages of a lane go, if they all go to one place.
    pub fn fixed_destination(&self, route: &str, lane: Lane) -> Option<Name> {
        self.lines.get(route)?.transport(lane).fixed_destination()
    }

    /// Where a message that carries this goes; `None` if its route is gone from the config.
    pub fn destination(&self, message: &Message, content: &Content) -> Option<Name> {
        self.lines.get(&message.route).map(|line| line.destination(message, content))
    }

    /// Whether every route is worked here now: not yet at the start, and no longer when it stops.
    pub fn is_carrying(&self) -> bool {
        self.lines.values().all(|line| line.inline.is_open())
    }

    /// Lets the work on a message's route know that it may be due.
    pub(crate) fn wake_for(&self, message: &Message) {
        if let Some(line) = self.lines.get(&message.route) {
            line.wake.for_message(message);
        }
    }

    pub(crate) fn wake_all(&self) {
        self.lines.values().for_each(|line| line.wake.everywhere());
    }
}
