//! An application's own table as a store. Nothing is copied: claims, leases and outcomes stand in the application's rows.
//!
//! A row has no fence but its lock: a claim sets it, and every later write says which one it read. What the
//! application writes itself always wins. What its table has no column for is noted beside it, of few rows.

mod beside;
mod desk;
mod standing;
mod tick;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use redeliver_core::attempt::AttemptRecord;
use redeliver_core::change::NewRow;
use redeliver_core::content::ContentSource;
use redeliver_core::{Change, Content, Lane, Message, MessageId, Timestamp};
use redeliver_engine::store::{
    Applied, ClaimKind, ClaimRef, ClaimRequest, Claims, Count, Filter, Store, StoreError,
};

use crate::adopted::{Due, Judged, Page, Rewrite, Row, Rows, Which};
use crate::mapping::Mapping;
use crate::notes::{Note, Notes};
pub use beside::Beside;
use standing::{Hold, Ids, changed, content, ended_at, fence, letter, message, message_id, micros, shows};
use tick::{Tallies, Tick};

/// One application's table, and what is remembered beside it.
pub struct TableStore {
    mapping: Arc<Mapping>,
    rows: Arc<dyn Rows>,
    notes: Arc<dyn Notes>,
    /// Where word of the dead goes.
    own: Arc<dyn Store>,
    tick: Mutex<Tick>,
    strays: Mutex<Tick>,
    tallies: Arc<Mutex<Tallies>>,
    /// Whoever has to wait for the table to be counted waits for whoever waits already.
    counting: tokio::sync::Mutex<()>,
    holds: Arc<Mutex<HashMap<String, Hold>>>,
}

impl TableStore {
    /// A table's rows as messages. `own` is where everything is kept that is not in the table.
    pub fn new(mapping: Mapping, rows: Arc<dyn Rows>, notes: Arc<dyn Notes>, own: Arc<dyn Store>) -> Self {
        let interval = mapping.retry_interval;
        Self {
            mapping: Arc::new(mapping),
            rows,
            notes,
            own,
            tick: Mutex::new(Tick::every(interval)),
            strays: Mutex::new(Tick::every(interval)),
            tallies: Arc::default(),
            counting: tokio::sync::Mutex::default(),
            holds: Arc::default(),
        }
    }

    /// What the table is called, and what is in it.
    pub fn mapping(&self) -> &Mapping {
        &self.mapping
    }

    fn ids(&self) -> Ids {
        if self.rows.has_number_ids() { Ids::Numbers } else { Ids::Texts }
    }

    fn content_of(&self, row: &Row) -> Content {
        content(&self.mapping, self.ids(), row)
    }

