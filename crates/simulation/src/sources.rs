//! Inputs of intakes whose names clash: ids that are unique within their queue at best, places that two sources both have,
//! and what must become of each.

use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use bytes::Bytes;
use redeliver_core::accept::{NewMessage, Source};
use redeliver_core::change::NewRow;
use redeliver_core::content::ContentSource;
use redeliver_core::event::Kind;
use redeliver_core::report::Report;
use redeliver_core::{Change, Content, Message, MessageId, identity};
use redeliver_engine::Engine;
use redeliver_engine::bring::{Bring, Input};
use redeliver_engine::intake::{Accepted, Sink, Told};
use redeliver_engine::store::StoreError;

use crate::run::{Client, id_of};
use crate::world::{SharedWorld, look};

/// What is known of inputs and of the messages that they became.
#[derive(Default)]
pub struct Sources {
    /// What each message says now.
    payloads: HashMap<MessageId, Bytes>,
    /// The input that each message was made of.
    origins: HashMap<MessageId, String>,
    /// What was read from each place of each source.
    places: HashMap<String, BTreeSet<&'static str>>,
}

impl Sources {
    /// A row was written.
    pub fn inserted(&mut self, row: &NewRow) {
        if let ContentSource::Given(content) = &row.content {
            self.payloads.insert(row.message.id.clone(), content.bytes.clone());
        }
    }

    /// A message was changed; says what is wrong with that, if anything.
    pub fn applied(&mut self, before: &Message, change: &Change) -> Option<&'static str> {
        let content = change.content.as_ref()?;
        let old = self.payloads.insert(before.id.clone(), content.bytes.clone());
        let is_other = old.is_some_and(|old| old != content.bytes);
        let comes_back = matches!(change.event.kind, Kind::Reentered);
        (is_other && comes_back && before.state.ended_at().is_none())
            .then_some("another message replaced one that was under way")
    }

    /// An answer named a message for an input; says what is wrong with that, if anything.
    fn became(&mut self, input: &str, id: &MessageId) -> Option<String> {
        let first = self.origins.entry(id.clone()).or_insert_with(|| input.to_owned());
        (first != input).then(|| format!("{id} is {first}, and was the answer to {input}"))
    }
}

/// Where failed messages go back to.
const QUEUES: [&str; 2] = ["here", "there"];
/// Intakes of streams that have the same name on two servers.
const INTAKES: [&str; 2] = ["east", "west"];
/// What streams hold. Nobody can read the last.
const ENTRIES: [&str; 3] = ["one", "two", "!garbage"];

impl Client {
    /// A broker brings a message, and brings it again when its handler failed. Now and then somebody else calls theirs the
    /// same.
    pub(crate) async fn broker(&mut self) {
        let (queue, id) = (*self.rng.pick(&QUEUES), format!("m-{}", self.rng.between(0, 1)));
        let name = format!("message {id} of queue {queue}");
        let payload = if self.rng.chance(250) { "another" } else { "from a broker" };
        let redelivered = self.rng.chance(200);
        let content = Content { target: Some(queue.into()), ..Content::of_bytes(payload) };
        let message = NewMessage {
            key: Some(identity::of_queue(queue, &id)),
            attempts: self.rng.between(1, 3) as u32,
            max_attempts: Some(4),
            source: Source::Broker { redelivered },
            ..NewMessage::new("retry", content)
        };
        // What the known message says, its fence, and whether it has ended.
        let standing = |world: &SharedWorld| {
            let world = look(world);
            let message = world.mirror.get(world.keys.get(&name)?)?;
            let says_the_same = world.sources.payloads.get(&message.id)? == payload.as_bytes();
            Some((says_the_same, message.fence, message.state.ended_at().is_some()))
        };
        let before = standing(&self.world);
        let answers = self.insist(message).await;
        let Some(answer) = answers.first() else { return };
        let after = standing(&self.world);
        let unchanged = before.filter(|_| before == after);
        let wrong = match (answer, unchanged) {
            (Accepted::Duplicate(_), Some((_, _, true))) if !redelivered => {
                Some("came back by its source and was dropped")
            }
            (Accepted::Duplicate(_), Some((false, ..))) => Some("was dropped for one with other content"),
            (Accepted::Conflict(_), Some((true, ..))) => Some("was said to have other content"),
            (Accepted::NoRoute, _) => Some("has no route"),
            _ => None,
        };
        let mut world = look(&self.world);
        if let Some(wrong) = wrong {
            world.violate(|| format!("{name} {wrong}: {answer:?}"));
        }
        if !matches!(answer, Accepted::Conflict(_))
            && let Some(id) = id_of(answer)
        {
            if let Some(wrong) = world.sources.became(&name, &id) {
                world.violate(|| wrong);
            }
            world.keys.insert(name, id);
        }
        drop(world);
        self.acked(answer);
    }

