//! What is done to many messages at once.

use redeliver_core::bulk::Bulk;
use redeliver_core::change::Audit;
use tokio_postgres::types::Type;
use tokio_postgres::{Client, Row};

use super::apply::write_audit;
use super::columns::Param;
use super::errors::Fault;
use super::limit;
use super::line::Line;
use super::rows::get as column;
use crate::asked::PAST_EVERY_ID;
use crate::encode::{from_text, to_text};

pub(super) async fn put(db: &mut Line<'_>, bulk: &Bulk, audit: Option<&Audit>) -> Result<bool, Fault> {
    // No text of the database can have a NUL; what somebody looks for may.
    let text = to_text("bulk", bulk)?.replace("\\u0000", "");
    let (id, version) = (&*bulk.id, bulk.version.cast_signed());
    let params: [Param<'_>; 3] = [(&id, Type::TEXT), (&text, Type::TEXT), (&version, Type::INT8)];
    let transaction = db.begin().await?;
    let is_put = match version {
        0 => transaction.execute_typed(include_str!("sql/add_bulk.sql"), &params[..2]).await?,
        _ => transaction.execute_typed(include_str!("sql/put_bulk.sql"), &params).await?,
    } == 1;
    if let (true, Some(audit)) = (is_put, audit) {
        write_audit(transaction.client(), &[audit]).await?;
    }
    transaction.commit().await?;
    Ok(is_put)
}

pub(super) async fn get(db: &Client, id: &str) -> Result<Option<Bulk>, Fault> {
    let found = db.query_typed(include_str!("sql/bulk.sql"), &[(&id as _, Type::TEXT)]).await?;
    found.first().map(bulk).transpose()
}

pub(super) async fn newest(db: &Client, after: Option<&str>, count_max: usize) -> Result<Vec<Bulk>, Fault> {
    page(db, include_str!("sql/bulks.sql"), after, count_max).await
}

pub(super) async fn running(db: &Client, after: Option<&str>, count_max: usize) -> Result<Vec<Bulk>, Fault> {
    page(db, include_str!("sql/running_bulks.sql"), after, count_max).await
}

async fn page(db: &Client, sql: &str, after: Option<&str>, count_max: usize) -> Result<Vec<Bulk>, Fault> {
    let after = after.unwrap_or(PAST_EVERY_ID);
    let found =
        db.query_typed(sql, &[(&after as _, Type::TEXT), (&limit(count_max) as _, Type::INT8)]).await?;
    found.iter().map(bulk).collect()
}

fn bulk(row: &Row) -> Result<Bulk, Fault> {
    let version: i64 = column(row, 0)?;
    Ok(Bulk { version: version.cast_unsigned(), ..from_text("bulk", column(row, 1)?)? })
}