    /// The row's own id, if this is one of this table.
    fn row_id<'a>(&self, id: &'a MessageId) -> Option<&'a str> {
        let MessageId::Row(text) = id else { return None };
        let (table, row) = text.split_once(':')?;
        (table == &*self.mapping.name && self.rows.is_id(row)).then_some(row)
    }

    /// Leases due rows. Between two ticks it takes nothing, and says when the next one is.
    async fn claim(&self, request: ClaimRequest) -> Result<Claims, StoreError> {
        if request.lane != Lane::Medium || request.kind != ClaimKind::Trusted || request.limit == 0 {
            return Ok(Claims::default());
        }
        let by = match lock(&self.tick).begin(request.now) {
            Ok(by) => by,
            Err(next_at) => return Ok(Claims { claimed: Vec::new(), next_due_at: Some(next_at) }),
        };
        let attempts_max = self.mapping.attempts_max;
        let due = Due { by, now: request.now, lease: request.lease, attempts_max, limit: request.limit };
        let mut rows = self.rows.claim(due).await?;
        // RETURNING promises no order.
        rows.sort_by(|a, b| (a.next_attempt_at, &a.id).cmp(&(b.next_attempt_at, &b.id)));
        let next_due_at = match rows.len() < request.limit {
            true => lock(&self.tick).end(request.now),
            false => Some(by),
        };
        let next_due_at = match next_due_at {
            Some(at) => Some(at),
            None => self.rows.next_due_at(attempts_max).await?,
        };
        {
            let mut holds = lock(&self.holds);
            for row in &rows {
                let locked_until = row.locked_until.unwrap_or_default();
                let claim = locked_until.max(0) as u64;
                holds.insert(row.id.clone(), Hold { claim, instance: request.instance, locked_until });
            }
        }
        let messages = self.messages(&rows).await?;
        let claimed = rows.iter().zip(messages);
        let claimed = claimed.filter_map(|(row, message)| Some((message?, self.content_of(row))));
        Ok(Claims { claimed: claimed.collect(), next_due_at })
    }

    async fn next_due_at(&self, lane: Lane) -> Result<Option<Timestamp>, StoreError> {
        match lane {
            Lane::Medium => self.rows.next_due_at(self.mapping.attempts_max).await,
            Lane::Critical | Lane::High | Lane::Low => Ok(None),
        }
    }

    async fn renew(&self, claims: &[ClaimRef], until_at: Timestamp) -> Result<Vec<bool>, StoreError> {
        let ids: Vec<String> =
            claims.iter().map(|claim| self.row_id(&claim.id).unwrap_or_default().to_owned()).collect();
        let wanted: Vec<(String, u64)> =
            ids.iter().cloned().zip(claims.iter().map(|claim| claim.claim)).collect();
        let (mapping, holds) = (Arc::clone(&self.mapping), Arc::clone(&self.holds));
        let judge = move |rows: &[Row]| {
            let mut judged = Judged::default();
            let holds = lock(&holds);
            for (id, claim) in &wanted {
                let row = rows.iter().find(|row| row.id == *id && row.status == mapping.words.retry_queued);
                let row = row.filter(|row| fence(&mapping, row, holds.get(id)) == *claim);
                let Some(row) = row else {
                    judged.answers.push(Applied::Superseded(None));
                    continue;
                };
                let until = row.locked_until.max(Some(micros(until_at)));
                judged.answers.push(Applied::Applied);
                judged
                    .rewrites
                    .push(Rewrite { was: row.clone(), now: Row { locked_until: until, ..row.clone() } });
            }
            judged
        };
        let answers = self.rows.rewrite(ids.clone(), Arc::new(judge)).await?;
        let renewed: Vec<bool> = answers.iter().map(|answer| *answer == Applied::Applied).collect();
        let mut holds = lock(&self.holds);
        for (id, _) in ids.iter().zip(&renewed).filter(|(_, renewed)| **renewed) {
            if let Some(hold) = holds.get_mut(id) {
                hold.locked_until = hold.locked_until.max(micros(until_at));
            }
        }
        Ok(renewed)
    }

    /// Writes changes: what is noted of them and word of the dead first, then the rows, each under its fence.
    async fn apply(&self, changes: Vec<Change>) -> Result<Vec<Applied>, StoreError> {
        self.apply_aside(&changes).await?;
        let ids: Vec<String> = changes
            .iter()
            .map(|change| self.row_id(&change.message.id).unwrap_or_default().to_owned())
            .collect();
        let mut asked: Vec<String> = ids.iter().filter(|id| !id.is_empty()).cloned().collect();
        asked.sort();
        asked.dedup();
        let unfit: Arc<Mutex<Option<StoreError>>> = Arc::default();
        let (mapping, holds, told) = (Arc::clone(&self.mapping), Arc::clone(&self.holds), Arc::clone(&unfit));
        let (ids_of, alone) = (ids.clone(), changes.len() == 1);
        let changes = Arc::new(changes);
        let judged_changes = Arc::clone(&changes);
        let judge = move |rows: &[Row]| {
            let holds = lock(&holds);
            let mut rows: HashMap<&str, Rewrite> = rows
                .iter()
                .map(|row| (row.id.as_str(), Rewrite { was: row.clone(), now: row.clone() }))
                .collect();
            let mut answers = Vec::with_capacity(judged_changes.len());
            for (id, change) in ids_of.iter().zip(judged_changes.iter()) {
                let hold = holds.get(id);
                let Some(row) = rows.get_mut(id.as_str()) else {
                    answers.push(Applied::Superseded(None));
                    continue;
                };
                if fence(&mapping, &row.now, hold) != change.expected_fence {
                    answers.push(match shows(&mapping, &row.now, change) {
                        true => Applied::AlreadyMine,
                        false => Applied::Superseded(message(&mapping, &row.now, None, hold).map(Box::new)),
                    });
                    continue;
                }
                match changed(&mapping, &row.now, change) {
                    Ok(next) => {
                        row.now = next;
                        answers.push(Applied::Applied);
                    }
                    Err(error) => {
                        // Whoever asked for this alone hears why; in a batch, the others must not wait for it.
                        if alone {
                            *lock(&told) = Some(error);
                        }
                        answers
                            .push(Applied::Superseded(message(&mapping, &row.now, None, hold).map(Box::new)));
                    }
                }
            }
            let rewrites = rows.into_values().filter(|row| row.was != row.now).collect();
            Judged { rewrites, answers }
        };
        let answers = self.rows.rewrite(asked, Arc::new(judge)).await?;
        if let Some(error) = lock(&unfit).take() {
            return Err(error);
        }
        let mut holds = lock(&self.holds);
        for ((id, change), answer) in ids.iter().zip(changes.iter()).zip(&answers) {
            // Somebody else's late word ends nothing that is held here.
            let ends =
                |hold: &Hold| !matches!(answer, Applied::Superseded(_)) || change.settles == Some(hold.claim);
            if holds.get(id).is_some_and(ends) {
                holds.remove(id);
            }
        }
        drop(holds);
        if changes.iter().any(|change| change.audit.is_some()) {
            // What a person does is not made to wait for the next tick.
            lock(&self.tick).now();
        }
        Ok(answers)
    }

    /// What changes leave outside of the table, of those that can be written as things stand.
    async fn apply_aside(&self, changes: &[Change]) -> Result<(), StoreError> {
        let leaves = |change: &&Change| {
            change.spawn.is_some()
                || change.audit.is_some()
                || change.attempt.is_some()
                || change.message.losses > 0
                || ended_at(&change.message.state).is_some()
        };
        let leaving: Vec<&Change> = changes.iter().filter(leaves).collect();
        if leaving.is_empty() {
            return Ok(());
        }
        let ids = leaving.iter().filter_map(|change| Some(self.row_id(&change.message.id)?.to_owned()));
        let rows = self.by_ids(ids.collect()).await?;
        let mut notes = self.notes_on(rows.keys()).await?;
        let (mut kept, mut deeds, mut letters) = (Vec::new(), Vec::new(), Vec::new());
        for change in leaving {
            let Some(row) = self.row_id(&change.message.id).and_then(|id| rows.get(id)) else { continue };
            let is_mine = fence(&self.mapping, row, lock(&self.holds).get(&row.id)) == change.expected_fence;
            let next = changed(&self.mapping, row, change).ok().filter(|_| is_mine);
            let Some(next) = next else { continue };
            let id = change.message.id.to_string();
            let mut note = notes.remove(&id).unwrap_or_default();
            let after = &change.message;
            note.generation = after.generation;
            // Whether its publisher vanished or nobody confirmed: the next one may be a repeat, and says so.
            // A try that was reported on is over, and what was in doubt of it says nothing about the next.
            let is_same_try = i64::from(after.attempts) == row.attempts.max(0);
            note.unconfirmed = if is_same_try { after.unconfirmed + after.losses } else { 0 };
            note.attempt = after.next_attempt();
            note.possible_duplicates = after.possible_duplicates;
            note.ended_at_ms = ended_at(&after.state).map(Timestamp::as_ms);
            if let Some(record) = &change.attempt {
                if record.sent_at.is_some() {
                    note.first_sent_at_ms =
                        note.first_sent_at_ms.or(after.first_sent_at.map(Timestamp::as_ms));
                }
                note.add(record);
            }
            kept.push((id, note));
            deeds.extend(change.audit.clone());
            letters.extend(change.spawn.as_deref().map(|spawn| self.letter(spawn, &next, change)));
        }
        if !letters.is_empty() {
            self.own.insert(letters).await?;
        }
        match kept.is_empty() {
            true => Ok(()),
            false => self.notes.keep(kept, deeds).await,
        }
    }

    /// The word of a row's death, which carries what the row says.
    fn letter(&self, spawn: &NewRow, row: &Row, change: &Change) -> NewRow {
        let attributes = match &spawn.content {
            ContentSource::CopyOf { attributes, .. } => attributes.clone(),
            ContentSource::Given(content) => content.attributes.clone(),
        };
        let content = letter(&self.mapping, self.ids(), row, change, attributes);
        NewRow { content: ContentSource::Given(Arc::new(content)), ..spawn.clone() }
    }

    async fn note(&self, id: &MessageId, record: AttemptRecord) -> Result<(), StoreError> {
        if self.row_id(id).is_none() {
            return Ok(());
        }
        let id = id.to_string();
        let mut note = self.notes.recall(vec![id.clone()]).await?.remove(&id).unwrap_or_default();
        note.add(&record);
        self.notes.keep(vec![(id, note)], Vec::new()).await
    }

    async fn lapsed(&self, now: Timestamp, limit: usize) -> Result<Vec<Message>, StoreError> {
        let rows = self.rows.find(Which::Lapsed(now), limit).await?;
        Ok(self.messages(&rows).await?.into_iter().flatten().collect())
    }

    /// Rows that are with their sender for longer than it has to report. None, unless the route says how long that is.
    async fn overdue(&self, now: Timestamp, limit: usize) -> Result<Vec<Message>, StoreError> {
        let Some(within) = self.mapping.report_within.filter(|_| limit > 0) else { return Ok(Vec::new()) };
        let within_ms = i64::try_from(within.as_millis()).unwrap_or(i64::MAX);
        let by = Timestamp::from_ms(now.as_ms().saturating_sub(within_ms));
        let rows = self.rows.find(Which::Overdue(by, now), limit).await?;
        Ok(self.messages(&rows).await?.into_iter().flatten().collect())
    }

    /// Rows that wait and that no claim would take: used up, or without a time. Looked for at each tick.
    async fn stranded(&self, now: Timestamp, limit: usize) -> Result<Vec<Message>, StoreError> {
        if lock(&self.strays).begin(now).is_err() {
            return Ok(Vec::new());
        }
        let mut rows = self.rows.find(Which::Timeless, limit).await?;
        let spent =
            self.rows.find(Which::Spent(self.mapping.attempts_max), limit - rows.len().min(limit)).await?;
        rows.extend(spent.into_iter().filter(|row| row.next_attempt_at.is_some()));
        if rows.len() < limit {
            lock(&self.strays).end(now);
        }
        Ok(self.messages(&rows).await?.into_iter().flatten().collect())
    }

    async fn get(&self, id: &MessageId) -> Result<Option<Message>, StoreError> {
        let Some(row) = self.one(id).await? else { return Ok(None) };
        Ok(self.messages(&[row]).await?.pop().flatten())
    }

    async fn content(&self, id: &MessageId) -> Result<Option<Content>, StoreError> {
        Ok(self.one(id).await?.map(|row| self.content_of(&row)))
    }

    async fn attempts(&self, id: &MessageId) -> Result<Vec<AttemptRecord>, StoreError> {
        if self.row_id(id).is_none() {
            return Ok(Vec::new());
        }
        let id = id.to_string();
        Ok(self
            .notes
            .recall(vec![id.clone()])
            .await?
            .remove(&id)
            .map_or_else(Vec::new, |note| note.records()))
    }

    async fn list(&self, filter: &Filter) -> Result<Vec<Message>, StoreError> {
        let Some(page) = self.page(filter) else { return Ok(Vec::new()) };
        let rows = self.rows.find(Which::Page(page), filter.limit).await?;
        Ok(self.messages(&rows).await?.into_iter().flatten().collect())
    }

    /// Which rows a filter means; `None` if it means none of this table's.
    fn page(&self, filter: &Filter) -> Option<Page> {
        let is_ours = filter.workspace.as_ref().is_none_or(|name| *name == self.mapping.workspace)
            && filter.route.as_ref().is_none_or(|name| *name == self.mapping.route)
            && filter.lane.is_none_or(|lane| lane == Lane::Medium);
        let after = match &filter.after {
            Some(id) => self.row_id(id).map(str::to_owned),
            None => None,
        };
        let (words, due, tried) = standing::asked(&self.mapping, filter)?;
        let key = filter.key.as_deref().map(str::to_owned);
        is_ours.then_some(Page { words, key, after, due, tried })
    }

    /// How many rows stand where, as of a moment ago: counting a large table takes longer than a person waits for a page,
    /// so that it is done beside, by one at a time, and only whoever comes first in a while waits for it.
    async fn counts(&self, now: Timestamp) -> Result<Vec<Count>, StoreError> {
        let told = || lock(&self.tallies).told(&self.mapping, now);
        let mut counts = told();
        if counts.is_none() {
            let _one = self.counting.lock().await;
            counts = told();
            if counts.is_none() {
                let counted = self.rows.tally(now).await?;
                let counted = Tallies::of(now, counted);
                counts = counted.told(&self.mapping, now);
                *lock(&self.tallies) = counted;
            }
        }
        if lock(&self.tallies).begins(now) {
            let (rows, tallies) = (Arc::clone(&self.rows), Arc::clone(&self.tallies));
            tokio::spawn(async move {
                // What could not be counted is for whoever asks next to find out.
                let counted = rows.tally(now).await;
                *lock(&tallies) =
                    counted.map_or_else(|_| Tallies::default(), |counted| Tallies::of(now, counted));
            });
        }
        Ok(counts.unwrap_or_default())
    }

    async fn one(&self, id: &MessageId) -> Result<Option<Row>, StoreError> {
        let Some(id) = self.row_id(id) else { return Ok(None) };
        Ok(self.rows.find(Which::Ids(vec![id.to_owned()]), 1).await?.pop())
    }

    async fn by_ids(&self, ids: Vec<String>) -> Result<HashMap<String, Row>, StoreError> {
        let limit = ids.len();
        let rows = self.rows.find(Which::Ids(ids), limit).await?;
        Ok(rows.into_iter().map(|row| (row.id.clone(), row)).collect())
    }

    async fn notes_on(
        &self,
        ids: impl Iterator<Item = &String>,
    ) -> Result<HashMap<String, Note>, StoreError> {
        let ids: Vec<String> = ids.map(|id| message_id(&self.mapping, id).to_string()).collect();
        if ids.is_empty() { Ok(HashMap::new()) } else { self.notes.recall(ids).await }
    }

    /// Rows as messages, in order; `None` for each whose word means nothing to us.
    async fn messages(&self, rows: &[Row]) -> Result<Vec<Option<Message>>, StoreError> {
        let notes = self.notes_on(rows.iter().map(|row| &row.id)).await?;
        let holds = lock(&self.holds);
        let read = |row: &Row| {
            let note = notes.get(&message_id(&self.mapping, &row.id).to_string());
            message(&self.mapping, row, note, holds.get(&row.id))
        };
        Ok(rows.iter().map(read).collect())
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
