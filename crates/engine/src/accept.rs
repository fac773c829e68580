//! Takes messages over: stored first, answered then.

use async_trait::async_trait;
use redeliver_core::accept::{Known, NewMessage, Repeat, Source, admit, repeat};
use redeliver_core::change::NewRow;
use redeliver_core::event::Kind;
use redeliver_core::planted::{self, Bug};
use redeliver_core::report::Report;
use redeliver_core::{Event, Message, Route, State, Timestamp};

use crate::engine::Engine;
use crate::intake::{Accepted, Sink, Told};
use crate::store::{Applied, Inserted, StoreError};

/// How often a message that keeps changing under our hands is looked at again.
const LOOKS_MAX: usize = 8;

#[async_trait]
impl Sink for Engine {
    async fn accept(&self, batch: Vec<NewMessage>) -> Result<Vec<Accepted>, StoreError> {
        let answers = self.accept_and_tell(batch).await?;
        Ok(answers.into_iter().map(|(accepted, _)| accepted).collect())
    }

    async fn report(&self, batch: Vec<Report>) -> Result<Vec<Told>, StoreError> {
        self.take_reports(batch).await
    }
}

impl Engine {
    /// Takes a batch, with an answer for each in order; and each message that is new, as it was written.
    pub async fn accept_and_tell(
        &self,
        batch: Vec<NewMessage>,
    ) -> Result<Vec<(Accepted, Option<Message>)>, StoreError> {
        let now = self.clock.now();
        let mut answers = vec![(Accepted::NoRoute, None); batch.len()];
        let mut rows = Vec::with_capacity(batch.len());
        let mut kept = Vec::with_capacity(batch.len());
        for (index, new) in batch.into_iter().enumerate() {
            // The rows of an application's table are the application's to write.
            let Some(line) = self.lines.get(&new.route).filter(|line| line.route.table.is_none()) else {
                continue;
            };
            let source = new.source;
            let row = admit(new, &line.route, self.clock.message_id(now), None, now);
            kept.push((index, source, row.clone()));
            rows.push(row);
        }
        if planted::is(Bug::AcksWithoutStoring) && now.as_ms() % 7 == 0 {
            rows.pop();
        }
        let answered = self.store.insert(rows).await;
        if let Err(error) = &answered {
            self.life.accept_failed(error, self.clock.uptime());
        }
        let mut inserted = match answered {
            Err(_) if planted::is(Bug::AcksBeforeCommit) => Vec::new(),
            answered => answered?,
        }
        .into_iter();
        for (index, source, row) in kept {
            let inserted = inserted.next().unwrap_or(Inserted::New);
            answers[index] = self.answer(row, source, inserted, now).await?;
        }
        Ok(answers)
    }

    /// Keeps one row, whatever state it begins in.
    pub(crate) async fn accept_row(
        &self,
        row: NewRow,
        source: Source,
        now: Timestamp,
    ) -> Result<Accepted, StoreError> {
        let inserted = self.store.insert(vec![row.clone()]).await?.pop().unwrap_or(Inserted::New);
        Ok(self.answer(row, source, inserted, now).await?.0)
    }

    /// What the store's word on a row means for whoever brought it.
    async fn answer(
        &self,
        row: NewRow,
        source: Source,
        inserted: Inserted,
        now: Timestamp,
    ) -> Result<(Accepted, Option<Message>), StoreError> {
        match inserted {
            Inserted::New => {
                self.tell_new(&row.message, now);
                Ok((Accepted::New(row.message.id.clone()), Some(row.message)))
            }
            Inserted::Known(known) => Ok((self.say_again(*known, row, source, now).await?, None)),
        }
    }

    /// Reports a message that was just stored, and wakes its route.
    fn tell_new(&self, message: &Message, now: Timestamp) {
        let kind = match &message.state {
            State::Dead { reason, .. } => Kind::Dead { reason: *reason },
            _ => Kind::Accepted,
        };
        self.observer.observe(&Event::of(message, kind, now));
        self.wake_for(message);
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
        let mut content = None;
        for _ in 0..LOOKS_MAX {
            let id = known.id.clone();
            // Set if the message was pruned meanwhile: the store says what is left of it.
            let mut is_gone = false;
            match repeat(&known, content.as_ref(), row.clone(), source, route, now) {
                Repeat::Duplicate => {
                    self.observer.observe(&Event { id: id.clone(), ..self.duplicate(&row, now) });
                    return Ok(Accepted::Duplicate(id));
                }
                Repeat::Conflict => return Ok(Accepted::Conflict(id)),
                Repeat::Apart(apart) => {
                    let message = apart.message.clone();
                    self.store.insert(vec![*apart]).await?;
                    self.tell_new(&message, now);
                    return Ok(Accepted::New(message.id));
                }
                Repeat::DependsOnContent => {
                    content = self.store.content(id).await?;
                    is_gone = content.is_none();
                }
                Repeat::Reenters(change) => {
                    let (event, after) = (change.event.clone(), change.message.clone());
                    match self.store.apply(vec![*change]).await?.pop() {
                        Some(Applied::Superseded(Some(current))) => {
                            (known.message, content) = (Some(*current), None);
                        }
                        Some(Applied::Superseded(None)) => is_gone = true,
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
                        Some(Inserted::Known(newer)) => (known, content) = (*newer, None),
                        Some(Inserted::New) | None => {
                            self.observer.observe(&event);
                            self.wake_for(&after);
                            return Ok(Accepted::Reentered(id));
                        }
                    }
                }
            }
            if is_gone {
                match self.store.insert(vec![row.clone()]).await?.pop() {
                    Some(Inserted::Known(newer)) => (known, content) = (*newer, None),
                    Some(Inserted::New) | None => {
                        self.tell_new(&row.message, now);
                        return Ok(Accepted::New(row.message.id));
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
