//! Whom a workspace writes to no more.

use redeliver_core::change::Audit;
use redeliver_core::{Name, Timestamp};
use redeliver_engine::campaigns::Suppression;
use tokio_postgres::types::Type;
use tokio_postgres::{Client, Row};

use super::apply::write_audit;
use super::campaigns::is_text;
use super::errors::Fault;
use super::limit;
use super::line::Line;
use super::rows::{get, text, time};

pub(super) async fn suppress(
    db: &mut Line<'_>,
    workspace: &str,
    addresses: &[Suppression],
    at: Timestamp,
    audit: Option<&Audit>,
) -> Result<u64, Fault> {
    let texts: Vec<&str> = addresses.iter().map(|one| &*one.address).collect();
    let reasons: Vec<&str> = addresses.iter().map(|one| &*one.reason).collect();
    let params = [
        (&workspace as _, Type::TEXT),
        (&texts as _, Type::TEXT_ARRAY),
        (&reasons as _, Type::TEXT_ARRAY),
        (&at.as_ms() as _, Type::INT8),
    ];
    let transaction = db.begin().await?;
    let new = transaction.execute_typed(include_str!("sql/suppress.sql"), &params).await?;
    if let Some(audit) = audit {
        write_audit(transaction.client(), &[audit]).await?;
    }
    transaction.commit().await?;
    Ok(new)
}

pub(super) async fn unsuppress(
    db: &mut Line<'_>,
    workspace: &str,
    address: &str,
    audit: &Audit,
) -> Result<bool, Fault> {
    if !is_text(address) {
        return Ok(false);
    }
    let params = [(&workspace as _, Type::TEXT), (&address as _, Type::TEXT)];
    let transaction = db.begin().await?;
    let was_there = transaction.execute_typed(include_str!("sql/unsuppress.sql"), &params).await? == 1;
    if was_there {
        write_audit(transaction.client(), &[audit]).await?;
    }
    transaction.commit().await?;
    Ok(was_there)
}

pub(super) async fn suppressed(db: &Client, workspace: &str, address: &str) -> Result<Option<Name>, Fault> {
    if !is_text(address) {
        return Ok(None);
    }
    let params = [(&workspace as _, Type::TEXT), (&address as _, Type::TEXT)];
    let found = db.query_typed_opt(include_str!("sql/suppressed.sql"), &params).await?;
    found.map(|row| text(&row, 0)).transpose()
}

pub(super) async fn suppressions(
    db: &Client,
    workspace: &str,
    after: &str,
    count_max: usize,
) -> Result<Vec<(Suppression, Timestamp)>, Fault> {
    if !is_text(after) {
        return Ok(Vec::new());
    }
    let params =
        [(&workspace as _, Type::TEXT), (&after as _, Type::TEXT), (&limit(count_max) as _, Type::INT8)];
    let found = db.query_typed(include_str!("sql/suppressions.sql"), &params).await?;
    let view = |row: &Row| {
        let address = get::<String>(row, 0)?;
        Ok((Suppression { address, reason: text(row, 1)? }, time(row, 2)?))
    };
    found.iter().map(view).collect()
}
