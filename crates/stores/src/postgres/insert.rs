//! Keeps new messages, each with its content, its key and its dead letter.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use redeliver_core::accept::{Ended, Known};
use redeliver_core::change::NewRow;
use redeliver_core::content::{ContentHash, ContentSource};
use redeliver_core::{Content, Message, MessageId, Name};
use redeliver_engine::store::{Inserted, StoreError};
use tokio_postgres::error::SqlState;
use tokio_postgres::types::Type;
use tokio_postgres::{Client, Row, Transaction};
use uuid::Uuid;

use super::columns::{Contents, Messages, Untried};
use super::errors::{Fault, own, own_or_unfit, store_error};
use super::line::Line;
use super::rows::{self, count, get, id, number, text};
use super::{Durability, open, read};

/// How often a row is tried whose key was there and then wasn't.
const ROUNDS_MAX: usize = 3;

/// Keeps new messages inside the caller's own transaction: they are accepted if and when it commits.
///
/// A commit must mean that the message is safe, so that a connection with `synchronous_commit` off is turned away
/// unless the caller says that it knows ([`Durability::Relaxed`]). Engines look by themselves at least once in a
/// while; [`Postgres::ring`](super::Postgres::ring), called after the commit, tells them at once.
pub async fn accept_in(
    transaction: &Transaction<'_>,
    rows: Vec<NewRow>,
    durability: Durability,
) -> Result<Vec<Inserted>, StoreError> {
    let accept = async {
        open::check_durability(transaction.client(), durability).await?;
        let rows: Vec<&NewRow> = rows.iter().collect();
        insert_all(transaction.client(), &rows, How::Carefully).await
    };
    accept.await.map_err(|fault| store_error("the caller's transaction", &fault))
}

pub(super) async fn insert(db: &mut Line<'_>, rows: &[NewRow]) -> Result<Vec<Inserted>, Fault> {
    let all: Vec<&NewRow> = rows.iter().collect();
    if rows.iter().all(takes_one_statement) {
        return insert_one(db, &all).await;
    }
    let transaction = db.begin().await?;
    let answers = insert_all(transaction.client(), &all, How::Carefully).await?;
    transaction.commit().await?;
    Ok(answers)
}

/// Keeps rows that take one statement, which is a transaction by itself.
pub(super) async fn insert_one(db: &mut Line<'_>, rows: &[&NewRow]) -> Result<Vec<Inserted>, Fault> {
    match insert_one_by(db, rows, How::quickest_for(rows)).await {
        // Said again, because an answer was lost: rare enough to begin anew.
        Err(fault) if is_there_already(&fault) => insert_one_by(db, rows, How::Carefully).await,
        inserted => inserted,
    }
}

async fn insert_one_by(db: &mut Line<'_>, rows: &[&NewRow], how: How) -> Result<Vec<Inserted>, Fault> {
    let db = db.lone().await?;
    let answers = insert_all(&db, rows, how).await?;
    db.finish().await?;
    Ok(answers)
}

/// Whether rows that were taken for new ones are not. A transaction that they were in is then at its end.
pub(super) fn is_there_already(fault: &Fault) -> bool {
    matches!(fault, Fault::Sql(error) if error.code() == Some(&SqlState::UNIQUE_VIOLATION))
}

/// Whether a row brings nothing and does not come back.
pub(super) fn takes_one_statement(row: &NewRow) -> bool {
    row.spawn.is_none() && !row.revives
}

/// Keeps rows, and then what they bring with them, inside a transaction.
pub(super) fn insert_all<'a>(
    db: &'a Client,
    rows: &'a [&'a NewRow],
    how: How,
) -> Pin<Box<dyn Future<Output = Result<Vec<Inserted>, Fault>> + Send + 'a>> {
    Box::pin(Inserting::new(db, rows, how).finish())
}

/// The statement that writes rows.
#[derive(Copy, Clone)]
pub(super) enum How {
    /// Takes any row, and leaves alone what is there already.
    Carefully,
    /// Takes messages that wait for their first try, and fails if one of them is there already.
    Untried,
}

impl How {
    /// The quickest way for rows that are most likely new.
    pub(super) fn quickest_for(rows: &[&NewRow]) -> Self {
        let is_untried = |row: &&NewRow| takes_one_statement(row) && Untried::takes(&row.message);
        if rows.iter().all(is_untried) { Self::Untried } else { Self::Carefully }
    }
}

/// Rows on their way in, and what was said about them so far.
struct Inserting<'a> {
    db: &'a Client,
    rows: &'a [&'a NewRow],
    how: How,
    answers: Vec<Option<Inserted>>,
    /// Rows whose key was there without its message, and is theirs now.
    revived: HashSet<usize>,
}

