//! One run: chaos, healing, settling, judgement.

use std::collections::HashMap;
use std::sync::{Arc, PoisonError};

use redeliver_core::accept::NewMessage;
use redeliver_core::gate::Scope;
use redeliver_core::operate::Action;
use redeliver_core::{Content, Event, Lane, MessageId, Name, State};
use redeliver_engine::emit::Observer;
use redeliver_engine::intake::{Accepted, Sink};
use redeliver_engine::stop::{Stopper, stop_pair};
use redeliver_engine::store::{Store, StoreError};
use redeliver_engine::transport::Transport;
use redeliver_engine::{Engine, Line};

use crate::clock::{SimClock, SimHandle};
use crate::executor::Executor;
use crate::rng::Rng;
use crate::scenario::Scenario;
use crate::store::FaultyStore;
use crate::transport::{Mailbox, SimTransport};
use crate::world::{Figures, SharedWorld, World, look};

/// How long after the healing everything must have settled: longest backoff, two leases, breakers, dead letters.
const SETTLE_MS: u64 = 240_000;
/// More polls than this in one run mean that something spins.
const POLLS_MAX: u64 = 400_000;
/// The process number of the clients.
const CLIENTS: usize = 0;

/// What one run came to.
#[derive(Debug)]
pub struct Report {
    /// What went wrong, if anything.
    pub violation: Option<String>,
    /// What was drawn.
    pub scenario: Scenario,
    /// What happened.
    pub figures: Figures,
}

impl Report {
    /// A run that did not come about.
    pub fn failed(seed: u64, why: String) -> Self {
        let scenario = Scenario::draw(&mut Rng::new(seed));
        Self { violation: Some(why), scenario, figures: Figures::default() }
    }
}

struct Run {
    world: SharedWorld,
    clock: Arc<SimClock>,
    scenario: Scenario,
    store: Arc<dyn Store>,
    mailbox: Mailbox,
    executor: Executor,
    rng: Rng,
    stoppers: HashMap<usize, Stopper>,
    processes: usize,
}

/// Runs one seed over an empty store.
pub fn run(seed: u64, store: Arc<dyn Store>) -> Report {
    run_traced(seed, store, Trace::Off).0
}

/// Whether a run writes down what happens.
#[derive(Copy, Clone, PartialEq, Eq)]
pub enum Trace {
    /// It does.
    On,
    /// It doesn't.
    Off,
}

/// Runs one seed over an empty store, and gives the lines of its trace too.
pub fn run_traced(seed: u64, store: Arc<dyn Store>, trace: Trace) -> (Report, Vec<String>) {
    let mut rng = Rng::new(seed);
    let scenario = Scenario::draw(&mut rng);
    let mut run = Run {
        world: World::new(seed, scenario.routes()),
        clock: SimClock::new(seed),
        store,
        mailbox: Mailbox::default(),
        executor: Executor::new(),
        rng,
        stoppers: HashMap::new(),
        processes: CLIENTS,
        scenario,
    };
    look(&run.world).calm = run.scenario.is_calm();
    look(&run.world).lasting = run.scenario.lasting;
    look(&run.world).trace = (trace == Trace::On).then(Vec::new);
    run.chaos();
    run.heal();
    run.judge();
    let mut world = look(&run.world);
    let trace = world.trace.take().unwrap_or_default();
    let (violation, figures) = (world.violation.clone(), world.figures.clone());
    drop(world);
    (Report { violation, scenario: run.scenario, figures }, trace)
}

