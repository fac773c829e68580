//! What PostgreSQL itself can do: bare statements on the same tables with the same durability and batches, and nothing
//! around them. The benchmark holds the engine against it, and has it fill tables with millions of rows.

use std::pin::pin;
use std::sync::Arc;

use futures_util::future::try_join_all;
use redeliver_core::change::NewRow;
use redeliver_core::content::ContentSource;
use redeliver_core::{Lane, Timestamp};
use tokio::task::JoinHandle;
use tokio_postgres::binary_copy::BinaryCopyInWriter;
use tokio_postgres::types::{ToSql, Type};
use tokio_postgres::{Client, Transaction};
use uuid::Uuid;

use crate::encode::to_text;

use super::errors::{Fault, OpenError, open_error, own};
use super::open::Address;
use super::rows::get;
use super::{OpenOptions, PostgresUrl, limit};

/// Connections that claim and complete side by side.
const WORKERS: usize = 2;

/// Bare connections to a database.
pub struct Bare {
    workers: Vec<Client>,
    driven: Vec<JoinHandle<()>>,
    place: String,
}

/// How a call comes out.
pub type Done<T> = Result<T, OpenError>;

impl Bare {
    /// Connects, and makes nothing.
    pub async fn open(url: &PostgresUrl) -> Done<Self> {
        let address = Address::read(url.expose(), &OpenOptions::default())?;
        let connect = (0..WORKERS).map(|_| address.connect());
        let connected = try_join_all(connect).await.map_err(|fault| open_error(&address.place, &fault))?;
        let (workers, driven) = connected.into_iter().unzip();
        Ok(Self { workers, driven, place: address.place })
    }

    /// Whether the database has a store.
    pub async fn has_store(&self) -> Done<bool> {
        let sql = "SELECT to_regnamespace('redeliver') IS NOT NULL";
        let found = async { get(&self.workers[0].query_typed_one(sql, &[]).await?, 0) };
        self.told(found.await)
    }

    /// Deletes the store, and all messages in it.
    pub async fn drop_store(&self) -> Done<()> {
        self.say("DROP SCHEMA IF EXISTS redeliver CASCADE").await
    }

    /// Has everything written to the disk, so that nothing of it is left for later.
    pub async fn checkpoint(&self) -> Done<()> {
        self.say("CHECKPOINT").await
    }

    /// The same, with dead rows gone and statistics taken.
    pub async fn vacuum(&self) -> Done<()> {
        self.say("VACUUM ANALYZE").await?;
        self.checkpoint().await
    }

    /// How much has been written to the log so far.
    pub async fn wal_bytes(&self) -> Done<u64> {
        let sql = "SELECT pg_wal_lsn_diff(pg_current_wal_lsn(), '0/0')::bigint";
        let found =
            async { Ok(get::<i64>(&self.workers[0].query_typed_one(sql, &[]).await?, 0)?.unsigned_abs()) };
        self.told(found.await)
    }

    /// How large the database is, its indexes and dead rows included.
    pub async fn database_bytes(&self) -> Done<u64> {
        let sql = "SELECT pg_database_size(current_database())";
        let found =
            async { Ok(get::<i64>(&self.workers[0].query_typed_one(sql, &[]).await?, 0)?.unsigned_abs()) };
        self.told(found.await)
    }

    /// Copies rows in, in one transaction.
    pub async fn insert(&mut self, rows: &[NewRow]) -> Done<()> {
        let copied = copy(&mut self.workers[0], rows).await;
        self.told(copied)
    }

    /// Copies a campaign's mails in with their keys, in one transaction.
    pub async fn insert_mails(&mut self, rows: &[NewRow]) -> Done<()> {
        let copied = copy_mails(&mut self.workers[0], rows).await;
        self.told(copied)
    }

    /// Leases and completes all due messages of a route, `batch` at once and with one transaction for each. Says how many.
    pub async fn drain(&self, route: &str, batch: usize, now: Timestamp) -> Done<usize> {
        let drains = self.workers.iter().map(|db| drain(db, route, batch, now));
        self.told(try_join_all(drains).await.map(|counts| counts.into_iter().sum()))
    }

    /// Fills the tables with so many messages of every status; most, and the newest, wait for their time or have been
    /// delivered.
    pub async fn fill(&self, count: usize, now: Timestamp, most_are_delivered: bool) -> Done<()> {
        let fill = async {
            let db = &self.workers[0];
            let params = [
                (&limit(count) as &(dyn ToSql + Sync), Type::INT8),
                (&now.as_ms(), Type::INT8),
                (&most_are_delivered, Type::BOOL),
            ];
            db.execute_typed(include_str!("bare/fill_messages.sql"), &params).await?;
            db.execute_typed(include_str!("bare/fill_contents.sql"), &[]).await?;
            db.execute_typed(include_str!("bare/fill_keys.sql"), &[]).await?;
            db.execute_typed(include_str!("bare/fill_tallies.sql"), &[]).await?;
            Ok(())
        };
        self.told(fill.await)
    }

    async fn say(&self, sql: &str) -> Done<()> {
        let said = async { Ok(self.workers[0].batch_execute(sql).await?) };
        self.told(said.await)
    }

    fn told<T>(&self, result: Result<T, Fault>) -> Done<T> {
        result.map_err(|fault| open_error(&self.place, &fault))
    }
}

impl Drop for Bare {
    fn drop(&mut self) {
        for task in &self.driven {
            task.abort();
        }
    }
}

