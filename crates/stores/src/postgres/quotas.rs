//! What mails take of quotas and of their sender's time.

use redeliver_core::Timestamp;
use redeliver_core::quota::CounterKey;
use redeliver_engine::campaigns::{ReserveRequest, Reserved, Room};
use tokio_postgres::Client;
use tokio_postgres::types::{ToSql, Type};

use super::errors::Fault;
use super::line::Line;
use super::rows::{number, time};

/// A counter's row, as the statements name it.
struct Counter<'a> {
    workspace: &'a str,
    whose: i16,
    name: &'a str,
    period: i16,
    newest: i64,
}

impl<'a> Counter<'a> {
    fn of(key: &'a CounterKey) -> Self {
        let (period, newest) = key.bucket.number();
        let (workspace, whose, name) = (&*key.workspace, key.whose as i16, &*key.name);
        Self { workspace, whose, name, period: i16::from(period), newest }
    }

    fn params(&self) -> [(&(dyn ToSql + Sync), Type); 5] {
        [
            (&self.workspace, Type::TEXT),
            (&self.whose, Type::INT2),
            (&self.name, Type::TEXT),
            (&self.period, Type::INT2),
            (&self.newest, Type::INT8),
        ]
    }
}

pub(super) async fn reserve(db: &mut Line<'_>, request: &ReserveRequest) -> Result<Reserved, Fault> {
    let transaction = db.begin().await?;
    let free_at = free_at(transaction.client(), include_str!("sql/lock_sender.sql"), request).await?;
    if let Some(free_at) = free_at.filter(|free_at| *free_at > request.now) {
        return Ok(Reserved::Busy(free_at));
    }
    // Every row is there and ours before anything is counted, in one order for everybody.
    for allowance in &request.allowances {
        let counter = Counter::of(&allowance.key);
        transaction.execute_typed(include_str!("sql/put_quota.sql"), &counter.params()).await?;
    }
    if let Some(index) = first_full(transaction.client(), request, 1).await? {
        return Ok(Reserved::Full(index));
    }
    let free = [
        (&&*request.workspace as _, Type::TEXT),
        (&&*request.sender as _, Type::TEXT),
        (&request.free_at.as_ms() as _, Type::INT8),
    ];
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
    let free_at = free_at(db, include_str!("sql/free_at.sql"), request).await?;
    let full = first_full(db, request, 0).await?;
    Ok(Room { free_at: free_at.filter(|free_at| *free_at > request.now), full })
}

/// When the sender of a mail is free, or was, if it has sent any.
async fn free_at(db: &Client, sql: &str, request: &ReserveRequest) -> Result<Option<Timestamp>, Fault> {
    let sender = [(&&*request.workspace as _, Type::TEXT), (&&*request.sender as _, Type::TEXT)];
    let found = db.query_typed(sql, &sender).await?;
    found.first().map(|row| time(row, 0)).transpose()
}

/// The first allowance of a mail that has no room left, where `own` of each is the mail's.
async fn first_full(db: &Client, request: &ReserveRequest, own: u64) -> Result<Option<usize>, Fault> {
    for (index, allowance) in request.allowances.iter().enumerate() {
        let counter = Counter::of(&allowance.key);
        let [workspace, whose, name, period, newest] = counter.params();
        let (_, oldest) = allowance.key.bucket.oldest().number();
        let params = [workspace, whose, name, period, (&oldest as _, Type::INT8), newest];
        let found = db.query_typed_one(include_str!("sql/quota.sql"), &params).await?;
        let (used, before): (u64, u64) = (number(&found, 0)?, number(&found, 1)?);
        if !allowance.admits(used.saturating_sub(own), before as u32) {
            return Ok(Some(index));
        }
    }
    Ok(None)
}

pub(super) async fn give_back(db: &mut Line<'_>, keys: &[CounterKey]) -> Result<(), Fault> {
    let transaction = db.begin().await?;
    for key in keys {
        let counter = Counter::of(key);
        transaction.execute_typed(include_str!("sql/give_back_quota.sql"), &counter.params()).await?;
    }
    Ok(transaction.commit().await?)
}
