//! Messages in a PostgreSQL database, which any number of instances share.
//!
//! What each call does is a function over a connection, one file per concern. A write is one statement wherever it can
//! be, for any number of rows; statements are in `sql/`, one per file. The database's clock is everybody's.

mod access;
mod apply;
pub mod bare;
mod bulk;
mod campaigns;
mod claim;
mod columns;
mod connections;
mod destination_limits;
mod errors;
mod gates;
mod gather;
mod health;
mod insert;
mod instances;
#[cfg(test)]
mod limits;
mod line;
mod list;
mod migrate;
mod news;
mod notes;
mod open;
mod partitions;
#[cfg(test)]
mod plans;
mod prune;
mod quotas;
mod read;
mod rows;
mod suppressions;
pub mod table;
mod tls;
mod url;

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use redeliver_core::attempt::AttemptRecord;
use redeliver_core::bulk::Bulk;
use redeliver_core::change::{Audit, NewRow};
use redeliver_core::edit::EditRecord;
use redeliver_core::gate::{GateKey, GateRecord};
use redeliver_core::limit::Grant;
use redeliver_core::{Change, Content, InstanceId, Lane, Message, MessageId, Name, Timestamp};
use redeliver_engine::clock::{Clock, FollowedClock};
use redeliver_engine::store::{
    About, Applied, ClaimRef, ClaimRequest, Claims, Count, Deed, DeedFilter, Filter, GateChange, Inserted,
    LimitRequest, Living, PruneRequest, Pruned, Store, StoreError,
};
use tokio_postgres::Client;

use connections::{Connections, ask, transact};
pub use errors::OpenError;
use errors::{Fault, open_error};
use gather::Gather;
pub use health::{Health, Holder, ORPHANS_COUNTED_MAX, Orphans, TableHealth};
pub use insert::accept_in;
use line::Line;
use news::News;
use open::Address;
pub use open::{Durability, OpenOptions};
use prune::LastLook;
pub use url::PostgresUrl;

/// A store in a PostgreSQL database.
pub struct Postgres {
    connections: Arc<Connections>,
    clock: Arc<FollowedClock>,
    gather: Gather,
    news: News,
    last_look: LastLook,
    place: String,
}

impl Postgres {
    /// Opens the store in a database, making its tables if there are none.
    ///
    /// The address is a URL as PostgreSQL's own clients take it, with several hosts where one may take over from
    /// another, and `sslmode`.
    pub async fn open(url: &str, options: OpenOptions) -> Result<Self, OpenError> {
        let direct = Address::read(options.direct_url.as_deref().unwrap_or(url), &options)?;
        let clock = FollowedClock::new();
        make_ready(&direct, &options, &clock).await.map_err(|fault| open_error(&direct.place, &fault))?;
        Self::join(url, options, clock, direct).await
    }

    /// Joins whoever else works on the store, whose tables are there.
    async fn join(
        url: &str,
        options: OpenOptions,
        clock: Arc<FollowedClock>,
        direct: Address,
    ) -> Result<Self, OpenError> {
        let pooled = Address::read(url, &options)?.limited(&options).await?;
        let connections = Connections::new(&pooled, &options, clock.clone())
            .map_err(|fault| open_error(&pooled.place, &fault))?;
        let connections = Arc::new(connections);
        let name = format!("{:032x}", clock.bits());
        let news = News::start(name, connections.clone(), direct).await;
        let gather = Gather::start(&connections);
        let last_look = LastLook::default();
        Ok(Self { connections, clock, gather, news, last_look, place: pooled.place })
    }

    /// Makes the tables, or brings them up to date, and goes again. Says how many steps that took.
    pub async fn migrate(url: &str, options: &OpenOptions) -> Result<usize, OpenError> {
        let direct = Address::read(options.direct_url.as_deref().unwrap_or(url), options)?;
        let made = make_ready(&direct, options, &FollowedClock::new()).await;
        made.map_err(|fault| open_error(&direct.place, &fault))
    }

    /// The time that counts: the database's, as of the last heartbeat, and never ahead of it.
    pub fn clock(&self) -> Arc<dyn Clock> {
        self.clock.clone()
    }

    /// Which database this is, without anything secret.
    pub fn place(&self) -> &str {
        &self.place
    }

