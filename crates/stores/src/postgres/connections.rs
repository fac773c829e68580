//! The way to the database: a pool of connections that are all alike, and what a call may cost.
//!
//! Nothing is kept on a connection between two calls, no setting, no lock, no prepared statement: behind a pooler, the
//! next call may find another server's end.

use std::future::Future;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use deadpool_postgres::{Manager, ManagerConfig, Object, Pool, PoolError, RecyclingMethod, Runtime};
use redeliver_engine::clock::{Clock, FollowedClock};
use redeliver_engine::store::StoreError;

use super::errors::{Fault, store_error};
use super::line::Line;
use super::open::{Address, OpenOptions};

/// The first wait after a connection could not be made, and the longest.
const WAIT_MIN: Duration = Duration::from_millis(50);
const WAIT_MAX: Duration = Duration::from_secs(2);

/// How often a call is made again that got into somebody's way.
pub(super) const CLASHES_MAX: usize = 5;

/// The pool.
pub(super) struct Connections {
    pool: Pool,
    place: Arc<str>,
    /// What each transaction has to say first, if anything.
    limits: Option<Arc<str>>,
    call_timeout: Duration,
    clock: Arc<FollowedClock>,
    outage: Mutex<Outage>,
}

/// While there is no connection to be had, most calls hear so without a try.
#[derive(Default)]
struct Outage {
    failures: u32,
    /// The uptime before which nobody tries.
    until: Duration,
    why: String,
}

impl Connections {
    pub(super) fn new(
        address: &Address,
        options: &OpenOptions,
        clock: Arc<FollowedClock>,
    ) -> Result<Self, Fault> {
        // The last host is tried, too, where none of the others says a word.
        let hosts = address.config.get_hosts().len().clamp(1, 8) as u32;
        let recycle = ManagerConfig { recycling_method: RecyclingMethod::Fast };
        let connections = Manager::from_config(address.config.clone(), address.tls.clone(), recycle);
        let pool = Pool::builder(connections)
            .max_size(options.connections_max)
            .runtime(Runtime::Tokio1)
            .wait_timeout(Some(options.call_timeout))
            .create_timeout(Some(options.connect_timeout * (hosts + 1)))
            .build()
            .map_err(|error| Fault::NoConnection(error.to_string()))?;
        Ok(Self {
            pool,
            place: address.place.as_str().into(),
            limits: address.limits.as_deref().map(Arc::from),
            call_timeout: options.call_timeout,
            clock,
            outage: Mutex::default(),
        })
    }

    /// A connection for one call.
    pub(super) async fn hold(&self) -> Result<Held, StoreError> {
        let explain = |why: String| StoreError::Unavailable(format!("{}: {why}", self.place));
        if let Some(why) = self.outage(|outage, uptime| (uptime < outage.until).then(|| outage.why.clone())) {
            return Err(explain(why));
        }
        match self.pool.get().await {
            Ok(object) => {
                self.outage(|outage, _| *outage = Outage::default());
                let call = Call {
                    place: self.place.clone(),
                    limits: self.limits.clone(),
                    timeout: self.call_timeout,
                    spoilt: AtomicBool::new(false),
                };
                Ok(Held { object: Some(object), call })
            }
            Err(error) => {
                let why = match error {
                    PoolError::Backend(error) => Fault::from(error).to_string(),
                    other => other.to_string(),
                };
                self.outage(|outage, uptime| {
                    let wait = WAIT_MIN * 2_u32.saturating_pow(outage.failures.min(8));
                    *outage = Outage {
                        failures: outage.failures + 1,
                        until: uptime + wait.min(WAIT_MAX),
                        why: why.clone(),
                    };
                });
                Err(explain(why))
            }
        }
    }

    fn outage<T>(&self, look: impl FnOnce(&mut Outage, Duration) -> T) -> T {
        let uptime = self.clock.uptime();
        look(&mut self.outage.lock().unwrap_or_else(PoisonError::into_inner), uptime)
    }
}

/// A connection that is one call's until it is dropped.
pub(super) struct Held {
    object: Option<Object>,
    call: Call,
}

/// What a call may cost, and what it did to its connection.
pub(super) struct Call {
    place: Arc<str>,
    limits: Option<Arc<str>>,
    timeout: Duration,
    spoilt: AtomicBool,
}

impl Held {
    /// The connection, and the call that it is held for.
    pub(super) fn parts(&mut self) -> Option<(Line<'_>, &Call)> {
        let line = Line::new(self.object.as_mut()?, self.call.limits.as_deref());
        Some((line, &self.call))
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        if let Some(object) = self.object.take()
            && self.call.spoilt.load(Ordering::Relaxed)
        {
            // Closed, and not given to the next one.
            drop(Object::take(object));
        }
    }
}

impl Call {
    /// Waits for the answer, but not for ever.
    pub(super) async fn within<T>(&self, work: impl Future<Output = Result<T, Fault>>) -> Result<T, Fault> {
        let result = match tokio::time::timeout(self.timeout, work).await {
            Ok(result) => result,
            Err(_) => Err(Fault::TimedOut(self.timeout)),
        };
        if result.as_ref().is_err_and(Fault::spoils) {
            self.spoilt.store(true, Ordering::Relaxed);
        }
        result
    }

    /// What the caller is told.
    pub(super) fn explain(&self, fault: &Fault) -> StoreError {
        store_error(&self.place, fault)
    }
}

/// What a caller is told whose connection is gone before it was used.
pub(super) fn gone() -> StoreError {
    StoreError::Unavailable("the connection is gone".to_owned())
}

/// Makes a call that needs no transaction on a connection of its own: `ask!(store, |db| work(db, …))`, where `db` is a
/// `&Client`. Makes it again like [`transact`].
macro_rules! ask {
    ($store:ident, |$db:ident| $work:expr) => {
        $crate::postgres::connections::transact!($store, |line| async {
            let lone = line.lone().await?;
            let $db = &*lone;
            let done = $work.await?;
            lone.finish().await?;
            Ok(done)
        })
    };
}

/// Makes a call that begins its transactions itself: `transact!(store, |db| work(db, …))`, where `db` is a `&mut Line`.
/// Makes it again if it got into the way of another one, which the database then ended.
macro_rules! transact {
    ($store:ident, |$db:ident| $work:expr) => {{
        let mut clashes = 0;
        loop {
            let mut held = $store.connections.hold().await?;
            let Some((mut line, call)) = held.parts() else {
                break Err($crate::postgres::connections::gone());
            };
            let $db = &mut line;
            match call.within($work).await {
                Err(fault) if fault.is_a_clash() && clashes < $crate::postgres::connections::CLASHES_MAX => {
                    clashes += 1;
                }
                result => break result.map_err(|fault| call.explain(&fault)),
            }
        }
    }};
}

pub(super) use {ask, transact};
