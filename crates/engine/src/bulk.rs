//! Does what people want done to many messages: so many a second, one instance at a time, going on where another left off.

use std::sync::Arc;
use std::time::Duration;

use redeliver_core::bulk::{Bulk, Fared, STAGES, Standing, Total, Verdict, fared, judge};
use redeliver_core::{Message, MessageId, Timestamp};

use crate::engine::Engine;
use crate::operate::OperateError;
use crate::search::Search;
use crate::stop::Stop;
use crate::store::StoreError;

/// How often it goes on; a second's worth of messages each time.
const INTERVAL: Duration = Duration::from_secs(1);

/// How long nobody else goes on with one that somebody works on.
const HELD_FOR: Duration = Duration::from_secs(10);

/// Bulk operations that are looked at together.
const LOOKED_AT_LEN: usize = 100;

/// Messages between two notes of how far it has come, at most.
const BATCH_LEN: usize = 50;

/// Messages that are counted before anything is done, at most.
pub const COUNTED_MAX: usize = 10_000;

/// Messages that are listed at once, and how often, at most.
const PAGE_LEN: usize = 500;
const PAGES_MAX: usize = 40;

/// What doing it would mean.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Forecast {
    /// How many messages fit.
    pub count: usize,
    /// Whether there may be more.
    pub is_least: bool,
    /// When the oldest of them was accepted.
    pub oldest_at: Option<Timestamp>,
    /// When the newest of them was accepted.
    pub newest_at: Option<Timestamp>,
    /// Tries that they may take, at most.
    pub attempts_max: u64,
}

impl Engine {
    /// Goes on with bulk operations until told to stop.
    pub async fn bulks(self: Arc<Self>, mut stop: Stop) {
        while !stop.is_stopped() {
            if let Err(error) = self.bulk_tick().await {
                self.observer.store_failed("going on with a bulk operation", &error);
            }
            tokio::select! {
                biased;
                () = stop.stopped() => {}
                () = self.clock.sleep(INTERVAL) => {}
            }
        }
    }

    /// Goes on with each bulk operation that nobody else works on, by a second's worth.
    pub async fn bulk_tick(&self) -> Result<(), StoreError> {
        let mut after = None;
        loop {
            let bulks = self.store.running_bulks(after, LOOKED_AT_LEN).await?;
            after = bulks.last().map(|bulk| bulk.id.clone());
            let is_last = bulks.len() < LOOKED_AT_LEN;
            for bulk in bulks {
                let is_free =
                    bulk.held.is_none_or(|(who, until)| who == self.instance || until <= self.clock.now());
                if is_free {
                    self.go_on(bulk).await?;
                }
            }
            if is_last {
                return Ok(());
            }
        }
    }

    /// Counts what an operation would be done to, and changes nothing.
    pub async fn forecast(&self, bulk: &Bulk) -> Result<Forecast, StoreError> {
        let (mut forecast, mut after) = (Forecast::default(), None);
        for _ in 0..PAGES_MAX {
            let (messages, next) = self.next_of(bulk, after, PAGE_LEN).await?;
            for message in messages.iter().filter(|message| bulk.fits(message)) {
                forecast.count += 1;
                let accepted_at = message.created_at.known();
                forecast.oldest_at = forecast.oldest_at.into_iter().chain(accepted_at).min();
                forecast.newest_at = forecast.newest_at.into_iter().chain(accepted_at).max();
                let tries = self.route(&message.route).map_or(0, |route| route.max_attempts(message));
                forecast.attempts_max += u64::from(tries.saturating_sub(message.attempts_before).max(1));
            }
            after = next;
            if after.is_none() {
                return Ok(forecast);
            }
            if forecast.count >= COUNTED_MAX {
                break;
            }
        }
        Ok(Forecast { is_least: true, ..forecast })
    }

