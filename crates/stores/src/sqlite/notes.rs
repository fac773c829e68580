//! Notes on the rows of applications' tables.

use std::collections::HashMap;

use async_trait::async_trait;
use redeliver_core::change::Audit;
use redeliver_engine::store::StoreError;
use rusqlite::{Connection, OptionalExtension};

use super::apply::write_audit;
use super::errors::Fault;
use super::{Runs, SqliteOn};
use crate::encode::{from_text, to_text};
use crate::notes::{Note, Notes};

#[async_trait]
impl<R: Runs> Notes for SqliteOn<R> {
    async fn recall(&self, ids: Vec<String>) -> Result<HashMap<String, Note>, StoreError> {
        self.runs.read(move |db| recall(db, &ids)).await
    }

    async fn keep(&self, notes: Vec<(String, Note)>, deeds: Vec<Audit>) -> Result<(), StoreError> {
        self.runs.write(notes.len(), move |db| keep(db, &notes, &deeds)).await
    }
}

fn recall(db: &Connection, ids: &[String]) -> Result<HashMap<String, Note>, Fault> {
    let mut get = db.prepare_cached(include_str!("sql/note_of_row.sql"))?;
    let mut notes = HashMap::new();
    for id in ids {
        let text: Option<String> = get.query_row([id], |row| row.get(0)).optional()?;
        if let Some(text) = text {
            notes.insert(id.clone(), from_text("note", &text)?);
        }
    }
    Ok(notes)
}

fn keep(db: &Connection, notes: &[(String, Note)], deeds: &[Audit]) -> Result<(), Fault> {
    let mut put = db.prepare_cached(include_str!("sql/put_note_of_row.sql"))?;
    for (id, note) in notes {
        put.execute([id, &to_text("note", note)?])?;
    }
    deeds.iter().try_for_each(|deed| write_audit(db, deed))
}