/// The types of the columns of a new message that are copied. The last one is its key, which not every statement takes.
const MESSAGE_TYPES: [Type; 19] = [
    Type::UUID,
    Type::TEXT,
    Type::TEXT,
    Type::INT2,
    Type::INT2,
    Type::INT8,
    Type::INT8,
    Type::INT8,
    Type::INT4,
    Type::INT4,
    Type::BOOL,
    Type::INT8,
    Type::INT8,
    Type::INT4,
    Type::INT4,
    Type::INT4,
    Type::INT4,
    Type::BOOL,
    Type::TEXT,
];

/// Copies new messages without what they carry, by a statement that takes so many of their columns.
async fn copy_messages(
    transaction: &Transaction<'_>,
    sql: &str,
    columns: usize,
    rows: &[NewRow],
) -> Result<(), Fault> {
    let sink = transaction.copy_in(sql).await?;
    let mut writer = pin!(BinaryCopyInWriter::new(sink, &MESSAGE_TYPES[..columns]));
    for NewRow { message, .. } in rows {
        let due_at = message.due_at.as_ms();
        let (scheduled, created) = (message.scheduled_for.as_ms(), message.created_at.as_ms());
        let values: [&(dyn ToSql + Sync); MESSAGE_TYPES.len()] = [
            &own(&message.id),
            &&*message.workspace,
            &&*message.route,
            &(message.lane as i16),
            &0_i16,
            &due_at,
            &due_at,
            &(message.fence as i64),
            &0_i32,
            &0_i32,
            &false,
            &scheduled,
            &created,
            &0_i32,
            &0_i32,
            &0_i32,
            &0_i32,
            &false,
            &message.key.as_deref(),
        ];
        writer.as_mut().write(&values[..columns]).await?;
    }
    writer.finish().await?;
    Ok(())
}

async fn copy(db: &mut Client, rows: &[NewRow]) -> Result<(), Fault> {
    let transaction = db.transaction().await?;
    copy_messages(&transaction, include_str!("bare/copy_messages.sql"), 18, rows).await?;
    let types = [Type::UUID, Type::TEXT, Type::BYTEA, Type::TEXT, Type::TEXT, Type::INT2];
    let sink = transaction.copy_in(include_str!("bare/copy_contents.sql")).await?;
    let mut writer = pin!(BinaryCopyInWriter::new(sink, &types));
    for row in rows {
        let ContentSource::Given(content) = &row.content else { continue };
        let message = &row.message;
        let target: Option<&Arc<str>> = content.target.as_ref();
        let values: [&(dyn ToSql + Sync); 6] = [
            &own(&message.id),
            &target.map(|target| &**target),
            &&*content.bytes,
            &&*message.workspace,
            &&*message.route,
            &(message.lane as i16),
        ];
        writer.as_mut().write(&values).await?;
    }
    writer.finish().await?;
    transaction.commit().await?;
    Ok(())
}

async fn copy_mails(db: &mut Client, rows: &[NewRow]) -> Result<(), Fault> {
    let transaction = db.transaction().await?;
    copy_messages(&transaction, include_str!("bare/copy_mails.sql"), 19, rows).await?;
    let types = [Type::UUID, Type::TEXT, Type::TEXT, Type::BYTEA, Type::TEXT, Type::TEXT, Type::INT2];
    let sink = transaction.copy_in(include_str!("bare/copy_mail_contents.sql")).await?;
    let mut writer = pin!(BinaryCopyInWriter::new(sink, &types));
    for row in rows {
        let (ContentSource::Given(content), message) = (&row.content, &row.message) else { continue };
        let attributes = to_text("attributes", &content.attributes)?;
        let values: [&(dyn ToSql + Sync); 7] = [
            &own(&message.id),
            &attributes,
            &content.content_type.as_deref(),
            &&*content.bytes,
            &&*message.workspace,
            &&*message.route,
            &(message.lane as i16),
        ];
        writer.as_mut().write(&values).await?;
    }
    writer.finish().await?;
    let types = [Type::TEXT, Type::TEXT, Type::UUID, Type::BYTEA];
    let sink = transaction.copy_in(include_str!("bare/copy_keys.sql")).await?;
    let mut writer = pin!(BinaryCopyInWriter::new(sink, &types));
    for row in rows {
        let hash = row.hash.as_ref().map(|hash| &hash.0[..]);
        let values: [&(dyn ToSql + Sync); 4] =
            [&row.message.key.as_deref(), &&*row.message.workspace, &own(&row.message.id), &hash];
        writer.as_mut().write(&values).await?;
    }
    writer.finish().await?;
    transaction.commit().await?;
    Ok(())
}

async fn drain(db: &Client, route: &str, batch: usize, now: Timestamp) -> Result<usize, Fault> {
    let claim = db.prepare(include_str!("bare/claim.sql")).await?;
    let types = [Type::UUID_ARRAY, Type::INT8_ARRAY, Type::INT8];
    let complete = db.prepare_typed(include_str!("bare/complete.sql"), &types).await?;
    let mut count = 0;
    loop {
        let (lane, now_ms) = (Lane::Medium as i16, now.as_ms());
        let claimed = db.query(&claim, &[&route, &lane, &now_ms, &limit(batch)]).await?;
        if claimed.is_empty() {
            return Ok(count);
        }
        let ids: Vec<Uuid> = claimed.iter().map(|row| get(row, 0)).collect::<Result<_, Fault>>()?;
        let fences: Vec<i64> = claimed.iter().map(|row| get(row, 1)).collect::<Result<_, Fault>>()?;
        db.execute(&complete, &[&ids, &fences, &now_ms]).await?;
        count += claimed.len();
    }
}
