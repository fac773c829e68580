//! The rows of an application's table as the databases hand them out, before anybody has said what they mean.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use redeliver_core::Timestamp;
use redeliver_engine::store::{Applied, StoreError};

use crate::mails::Fields;

/// A time in microseconds since 1970: what a row's lock is compared by, to the last digit.
pub type Micros = i64;

/// One row, as it stands in the table.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Row {
    /// Which one.
    pub id: String,
    /// What the application calls it.
    pub key: Option<String>,
    /// Where it stands, in the application's word.
    pub status: String,
    /// How often it was tried.
    pub attempts: i64,
    /// When it is to be tried next.
    pub next_attempt_at: Option<Micros>,
    /// Until when somebody has it.
    pub locked_until: Option<Micros>,
    /// What went wrong last.
    pub last_error: Option<String>,
    /// Why it was given up.
    pub dead_reason: Option<String>,
    /// When it was last handed to its sender.
    pub last_queued_at: Option<Micros>,
    /// When the application made it. Only ever read.
    pub created_at: Option<Micros>,
}

/// A row as it was read, and as it is to be. It is written only if it still stands as it was read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rewrite {
    /// As it was read, under its lock.
    pub was: Row,
    /// As it is to be.
    pub now: Row,
}

/// What came of looking at rows under their locks.
#[derive(Default)]
pub struct Judged {
    /// What to write.
    pub rewrites: Vec<Rewrite>,
    /// What to answer.
    pub answers: Vec<Applied>,
}

/// Looks at rows that nobody else can write meanwhile, and says what to write. It may be asked more than once.
pub type Judge = Arc<dyn Fn(&[Row]) -> Judged + Send + Sync>;

/// Which rows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Which {
    /// Those with these ids.
    Ids(Vec<String>),
    /// Those whose lock has passed though somebody said to have them.
    Lapsed(Timestamp),
    /// Those that were handed to their sender by the first time, and that no sender has locked at the second.
    Overdue(Timestamp, Timestamp),
    /// Those that wait though their tries are used up.
    Spent(u32),
    /// Those that wait for no time.
    Timeless,
    /// A page of those with these words, newest first.
    Page(Page),
}

/// A page of rows.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Page {
    /// In these words.
    pub words: Vec<String>,
    /// With this key.
    pub key: Option<String>,
    /// With smaller ids than this.
    pub after: Option<String>,
    /// Due by this time, or only after it.
    pub due: Option<(Timestamp, bool)>,
    /// Tried before, or never.
    pub tried: Option<bool>,
}

/// Which rows to lease, and for how long.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Due {
    /// Due by this time.
    pub by: Timestamp,
    /// The time.
    pub now: Timestamp,
    /// For so long.
    pub lease: Duration,
    /// With fewer tries than these.
    pub attempts_max: u32,
    /// At most this many.
    pub limit: usize,
}

/// How many rows have a word.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Tally {
    /// The word.
    pub status: String,
    /// Why they were given up, where they were.
    pub dead_reason: Option<String>,
    /// How many.
    pub count: u64,
    /// How many of them have a next try whose time has come.
    pub due: u64,
    /// Which of them have been with their sender for too long.
    pub old: Old,
}

/// How many rows have been with their sender for a long time.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Default)]
pub struct Old {
    /// Longer than an hour, a day and a week.
    pub than: [u64; 3],
    /// Nobody wrote since when.
    pub since_unknown: u64,
}

/// What is wrong with a table, or with what an application wrote into it.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Examined {
    /// How many rows have which word.
    pub tallies: Vec<Tally>,
    /// Rows that wait for no time.
    pub timeless: u64,
    /// Rows that were tried less than never.
    pub negative: u64,
    /// Claimed rows without a lock: nobody will ever take them back.
    pub lockless: u64,
    /// Failed rows whose next try is at no time that this table's times can be compared with.
    pub untimely: u64,
}

impl Examined {
    /// Rows that have been with their sender for a long time: only one status has any.
    pub fn old(&self) -> Old {
        let mut all = self.tallies.iter().map(|tally| tally.old);
        all.find(|old| *old != Old::default()).unwrap_or_default()
    }
}

/// An application's table in some database.
#[async_trait]
pub trait Rows: Send + Sync + 'static {
    /// Leases due rows that nobody else is leasing, oldest due first, and gives them back as they stand then.
    async fn claim(&self, due: Due) -> Result<Vec<Row>, StoreError>;

    /// When the first row that can be claimed is due, or was.
    async fn next_due_at(&self, attempts_max: u32) -> Result<Option<Timestamp>, StoreError>;

    /// Reads rows under their locks, has them judged, and writes what the judge says, all in one transaction.
    async fn rewrite(&self, ids: Vec<String>, judge: Judge) -> Result<Vec<Applied>, StoreError>;

    /// Reads rows.
    async fn find(&self, which: Which, limit: usize) -> Result<Vec<Row>, StoreError>;

    /// Counts rows.
    async fn tally(&self, now: Timestamp) -> Result<Vec<Tally>, StoreError>;

    /// Looks for what an application got wrong.
    async fn examine(&self, now: Timestamp) -> Result<Examined, StoreError>;

    /// Reads the mail of a row; without an id, only sees whether that can be asked.
    async fn mail(&self, id: Option<String>) -> Result<Option<Fields>, StoreError>;

    /// Whether this text can be the id of a row.
    fn is_id(&self, text: &str) -> bool;

    /// Whether ids are numbers, rather than texts that may look like some.
    fn has_number_ids(&self) -> bool;
}

/// The columns that one row has in every statement, in this order: `id, key, status, attempts, next_attempt_at,
/// locked_until, last_error, dead_reason, last_queued_at, created_at`.
pub(crate) const COLUMNS: usize = 10;
