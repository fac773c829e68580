//! The SQLite store with its threads on a simulated disk that fails as the seed has it: I/O errors on reads, writes and syncs,
//! a full disk, each passing or lasting, and a power cut after which any part of what was not synced is there.
//!
//! The disk is simulated below SQLite, so that the threads that write, sync, read and write the log back all meet its faults.
//! Threads take their turns as the machine has it: a seed draws the same work and the same faults each time, but not the same
//! interleaving.

use std::pin::pin;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use redeliver_core::accept::{NewMessage, admit};
use redeliver_core::change::NewRow;
use redeliver_core::policy::{Backoff, Jitter, Policy};
use redeliver_core::settle::settle;
use redeliver_core::{Content, InstanceId, Lane, MessageId, Outcome, Route, Timestamp};
use redeliver_engine::store::{Applied, ClaimKind, ClaimRequest, Inserted, Store, StoreError};
use redeliver_stores::{OpenOptions, Sqlite};

use crate::disk::{Disk, Fault, Kind};
use crate::ledger::Ledger;
use crate::rng::Rng;
use crate::run::Report;
use crate::scenario::Scenario;

/// Callers at once, and how often each of them calls, at most.
const CALLERS: u64 = 4;
const CALLS_MAX: u64 = 8;
/// Messages in a call whose commit another thread syncs while the writer goes on.
const MANY: u64 = 150;
/// Keys that more than one caller uses.
const SHARED_KEYS: u64 = 8;
/// Lengths of the log at which it is written back: all the time, now and then, never.
const CHECKPOINT_PAGES: [i32; 3] = [20, 150, 1_000_000];
/// How often a store may fail once its disk is fine again.
const RECOVERY_TRIES: u64 = 3;

/// In how many runs each fault of the disk occurred.
#[derive(Debug, Default)]
pub struct Tally {
    passing: [AtomicU64; 4],
    lasting: [AtomicU64; 4],
    power_cuts: AtomicU64,
}

impl Tally {
    /// The fewest runs in which any of the faults occurred.
    pub fn fewest(&self) -> u64 {
        let all = self.passing.iter().chain(&self.lasting).chain([&self.power_cuts]);
        all.map(|count| count.load(Ordering::Relaxed)).min().unwrap_or(0)
    }
}

impl std::fmt::Display for Tally {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let count = |count: &AtomicU64| count.load(Ordering::Relaxed);
        write!(f, "runs with {} power cuts", count(&self.power_cuts))?;
        for ((kind, passing), lasting) in Kind::ALL.iter().zip(&self.passing).zip(&self.lasting) {
            write!(f, ", {kind:?} faults {} passing and {} lasting", count(passing), count(lasting))?;
        }
        Ok(())
    }
}

/// Runs seeds, each on a disk of its own.
pub fn on_threads(tally: &Tally) -> impl FnMut(u64) -> Report {
    move |seed| {
        let mut report = Report::failed(seed, String::new());
        report.scenario = Scenario::draw(&mut Rng::new(seed));
        report.violation = match story(seed, tally) {
            Ok((accepted, faults)) => {
                report.figures.accepted = accepted;
                report.figures.store_faults = faults;
                None
            }
            Err(violation) => Some(violation),
        };
        report
    }
}

/// What the threads of one run share.
struct Stage {
    /// Closed before its disk is gone.
    store: Sqlite,
    disk: Disk,
    ledger: Mutex<Ledger>,
    /// Messages accepted after which the power is cut.
    cut_after: Option<usize>,
    is_cut: AtomicBool,
}

