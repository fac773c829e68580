//! What mails take of quotas and of their sender's time.

use redeliver_core::quota::CounterKey;
use redeliver_engine::campaigns::{ReserveRequest, Reserved, Room};
use tokio_postgres::Client;
use tokio_postgres::types::{ToSql, Type};

use super::errors::Fault;
use super::line::Line;
use super::rows::{number, time};

pub(super) async fn reserve(db: &mut Line<'_>, request: &ReserveRequest) -> Result<Reserved, Fault> {
    let sender = [(&&*request.workspace as _, Type::TEXT), (&&*request.sender as _, Type::TEXT)];
    let transaction = db.begin().await?;
    let found = transaction.query_typed(include_str!("sql/free_at.sql"), &sender).await?;
    let free_at = found.first().map(|row| time(row, 0)).transpose()?;
    if let Some(free_at) = free_at.filter(|free_at| *free_at > request.now) {
        return Ok(Reserved::Busy(free_at));
    }
    // Every row is there and ours before anything is counted, in one order for everybody.
    for allowance in &request.allowances {
        put_quota(transaction.client(), &allowance.key, 1).await?;
    }
    for (index, allowance) in request.allowances.iter().enumerate() {
        let (used, before) = counted(transaction.client(), &allowance.key).await?;
        if !allowance.admits(used.saturating_sub(1), before) {
            return Ok(Reserved::Full(index));
        }
    }
    let [workspace, name] = sender;
    let free = [workspace, name, (&request.free_at.as_ms() as _, Type::INT8)];
    let is_first = free_at.is_none();
    let written = match is_first {
        true => transaction.execute_typed(include_str!("sql/put_free_at_first.sql"), &free).await?,
        false => transaction.execute_typed(include_str!("sql/put_free_at.sql"), &free).await?,
    };
    if written == 0 {
        // Two first mails of a sender came at once: the other one goes.
        return Ok(Reserved::Busy(request.free_at));
    }
    transaction.commit().await?;
    Ok(Reserved::Yes)
}

pub(super) async fn room(db: &Client, request: &ReserveRequest) -> Result<Room, Fault> {
    let sender = [(&&*request.workspace as _, Type::TEXT), (&&*request.sender as _, Type::TEXT)];
    let found = db.query_typed(include_str!("sql/free_at.sql"), &sender).await?;
    let free_at = found.first().map(|row| time(row, 0)).transpose()?;
    let mut full = None;
    for (index, allowance) in request.allowances.iter().enumerate() {
        let (used, before) = counted(db, &allowance.key).await?;
        if full.is_none() && !allowance.admits(used, before) {
            full = Some(index);
        }
    }
    Ok(Room { free_at: free_at.filter(|free_at| *free_at > request.now), full })
}

async fn put_quota(db: &Client, key: &CounterKey, mails: i64) -> Result<(), Fault> {
    let (period, newest) = key.bucket.number();
    let (whose, period) = (key.whose as i16, i16::from(period));
    let params: [(&(dyn ToSql + Sync), Type); 6] = [
        (&&*key.workspace, Type::TEXT),
        (&whose, Type::INT2),
        (&&*key.name, Type::TEXT),
        (&period, Type::INT2),
        (&newest, Type::INT8),
        (&mails, Type::INT8),
    ];
    db.execute_typed(include_str!("sql/put_quota.sql"), &params).await?;
    Ok(())
}

async fn counted(db: &Client, key: &CounterKey) -> Result<(u64, u32), Fault> {
    let ((period, newest), (_, oldest)) = (key.bucket.number(), key.bucket.oldest().number());
    let (whose, period) = (key.whose as i16, i16::from(period));
    let params: [(&(dyn ToSql + Sync), Type); 6] = [
        (&&*key.workspace, Type::TEXT),
        (&whose, Type::INT2),
        (&&*key.name, Type::TEXT),
        (&period, Type::INT2),
        (&oldest, Type::INT8),
        (&newest, Type::INT8),
    ];
    let found = db.query_typed_one(include_str!("sql/quota.sql"), &params).await?;
    Ok((number(&found, 0)?, number(&found, 1)? as u32))
}

pub(super) async fn give_back(db: &mut Line<'_>, keys: &[CounterKey]) -> Result<(), Fault> {
    let transaction = db.begin().await?;
    for key in keys {
        let (period, newest) = key.bucket.number();
        let (whose, period) = (key.whose as i16, i16::from(period));
        let params: [(&(dyn ToSql + Sync), Type); 5] = [
            (&&*key.workspace, Type::TEXT),
            (&whose, Type::INT2),
            (&&*key.name, Type::TEXT),
            (&period, Type::INT2),
            (&newest, Type::INT8),
        ];
        transaction.execute_typed(include_str!("sql/give_back_quota.sql"), &params).await?;
    }
    Ok(transaction.commit().await?)
}