    /// Lets everybody know, soon, that there is something new: after a commit of one's own ([`accept_in`]).
    pub fn ring(&self) {
        self.news.hear_own();
        self.news.ring();
    }

    /// How many engines live, as far as was heard by `now`.
    pub async fn instances(&self, now: Timestamp) -> Result<u64, StoreError> {
        ask!(self, |db| instances::alive(db, now))
    }

    /// Looks whether the tables are this version's, and changes nothing.
    pub async fn check_current(url: &str, options: &OpenOptions) -> Result<(), OpenError> {
        let direct = Address::read(options.direct_url.as_deref().unwrap_or(url), options)?;
        let check = async {
            let (db, driven) = direct.connect().await?;
            let current = migrate::check_current(&db).await;
            driven.abort();
            current
        };
        check.await.map_err(|fault| open_error(&direct.place, &fault))
    }
}

/// Tables, the days of history, and the time.
async fn make_ready(direct: &Address, options: &OpenOptions, clock: &FollowedClock) -> Result<usize, Fault> {
    let (mut db, driven) = direct.connect().await?;
    let ready = make_ready_on(&mut db, options, clock).await;
    driven.abort();
    ready
}

async fn make_ready_on(
    db: &mut Client,
    options: &OpenOptions,
    clock: &FollowedClock,
) -> Result<usize, Fault> {
    open::check_durability(db, options.durability).await?;
    let steps = migrate::migrate(db).await?;
    instances::set_clock(db, clock).await?;
    let mut line = Line::new(db, None);
    if let Err(fault) = partitions::keep_days(&mut line, clock.now(), Timestamp::default()).await {
        // Rows of a day without a table are kept all the same.
        tracing::warn!(error = %fault, "cannot make the days of history");
    }
    Ok(steps)
}

/// A count as PostgreSQL takes it.
fn limit(count: usize) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}

#[async_trait]
impl Store for Postgres {
    async fn insert(&self, rows: Vec<NewRow>) -> Result<Vec<Inserted>, StoreError> {
        let answers = match gather::takes(&rows) {
            true => self.gather.insert(rows).await?,
            false => transact!(self, |db| insert::insert(db, &rows))?,
        };
        if answers.contains(&Inserted::New) {
            self.news.ring();
        }
        Ok(answers)
    }

    async fn claim(&self, request: ClaimRequest) -> Result<Claims, StoreError> {
        ask!(self, |db| claim::claim(db, &request))
    }

    async fn start(&self, claim: ClaimRef, now: Timestamp) -> Result<bool, StoreError> {
        ask!(self, |db| claim::start(db, &claim, now))
    }

    async fn renew(&self, claims: Vec<ClaimRef>, until_at: Timestamp) -> Result<Vec<bool>, StoreError> {
        ask!(self, |db| claim::renew(db, &claims, until_at))
    }

    async fn apply(&self, changes: Vec<Change>) -> Result<Vec<Applied>, StoreError> {
        let answers = transact!(self, |db| apply::apply(db, &changes))?;
        // What people do is not waited for; what workers write is due later, and found then.
        if changes.iter().any(|change| change.audit.is_some() || change.spawn.is_some()) {
            self.news.ring();
        }
        Ok(answers)
    }

    async fn note(&self, id: MessageId, record: AttemptRecord) -> Result<(), StoreError> {
        ask!(self, |db| apply::note(db, &id, &record))
    }

    async fn lapsed(&self, now: Timestamp, limit: usize) -> Result<Vec<Message>, StoreError> {
        ask!(self, |db| read::lapsed(db, now, limit))
    }

    async fn overdue(&self, now: Timestamp, limit: usize) -> Result<Vec<Message>, StoreError> {
        ask!(self, |db| read::overdue(db, now, limit))
    }

    async fn expired(&self, now: Timestamp, limit: usize) -> Result<Vec<Message>, StoreError> {
        ask!(self, |db| read::expired(db, now, limit))
    }

    async fn parked(&self) -> Result<Vec<GateKey>, StoreError> {
        ask!(self, |db| gates::parked(db))
    }