fn story(seed: u64, tally: &Tally) -> Result<(u64, u64), String> {
    let mut rng = Rng::new(seed ^ 0x7412_eade);
    let disk = Disk::new()?;
    let checkpoint_pages = *rng.pick(&CHECKPOINT_PAGES);
    let store = Sqlite::open_with_checkpoints(disk.store(), OpenOptions::default(), checkpoint_pages);
    let fault = draw_fault(&mut rng);
    fault.map_or(Ok(()), |fault| disk.begin(fault))?;
    let cut_after = rng.chance(500).then(|| rng.between(1, 400) as usize);
    let (store, ledger, is_cut) = (store.map_err(show)?, Mutex::default(), AtomicBool::new(false));
    let stage = Arc::new(Stage { disk, store, ledger, cut_after, is_cut });
    let runtime = tokio::runtime::Builder::new_current_thread().build().map_err(show)?;
    runtime.block_on(async {
        let mut calls = tokio::task::JoinSet::new();
        for caller in 0..CALLERS {
            calls.spawn(call(Arc::clone(&stage), caller, Rng::new(rng.draw())));
        }
        while let Some(ended) = calls.join_next().await {
            ended.map_err(show)??;
        }
        if stage.is_cut.load(Ordering::Relaxed) { Ok(()) } else { stage.end(fault).await }
    })?;
    let Some(Stage { disk, store, ledger, is_cut, .. }) = Arc::into_inner(stage) else {
        return Err("a caller goes on after its end".to_owned());
    };
    let ledger = ledger.into_inner().unwrap_or_else(PoisonError::into_inner);
    let is_cut = is_cut.into_inner();
    let left = if is_cut { Some(disk.left(&mut rng)?) } else { None };
    let fired = disk.fired()?;
    drop(store);
    disk.heal()?;
    runtime.block_on(ledger.judge(&left.unwrap_or_else(|| disk.store())))?;
    tally.power_cuts.fetch_add(u64::from(is_cut), Ordering::Relaxed);
    if let Some(Fault { kind, count, .. }) = fault {
        let tally = if count.is_some() { &tally.passing } else { &tally.lasting };
        tally[kind as usize].fetch_add(u64::from(fired[kind as usize] > 0), Ordering::Relaxed);
    }
    Ok((ledger.accepted.len() as u64, fired.iter().sum()))
}

fn draw_fault(rng: &mut Rng) -> Option<Fault> {
    let kind = *rng.pick(&[None, Some(Kind::Read), Some(Kind::Write), Some(Kind::Full), Some(Kind::Sync)]);
    let calls_max = if kind == Some(Kind::Sync) { 12 } else { *rng.pick(&[5, 50, 500]) };
    let (before, count) = (rng.between(0, calls_max), rng.chance(500).then(|| rng.between(1, 8)));
    kind.map(|kind| Fault { kind, before, count })
}

/// One caller: few messages, many, keys that others use too, a look at what was accepted, a delivery.
async fn call(stage: Arc<Stage>, caller: u64, mut rng: Rng) -> Result<(), String> {
    for n in 0..rng.between(1, CALLS_MAX) {
        let first = (caller * CALLS_MAX + n) * 2 * MANY;
        let own = |count: u64| (0..count).map(|n| row(first + n, &format!("own {}", first + n))).collect();
        match rng.between(0, 5) {
            0 => stage.insert(own(MANY)).await,
            1 => stage.insert(vec![row(first, &format!("shared {}", rng.between(1, SHARED_KEYS)))]).await,
            2 => stage.look(rng.draw()).await?,
            3 => stage.deliver(caller).await,
            _ => stage.insert(own(rng.between(1, 3))).await,
        }
        stage.cut_if_due()?;
    }
    Ok(())
}

impl Stage {
    fn ledger(&self) -> MutexGuard<'_, Ledger> {
        self.ledger.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Cuts the power, once so many messages are accepted. Whatever is answered afterwards was synced before.
    fn cut_if_due(&self) -> Result<(), String> {
        let is_due = self.cut_after.is_some_and(|count| self.ledger().accepted.len() >= count);
        if is_due && !self.is_cut.swap(true, Ordering::Relaxed) { self.disk.cut_power() } else { Ok(()) }
    }

    /// Has messages accepted, and notes what was said to whom. A call that fails may have been done or not.
    async fn insert(&self, rows: Vec<NewRow>) {
        let ids: Vec<MessageId> = rows.iter().map(|row| row.message.id.clone()).collect();
        self.ledger().calls.push(ids.clone());
        let Ok(answers) = self.store.insert(rows).await else { return };
        self.ledger().accepted.extend(ids.into_iter().zip(answers).map(|(id, answer)| match answer {
            Inserted::New => id,
            Inserted::Known(known) => known.id,
        }));
    }