impl Run {
    fn chaos(&mut self) {
        for _ in 0..self.scenario.instances {
            self.start_instance();
        }
        let api = self.engine(CLIENTS);
        self.executor.spawn(CLIENTS, Box::pin(postman(Arc::clone(&api), Arc::clone(&self.mailbox))));
        for _ in 0..self.scenario.deeds {
            let at_ms = self.rng.between(0, self.scenario.chaos_ms);
            let client = Client {
                engine: Arc::clone(&api),
                world: Arc::clone(&self.world),
                rng: Rng::new(self.rng.draw()),
                operators: self.scenario.operators,
            };
            self.executor.spawn(CLIENTS, Box::pin(client.act_at(at_ms)));
        }
        if self.scenario.burst > 0 {
            let at_ms = self.rng.between(0, self.scenario.chaos_ms);
            let burst = burst(Arc::clone(&api), at_ms, self.scenario.burst);
            self.executor.spawn(CLIENTS, Box::pin(burst));
        }
        if self.scenario.poison {
            self.executor.spawn(CLIENTS, Box::pin(poison(api)));
        }
        let mut blows: Vec<u64> =
            (0..self.scenario.blows).map(|_| self.rng.between(0, self.scenario.chaos_ms)).collect();
        blows.sort_unstable();
        let start_ms = self.clock.uptime_ms();
        for at_ms in blows {
            self.step_until(start_ms + at_ms);
            self.blow();
        }
        self.step_until(start_ms + self.scenario.chaos_ms);
    }

    /// A kill, a stop or a jump of the clock.
    fn blow(&mut self) {
        let alive: Vec<usize> =
            (1..=self.processes).filter(|process| self.executor.is_alive(*process)).collect();
        if alive.is_empty() {
            return self.start_instance();
        }
        let victim = *self.rng.pick(&alive);
        match self.rng.between(0, 9) {
            0..=3 => {
                self.kill(victim);
                if self.rng.chance(700) || self.scenario.jumps {
                    self.start_instance();
                }
            }
            4..=6 => {
                let lease_ms = self.scenario.lease.as_millis() as u64;
                let until_ms = self.clock.uptime_ms() + self.rng.between(500, 3 * lease_ms);
                self.executor.suspend(victim, until_ms);
                let mut world = look(&self.world);
                world.figures.stops += 1;
                world.note(|| format!("process {victim} suspended until {until_ms}"));
            }
            7 if self.scenario.jumps => {
                let ms = *self.rng.pick(&[-3_600_000, -30_000, 30_000, 3_600_000]);
                self.clock.jump(ms);
            }
            // Where the time of day jumps, one engine's clock decides, so there is one engine.
            _ if self.scenario.jumps => {}
            8 => {
                if let Some(stopper) = self.stoppers.get(&victim) {
                    stopper.stop();
                }
                look(&self.world).excused.insert(victim);
                self.start_instance();
            }
            _ => self.start_instance(),
        }
    }

    fn kill(&mut self, process: usize) {
        self.executor.kill(process);
        self.stoppers.remove(&process);
        let mut world = look(&self.world);
        world.figures.kills += 1;
        world.excused.insert(process);
        world.note(|| format!("process {process} killed"));
    }

    /// The faults end: everybody is back, every gate is open, every receiver takes what it gets.
    fn heal(&mut self) {
        look(&self.world).healed = true;
        self.executor.resume_all();
        // Those that are alive may be on their way out.
        if !self.scenario.jumps {
            self.start_instance();
        }
        let api = self.engine(CLIENTS);
        let world = Arc::clone(&self.world);
        self.executor.spawn(
            CLIENTS,
            Box::pin(async move {
                let actor = "healer".into();
                let names: Vec<Name> = look(&world).routes.keys().cloned().collect();
                // A login that failed just before the healing holds its destination just after: look again.
                loop {
                    for name in &names {
                        let _ = api.resume(Scope::Route, name, &actor).await;
                    }
                    for destination in DESTINATIONS {
                        let _ = api.resume(Scope::Destination, destination, &actor).await;
                    }
                    api.clock().sleep(std::time::Duration::from_secs(10)).await;
                }
            }),
        );
        let until_ms = self.clock.uptime_ms() + SETTLE_MS;
        while self.step_once(until_ms) {
            if look(&self.world).all_ended() && self.is_quiet() {
                break;
            }
        }
    }

    fn is_quiet(&self) -> bool {
        look(&self.world).calling == 0
            && self.mailbox.lock().unwrap_or_else(PoisonError::into_inner).is_empty()
    }