    async fn release(&self, gate: GateKey, limit: usize) -> Result<usize, StoreError> {
        let released = ask!(self, |db| gates::release(db, &gate, limit))?;
        if released > 0 {
            self.news.ring();
        }
        Ok(released)
    }

    /// Nobody waits for a row that is deleted, and a commit takes as long for many as for few.
    fn prune_at_once(&self) -> usize {
        2_000
    }

    /// While what one claim brought is read, another one is made.
    fn claims_at_once(&self) -> usize {
        2
    }

    async fn gates(&self) -> Result<Vec<GateRecord>, StoreError> {
        ask!(self, |db| gates::gates(db))
    }

    async fn put_gate(&self, change: GateChange) -> Result<bool, StoreError> {
        let put = transact!(self, |db| gates::put_gate(db, &change))?;
        if put {
            self.news.ring();
        }
        Ok(put)
    }

    async fn draw_limit(&self, request: LimitRequest) -> Result<Grant, StoreError> {
        transact!(self, |db| destination_limits::draw_limit(db, &request))
    }

    async fn forget_limits(&self, now: Timestamp) -> Result<usize, StoreError> {
        transact!(self, |db| destination_limits::forget_limits(db, now))
    }

    async fn prune(&self, request: PruneRequest) -> Result<Pruned, StoreError> {
        transact!(self, |db| prune::prune(db, &request, &self.last_look))
    }

    async fn beat(
        &self,
        instance: InstanceId,
        now: Timestamp,
        silent_max: Duration,
    ) -> Result<(), StoreError> {
        ask!(self, |db| instances::beat(db, &self.clock, instance, now, silent_max))
    }

    async fn introduce(&self, instance: InstanceId, about: About) -> Result<(), StoreError> {
        ask!(self, |db| instances::introduce(db, instance, &about))
    }

    async fn living(&self, now: Timestamp) -> Result<Vec<Living>, StoreError> {
        ask!(self, |db| instances::living(db, now))
    }

    async fn leave(&self, instance: InstanceId) -> Result<(), StoreError> {
        ask!(self, |db| instances::leave(db, instance))
    }

    async fn get(&self, id: MessageId) -> Result<Option<Message>, StoreError> {
        ask!(self, |db| read::get(db, &id))
    }

    async fn content(&self, id: MessageId) -> Result<Option<Content>, StoreError> {
        ask!(self, |db| read::content(db, &id))
    }

    async fn attempts(&self, id: MessageId) -> Result<Vec<AttemptRecord>, StoreError> {
        ask!(self, |db| read::attempts(db, &id))
    }

    async fn edits(&self, id: MessageId) -> Result<Vec<EditRecord>, StoreError> {
        ask!(self, |db| read::edits(db, &id))
    }

    async fn list(&self, filter: Filter) -> Result<Vec<Message>, StoreError> {
        ask!(self, |db| list::list(db, &filter))
    }

    async fn counts(&self, now: Timestamp) -> Result<Vec<Count>, StoreError> {
        ask!(self, |db| read::counts(db, now))
    }

    async fn next_due_at(&self, route: Name, lane: Lane) -> Result<Option<Timestamp>, StoreError> {
        ask!(self, |db| claim::next_due_at(db, &route, lane))
    }

    async fn put_bulk(&self, bulk: Bulk, audit: Option<Audit>) -> Result<bool, StoreError> {
        transact!(self, |db| bulk::put(db, &bulk, audit.as_ref()))
    }

    async fn bulk(&self, id: Arc<str>) -> Result<Option<Bulk>, StoreError> {
        ask!(self, |db| bulk::get(db, &id))
    }

    async fn bulks(&self, after: Option<Arc<str>>, limit: usize) -> Result<Vec<Bulk>, StoreError> {
        ask!(self, |db| bulk::newest(db, after.as_deref(), limit))
    }

    async fn running_bulks(&self, after: Option<Arc<str>>, limit: usize) -> Result<Vec<Bulk>, StoreError> {
        ask!(self, |db| bulk::running(db, after.as_deref(), limit))
    }

    async fn deeds(&self, filter: DeedFilter) -> Result<Vec<Deed>, StoreError> {
        ask!(self, |db| read::deeds(db, &filter))
    }

    async fn changed_outside(&self) -> Result<bool, StoreError> {
        Ok(self.news.is_there_any())
    }
}