    async fn go_on(&self, mut bulk: Bulk) -> Result<(), StoreError> {
        let is_mine = bulk.held.is_some_and(|(who, _)| who == self.instance);
        // Nobody else begins once this is written.
        if !is_mine && !self.note_bulk(&mut bulk).await? {
            return Ok(());
        }
        if bulk.total.is_none() {
            let Forecast { count, is_least, .. } = self.forecast(&bulk).await?;
            bulk.total = Some(Total { count: count as u64, is_least });
            // Counting may outlast the hold: whoever went on meanwhile does.
            if !self.note_bulk(&mut bulk).await? {
                return Ok(());
            }
        }
        let mut left = bulk.rate_per_s.max(1) as usize;
        while left > 0 && bulk.standing == Standing::Running {
            if bulk.room() == 0 {
                match self.look_at_stage(&bulk).await? {
                    Verdict::Wait => return self.note_bulk(&mut bulk).await.map(drop),
                    Verdict::GoOn => {
                        bulk.stage += 1;
                        bulk.trial.clear();
                    }
                    Verdict::Stop { failed } => {
                        let why = format!("{failed} of {} messages failed again", bulk.trial.len());
                        bulk.standing = Standing::Stopped;
                        bulk.why = Some(why.into());
                    }
                }
            } else {
                let len = left.min(BATCH_LEN).min(bulk.room());
                left -= self.batch(&mut bulk, len).await?.max(1).min(left);
            }
            if !self.note_bulk(&mut bulk).await? {
                return self.give_way(bulk).await;
            }
        }
        Ok(())
    }

    /// A person said pause or stop in between: their word holds, and so does what was done by then.
    async fn give_way(&self, bulk: Bulk) -> Result<(), StoreError> {
        let theirs = self.store.bulk(bulk.id.clone()).await?;
        if let Some(theirs) = theirs.filter(|theirs| theirs.held.is_none()) {
            let standing = if bulk.standing.has_ended() { bulk.standing } else { theirs.standing };
            let both = Bulk { standing, version: theirs.version, held: None, ..bulk };
            self.store.put_bulk(both, None).await?;
        }
        Ok(())
    }

    /// Does it to the next few. A crash behind it repeats them, and finds that they no longer fit.
    async fn batch(&self, bulk: &mut Bulk, len: usize) -> Result<usize, StoreError> {
        let (messages, next) = self.next_of(bulk, bulk.after.clone(), len).await?;
        for message in &messages {
            if !bulk.fits(message) {
                bulk.skipped += 1;
                continue;
            }
            match self.operate(&message.id, bulk.action, &bulk.actor).await {
                Ok(after) => bulk.note(&after),
                // Also where the config no longer has its route.
                Err(
                    OperateError::Unfit(_)
                    | OperateError::NoMessage(_)
                    | OperateError::Store(StoreError::Unfit(_)),
                ) => bulk.skipped += 1,
                Err(OperateError::Store(error)) => return Err(error),
            }
        }
        if next.is_none() {
            bulk.standing = Standing::Done;
        }
        bulk.after = next;
        Ok(messages.len())
    }

    /// The next messages, and behind which it goes on; `None` if these were the last.
    async fn next_of(
        &self,
        bulk: &Bulk,
        after: Option<Arc<str>>,
        len: usize,
    ) -> Result<(Vec<Message>, Option<Arc<str>>), StoreError> {
        if bulk.which.ids.is_empty() {
            let search = Search::of(bulk, self.clock.now());
            let after = after.and_then(|after| after.parse().ok());
            let found = search.find(self, after, len).await?;
            return Ok((found.messages, found.next.map(|next| next.to_string().into())));
        }
        let from: usize = after.and_then(|after| after.parse().ok()).unwrap_or(0);
        let mut messages = Vec::new();
        for id in bulk.which.ids.iter().skip(from).take(len) {
            let found = match id.parse::<MessageId>() {
                Ok(id) => self.store.get(id).await?,
                Err(_) => None,
            };
            let is_theirs = |message: &Message| {
                bulk.which.workspace.as_ref().is_none_or(|workspace| *workspace == message.workspace)
            };
            messages.extend(found.filter(is_theirs));
        }
        let next = from + len;
        Ok((messages, (next < bulk.which.ids.len()).then(|| next.to_string().into())))
    }

    async fn look_at_stage(&self, bulk: &Bulk) -> Result<Verdict, StoreError> {
        let mut all: Vec<Fared> = Vec::with_capacity(STAGES.iter().sum());
        for (id, generation) in &bulk.trial {
            let message = match id.parse::<MessageId>() {
                Ok(id) => self.store.get(id).await?,
                Err(_) => None,
            };
            all.push(fared(message.as_ref(), *generation));
        }
        Ok(judge(&all))
    }

    /// Notes how far it has come; `false` if somebody else wrote first.
    async fn note_bulk(&self, bulk: &mut Bulk) -> Result<bool, StoreError> {
        let now = self.clock.now();
        bulk.worked(now, HELD_FOR);
        bulk.held = (!bulk.standing.has_ended()).then(|| (self.instance, now.plus(HELD_FOR)));
        let is_noted = self.store.put_bulk(bulk.clone(), None).await?;
        bulk.version += 1;
        Ok(is_noted)
    }
}
