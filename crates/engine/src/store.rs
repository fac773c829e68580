//! The port to whatever remembers messages. Batch-shaped, and without opinions: it writes what core decided.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use redeliver_core::accept::Known;
use redeliver_core::attempt::AttemptRecord;
use redeliver_core::bulk::Bulk;
use redeliver_core::change::{Audit, NewRow};
use redeliver_core::edit::EditRecord;
use redeliver_core::gate::{GateKey, GateRecord};
use redeliver_core::limit::{Ask, Grant};
use redeliver_core::status::Status;
use redeliver_core::{Change, Content, InstanceId, Lane, Message, MessageId, Name, Timestamp};

/// Remembers messages. Every call is one transaction; an answer means that it is durable.
///
/// A call that fails may or may not have happened: every one can be said again.
#[async_trait]
pub trait Store: Send + Sync + 'static {
    /// Keeps new messages, each with its content, its key and its dead letter. A key that is known keeps the first
    /// message and says what is known of it; an id that is there already answers [`Inserted::New`] once more.
    async fn insert(&self, rows: Vec<NewRow>) -> Result<Vec<Inserted>, StoreError>;

    /// Leases up to `limit` due messages of one lane to one instance, oldest due first, raising each fence.
    async fn claim(&self, request: ClaimRequest) -> Result<Claims, StoreError>;

    /// Records that a carrying is about to start; `false` if the claim isn't as it was, so that it must not.
    async fn start(&self, claim: ClaimRef, now: Timestamp) -> Result<bool, StoreError>;

    /// Moves the end of leases on, never back; `false` for each claim that is no longer held.
    async fn renew(&self, claims: Vec<ClaimRef>, until_at: Timestamp) -> Result<Vec<bool>, StoreError>;

    /// Writes changes, each only if its message still has the fence that was read. One that leaves a message claimed
    /// writes its fence and the request to cancel it; the lease is its holder's.
    async fn apply(&self, changes: Vec<Change>) -> Result<Vec<Applied>, StoreError>;

    /// Adds to a message's history without changing the message.
    async fn note(&self, id: MessageId, record: AttemptRecord) -> Result<(), StoreError>;

    /// Claimed messages whose lease is over, or whose instance is unknown or silent for too long.
    async fn lapsed(&self, now: Timestamp, limit: usize) -> Result<Vec<Message>, StoreError>;

    /// Waiting messages that nobody would ever claim as they stand: their tries are used up, or they have no time. Only
    /// where somebody else writes them, too.
    async fn stranded(&self, _now: Timestamp, _limit: usize) -> Result<Vec<Message>, StoreError> {
        Ok(Vec::new())
    }

    /// Handed-off messages whose report is overdue.
    async fn overdue(&self, now: Timestamp, limit: usize) -> Result<Vec<Message>, StoreError>;

    /// Waiting and handed-off messages whose time has run out.
    async fn expired(&self, now: Timestamp, limit: usize) -> Result<Vec<Message>, StoreError>;

    /// The gates for which messages are parked.
    async fn parked(&self) -> Result<Vec<GateKey>, StoreError>;

    /// Lets up to `limit` messages parked for a gate wait for their due time again, oldest due first.
    async fn release(&self, gate: GateKey, limit: usize) -> Result<usize, StoreError>;

    /// How many claims of one lane are worth making at once: more than one where claims don't wait for each other.
    fn claims_at_once(&self) -> usize {
        1
    }

    /// How many messages are worth deleting at once: few where everybody waits for one writer.
    fn prune_at_once(&self) -> usize {
        500
    }

    /// All gates that aren't simply open.
    async fn gates(&self) -> Result<Vec<GateRecord>, StoreError>;

    /// Changes a gate, if it still has the version that was read.
    async fn put_gate(&self, change: GateChange) -> Result<bool, StoreError>;

    /// Gives an instance its part of a destination's limits, as [`Timeline::grant`](redeliver_core::limit::Timeline::grant)
    /// has it. Permits of another instance count while it lives, or until the time that it named. Where permits
    /// are limited, a call whose turn is not later than the last one of the same instance is given nothing.
    async fn draw_limit(&self, request: LimitRequest) -> Result<Grant, StoreError>;

    /// Forgets slots that are long past, and the permits of instances that are gone. Says how many destinations that were.
    async fn forget_limits(&self, now: Timestamp) -> Result<usize, StoreError>;

    /// Deletes up to `limit` messages of a route that were put away (delivered, cancelled, dismissed) before
    /// `before`, and keys that have outlived their messages for long enough.
    async fn prune(&self, request: PruneRequest) -> Result<Pruned, StoreError>;

    /// Says that an instance lives; a word that comes late takes nothing back. Others may take its messages once nothing was heard for `silent_max`.
    async fn beat(
        &self,
        instance: InstanceId,
        now: Timestamp,
        silent_max: Duration,
    ) -> Result<(), StoreError>;

    /// Keeps what an instance that lives says of itself.
    async fn introduce(&self, instance: InstanceId, about: About) -> Result<(), StoreError>;

    /// The instances that live, as far as was heard by `now`, in the order in which they started.
    async fn living(&self, now: Timestamp) -> Result<Vec<Living>, StoreError>;

    /// Says that an instance is gone for good and holds nothing.
    async fn leave(&self, instance: InstanceId) -> Result<(), StoreError>;

    /// One message.
    async fn get(&self, id: MessageId) -> Result<Option<Message>, StoreError>;

    /// One message's content.
    async fn content(&self, id: MessageId) -> Result<Option<Content>, StoreError>;

    /// One message's history, oldest first.
    async fn attempts(&self, id: MessageId) -> Result<Vec<AttemptRecord>, StoreError>;

    /// What people corrected in one message, oldest first.
    async fn edits(&self, id: MessageId) -> Result<Vec<EditRecord>, StoreError>;

    /// Messages, newest first.
    async fn list(&self, filter: Filter) -> Result<Vec<Message>, StoreError>;

    /// How many messages stand where, in one snapshot.
    async fn counts(&self, now: Timestamp) -> Result<Vec<Count>, StoreError>;

    /// When the first message of a lane is due, or was, that neither waits for a gate nor is claimed; `None` also if
    /// this store can't tell.
    async fn next_due_at(&self, _route: Name, _lane: Lane) -> Result<Option<Timestamp>, StoreError> {
        Ok(None)
    }

    /// Keeps what is done to many messages, if it still has the version that was read; the store sets the next one.
    async fn put_bulk(&self, bulk: Bulk, audit: Option<Audit>) -> Result<bool, StoreError>;

    /// One such.
    async fn bulk(&self, id: Arc<str>) -> Result<Option<Bulk>, StoreError>;

    /// Such, newest first: those that are older than `after`.
    async fn bulks(&self, after: Option<Arc<str>>, limit: usize) -> Result<Vec<Bulk>, StoreError>;

    /// Only those that go on, whatever has begun since.
    async fn running_bulks(&self, after: Option<Arc<str>>, limit: usize) -> Result<Vec<Bulk>, StoreError>;

    /// What people did, newest first.
    async fn deeds(&self, filter: DeedFilter) -> Result<Vec<Deed>, StoreError>;

    /// The newest so many of all that people did.
    async fn audit(&self, limit: usize) -> Result<Vec<Audit>, StoreError> {
        let deeds = self.deeds(DeedFilter { limit, ..DeedFilter::default() }).await?;
        Ok(deeds.into_iter().map(|deed| deed.audit).collect())
    }

    /// Ends when this store can no longer work in this process, with the reason and what to do: a log that could not
    /// be synced, a thread that panicked. A store that only waits for its disk or its database is not broken.
    async fn broken(&self) -> StoreError {
        std::future::pending().await
    }

    /// Whether somebody outside this process has written since the last call. Only ever shortens a sleep.
    async fn changed_outside(&self) -> Result<bool, StoreError>;
}