impl<'a> Inserting<'a> {
    fn new(db: &'a Client, rows: &'a [&'a NewRow], how: How) -> Self {
        Self { db, rows, how, answers: vec![None; rows.len()], revived: HashSet::new() }
    }

    /// Keeps the rows, and then what they bring with them.
    async fn finish(mut self) -> Result<Vec<Inserted>, Fault> {
        let spawned = self.run().await?;
        if !spawned.is_empty() {
            // The word of the same death is kept once.
            insert_all(self.db, &spawned, How::Carefully).await?;
        }
        Ok(self.answers.into_iter().map(|answer| answer.unwrap_or(Inserted::New)).collect())
    }

    /// Says what the rows that were kept bring with them.
    async fn run(&mut self) -> Result<Vec<&'a NewRow>, Fault> {
        for place in 0..self.rows.len() {
            self.revive(place).await?;
        }
        let mut spawned = Vec::new();
        for _ in 0..ROUNDS_MAX {
            let open: Vec<usize> =
                (0..self.rows.len()).filter(|place| self.answers[*place].is_none()).collect();
            if open.is_empty() {
                return Ok(spawned);
            }
            let mut kept = self.write(&open).await?;
            for place in open.iter().copied() {
                let row = self.rows[place];
                // Said twice in one batch, it is kept once.
                let is_kept = own(&row.message.id).is_some_and(|id| kept.remove(&id));
                if is_kept {
                    spawned.extend(row.spawn.as_deref());
                }
                if is_kept || row.message.key.is_none() || self.revived.contains(&place) {
                    self.answers[place] = Some(Inserted::New);
                }
            }
            self.answer_known(&open).await?;
        }
        match self.answers.iter().any(Option::is_none) {
            true => Err(Fault::Unsettled),
            false => Ok(spawned),
        }
    }

    /// Gives a message that comes back its key, unless it is back already.
    async fn revive(&mut self, place: usize) -> Result<(), Fault> {
        let row = self.rows[place];
        let (true, Some(key)) = (row.revives, &row.message.key) else { return Ok(()) };
        let workspace = &*row.message.workspace;
        let names = [(&&**key as _, Type::TEXT), (&workspace as _, Type::TEXT)];
        if self.db.query_typed_opt(include_str!("sql/lock_key.sql"), &names).await?.is_none() {
            return Ok(());
        }
        let known = self.known(&[place]).await?.into_values().next();
        match known {
            Some(known) if known.message.is_some() => {
                self.answers[place] = Some(Inserted::Known(Box::new(known)));
            }
            _ => {
                let id = own_or_unfit(&row.message.id)?;
                let hash = row.hash.as_ref().map(|hash| hash.0.to_vec());
                let [key, workspace] = names;
                let params = [key, workspace, (&id as _, Type::UUID), (&hash as _, Type::BYTEA)];
                self.db.execute_typed(include_str!("sql/revive_key.sql"), &params).await?;
                self.revived.insert(place);
            }
        }
        Ok(())
    }

    /// Writes rows as far as their keys let them in. Says which.
    async fn write(&self, places: &[usize]) -> Result<HashSet<Uuid>, Fault> {
        let given = self.contents(places).await?;
        let mut contents = Contents::default();
        given.iter().try_for_each(|content| contents.push(content))?;
        let rows = || places.iter().map(|place| self.rows[*place]);
        let hashes: Vec<Option<&[u8]>> =
            rows().map(|row| row.hash.as_ref().map(|hash| hash.0.as_slice())).collect();
        match self.how {
            How::Carefully => {
                let mut messages = Messages::default();
                rows().try_for_each(|row| messages.push(&row.message))?;
                let revives: Vec<bool> = places.iter().map(|place| self.revived.contains(place)).collect();
                let mut params = messages.params();
                params.extend(contents.params());
                params.push((&hashes, Type::BYTEA_ARRAY));
                params.push((&revives, Type::BOOL_ARRAY));
                let kept = self.db.query_typed(include_str!("sql/insert.sql"), &params).await?;
                kept.iter().map(|row| get(row, 0)).collect()
            }
            How::Untried => {
                let mut messages = Untried::default();
                rows().try_for_each(|row| messages.push(&row.message))?;
                let mut params = messages.params();
                params.extend(contents.params());
                params.push((&hashes, Type::BYTEA_ARRAY));
                let keyed = self.db.query_typed(include_str!("sql/insert_new.sql"), &params).await?;
                let without_key = rows().filter(|row| row.message.key.is_none());
                let without_key = without_key.filter_map(|row| own(&row.message.id)).map(Ok);
                keyed.iter().map(|row| get(row, 0)).chain(without_key).collect()
            }
        }
    }

