//! Builds an engine from a config. The only file that names every adapter.

use std::collections::HashMap;
use std::sync::Arc;

use anyhow::anyhow;
use redeliver_core::{Name, Timestamp};
use redeliver_engine::access::Access;
use redeliver_engine::clock::{Clock, WallClock};
use redeliver_engine::emit::{Observer, Telemetry};
use redeliver_engine::memory::MemoryStore;
use redeliver_engine::store::Store;
use redeliver_engine::transport::Transport;
use redeliver_engine::{Engine, Line};
use redeliver_stores::{Durability as SqliteDurability, OpenError, OpenOptions, Role, Sqlite};
use redeliver_transports::scripted::ScriptedTransport;
use redeliver_transports::smtp::SmtpTransport;

use crate::config::{Config, Durability, StoreConfig, StoreUrl, TransportConfig};

/// An engine over everything that the config names. It does nothing yet.
pub fn wire(config: &Config, observer: Arc<dyn Observer>) -> anyhow::Result<Arc<Engine>> {
    let opened = open_store(&config.store, Role::Engine)?;
    engine(config, &opened, observer, opened.wall_clock())
}

/// The same by a clock of the caller's, if it has one, and with what the store knows of keys and sessions.
pub fn wire_with_access(
    config: &Config,
    observer: Arc<dyn Observer>,
    clock: Option<Arc<dyn Clock>>,
) -> anyhow::Result<(Arc<Engine>, Arc<dyn Access>)> {
    let opened = open_store(&config.store, Role::Engine)?;
    let clock = clock.unwrap_or_else(|| opened.wall_clock());
    Ok((engine(config, &opened, observer, clock)?, opened.access))
}

/// An engine to accept messages, to look at them and to operate on them, but to carry none; and who may come in.
pub fn wire_beside(config: &Config) -> anyhow::Result<(Arc<Engine>, Arc<dyn Access>)> {
    let opened = open_store(&config.store, Role::Client)?;
    Ok((engine(config, &opened, Arc::new(Telemetry), opened.wall_clock())?, opened.access))
}

/// A store, as the ports have it.
struct Opened {
    store: Arc<dyn Store>,
    access: Arc<dyn Access>,
    /// The latest time that it has seen.
    last_time: Timestamp,
}

impl Opened {
    /// The machine's clock, never behind what the store has seen.
    fn wall_clock(&self) -> Arc<dyn Clock> {
        WallClock::new(self.last_time)
    }
}

fn engine(
    config: &Config,
    opened: &Opened,
    observer: Arc<dyn Observer>,
    clock: Arc<dyn Clock>,
) -> anyhow::Result<Arc<Engine>> {
    let transports: HashMap<Name, Arc<dyn Transport>> = config
        .transports
        .iter()
        .map(|(name, config)| Ok((name.clone(), transport(name, config, &clock)?)))
        .collect::<anyhow::Result<_>>()?;
    let line = |route: &redeliver_core::Route| {
        Line::new(route.clone(), &transports, Vec::new())
            .map_err(|missing| anyhow!("route {} names no transport {missing}", route.name))
    };
    let lines = config.routes.values().map(|config| line(&config.route)).collect::<anyhow::Result<_>>()?;
    let store = Arc::clone(&opened.store);
    Ok(Arc::new(Engine::new(store, clock, observer, config.engine.clone(), lines)))
}

fn open_store(config: &StoreConfig, role: Role) -> anyhow::Result<Opened> {
    match &config.url {
        StoreUrl::Memory => {
            let store = Arc::new(MemoryStore::default());
            Ok(Opened { store: store.clone(), access: store, last_time: Timestamp::default() })
        }
        StoreUrl::Sqlite(path) => {
            let durability = match config.durability {
                Durability::Full => SqliteDurability::Full,
                Durability::Relaxed => SqliteDurability::Relaxed,
            };
            let options = OpenOptions { role, durability, ..OpenOptions::default() };
            let store = Arc::new(Sqlite::open(path, options).map_err(with_advice)?);
            let last_time = store.last_time().unwrap_or_default();
            Ok(Opened { store: store.clone(), access: store, last_time })
        }
    }
}

fn transport(
    name: &Name,
    config: &TransportConfig,
    clock: &Arc<dyn Clock>,
) -> anyhow::Result<Arc<dyn Transport>> {
    let clock = Arc::clone(clock);
    match config {
        TransportConfig::Scripted(config) => {
            Ok(Arc::new(ScriptedTransport::new(name.clone(), config.clone(), clock)))
        }
        TransportConfig::Smtp(config) => {
            let transport = SmtpTransport::new(name.clone(), (**config).clone(), clock);
            Ok(Arc::new(transport.map_err(|wrong| anyhow!("transport {name}: {wrong}"))?))
        }
    }
}

/// What is wrong, with what whoever started us can do about it where the error doesn't say so itself.
fn with_advice(error: OpenError) -> anyhow::Error {
    match error {
        OpenError::Taken { .. } => {
            anyhow!(
                "{error}; stop that one first, or give this one a store of its own (store.url, DATABASE_URL)"
            )
        }
        OpenError::Locked { .. } => {
            anyhow!("{error}; end whatever has a transaction open on it, then try again")
        }
        OpenError::Full { .. } => anyhow!("{error}; make room, nothing that was accepted is lost"),
        OpenError::Unreachable { .. } | OpenError::Damaged { .. } | OpenError::OtherVersion { .. } => {
            error.into()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whoever_cannot_open_a_store_is_told_what_to_do() {
        let path = || "x.db".into();
        let check = |error: OpenError, words: &str| {
            let said = with_advice(error).to_string();
            assert!(said.starts_with("cannot open store sqlite:x.db: ") && said.contains(words), "{said}");
        };
        check(OpenError::Taken { path: path(), lock: "x.db.lock".into() }, "stop that one first");
        check(OpenError::Locked { path: path() }, "is another redeliver running?");
        check(OpenError::Locked { path: path() }, "end whatever has a transaction open");
        check(OpenError::Full { path: path() }, "make room");
        check(OpenError::Damaged { path: path(), why: "bad".into() }, "restore it from a backup");
    }
}
