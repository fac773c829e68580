//! Notes on the rows of applications' tables.

use std::collections::HashMap;

use async_trait::async_trait;
use redeliver_core::change::Audit;
use redeliver_engine::store::StoreError;
use tokio_postgres::Client;
use tokio_postgres::types::Type;

use super::Postgres;
use super::apply::write_audit;
use super::connections::{ask, transact};
use super::errors::Fault;
use super::line::Line;
use super::rows::get;
use crate::encode::{from_text, to_text};
use crate::notes::{Note, Notes};

#[async_trait]
impl Notes for Postgres {
    async fn recall(&self, ids: Vec<String>) -> Result<HashMap<String, Note>, StoreError> {
        ask!(self, |db| recall(db, &ids))
    }

    async fn keep(&self, notes: Vec<(String, Note)>, deeds: Vec<Audit>) -> Result<(), StoreError> {
        transact!(self, |db| keep(db, &notes, &deeds))
    }
}

async fn recall(db: &Client, ids: &[String]) -> Result<HashMap<String, Note>, Fault> {
    let rows = db.query_typed(include_str!("sql/notes.sql"), &[(&ids as _, Type::TEXT_ARRAY)]).await?;
    rows.iter().map(|row| Ok((get(row, 0)?, from_text("note", get(row, 1)?)?))).collect()
}

async fn keep(db: &mut Line<'_>, notes: &[(String, Note)], deeds: &[Audit]) -> Result<(), Fault> {
    let ids: Vec<&str> = notes.iter().map(|(id, _)| id.as_str()).collect();
    // No text of the database can have a NUL; an error's text may.
    let texts: Vec<String> = notes
        .iter()
        .map(|(_, note)| Ok(to_text("note", note)?.replace("\\u0000", "")))
        .collect::<Result<_, Fault>>()?;
    let transaction = db.begin().await?;
    let params = [(&ids as _, Type::TEXT_ARRAY), (&texts as _, Type::TEXT_ARRAY)];
    transaction.execute_typed(include_str!("sql/put_notes.sql"), &params).await?;
    if !deeds.is_empty() {
        write_audit(transaction.client(), &deeds.iter().collect::<Vec<_>>()).await?;
    }
    transaction.commit().await?;
    Ok(())
}