    /// What the rows carry, copies made.
    async fn contents(&self, places: &[usize]) -> Result<Vec<Cow<'a, Content>>, Fault> {
        let rows = places.iter().map(|place| self.rows[*place]);
        let copied = rows.clone().filter_map(|row| match &row.content {
            ContentSource::CopyOf { id, .. } => own(id),
            ContentSource::Given(_) => None,
        });
        let copied: Vec<Uuid> = copied.collect();
        let sources =
            if copied.is_empty() { HashMap::new() } else { read::contents(self.db, &copied).await? };
        let content = |row: &'a NewRow| match &row.content {
            ContentSource::Given(content) => Cow::Borrowed(&**content),
            ContentSource::CopyOf { id, attributes } => {
                // Word of a death is kept even where the dead one's content is somebody else's to keep.
                let mut copy = sources.get(id).cloned().unwrap_or_default();
                copy.attributes.extend(attributes.clone());
                copy.target = None;
                Cow::Owned(copy)
            }
        };
        Ok(rows.map(content).collect())
    }

    /// Answers for rows that their keys kept out. A key that is gone by now leaves its row without an answer.
    async fn answer_known(&mut self, places: &[usize]) -> Result<(), Fault> {
        let kept_out: Vec<usize> =
            places.iter().copied().filter(|place| self.answers[*place].is_none()).collect();
        if kept_out.is_empty() {
            return Ok(());
        }
        let own_ids: Vec<Uuid> =
            kept_out.iter().filter_map(|place| own(&self.rows[*place].message.id)).collect();
        let there = read::get_many(self.db, &own_ids).await?;
        let known = self.known(&kept_out).await?;
        for place in kept_out {
            let row = self.rows[place];
            let known = known.get(&place);
            let is_back = row.revives && known.is_some_and(|known| known.message.is_some());
            self.answers[place] = match known {
                // The row was said before: it is the message, and no repeat of it.
                _ if there.contains_key(&row.message.id) && !is_back => Some(Inserted::New),
                Some(known) => Some(Inserted::Known(Box::new(known.clone()))),
                None => None,
            };
        }
        Ok(())
    }

    /// What is known under the keys of these rows.
    async fn known(&self, places: &[usize]) -> Result<HashMap<usize, Known>, Fault> {
        let names = |place: &usize| {
            let message = &self.rows[*place].message;
            Some((message.key.as_deref()?, &*message.workspace))
        };
        let (keys, workspaces): (Vec<&str>, Vec<&str>) = places.iter().filter_map(names).unzip();
        let params = [(&keys as _, Type::TEXT_ARRAY), (&workspaces as _, Type::TEXT_ARRAY)];
        let found = self.db.query_typed(include_str!("sql/get_keys.sql"), &params).await?;
        let ids: Vec<Uuid> = found.iter().map(|row| get(row, 0)).collect::<Result<_, Fault>>()?;
        let messages = read::get_many(self.db, &ids).await?;
        let mut by_name: HashMap<(Arc<str>, Name), Known> = HashMap::new();
        for row in &found {
            by_name.insert((text(row, 7)?, text(row, 8)?), known(row, &messages)?);
        }
        let of = |place: &usize| {
            let (key, workspace) = names(place)?;
            Some((*place, by_name.get(&(key.into(), workspace.into()))?.clone()))
        };
        Ok(places.iter().filter_map(of).collect())
    }
}

/// What a key's row says.
fn known(row: &Row, messages: &HashMap<MessageId, Message>) -> Result<Known, Fault> {
    let id = id(row, 0)?;
    let hash = match get::<Option<&[u8]>>(row, 1)? {
        Some(bytes) => {
            Some(ContentHash(bytes.try_into().map_err(|_| super::errors::odd("hash", bytes.len()))?))
        }
        None => None,
    };
    let ended = match get::<Option<i32>>(row, 2)? {
        None => None,
        Some(attempts_before) => Some(Ended {
            attempts_before: attempts_before as u32,
            attempts: count(row, 3)?,
            generation: count(row, 4)?,
            possible_duplicates: count(row, 5)?,
            fence: number(row, 6)?,
        }),
    };
    Ok(Known { message: messages.get(&id).cloned(), id, hash, ended })
}

/// Writes contents over whatever there was.
pub(super) async fn put_contents(db: &Client, written: &[(&Message, &Content)]) -> Result<(), Fault> {
    let mut contents = Contents::default();
    let mut ids = Vec::new();
    for (message, content) in written {
        ids.push(own_or_unfit(&message.id)?);
        contents.push(content)?;
    }
    let workspaces: Vec<&str> = written.iter().map(|(message, _)| &*message.workspace).collect();
    let routes: Vec<&str> = written.iter().map(|(message, _)| &*message.route).collect();
    let lanes: Vec<i16> = written.iter().map(|(message, _)| message.lane as i16).collect();
    let mut params = vec![(&ids as _, Type::UUID_ARRAY)];
    params.extend(contents.params());
    params.push((&workspaces, Type::TEXT_ARRAY));
    params.push((&routes, Type::TEXT_ARRAY));
    params.push((&lanes, Type::INT2_ARRAY));
    db.execute_typed(include_str!("sql/put_content.sql"), &params).await?;
    Ok(())
}

/// The content whose row this is, with its id behind it.
pub(super) fn content_with_id(row: &Row) -> Result<(MessageId, Content), Fault> {
    Ok((id(row, 5)?, rows::content(row, 0)?))
}
