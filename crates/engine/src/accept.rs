//! Takes messages over: stored first, answered then.

use async_trait::async_trait;
use redeliver_core::accept::{Known, NewMessage, Repeat, Source, admit, repeat};
use redeliver_core::change::NewRow;
use redeliver_core::event::Kind;
use redeliver_core::planted::{self, Bug};
use redeliver_core::{Event, Route, Timestamp};

use crate::engine::Engine;
use crate::intake::{Accepted, Sink};
use crate::store::{Applied, ClaimKind, Inserted, StoreError};

/// How often a message that keeps changing under our hands is looked at again.
const LOOKS_MAX: usize = 8;

#[async_trait]
impl Sink for Engine {
    async fn accept(&self, batch: Vec<NewMessage>) -> Result<Vec<Accepted>, StoreError> {
        let now = self.clock.now();
        let mut answers: Vec<Accepted> = vec![Accepted::NoRoute; batch.len()];
        let mut rows = Vec::with_capacity(batch.len());
        let mut heads = Vec::with_capacity(batch.len());
        for (index, new) in batch.into_iter().enumerate() {
            let Some(line) = self.lines.get(&new.route) else { continue };
            let source = new.source;
            let row = admit(new, &line.route, self.clock.message_id(now), None, now);
            // Only a row with a key can turn out to be known, and then it is needed again.
            let again = row.message.key.is_some().then(|| row.clone());
            heads.push(Head { index, source, again, event: Event::of(&row.message, accepted(&row), now) });
            rows.push(row);
        }
        if planted::is(Bug::AcksWithoutStoring) && now.as_ms() % 7 == 0 {
            rows.pop();
        }
        let mut inserted = match self.store.insert(rows).await {
            Err(_) if planted::is(Bug::AcksBeforeCommit) => Vec::new(),
            answered => answered?,
        }
        .into_iter();
        for head in heads {
            let index = head.index;
            answers[index] = self.answer(head, inserted.next().unwrap_or(Inserted::New), now).await?;
        }
        Ok(answers)
    }
}

struct Head {
    index: usize,
    source: Source,
    again: Option<NewRow>,
    event: Event,
}

fn accepted(row: &NewRow) -> Kind {
    match &row.message.state {
        redeliver_core::State::Dead { reason, .. } => Kind::Dead { reason: *reason },
        _ => Kind::Accepted,
    }
}

impl Engine {
    /// Keeps one row, whatever state it begins in.
    pub(crate) async fn accept_row(
        &self,
        row: NewRow,
        source: Source,
        now: Timestamp,
    ) -> Result<Accepted, StoreError> {
        let again = row.message.key.is_some().then(|| row.clone());
        let event = Event::of(&row.message, accepted(&row), now);
        let inserted = self.store.insert(vec![row]).await?.pop().unwrap_or(Inserted::New);
        self.answer(Head { index: 0, source, again, event }, inserted, now).await
    }

    /// What the store's word on a row means for whoever brought it.
    async fn answer(&self, head: Head, inserted: Inserted, now: Timestamp) -> Result<Accepted, StoreError> {
        match inserted {
            Inserted::New => {
                // What was dead on arrival, or is being tried already, is not to be claimed; then this is one look too many.
                if let Some(line) = self.lines.get(&head.event.route) {
                    line.wake.at(head.event.lane, ClaimKind::Trusted, head.event.due_at);
                }
                self.observer.observe(&head.event);
                Ok(Accepted::New(head.event.id))
            }
            Inserted::Known(known) => match head.again {
                Some(row) => self.say_again(*known, row, head.source, now).await,
                None => Ok(Accepted::Duplicate(known.id)),
            },
        }
    }

    /// Works out what a repeated key means, and writes it if it means anything.
    async fn say_again(
        &self,
        mut known: Known,
        row: NewRow,
        source: Source,
        now: Timestamp,
    ) -> Result<Accepted, StoreError> {
        let Some(route) = self.route(&row.message.route) else { return Ok(Accepted::NoRoute) };
        for _ in 0..LOOKS_MAX {
            let id = known.id.clone();
            match repeat(&known, row.clone(), source, route, now) {
                Repeat::Duplicate => {
                    self.observer.observe(&Event { id: id.clone(), ..self.duplicate(&row, now) });
                    return Ok(Accepted::Duplicate(id));
                }
                Repeat::Conflict => return Ok(Accepted::Conflict(id)),
                Repeat::Reenters(change) => {
                    let (event, after) = (change.event.clone(), change.message.clone());
                    match self.store.apply(vec![*change]).await?.pop() {
                        Some(Applied::Superseded(current)) => known.message = current.map(|message| *message),
                        Some(Applied::Applied | Applied::AlreadyMine) | None => {
                            self.observer.observe(&event);
                            self.wake_for(&after);
                            return Ok(Accepted::Reentered(id));
                        }
                    }
                }
                Repeat::Revives(revived) => {
                    let event = Event::of(&revived.message, Kind::Reentered, now);
                    let after = revived.message.clone();
                    match self.store.insert(vec![*revived]).await?.pop() {
                        Some(Inserted::Known(newer)) => known = *newer,
                        Some(Inserted::New) | None => {
                            self.observer.observe(&event);
                            self.wake_for(&after);
                            return Ok(Accepted::Reentered(id));
                        }
                    }
                }
            }
        }
        Err(StoreError::Unavailable(format!(
            "message {} keeps changing while it is accepted again",
            known.id
        )))
    }

    fn duplicate(&self, row: &NewRow, now: Timestamp) -> Event {
        Event::of(&row.message, Kind::Duplicate, now)
    }

    /// The route of a message, or an error that names it: the config no longer knows the message's route.
    pub(crate) fn route_of(&self, name: &str) -> Result<&Route, StoreError> {
        self.route(name).ok_or_else(|| StoreError::Unfit(format!("no route is named {name}")))
    }
}