/// What an instance says of itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct About {
    /// Where it runs, for people.
    pub name: Arc<str>,
    /// Which version it is.
    pub version: Arc<str>,
    /// When it started.
    pub started_at: Timestamp,
}

/// Leases of one instance that are counted one by one.
pub const LEASES_COUNTED_MAX: usize = 10_000;

/// An instance that lives.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Living {
    /// Which one.
    pub id: InstanceId,
    /// What it says of itself, if it has said anything.
    pub about: Option<About>,
    /// When it was last heard of.
    pub beat_at: Option<Timestamp>,
    /// Messages that it holds, up to [`LEASES_COUNTED_MAX`].
    pub leases: u64,
}

/// What became of one new row.
#[derive(Clone, Debug, PartialEq)]
pub enum Inserted {
    /// It is kept.
    New,
    /// Its key was said before; nothing was written.
    Known(Box<Known>),
}

/// Which due messages to lease, to whom, and for how long.
#[derive(Clone, Debug, PartialEq)]
pub struct ClaimRequest {
    /// The route.
    pub route: Name,
    /// The lane.
    pub lane: Lane,
    /// At most this many.
    pub limit: usize,
    /// Only messages that lost a lease before, or only those that didn't.
    pub kind: ClaimKind,
    /// To whom.
    pub instance: InstanceId,
    /// The time that decides what is due.
    pub now: Timestamp,
    /// For how long.
    pub lease: Duration,
    /// Whether `now` is kept as the time of the first send of each message that has none yet.
    pub keeps_first_send: bool,
}

/// The two kinds of due message.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum ClaimKind {
    /// Those that never lost a lease.
    Trusted,
    /// Those that did: they are claimed alone.
    Suspect,
}

impl ClaimKind {
    /// The kind of this message.
    pub fn of(message: &Message) -> Self {
        if message.is_suspect() { Self::Suspect } else { Self::Trusted }
    }
}

/// What a claim came to.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Claims {
    /// The messages, claimed, with their contents.
    pub claimed: Vec<(Message, Content)>,
    /// When to look again: as soon as the next message of this lane and kind is due, claimed ones aside, or earlier if
    /// there was no room for all.
    pub next_due_at: Option<Timestamp>,
}

