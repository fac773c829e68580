//! Keeps new messages, each with its content, its key and its dead letter.

use std::borrow::Cow;

use redeliver_core::accept::{Ended, Known};
use redeliver_core::change::NewRow;
use redeliver_core::content::{ContentHash, ContentSource};
use redeliver_core::planted::{self, Bug};
use redeliver_core::{Content, Message};
use redeliver_engine::store::{Inserted, StoreError};
use rusqlite::{CachedStatement, Connection, Transaction, params};

use super::Durability;
use super::errors::{Fault, own, store_error};
use super::read;
use super::rows::{bind_message, bind_new, id, number};
use crate::encode::{Unreadable, attributes_to_text, failure_to_text, headers_to_bytes};
use crate::standing::is_untouched;

/// Keeps new messages inside the caller's own transaction: they are accepted if and when it commits.
///
/// A commit must mean that the message is safe, so that a connection with `synchronous` below `FULL` is turned away
/// unless the caller says that it knows ([`Durability::Relaxed`]).
pub fn insert_in(
    transaction: &Transaction<'_>,
    rows: Vec<NewRow>,
    durability: Durability,
) -> Result<Vec<Inserted>, StoreError> {
    insert_durably(transaction, &rows, durability).map_err(|fault| store_error(transaction, fault))
}

fn insert_durably(db: &Connection, rows: &[NewRow], durability: Durability) -> Result<Vec<Inserted>, Fault> {
    let synchronous: i64 = db.pragma_query_value(None, "synchronous", |row| row.get(0))?;
    if durability == Durability::Full && synchronous < Durability::Full.synchronous() {
        return Err(Fault::Unfit(
            "this connection's `synchronous` is below FULL, so that a commit may not survive a power cut; \
             say `PRAGMA synchronous = FULL`, or allow it by Durability::Relaxed"
                .to_owned(),
        ));
    }
    let mut is_store = db.prepare_cached(include_str!("sql/is_store.sql"))?;
    if !is_store.query_row([], |row| row.get(0))? {
        return Err(Fault::Unfit("this database isn't a store yet; open it as one first".to_owned()));
    }
    insert(db, rows)
}

/// Keeps rows of which nothing is written out yet.
pub(super) fn insert(db: &Connection, rows: &[NewRow]) -> Result<Vec<Inserted>, Fault> {
    let mut writing = Writing::new(db)?;
    rows.iter().map(|row| writing.insert(row, &Written::of(row)?)).collect()
}

/// Keeps rows that are written out already: while it writes, a store does nothing else.
pub(super) fn insert_written(db: &Connection, rows: &[(NewRow, Written)]) -> Result<Vec<Inserted>, Fault> {
    let mut writing = Writing::new(db)?;
    rows.iter().map(|(row, written)| writing.insert(row, written)).collect()
}

/// What has no column of its own, written out.
pub(super) struct Written {
    last_error: Option<String>,
    /// Where the content is another's, it is found in the store.
    content: Option<WrittenContent>,
}

struct WrittenContent {
    attributes: Option<String>,
    headers: Option<Vec<u8>>,
}

impl Written {
    pub(super) fn of(row: &NewRow) -> Result<Self, Unreadable> {
        let last_error = row.message.last_error.as_ref().map(failure_to_text).transpose()?;
        let content = match &row.content {
            ContentSource::Given(content) => Some(WrittenContent::of(content)?),
            ContentSource::CopyOf { .. } => None,
        };
        Ok(Self { last_error, content })
    }
}

impl WrittenContent {
    fn of(content: &Content) -> Result<Self, Unreadable> {
        let attributes = attributes_to_text(&content.attributes)?;
        Ok(Self { attributes, headers: headers_to_bytes(&content.headers)? })
    }
}

/// The statements of the fast path, looked up once for all rows.
struct Writing<'a> {
    db: &'a Connection,
    key: CachedStatement<'a>,
    new: CachedStatement<'a>,
    message: CachedStatement<'a>,
    content: CachedStatement<'a>,
}

impl<'a> Writing<'a> {
    fn new(db: &'a Connection) -> Result<Self, Fault> {
        Ok(Self {
            db,
            key: db.prepare_cached(include_str!("sql/insert_key.sql"))?,
            new: db.prepare_cached(include_str!("sql/insert_new.sql"))?,
            message: db.prepare_cached(include_str!("sql/insert_message.sql"))?,
            content: db.prepare_cached(include_str!("sql/put_content.sql"))?,
        })
    }