    fn judge(&mut self) {
        if look(&self.world).violation.is_some() {
            return;
        }
        self.stoppers.values().for_each(Stopper::stop);
        let until_ms = self.clock.uptime_ms() + 60_000;
        self.executor.kill(CLIENTS);
        while self.step_once(until_ms) {}
        let mut world = look(&self.world);
        if (1..=self.processes).any(|process| self.executor.is_alive(process)) {
            world.violate(|| "an engine did not end when it was told to".to_owned());
        }
        world.check_the_end();
    }

    fn step_until(&mut self, until_ms: u64) {
        while self.step_once(until_ms) {}
    }

    fn step_once(&mut self, until_ms: u64) -> bool {
        if self.executor.polls > POLLS_MAX {
            look(&self.world).violate(|| "something spins".to_owned());
        }
        let poisoned = std::mem::take(&mut look(&self.world).poisoned);
        for process in poisoned {
            self.kill(process);
            self.start_instance();
        }
        look(&self.world).violation.is_none() && self.executor.step(&self.clock, &mut self.rng, until_ms)
    }

    fn start_instance(&mut self) {
        self.processes += 1;
        let process = self.processes;
        let engine = self.engine(process);
        let (stopper, stop) = stop_pair();
        self.stoppers.insert(process, stopper);
        for _ in 0..self.rng.between(0, 3) {
            let caller = Client {
                engine: Arc::clone(&engine),
                world: Arc::clone(&self.world),
                rng: Rng::new(self.rng.draw()),
                operators: false,
            };
            self.executor.spawn(process, Box::pin(caller.wait_for_one()));
        }
        self.executor.spawn(process, Box::pin(engine.run(stop)));
    }

    fn engine(&self, process: usize) -> Arc<Engine> {
        let clock = SimHandle(Arc::clone(&self.clock));
        let transport = |reports| -> Arc<dyn Transport> {
            Arc::new(SimTransport {
                world: Arc::clone(&self.world),
                clock: clock.clone(),
                process,
                trouble: self.scenario.trouble,
                reports,
            })
        };
        let transports: HashMap<Name, Arc<dyn Transport>> = HashMap::from([
            ("direct".into(), transport(None)),
            ("outside".into(), transport(Some(Arc::clone(&self.mailbox)))),
        ]);
        let store = FaultyStore {
            inner: Arc::clone(&self.store),
            world: Arc::clone(&self.world),
            clock: clock.clone(),
            process,
            faults: self.scenario.store,
        };
        let lines = look(&self.world)
            .routes
            .values()
            .filter_map(|route| Line::new(route.clone(), &transports, Vec::new()).ok())
            .collect();
        let observer = Arc::new(Witness { world: Arc::clone(&self.world), process });
        Arc::new(Engine::new(Arc::new(store), Arc::new(clock), observer, self.scenario.settings(), lines))
    }
}

/// Where messages of a run can go.
const DESTINATIONS: [&str; 3] = ["here", "there", "nowhere"];

/// Brings outside workers' reports to us when their time has come.
async fn postman(engine: Arc<Engine>, mailbox: Mailbox) {
    loop {
        let now_ms = engine.clock().uptime().as_millis() as u64;
        let due = {
            let mut letters = mailbox.lock().unwrap_or_else(PoisonError::into_inner);
            let index = letters.iter().position(|(at_ms, ..)| *at_ms <= now_ms);
            index.map(|index| letters.swap_remove(index))
        };
        match due {
            Some((at_ms, id, attempt, outcome)) => {
                let result = engine.report(&id, attempt.as_ref(), &outcome).await;
                if let Err(redeliver_engine::operate::OperateError::Store(_)) = result {
                    // An answer that did not come: the worker says it again.
                    let mut letters = mailbox.lock().unwrap_or_else(PoisonError::into_inner);
                    letters.push((at_ms + 2_000, id, attempt, outcome));
                }
            }
            None => engine.clock().sleep(std::time::Duration::from_millis(700)).await,
        }
    }
}