/// One claim of one message.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ClaimRef {
    /// Which message.
    pub id: MessageId,
    /// The fence that the claim was given.
    pub claim: u64,
}

/// What became of one change.
#[derive(Clone, Debug, PartialEq)]
pub enum Applied {
    /// It is written.
    Applied,
    /// It was written before, by the same claim: the earlier answer was lost.
    AlreadyMine,
    /// Somebody else wrote first; the message as it stands now, if it still exists.
    Superseded(Option<Box<Message>>),
}

/// A gate's new record, or its opening.
#[derive(Clone, Debug, PartialEq)]
pub struct GateChange {
    /// Which gate.
    pub key: GateKey,
    /// The version that was read; 0 if there was no record.
    pub expected_version: u64,
    /// The new record; `None` opens the gate. The store sets its version.
    pub record: Option<GateRecord>,
    /// Who did it, where a person did.
    pub audit: Option<Audit>,
}

/// What an instance asks of a destination's limits.
#[derive(Clone, Debug, PartialEq)]
pub struct LimitRequest {
    /// Which destination.
    pub destination: Name,
    /// Who asks.
    pub instance: InstanceId,
    /// Numbers the calls of an instance for a destination: one that comes late changes nothing.
    pub turn: u64,
    /// Until when its permits count although nothing was heard of it.
    pub until_at: Timestamp,
    /// What it asks for.
    pub ask: Ask,
}

/// How long a destination's limits are remembered after they last mattered.
pub const LIMITS_KEPT_FOR: Duration = Duration::from_secs(60);

/// What to delete.
#[derive(Clone, Debug, PartialEq)]
pub struct PruneRequest {
    /// Of which route.
    pub route: Name,
    /// Put away before this.
    pub before: Timestamp,
    /// How long keys of deleted messages still answer; `None` = for ever.
    pub key_retention: Option<Duration>,
    /// The time.
    pub now: Timestamp,
    /// At most this many messages and as many keys.
    pub limit: usize,
}

/// What was deleted.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub struct Pruned {
    /// Messages, with their contents and histories.
    pub messages: usize,
    /// Keys.
    pub keys: usize,
}

/// Which messages to list. Dismissed ones only if they are asked for.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Filter {
    /// Of this workspace.
    pub workspace: Option<Name>,
    /// Of this route.
    pub route: Option<Name>,
    /// Of this priority.
    pub lane: Option<Lane>,
    /// In this state, by its word.
    pub state: Option<&'static str>,
    /// Of this status at a time.
    pub status: Option<StatusAt>,
    /// With this key.
    pub key: Option<Arc<str>>,
    /// Dismissed dead ones too.
    pub with_dismissed: bool,
    /// Older than this one.
    pub after: Option<MessageId>,
    /// At most this many.
    pub limit: usize,
}

/// One thing that somebody did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Deed {
    /// Its place among all deeds: the later, the higher.
    pub number: u64,
    /// Who did what to what.
    pub audit: Audit,
}

/// Which deeds to list.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DeedFilter {
    /// Of this person or key.
    pub actor: Option<Arc<str>>,
    /// Of this kind, by its word.
    pub action: Option<Arc<str>>,
    /// Done to this.
    pub subject: Option<Arc<str>>,
    /// Older than the one with this number.
    pub after: Option<u64>,
    /// At most this many.
    pub limit: usize,
}

/// A status, which depends on the time at which it is asked for.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct StatusAt {
    /// Which.
    pub status: Status,
    /// When.
    pub now: Timestamp,
}

/// How many messages of a lane stand in a state.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Count {
    /// The route.
    pub route: Name,
    /// The lane.
    pub lane: Lane,
    /// The state's word.
    pub state: &'static str,
    /// Why, for dead ones.
    pub reason: Option<&'static str>,
    /// How many. Dismissed ones don't count.
    pub count: u64,
    /// How many of the waiting ones are due and not parked.
    pub due: u64,
    /// How many of the waiting ones are parked.
    pub parked: u64,
    /// How many rows of an application's table have been with their sender for over an hour, a day and a week. Messages
    /// of our own don't count here.
    pub old: [u64; 3],
}

/// Why a store did not answer. The variants say what can be done.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StoreError {
    /// It may work in a moment.
    #[error("the store does not answer: {0}")]
    Unavailable(String),
    /// Somebody has to make room.
    #[error("the store is full: {0}")]
    Full(String),
    /// Somebody has to repair it.
    #[error("the store is damaged: {0}")]
    Damaged(String),
    /// Nothing works until the process is started again.
    #[error("the store is broken: {0}")]
    Broken(String),
    /// The call makes no sense for this store.
    #[error("the store cannot do this: {0}")]
    Unfit(String),
}

impl StoreError {
    /// Whether the same call may work later without anybody doing anything.
    pub fn is_passing(&self) -> bool {
        matches!(self, Self::Unavailable(_))
    }
}