    fn insert(&mut self, row: &NewRow, written: &Written) -> Result<Inserted, Fault> {
        let message = &row.message;
        let id = own(&message.id)
            .ok_or_else(|| Fault::Unfit(format!("{} is a row of another table", message.id)))?;
        let hash = row.hash.as_ref().map(|hash| hash.0);
        if let Some(key) = &message.key
            && !self.put_key(key, message, id, hash)?
            && !planted::is(Bug::KeyIgnored)
        {
            let known = known(self.db, key, message)?;
            match (row.revives, &known.message) {
                (true, Some(_)) => return Ok(Inserted::Known(Box::new(known))),
                (true, None) => {
                    let mut revive = self.db.prepare_cached(include_str!("sql/revive_key.sql"))?;
                    revive.execute(params![&**key, &*message.workspace, id, hash])?;
                }
                (false, _) if read::exists(self.db, id)? => return Ok(Inserted::New),
                (false, _) => return Ok(Inserted::Known(Box::new(known))),
            }
        }
        if !self.put_message(message, id, written)? {
            return Ok(Inserted::New);
        }
        let number = self.db.last_insert_rowid();
        let content = content_of(self.db, &row.content)?;
        match &written.content {
            Some(written) => write_content(&mut self.content, number, &content, written)?,
            None => write_content(&mut self.content, number, &content, &WrittenContent::of(&content)?)?,
        }
        if let Some(spawn) = &row.spawn {
            // The word of the same death is kept once.
            self.insert(spawn, &Written::of(spawn)?)?;
        }
        Ok(Inserted::New)
    }

    /// Writes the row; not if it is there already.
    fn put_message(&mut self, message: &Message, id: &[u8; 16], written: &Written) -> Result<bool, Fault> {
        let written = match is_untouched(message) {
            true => {
                bind_new(&mut self.new, id, message, written.last_error.as_deref())?;
                self.new.raw_execute()?
            }
            false => {
                bind_message(&mut self.message, id, message)?;
                self.message.raw_execute()?
            }
        };
        Ok(written == 1)
    }

    fn put_key(
        &mut self,
        key: &str,
        message: &Message,
        id: &[u8; 16],
        hash: Option<[u8; 16]>,
    ) -> Result<bool, Fault> {
        Ok(self.key.execute(params![key, &*message.workspace, id, hash])? == 1)
    }
}

/// Writes one row with its spawn: for a change that brings a message with it.
pub(super) fn insert_one(db: &Connection, row: &NewRow) -> Result<Inserted, Fault> {
    Writing::new(db)?.insert(row, &Written::of(row)?)
}

/// Writes a content over whatever there was.
pub(super) fn put_content(db: &Connection, id: &[u8; 16], content: &Content) -> Result<(), Fault> {
    let mut number = db.prepare_cached(include_str!("sql/number.sql"))?;
    let number = number.query_row([id], |row| row.get(0))?;
    let mut put = db.prepare_cached(include_str!("sql/put_content.sql"))?;
    write_content(&mut put, number, content, &WrittenContent::of(content)?)
}

fn write_content(
    insert: &mut CachedStatement<'_>,
    number: i64,
    content: &Content,
    written: &WrittenContent,
) -> Result<(), Fault> {
    insert.execute(params![
        number,
        content.target.as_deref(),
        written.attributes,
        written.headers,
        content.content_type.as_deref(),
        &*content.bytes
    ])?;
    Ok(())
}

fn content_of<'a>(db: &Connection, source: &'a ContentSource) -> Result<Cow<'a, Content>, Fault> {
    match source {
        ContentSource::Given(content) => Ok(Cow::Borrowed(content)),
        ContentSource::CopyOf { id, attributes } => {
            // Word of a death is kept even where the dead one's content is somebody else's to keep.
            let mut copy = read::content(db, id)?.unwrap_or_default();
            copy.attributes.extend(attributes.clone());
            copy.target = None;
            Ok(Cow::Owned(copy))
        }
    }
}

/// What is known under a key that is there.
fn known(db: &Connection, key: &str, message: &Message) -> Result<Known, Fault> {
    let mut get = db.prepare_cached(include_str!("sql/get_key.sql"))?;
    let mut rows = get.query(params![key, &*message.workspace])?;
    let row = rows.next()?.ok_or(rusqlite::Error::QueryReturnedNoRows)?;
    let id = id(row, 0)?;
    let ended = match row.get::<_, Option<u32>>(2)? {
        None => None,
        Some(attempts_before) => Some(Ended {
            attempts_before,
            attempts: row.get(3)?,
            generation: row.get(4)?,
            possible_duplicates: row.get(5)?,
            fence: number(row, 6)?,
        }),
    };
    let hash = row.get::<_, Option<[u8; 16]>>(1)?.map(ContentHash);
    Ok(Known { message: read::get(db, &id)?, id, hash, ended })
}