/// Sends the message that takes down whoever carries it.
async fn poison(engine: Arc<Engine>) {
    let mut content = Content::of_bytes("poison");
    content.attributes.insert("poison".to_owned(), String::new());
    let message = NewMessage { key: Some("poison".into()), ..NewMessage::new("retry", content) };
    while engine.accept(vec![message.clone()]).await.is_err() {
        engine.clock().sleep(std::time::Duration::from_secs(1)).await;
    }
}

/// Sends more at once than a destination with limits takes.
async fn burst(engine: Arc<Engine>, at_ms: u64, count: u64) {
    engine.clock().sleep(std::time::Duration::from_millis(at_ms)).await;
    let mut content = Content::of_bytes("one of many");
    content.target = Some(DESTINATIONS[0].into());
    // What isn't answered for is nobody's loss.
    let _ = engine.accept(vec![NewMessage::new("limited", content); count as usize]).await;
}

/// Hears every event of a process.
struct Witness {
    world: SharedWorld,
    process: usize,
}

impl Observer for Witness {
    fn observe(&self, event: &Event) {
        look(&self.world).told(self.process, event);
    }

    fn store_failed(&self, _: &'static str, _: &StoreError) {}
}

/// Somebody who does one thing.
pub(crate) struct Client {
    pub(crate) engine: Arc<Engine>,
    pub(crate) world: SharedWorld,
    pub(crate) rng: Rng,
    operators: bool,
}

/// A caller under way, until it is done or its process is killed.
struct Calling(SharedWorld);

impl Calling {
    fn begin(world: &SharedWorld) -> Self {
        look(world).calling += 1;
        Self(Arc::clone(world))
    }
}

impl Drop for Calling {
    fn drop(&mut self) {
        look(&self.0).calling -= 1;
    }
}

impl Client {
    async fn act_at(mut self, at_ms: u64) {
        self.engine.clock().sleep(std::time::Duration::from_millis(at_ms)).await;
        match self.rng.between(0, if self.operators { 11 } else { 7 }) {
            0..=2 => self.send().await,
            3 => self.send_with_key().await,
            4 | 5 => self.broker().await,
            6 | 7 => self.feed().await,
            8 | 9 => self.click().await,
            _ => self.pause_for_a_while().await,
        }
    }

    fn message(&mut self) -> NewMessage {
        let route = *self.rng.pick(&["retry", "retry", "hold", "handoff", "limited"]);
        let mut content = Content::of_bytes("hello");
        content.target = Some((*self.rng.pick(&DESTINATIONS)).into());
        if route != "handoff" && self.rng.chance(200) {
            content.attributes.insert("recipients".to_owned(), "3".to_owned());
        }
        let now = self.engine.clock().now();
        let later =
            |rng: &mut Rng, low, high| now.plus(std::time::Duration::from_millis(rng.between(low, high)));
        NewMessage {
            lane: *self.rng.pick(&Lane::ALL),
            due_at: self.rng.chance(400).then(|| later(&mut self.rng, 0, 20_000)),
            expires_at: self.rng.chance(250).then(|| later(&mut self.rng, 500, 30_000)),
            attempts: *self.rng.pick(&[0, 0, 0, 1, 4]),
            ..NewMessage::new(route, content)
        }
    }

    /// A batch without keys: what isn't answered for is nobody's loss.
    async fn send(&mut self) {
        let batch: Vec<NewMessage> = (0..self.rng.between(1, 4)).map(|_| self.message()).collect();
        if let Ok(answers) = self.engine.accept(batch).await {
            answers.iter().for_each(|answer| self.acked(answer));
        }
    }