    /// An intake brings an entry of its stream. Two servers give the same id to different entries, and one that has lost its
    /// data gives an id twice.
    pub(crate) async fn feed(&mut self) {
        let (intake, number) = (*self.rng.pick(&INTAKES), self.rng.between(0, 1));
        let entry = *self.rng.pick(&ENTRIES);
        let place = format!("entry {number} of {intake}");
        look(&self.world).sources.places.entry(place.clone()).or_default().insert(entry);
        let bring = Bring {
            name: intake.into(),
            read: Arc::new(read),
            rejects: "dead".into(),
            bytes_max: 1_000,
            clock: Arc::clone(self.engine.clock()),
        };
        let input = Input {
            bytes: Bytes::from_static(entry.as_bytes()),
            place: identity::of_place("stream", intake, &format!("failed@{number}")),
        };
        let sink = Listening { engine: Arc::clone(&self.engine), last: Mutex::default() };
        bring.bring(&sink, &[input]).await;
        let last = sink.last.lock().unwrap_or_else(PoisonError::into_inner).take();
        let name = format!("{place} ({entry})");
        let mut world = look(&self.world);
        let Some((is_refused, answer)) = last else {
            return world.violate(|| format!("{name} was acknowledged and never brought"));
        };
        let id = match &answer {
            Accepted::New(id) | Accepted::Duplicate(id) | Accepted::Reentered(id) => id.clone(),
            Accepted::Conflict(_) | Accepted::NoRoute => {
                return world.violate(|| format!("{name} was acknowledged and dropped: {answer:?}"));
            }
        };
        let of_this_place = &world.sources.places[&place];
        let has_others = of_this_place.iter().any(|other| *other != entry && !other.starts_with('!'));
        if is_refused && !entry.starts_with('!') && !has_others {
            world.violate(|| format!("{name} was refused, and nothing else has its place"));
        }
        if let Some(wrong) = world.sources.became(&name, &id) {
            world.violate(|| wrong);
        }
        drop(world);
        self.acked(&answer);
    }
}

/// Makes a message of an entry.
fn read(bytes: &[u8]) -> Result<NewMessage, String> {
    match bytes.first() {
        Some(b'!') => Err("nobody can read it".to_owned()),
        _ => Ok(NewMessage::new("retry", Content::of_bytes(bytes.to_vec()))),
    }
}

/// Hears what became of the last message that was brought, and whether that was to be kept as dead.
struct Listening {
    engine: Arc<Engine>,
    last: Mutex<Option<(bool, Accepted)>>,
}

#[async_trait]
impl Sink for Listening {
    async fn accept(&self, batch: Vec<NewMessage>) -> Result<Vec<Accepted>, StoreError> {
        let is_refused = batch.first().is_some_and(|message| message.is_refused);
        let answers = Sink::accept(&*self.engine, batch).await?;
        let answer = answers.first().cloned().map(|answer| (is_refused, answer));
        *self.last.lock().unwrap_or_else(PoisonError::into_inner) = answer;
        Ok(answers)
    }

    async fn report(&self, batch: Vec<Report>) -> Result<Vec<Told>, StoreError> {
        Sink::report(&*self.engine, batch).await
    }
}