    /// Reads one of the messages that were accepted: it is there, or nobody can say.
    async fn look(&self, drawn: u64) -> Result<(), String> {
        let id = {
            let ledger = self.ledger();
            let Some(place) = drawn.checked_rem(ledger.accepted.len() as u64) else { return Ok(()) };
            ledger.accepted[place as usize].clone()
        };
        match self.store.get(id.clone()).await {
            Ok(None) => Err(format!("accepted, and then said not to be there: {id}")),
            Ok(Some(_)) | Err(_) => Ok(()),
        }
    }

    /// Claims a few messages, and writes that they were delivered.
    async fn deliver(&self, caller: u64) {
        let request = ClaimRequest {
            route: "mail".into(),
            lane: Lane::Medium,
            limit: 3,
            kind: ClaimKind::Trusted,
            instance: InstanceId(caller + 1),
            now: Timestamp::from_ms(2_000),
            lease: Duration::from_secs(60),
            keeps_first_send: false,
        };
        let Ok(claims) = self.store.claim(request).await else { return };
        let outcome = Outcome::Delivered { receipt: None };
        let changes = claims.claimed.iter();
        let changes: Vec<_> = changes
            .map(|(message, _)| settle(message, &outcome, &route(), Timestamp::from_ms(3_000)))
            .collect();
        let Ok(answers) = self.store.apply(changes).await else { return };
        let delivered = claims.claimed.into_iter().zip(answers);
        let delivered = delivered.filter(|(_, answer)| *answer == Applied::Applied);
        self.ledger().delivered.extend(delivered.map(|((message, _), _)| message.id));
    }

    /// What the store says of itself while the fault is there, and after it is gone.
    async fn end(&self, fault: Option<Fault>) -> Result<(), String> {
        let fired = self.disk.fired()?;
        let has_fired = |kind: Kind| fired[kind as usize] > 0;
        let beat = self.beat().await;
        if has_fired(Kind::Write) && fault.is_some_and(|fault| fault.count.is_none()) && beat.is_ok() {
            return Err("a heartbeat is confirmed, but no write succeeds".to_owned());
        }
        // The heartbeat may have been the first to meet it.
        let has_sync_failed = self.disk.fired()?[Kind::Sync as usize] > 0;
        if self.is_broken() != has_sync_failed {
            return Err(format!("broken: {}, but a sync failed: {has_sync_failed}", self.is_broken()));
        }
        self.disk.heal()?;
        if has_sync_failed {
            let answer = self.beat().await;
            let is_said = matches!(answer, Err(StoreError::Broken(_)));
            return if is_said { Ok(()) } else { Err(format!("a sync failed, and then: {answer:?}")) };
        }
        for n in 0..RECOVERY_TRIES {
            let before = self.ledger().accepted.len();
            let number = (CALLERS * CALLS_MAX + n) * 2 * MANY;
            self.insert((0..MANY).map(|n| row(number + n, &format!("own {}", number + n))).collect()).await;
            if self.ledger().accepted.len() > before {
                return self.beat().await.map_err(|error| format!("no heartbeat on a good disk: {error}"));
            }
        }
        Err("the disk is fine again, but the store accepts nothing and does not say that it is broken"
            .to_owned())
    }

    async fn beat(&self) -> Result<(), StoreError> {
        self.store.beat(InstanceId(1), Timestamp::from_ms(4_000), Duration::from_secs(60)).await
    }

    fn is_broken(&self) -> bool {
        pin!(self.store.broken()).poll(&mut Context::from_waker(Waker::noop())) != Poll::Pending
    }
}

fn route() -> Route {
    let policy = Policy {
        backoff: Backoff::Table(vec![]),
        jitter: Jitter::None,
        max_attempts: 1,
        expires_after: None,
    };
    Route::new("mail", "nowhere", policy)
}

fn row(n: u64, key: &str) -> NewRow {
    let new = NewMessage { key: Some(key.into()), ..NewMessage::new("mail", Content::of_bytes("hello")) };
    admit(new, &route(), MessageId::own(u128::from(n) + 1), None, Timestamp::from_ms(1_000))
}

fn show(error: impl std::fmt::Display) -> String {
    error.to_string()
}