    /// A message that is tried before the caller's eyes, within the process that carries it.
    async fn wait_for_one(mut self) {
        let pause = self.rng.between(0, 20_000);
        self.engine.clock().sleep(std::time::Duration::from_millis(pause)).await;
        if look(&self.world).healed {
            return;
        }
        let _calling = Calling::begin(&self.world);
        let message = self.message();
        let Ok((answer, waiter)) = self.engine.accept_now(message).await else { return };
        self.acked(&answer);
        let Some(waiter) = waiter.filter(|_| self.rng.chance(800)) else { return };
        if let Some(settled) = waiter.settled().await
            && matches!(settled.state, State::Claimed(_))
        {
            look(&self.world).violate(|| format!("{} was said to be settled and is not", settled.id));
        }
    }

    /// A key, said again until it is answered for, then early, then late, then with another content.
    async fn send_with_key(&mut self) {
        let key = format!("key-{}", self.rng.between(0, 3));
        let message = NewMessage {
            key: Some(key.as_str().into()),
            attempts: 0,
            ..NewMessage::new("retry", Content::of_bytes("the same each time"))
        };
        for _ in 0..self.rng.between(1, 3) {
            let mut answers = self.insist(message.clone()).await;
            let Some(id) = answers.pop().and_then(|answer| id_of(&answer)) else { continue };
            {
                let mut world = look(&self.world);
                world.acked.insert(id.clone());
                let first = world.keys.entry(key.clone()).or_insert_with(|| id.clone()).clone();
                if first != id {
                    world.violate(|| format!("{key} is {first} and {id}"));
                }
            }
            let pause = self.rng.between(0, 30_000);
            self.engine.clock().sleep(std::time::Duration::from_millis(pause)).await;
        }
        let other = NewMessage { content: Content::of_bytes("another"), ..message };
        let answers = self.insist(other).await;
        if !matches!(answers.first(), Some(Accepted::Conflict(_)) | None) {
            look(&self.world)
                .violate(|| format!("another content under {key} was answered with {answers:?}"));
        }
    }

    /// An operator does something to a message.
    async fn click(&mut self) {
        let ids: Vec<MessageId> = {
            let world = look(&self.world);
            let mut ids: Vec<MessageId> = world.mirror.keys().cloned().collect();
            ids.sort();
            ids
        };
        if ids.is_empty() {
            return;
        }
        for _ in 0..self.rng.between(1, 4) {
            let id = self.rng.pick(&ids).clone();
            let action = *self.rng.pick(&[
                Action::Retry,
                Action::Cancel,
                Action::Cancel,
                Action::Dismiss,
                Action::Restore,
            ]);
            let _ = self.engine.operate(&id, action, &"operator".into()).await;
        }
    }

    async fn pause_for_a_while(&mut self) {
        let scope = *self.rng.pick(&[Scope::Route, Scope::Destination]);
        let name = match scope {
            Scope::Route => *self.rng.pick(&["retry", "hold", "limited"]),
            _ => *self.rng.pick(&DESTINATIONS),
        };
        let actor = "operator".into();
        let _ = self.engine.pause(scope, name, &actor).await;
        let pause = self.rng.between(1_000, 30_000);
        self.engine.clock().sleep(std::time::Duration::from_millis(pause)).await;
        let _ = self.engine.resume(scope, name, &actor).await;
    }

    pub(crate) async fn insist(&mut self, message: NewMessage) -> Vec<Accepted> {
        for _ in 0..40 {
            if let Ok(answers) = self.engine.accept(vec![message.clone()]).await {
                return answers;
            }
            self.engine.clock().sleep(std::time::Duration::from_millis(300)).await;
        }
        Vec::new()
    }

    pub(crate) fn acked(&self, answer: &Accepted) {
        let mut world = look(&self.world);
        world.figures.accepted += u64::from(matches!(answer, Accepted::New(_)));
        world.acked.extend(id_of(answer));
    }
}

pub(crate) fn id_of(answer: &Accepted) -> Option<MessageId> {
    match answer {
        Accepted::New(id) | Accepted::Duplicate(id) | Accepted::Reentered(id) | Accepted::Conflict(id) => {
            Some(id.clone())
        }
        Accepted::NoRoute => None,
    }
}
