//! The connections to a server or to the nodes of a cluster, made when they are needed and shared from then on.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use ::redis::cmd;
use redeliver_engine::clock::Clock;

use super::config::Kind;
use super::dial::{Address, Dial};
use super::line::{Line, Trouble};
use super::slots::Slots;

/// The ways to everything that one config names.
pub(super) struct Ways {
    pub(super) dial: Arc<Dial>,
    clock: Arc<dyn Clock>,
    known: Mutex<Known>,
}

/// What is known of the servers.
#[derive(Default)]
struct Known {
    /// Which node of a cluster has which key.
    slots: Option<Arc<Slots>>,
    /// Where there is one server only, it stands under no address.
    spots: HashMap<Option<Address>, Arc<Spot>>,
}

/// The way to one server.
#[derive(Default)]
struct Spot(tokio::sync::Mutex<Link>);

/// The connection that all share, or how it stands with getting one.
#[derive(Default)]
struct Link {
    line: Option<Arc<Line>>,
    /// How often in a row the server could not be reached.
    failures: u32,
    /// Uptime when that was found last, and why: whoever came before then shares it instead of knocking again.
    failed: Option<(Duration, Trouble)>,
}

/// Why there is no way, and how often in a row there was none.
#[derive(Debug)]
pub(super) struct NoWay {
    pub(super) trouble: Trouble,
    pub(super) failures: u32,
}

impl Ways {
    /// Nothing is connected yet.
    pub(super) fn new(dial: Arc<Dial>, clock: Arc<dyn Clock>) -> Self {
        Self { dial, clock, known: Mutex::default() }
    }

    /// The connection to whoever has this key, made if there is none.
    pub(super) async fn to(&self, key: &str) -> Result<Arc<Line>, NoWay> {
        let address = match self.dial.servers.kind {
            Kind::One | Kind::Sentinel(_) => None,
            Kind::Cluster => Some(self.node_of(key).await?),
        };
        let line = self.open(address.as_ref()).await;
        if line.is_err() {
            // Another node may have its keys by now.
            self.forget_slots();
        }
        line
    }

    /// Forgets which node has which key: some have moved.
    pub(super) fn forget_slots(&self) {
        self.known().slots = None;
    }

    async fn node_of(&self, key: &str) -> Result<Address, NoWay> {
        let slots = self.known().slots.clone();
        let slots = match slots {
            Some(slots) => slots,
            None => self.ask_for_slots().await?,
        };
        slots.node_of(key).cloned().ok_or_else(|| {
            self.forget_slots();
            NoWay { trouble: Trouble::Away("no node of the cluster has it".to_owned()), failures: 1 }
        })
    }

    /// Which node has which key, as the first says that answers.
    async fn ask_for_slots(&self) -> Result<Arc<Slots>, NoWay> {
        let mut last = None;
        for address in &self.dial.servers.hosts {
            let asked = async {
                let line = self.open(Some(address)).await?;
                let answer = line.ask(cmd("CLUSTER").arg("SLOTS"), self.dial.config.connect_timeout).await;
                let failed = |trouble| NoWay { trouble, failures: 1 };
                let unread = || failed(Trouble::Away("it does not say how its cluster stands".to_owned()));
                Slots::read(&answer.map_err(failed)?, address).ok_or_else(unread)
            };
            match asked.await {
                Ok(slots) => {
                    let slots = Arc::new(slots);
                    self.known().slots = Some(Arc::clone(&slots));
                    return Ok(slots);
                }
                Err(no_way) => last = Some(no_way),
            }
        }
        let nobody = || NoWay { trouble: Trouble::Away("the cluster has no host".to_owned()), failures: 1 };
        Err(last.unwrap_or_else(nobody))
    }

    async fn open(&self, address: Option<&Address>) -> Result<Arc<Line>, NoWay> {
        let came_at = self.clock.uptime();
        let spot = Arc::clone(self.known().spots.entry(address.cloned()).or_default());
        let mut link = spot.0.lock().await;
        if let Some(line) = &link.line
            && !line.is_over()
        {
            return Ok(Arc::clone(line));
        }
        link.line = None;
        if let Some((_, trouble)) = link.failed.as_ref().filter(|(at, _)| came_at <= *at) {
            return Err(NoWay { trouble: trouble.clone(), failures: link.failures });
        }
        let connected = match address {
            Some(address) => self.dial.connect_to(address).await,
            None => self.dial.connect().await,
        };
        match connected {
            Ok(line) => {
                let line = Arc::new(line);
                *link = Link { line: Some(Arc::clone(&line)), failures: 0, failed: None };
                Ok(line)
            }
            Err(trouble) => {
                link.failures += 1;
                link.failed = Some((self.clock.uptime(), trouble.clone()));
                Err(NoWay { trouble, failures: link.failures })
            }
        }
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
