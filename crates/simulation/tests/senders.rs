//! A sender of what was handed off, and the gates before it: nothing passes a gate that nobody could look at, and what finds
//! its destination busy waits for its turn.
#![allow(clippy::unwrap_used, reason = "that's how a test fails")]

use std::collections::{BTreeMap, HashMap};
use std::pin::pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use async_trait::async_trait;
use redeliver_core::accept::{NewMessage, admit};
use redeliver_core::gate::Scope;
use redeliver_core::{Change, Content, Message, MessageId, Name, Outcome, Route, State, Timestamp};
use redeliver_engine::clock::{Clock, ManualClock};
use redeliver_engine::emit::Silence;
use redeliver_engine::intake::{Accepted, Sink};
use redeliver_engine::memory::MemoryStore;
use redeliver_engine::sender::{Desk, Handed, Pace, Sender, Taken};
use redeliver_engine::stop::{Stop, Stopper, stop_pair};
use redeliver_engine::store::{Applied, StoreError};
use redeliver_engine::transport::{Envelope, Transport};
use redeliver_engine::{Engine, Line, Settings};
use redeliver_simulation::clock::{SimClock, SimHandle};
use redeliver_simulation::stage::route;
use redeliver_simulation::store::{FaultyStore, StoreFaults};
use redeliver_simulation::world::{SharedWorld, World, look};

const STEP: Duration = Duration::from_millis(50);

/// A table whose every row was handed off, and what was written of them.
#[derive(Default)]
struct Rows(Mutex<Vec<Message>>);

#[async_trait]
impl Desk for Rows {
    fn read(&self, content: &Content) -> Result<Handed, String> {
        let id: MessageId = String::from_utf8_lossy(&content.bytes).parse()?;
        Ok(Handed { id, attempt: None })
    }

    async fn content(&self, _: &MessageId) -> Result<Result<Content, Outcome>, StoreError> {
        Ok(Ok(Content::of_bytes("hello")))
    }

    async fn take(&self, handed: &Handed, now: Timestamp, _: Timestamp) -> Result<Taken, StoreError> {
        let new = NewMessage::new("story", Content::of_bytes("hello"));
        let message = admit(new, &route(), handed.id.clone(), None, now).message;
        Ok(Taken::Ours(Box::new(Message {
            state: State::HandedOff { since: now, report_by: None },
            ..message
        })))
    }

    async fn record(&self, change: Change) -> Result<Applied, StoreError> {
        self.0.lock().unwrap().push(change.message);
        Ok(Applied::Applied)
    }
}

/// Takes two seconds for each.
struct Slow(Arc<ManualClock>);

#[async_trait]
impl Transport for Slow {
    async fn carry(&self, _: &Envelope<'_>, _: Duration) -> Outcome {
        self.0.sleep(Duration::from_secs(2)).await;
        Outcome::Delivered { receipt: None }
    }

    fn destination(&self, _: &Envelope<'_>) -> Name {
        "relay".into()
    }
}

struct Place {
    engine: Arc<Engine>,
    clock: Arc<ManualClock>,
    rows: Arc<Rows>,
    /// The store is away until this is healed.
    world: SharedWorld,
    _stopper: Stopper,
    stop: Stop,
}

impl Place {
    fn new(route: Route) -> Self {
        let clock = ManualClock::at(Timestamp::from_ms(1_000_000));
        let slow: Arc<dyn Transport> = Arc::new(Slow(Arc::clone(&clock)));
        let line = Line::new(route, &HashMap::from([("stage".into(), slow)]), Vec::new()).unwrap();
        let world = World::new(1, BTreeMap::new());
        let away = FaultyStore {
            inner: Arc::new(MemoryStore::default()),
            world: Arc::clone(&world),
            clock: SimHandle(SimClock::new(1)),
            process: 1,
            faults: StoreFaults {
                absent: 1_000,
                answer_lost: 0,
                slow: 0,
                slow_ms_max: 1,
                unheard_ms: (0, 0),
            },
        };
        let engine =
            Engine::new(Arc::new(away), clock.clone(), Arc::new(Silence), Settings::default(), vec![line]);
        let (stopper, stop) = stop_pair();
        let engine = Arc::new(engine);
        Self { engine, clock, rows: Arc::default(), world, _stopper: stopper, stop }
    }

    fn sender(&self) -> Sender {
        let pace = Pace { lease: Duration::from_secs(60), send_timeout: Duration::from_secs(20) };
        let slow: Arc<dyn Transport> = Arc::new(Slow(Arc::clone(&self.clock)));
        let desk: Arc<dyn Desk> = self.rows.clone();
        Sender::new(Arc::clone(&self.engine), "story", (desk, slow), pace, self.stop.clone()).unwrap()
    }

    /// Has a sender send so many at the same time, and says how each of them stands.
    fn send(&self, sender: &Sender, count: usize) -> Vec<Message> {
        self.rows.0.lock().unwrap().clear();
        let ids: Vec<MessageId> = (0..count).map(|_| self.clock.message_id(self.clock.now())).collect();
        let brought = |id: &MessageId| NewMessage::new("story", Content::of_bytes(id.to_string()));
        let mut sending: Vec<_> = ids.iter().map(|id| Box::pin(sender.accept(vec![brought(id)]))).collect();
        for _ in 0..2_000 {
            sending.retain_mut(|one| match one.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
                Poll::Ready(answer) => {
                    assert!(matches!(answer.as_deref(), Ok([Accepted::New(_)])), "{answer:?}");
                    false
                }
                Poll::Pending => true,
            });
            self.clock.advance(STEP);
        }
        assert!(sending.is_empty(), "all of them have come to their ends");
        self.rows.0.lock().unwrap().clone()
    }
}

#[test]
fn what_finds_its_destination_busy_waits_for_its_turn_and_is_not_thrown_back() {
    let place = Place::new(Route { destination_concurrency_max: Some(1), ..route() });
    look(&place.world).healed = true;
    let sent = place.send(&place.sender(), 3);
    let states: Vec<&str> = sent.iter().map(|message| message.state.name()).collect();
    assert_eq!(states, ["delivered"; 3]);
}

#[test]
fn what_has_waited_for_as_long_as_its_lock_allows_goes_back() {
    let place = Place::new(Route { destination_concurrency_max: Some(1), ..route() });
    look(&place.world).healed = true;
    let sent = place.send(&place.sender(), 30);
    let delivered = sent.iter().filter(|message| matches!(message.state, State::Delivered { .. })).count();
    assert!((15..=20).contains(&delivered), "{delivered} of two seconds each in forty seconds");
    assert_eq!(sent.len(), 30);
    assert!(sent.iter().all(|message| message.attempts <= 1));
}

#[test]
fn a_sender_that_has_never_read_the_gates_sends_nothing() {
    let place = Place::new(route());
    let sender = place.sender();
    let sent = place.send(&sender, 1);
    assert_eq!((sent[0].state.name(), sent[0].attempts), ("waiting", 0), "there may be a pause");
    look(&place.world).healed = true;
    let ann = "ann".into();
    let pausing = pin!(place.engine.pause(Scope::Route, "story", &ann));
    assert!(pausing.poll(&mut Context::from_waker(Waker::noop())).is_ready());
    assert_eq!(place.send(&sender, 1)[0].state.name(), "waiting", "there is one");
}
